"""A web server on this machine that hands out one archive, whole or harmed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local_server import Handler, serving


class ArchiveServer:
    """A running server.

    Attributes:
        content: What it has, by path.
        cut: Break the connection after so many bytes, once for each number here.
        ranges: Whether it can go on in the middle of a file.
        requests: The paths asked for, and from which byte on.
    """

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.content: dict[str, bytes] = {}
        self.cut: list[int] = []
        self.ranges = True
        self.requests: list[tuple[str, int]] = []


@contextmanager
def archive_server() -> Iterator[ArchiveServer]:
    """Runs a server for as long as the context lasts."""

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802  # the name is http.server's
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
            running.requests.append((self.path, start))
            if self.path not in running.content:
                self.send_error(404)
                return
            start = start if running.ranges else 0
            body = running.content[self.path][start:]
            self.reply(206 if start else 200, body, sent=running.cut.pop(0) if running.cut else None)

    with serving(Answering) as port:
        running = ArchiveServer(port)
        yield running
