"""Limits the number of connections and their waiting times. uvicorn handles everything else.

uvicorn itself waits for a request without limit, and accepts connections until the process has no file left.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ACCEPTED_AT_ONCE = 64
"""The number of connections that the event loop accepts in a round. An excess connection is closed six rounds later."""

_OTHER_FILES = 256 + 6 * ACCEPTED_AT_ONCE
"""File descriptors kept for indexes and other files, and for connections that will be refused."""

_REPORT_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class _Phase(Enum):
    """The states in which a connection waits, each with the reason given when waiting takes too long."""

    REQUEST = "sent no whole request in time"
    IDLE = "were idle"
    ANSWER = ""
    WRITING = "did not read their answers in time"
    CLOSING = "were not closed in time"


class Connections:
    """The open connections of a server. At the limit, the connection that waits longest is closed for a new one.

    The limit is ``most``, or less if the system grants fewer files. A request must arrive within ``seconds``, and a
    client must continue reading within ``seconds``.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.seconds = seconds
        self._most = min(most, _files_for(most))
        self._open = set[_LimitedProtocol]()
        self._waiting = dict[_LimitedProtocol, None]()  # ordered by the start of their wait
        self._closed = Counter[str]()
        if self._most < most:
            _logger.warning("%d connections at most, not %d: the system grants no more files", self._most, most)

    def opened(self, connection: _LimitedProtocol) -> None:
        """Counts a connection and makes room for it. If all others are being answered, the new connection is closed."""
        self._open.add(connection)
        if len(self._open) > self._most:
            self.close(next(iter(self._waiting), connection), "made room for others")

    def waits(self, connection: _LimitedProtocol, is_waiting: bool) -> None:
        """Records that a connection starts or stops waiting for its client."""
        self._waiting.pop(connection, None)
        if is_waiting:
            self._waiting[connection] = None

    def close(self, connection: _LimitedProtocol, reason: str) -> None:
        """Closes a connection immediately. The log has at most one line for this each second."""
        if not self._closed:
            connection.loop.call_later(_REPORT_SECONDS, self._report)
        self._closed[reason] += 1
        self.lost(connection)
        connection.transport.abort()

    def lost(self, connection: _LimitedProtocol) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def _report(self) -> None:
        _logger.info("connections closed: %s", ", ".join(f"{count} {why}" for why, count in self._closed.items()))
        self._closed.clear()


class _LimitedProtocol(H11Protocol):
    """uvicorn's protocol with time limits, and with errors in the form of all other errors."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        self._phase = _Phase.ANSWER
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connections.opened(self)
        self._enter(_Phase.REQUEST)

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(_Phase.ANSWER)
        self._connections.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._enter(self._phase_now())

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._enter(self._phase_now())

    def pause_writing(self) -> None:
        super().pause_writing()
        self._enter(self._phase_now())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._enter(self._phase_now())

    def _phase_now(self) -> _Phase:
        if self.transport.is_closing():
            return _Phase.CLOSING
        if self.flow.write_paused:
            return _Phase.WRITING
        if self.conn.their_state is h11.IDLE:
            return _Phase.REQUEST if self.conn.trailing_data[0] else _Phase.IDLE
        return _Phase.REQUEST if self.conn.their_state is h11.SEND_BODY else _Phase.ANSWER

    def _enter(self, phase: _Phase) -> None:
        """Starts to wait, unless the connection already waits for the same: otherwise each byte would restart it."""
        if phase is self._phase:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._phase, self._timer = phase, None
        self._connections.waits(self, phase is not _Phase.ANSWER)
        if phase is not _Phase.ANSWER:
            idle = self.timeout_keep_alive if phase is _Phase.IDLE else 0  # uvicorn should close it by then
            self._timer = self.loop.call_later(idle + self._connections.seconds, self._expired)

    def _expired(self) -> None:
        phase = self._phase
        if phase is _Phase.REQUEST and (self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]):
            self._answer(408, f"The request did not arrive as a whole in {self._connections.seconds:g} seconds")
        self._connections.close(self, phase.value)

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is not HTTP. If an answer has begun, nothing is sent."""
        fault = sys.exception()
        is_long = isinstance(fault, h11.RemoteProtocolError) and fault.error_status_hint == 431
        too_long = "The address and the headers are too long; a large query goes into the body of a POST"
        foreign = "The request is not HTTP/1.1; letters beyond ASCII are percent-encoded in an address, as by curl -G "
        self._answer(431 if is_long else 400, too_long if is_long else f"{foreign}--data-urlencode")
        self.transport.close()

    def _answer(self, status: int, said: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        if self.cycle is not None:
            self.cycle.disconnected = True  # so the application sends nothing more
        body = json.dumps({"error": said}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        reason = HTTPStatus(status).phrase.encode()
        for event in (
            h11.Response(status_code=status, headers=headers, reason=reason),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")

    def _unsupported_upgrade_warning(self) -> None:
        """Logs nothing. The request is answered without the upgrade, as HTTP allows."""


def protocol(connections: Connections) -> type[asyncio.Protocol]:
    """The factory of connections for a uvicorn server."""
    return cast("type[asyncio.Protocol]", partial(cast("Callable[..., Any]", _LimitedProtocol), connections))


def _files_for(most: int) -> int:
    """How many connections the process can have. Asks the system for enough files."""
    if resource is None:
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = most + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return most if soft == resource.RLIM_INFINITY else max(soft - _OTHER_FILES, soft // 4)
