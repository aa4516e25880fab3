"""A web server on this machine that speaks the protocol of chat completions, and misbehaves when told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = Callable[[BaseHTTPRequestHandler], None]


def content(text: str | None) -> Reply:
    """A completion with that content."""
    return body(json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}))


def expression(text: str) -> Reply:
    """A completion as it should be."""
    return content(json.dumps({"expression": text}))


def body(text: str, status: int = 200, **headers: str) -> Reply:
    """Any answer."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        data = text.encode()
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return send


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, for as long as someone listens."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        pass


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A header now and then, and never the last."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    try:
        while True:
            handler.wfile.write(b"X: y\r\n")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def raw(data: bytes) -> Reply:
    """These bytes, and the end."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(data)
        handler.close_connection = True

    return send


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """No answer."""
    handler.close_connection = True


class ChatServer:
    """A running server.

    Attributes:
        url: The base of its API.
        replies: What it answers, one after another; the last for ever.
        requests: The bodies that came in.
        keys: The Authorization headers.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: list[Reply] = []
        self.requests: list[dict] = []
        self.keys: list[str | None] = []

    def take(self) -> Reply:
        """The next reply."""
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def chat_server(*replies: Reply) -> Iterator[ChatServer]:
    """A server with these replies."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/chat/completions"
            server.requests.append(data)
            server.keys.append(self.headers["Authorization"])
            server.take()(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_port}/v1")
        server.replies = list(replies)
        thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
