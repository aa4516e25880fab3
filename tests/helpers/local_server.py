"""Web servers on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers requests; standard error hears nothing of them."""

    def reply(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, sent: int | None = None
    ) -> None:
        """Sends an answer, of whose body only the first bytes are sent if ``sent`` says how many."""
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:sent])

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving(handler: type[Handler]) -> Iterator[int]:
    """Runs a server for as long as the context lasts, and gives its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
