"""Opens the indexes and runs the server until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from contextlib import ExitStack
from ipaddress import ip_address

import uvicorn

from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.serve.app import create_app
from pyserini_compneg.serve.connections import ACCEPTED_AT_ONCE, Connections, protocol
from pyserini_compneg.serve.following import first_copies
from pyserini_compneg.serve.gate import Gate
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.parameter_types import MOST_CHARACTERS
from pyserini_compneg.serve.served_index import OpenIndex, ServedIndex
from pyserini_compneg.serve.settings import ServerSettings
from pyserini_compneg.serve.settings_reload import follow
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import reason_of

_MOST_BYTES_OF_A_HEAD = 12 * MOST_CHARACTERS + 32_768
"""The limit on the request line and the headers, in bytes. A percent-encoded character of a query may take 12."""

_KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep an idle connection, so that no client sends a request while this side closes it."""

_BACKLOG = 2048
"""The number of connections that the system queues until they are accepted."""

_LOCAL = ("127.0.0.1", "localhost", "[::1]")

_HAS_SIGHUP = hasattr(signal, "SIGHUP")  # not on Windows

_logger = logging.getLogger(__name__)


def serve(
    settings: ServerSettings,
    options: ServeOptions,
    open_index: OpenIndex = SignedImpactSearcher,
    file: str | None = None,
) -> None:
    """Serves indexes until a signal stops the server. Requests that arrived before the signal are answered.

    Keys and origins of the settings file, if there is one, are read again when it changes, and after SIGHUP.
    """
    if file and options.mcp != "stdio" and _HAS_SIGHUP:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it is handled: the file is read then
    with ExitStack() as stack:
        listening = None if options.mcp == "stdio" else stack.enter_context(_listening(options.host, options.port))
        first_copies(settings.indexes)
        opened = {name: ServedIndex(name, index, open_index) for name, index in settings.indexes.items()}
        for name, index in opened.items():
            stack.callback(index.close)
            _logger.info("index %s: %s documents", name, f"{index.documents:,}")
        if listening is None:
            from pyserini_compneg.serve.mcp_transports import run_on_standard_input

            run_on_standard_input(opened, options, settings.limits)
            return
        address, bound = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        is_local = ip_address(address.partition("%")[0]).is_loopback
        if not settings.needs_key and not is_local:
            said = "anyone who reaches http://%s:%d may search, because the settings have no api_keys: %s"
            _logger.warning(said, shown, bound, "give clients keys, or listen at 127.0.0.1 behind a proxy that does")
        elif settings.needs_key and not (settings.api_keys or settings.write_keys):
            _logger.warning("%s: api_keys is empty, so nobody may search until it has a key", file)
        _logger.info("listening at http://%s:%d", shown, bound)
        hosts = (*_LOCAL, shown, options.host) if is_local and not settings.needs_key else None
        limits = settings.limits
        gate = create_app(opened, options, settings, hosts)
        config = uvicorn.Config(
            gate,
            http=protocol(Connections(limits.connections, limits.receive_seconds)),
            ws="none",
            backlog=ACCEPTED_AT_ONCE,
            h11_max_incomplete_event_size=_MOST_BYTES_OF_A_HEAD,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # any client can set these headers, and the log would show them
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(options.timeout) + 1,  # all searches have ended by then
        )
        _Server(config, gate, file).run(sockets=[listening])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, gate: Gate, file: str | None) -> None:
        super().__init__(config)
        self._gate, self._file = gate, file
        self._following: asyncio.Task[None] | None = None  # the loop itself would not keep it

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for one in sockets or ():
            one.listen(_BACKLOG)  # the event loop has set another backlog
        if self._file:
            asked = asyncio.Event()
            if _HAS_SIGHUP:
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
            self._following = asyncio.create_task(follow(self._file, self._gate, asked))


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "no such address"
        raise InputError(f"cannot listen there: {why}", where=f"--host {host} --port {port}") from None
