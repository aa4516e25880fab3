"""The flags of a server process. Indexes and access are in :mod:`pyserini_compneg.serve.settings`.

This module does not load pydantic, so the help of the command does not load it, either.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.options import COUNT, POSITIVE, Number, option
from pyserini_compneg.support.processors import processors

PORT = Number("a whole number from 0 to 65535", whole_number, lambda port: 0 <= port <= 65535)

_THREADS = processors()


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The address of a server and the limits on its concurrent work. Port 0 means any free port."""

    host: str = option("127.0.0.1", "address to listen at (default 127.0.0.1, this machine)", metavar="ADDRESS")
    port: int = option(8081, "port to listen at (default 8081)", PORT, metavar="N")
    mcp: str | None = option(
        None,
        "tools for language models: http adds the route /mcp; stdio serves only these tools, on standard input",
        choices=("http", "stdio"),
    )
    threads: int = option(_THREADS, f"queries searched at once (default {_THREADS})", COUNT)
    queue: int = option(64, "searches that may wait; more are refused with status 429 (default 64)", COUNT)
    log_queries: str = option(
        "yes",
        "whether the log has queries: yes (default), no, or hash, equal for equal queries until the server ends",
        choices=("no", "hash", "yes"),
    )
    timeout: float = option(10.0, "limit for a search, waiting included (default 10)", POSITIVE, metavar="SECONDS")
