"""Where the tools for language models are served: on standard input, and at a route of the server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.following import following
from pyserini_compneg.serve.mcp_tools import tools
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import Limits
from pyserini_compneg.support.surrogates import has_half

_logger = logging.getLogger(__name__)


def run_on_standard_input(indexes: Mapping[str, ServedIndex], options: ServeOptions, limits: Limits) -> None:
    """Serves the tools on standard input and output until the input ends."""
    backend = Backend(indexes, limits, options)

    async def run() -> None:
        _take_signals_between_tasks()
        reloading = asyncio.create_task(backend.reload_for_ever())
        try:
            with following(backend):
                await _serve_standard_input(tools(backend))
        finally:
            reloading.cancel()

    try:
        asyncio.run(run())
    except (SystemExit, KeyboardInterrupt) as stop:
        code = stop.code if isinstance(stop, SystemExit) else 130
        threading.Thread(target=_end_without_input, args=(code,), daemon=True).start()
        raise
    finally:
        backend.pool.close()


async def _serve_standard_input(server: Server[Any]) -> None:
    """Serves until the input has ended and its requests are answered, or until the client reads no answers any more.

    When the input ends, the library would end the requests that run. It would also drop lines that are not messages.
    """
    pending = Counter[str]()  # by id, which a client may use again
    ended = anyio.Event()
    passed, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, answered = anyio.create_memory_object_stream[SessionMessage]()

    def end_if_answered() -> None:
        if ended.is_set() and not pending.total():
            passed.close()

    try:
        async with stdio_server() as (lines, replies):

            async def pass_on() -> None:
                async for line in lines:
                    if isinstance(line, Exception):
                        await replies.send(SessionMessage(_not_understood(line)))
                    else:
                        _count(line.message, pending)
                        await passed.send(line)
                ended.set()
                end_if_answered()

            async def reply() -> None:
                async with replies, answered:
                    async for answer in answered:
                        await replies.send(answer)
                        _count(answer.message, pending)
                        end_if_answered()

            async with anyio.create_task_group() as group:
                group.start_soon(pass_on)
                group.start_soon(reply)
                await server.run(messages, answers, server.create_initialization_options())
    except* (BrokenPipeError, anyio.BrokenResourceError):
        _logger.info("the client reads no answers any more")


def _count(message: JSONRPCMessage, pending: Counter[str]) -> None:
    """Counts a request as pending, until it is answered or cancelled. Then it gets no answer."""
    match message:
        case JSONRPCRequest(id=number):
            pending[str(number)] += 1
            return
        case JSONRPCResponse(id=number) | JSONRPCError(id=number):
            pass
        case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
            pass
        case _:
            return
    if pending[str(number)] > 0:
        pending[str(number)] -= 1


class _Understood:
    """Passes messages on. The library itself would answer other input with a report of pydantic."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        try:
            jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError as error:
            said = _not_understood(error).model_dump(mode="json")
            await JSONResponse(said, 400)(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, again, send)


def http_route(server: Server[Any]) -> Route:
    """The tools at ``/mcp``, for POST only: GET would open an endless stream on which nothing is sent."""
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the gate has checked the host
    app = server.streamable_http_app(stateless_http=True, json_response=True, transport_security=checked)
    (route,) = (route for route in app.routes if isinstance(route, Route))
    return Route(route.path, _Understood(route.app), methods=["POST"])


def _not_understood(error: Exception) -> JSONRPCError:
    """The answer to input that is not a message, with its id if there is one."""
    code, said, found = PARSE_ERROR, "the message is not valid JSON", None
    with suppress(ValueError, RecursionError):
        given = error.errors()[0]["input"] if isinstance(error, ValidationError) else ""
        content = json.loads(given) if isinstance(given, (str, bytes)) else given
        if has_half(json.dumps(content, ensure_ascii=False)):
            said = "the message holds half of a surrogate pair, which is not text"
        else:
            code, said = INVALID_REQUEST, "the message is not a request of JSON-RPC 2.0"
        found = content.get("id") if isinstance(content, dict) else None
    known = found if isinstance(found, (int, str)) and not isinstance(found, bool) else None
    known = None if isinstance(known, str) and has_half(known) else known
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=said))


def _take_signals_between_tasks() -> None:
    """Makes the event loop call the handlers of signals.

    Python calls handlers between any two instructions. Their exception could lose a task that the loop has just taken
    from its queue, and the loop would wait for it for ever.
    """
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in {**handlers, signal.SIGINT: signal.default_int_handler}.items():
        if callable(handler):
            loop.add_signal_handler(number, handler, number, None)


def _end_without_input(code: int) -> None:
    """Ends the process when its main thread ends. Python would wait for the thread that reads the input."""
    threading.main_thread().join()
    os._exit(code)
