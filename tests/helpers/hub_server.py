"""A web server on this machine that hands out models as the Hugging Face hub does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_server import Handler, serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer:
    """A running server.

    Attributes:
        address: For ``HF_ENDPOINT``.
        models: The files of each model, by name and path.
        refused: Of some models the status, and the code, that the hub gives instead.
        broken: Paths of files that are refused with 403.
        requests: What was asked for.
    """

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.models: dict[str, dict[str, bytes]] = {}
        self.refused: dict[str, tuple[int, str]] = {}
        self.broken: set[str] = set()
        self.requests: list[str] = []

    def add(self, name: str, folder: Path) -> None:
        """Takes up a model."""
        files = (path for path in folder.rglob("*") if path.is_file())
        self.models[name] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        path = path.partition("?")[0]
        parts = path.removeprefix("/api/models").removeprefix("/").split("/", 4)
        name, kind = "/".join(parts[:2]), parts[2] if len(parts) > 2 else ""
        if name in self.refused:
            status, code = self.refused[name]
            return status, {"X-Error-Code": code, "X-Error-Message": "refused"}, b"{}"
        if name not in self.models:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        if kind == "tree":
            tree = [
                {"type": "file", "path": file, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
                for file, body in sorted(self.models[name].items())
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
        if kind != "resolve":
            siblings = [{"rfilename": file} for file in sorted(self.models[name])]
            info = {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        file = parts[4]
        if file in self.broken:
            return 403, {}, b""
        if file not in self.models[name]:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b""
        body = self.models[name][file]
        return 200, {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X-Repo-Commit": COMMIT}, body


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """Runs a server for as long as the context lasts."""

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802  # the name is http.server's
            running.requests.append(f"{self.command} {self.path}")
            status, headers, body = running.answer(self.path)
            self.reply(status, body, headers)

        do_HEAD = do_GET  # noqa: N815

    with serving(Answering) as port:
        running = HubServer(port)
        yield running
