"""A web server on this machine that speaks the protocol of chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, str]
"""A status and a body."""


def content(text: str | None) -> Reply:
    """A completion with that content."""
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})


def expression(text: str) -> Reply:
    """A completion as it should be."""
    return content(json.dumps({"expression": text}))


@dataclass
class ChatServer:
    """A running server: the base of its API, and the bodies and Authorization headers that came in."""

    url: str
    requests: list[dict] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextmanager
def chat_server(reply: Reply, location: str = "") -> Iterator[ChatServer]:
    """A server that always answers the same; clients are told not to ask again, or where to ask instead."""
    status, body = reply[0], reply[1].encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            server.keys.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-should-retry", "false")
            if location:
                self.send_header("Location", f"{location}/chat/completions")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_port}/v1")
        thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
