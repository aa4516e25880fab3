"""A web server on this machine that speaks the protocol of chat completions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from local_server import Handler, serving

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
def chat_server(
    reply: Reply | Callable[[dict], Reply], location: str = "", headers: Mapping[str, str] | None = None
) -> Iterator[ChatServer]:
    """A server that always answers the same, or answers each request by a function.

    Clients are told not to ask again, or where to ask instead, unless ``headers`` tell otherwise.
    """
    told = {"Content-Type": "application/json", "x-should-retry": "false", **(headers or {})}
    told |= {"Location": f"{location}/chat/completions"} if location else {}

    class Answering(Handler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            server.keys.append(self.headers["Authorization"])
            status, body = reply(server.requests[-1]) if callable(reply) else reply
            self.reply(status, body.encode(), told)

    with serving(Answering) as port:
        server = ChatServer(f"http://127.0.0.1:{port}/v1")
        yield server
