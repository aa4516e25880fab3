"""A writer whose index is copied: a web server on this machine, which may cut, harm or lose what it sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local_server import Handler, serving

from pyserini_compneg.index.copied_files import index_files
from pyserini_compneg.index.index_folder import COPY_RECORD
from pyserini_compneg.lucene import open_reader

KEY = "key-of-copies"


class Writer:
    """A running writer.

    Attributes:
        folder: Its index.
        requests: The paths of files asked for, each with the first byte.
        sent: How many bytes of files were sent.
        cut: Each connection for a file is closed after so many bytes; None for never.
        harm: Changes the bytes of a file before they are sent.
        listed: Called between the reading of a list and its answer.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://127.0.0.1:{port}/v1/films"
        self.requests: list[tuple[str, int]] = []
        self.sent, self.cut = 0, None
        self.harm: Callable[[str, bytes], bytes] = lambda path, content: content
        self.listed: Callable[[], object] = lambda: None

    def files(self) -> tuple[str, list[dict[str, object]]]:
        with open_reader(self.folder) as reader:
            files = index_files(self.folder, reader.content_id)
            assert files
            named = [{"path": one.path, "bytes": one.bytes, "checksum": one.checksum} for one in files]
            return reader.content_id[-12:], named

    @property
    def total(self) -> int:
        return sum(int(str(one["bytes"])) for one in self.files()[1])


@contextmanager
def writing(folder: Path) -> Iterator[Writer]:
    """Runs a writer for as long as the context lasts."""

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802  # the name is http.server's
            if self.headers.get("X-API-Key") != KEY:
                self.reply(401, b'{"error": "no such key"}')
                return
            path = self.path.partition("/v1/films/files")[2]
            if not path:
                generation, files = writer.files()
                if self.headers.get("If-None-Match") == f'"{generation}"':
                    self.send_response(304)
                    self.end_headers()
                    return
                writer.listed()
                self.reply(200, json.dumps({"generation": generation, "files": files}).encode())
                return
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
            writer.requests.append((path[1:], start))
            try:
                content = writer.harm(path[1:], (writer.folder / path[1:]).read_bytes())
            except FileNotFoundError:
                self.reply(404, b'{"error": "no such file"}')
                return
            body = content[start:]
            writer.sent += len(body[: writer.cut])
            ranges = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
            self.reply(206 if start else 200, body, ranges, writer.cut)

    with serving(Answering) as port:
        writer = Writer(folder, port)
        yield writer


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of the files of an index by their paths, without a writer's lock and the record of a copy."""
    others = {"write.lock", COPY_RECORD}
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in others)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
