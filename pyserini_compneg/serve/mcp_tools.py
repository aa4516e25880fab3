"""Tools for language models, by the Model Context Protocol: the tools of Pyserini's server, and two more.

A model of ``parameters`` describes and checks the arguments of each tool.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import metadata
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ListToolsResult,
    TextContent,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.parameters import (
    DocumentOfIdParameters,
    ExplainOfIdParameters,
    Parameters,
    ReadingParameters,
    SearchParameters,
)
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import Limits
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.surrogates import has_half, without_halves
from pyserini_compneg.support.terminal import shown, suggestion

_INSTRUCTIONS = (
    "Search document collections. A query is an expression: texts joined by AND, OR and NOT in capitals, with "
    'parentheses, and with quotes around a text that holds these words, such as: spy films NOT "Get Smart". '
    "NOT lowers documents; NOT! removes those that have all words of its text. AND also finds documents that lack one "
    "of its sides; their field lacks says which. AND! finds only those that have a word of each. The query * finds all "
    "documents, to be filtered and sorted. Scores may be negative."
)


_logger = logging.getLogger(__name__)


class _OfIndex(BaseModel):
    index: str | None = Field(
        default=None, description="name of the index; list_indexes has all. Leave it out where there is only one"
    )


class _Search(_OfIndex, SearchParameters):
    """Find the best documents of an index for a query."""


class _GetDocument(_OfIndex, DocumentOfIdParameters):
    """Fetch a document by its id."""


class _ListIndexes(Parameters):
    """List the names of all indexes, and the fields of each by which filter and facets can choose."""


def _listed(backend: Backend) -> Mapping[str, Any]:
    fields = {name: list(index.filter_fields) for name, index in backend.indexes.items()}
    return {"result": list(fields), "filter_fields": fields}


class _Explain(_OfIndex, ExplainOfIdParameters):
    """Explain the score of a document by the contribution of each term of a query."""


class _Decompose(ReadingParameters):
    """Read plain English words as an expression: what is wanted, what is excluded, and how it is joined."""


_TOOLS: Mapping[str, tuple[type[BaseModel], Callable[[Backend, Any], Mapping[str, Any]]]] = {
    "search": (_Search, lambda backend, asked: answers.search_answer(backend, asked.index, asked)),
    "get_document": (
        _GetDocument,
        lambda backend, asked: answers.document_answer(backend, asked.index, asked.docid, asked),
    ),
    "list_indexes": (_ListIndexes, lambda backend, _: _listed(backend)),
    "explain": (_Explain, lambda backend, asked: answers.explain_answer(backend, asked.index, asked, asked.docid)),
    "decompose": (_Decompose, lambda _, asked: answers.reading_answer(asked)),
}


def tools(backend: Backend) -> Server[Any]:
    """A server with the five tools, which run in the pool of the backend."""
    listed = ListToolsResult(
        tools=[
            Tool(name=name, description=model.__doc__, input_schema=model.model_json_schema())
            for name, (model, _) in _TOOLS.items()
        ]
    )

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return listed

    async def call_tool(_: Any, call: CallToolRequestParams) -> CallToolResult:
        try:
            answer = _text_only(await _run(backend, call.name, call.arguments or {}))
        except Exception as error:
            refusal = backend.refusal(error)
            if refusal.status_code == 500 and not isinstance(error, CompNegError):
                _logger.exception("the tool %s failed", call.name)
            told: dict[str, Any] | None = refusal.detail if isinstance(refusal.detail, dict) else None
            said = told["error"] if told else refusal.detail
            return CallToolResult(content=[TextContent(text=said)], structured_content=told, is_error=True)
        return CallToolResult(
            content=[TextContent(text=json.dumps(answer, ensure_ascii=False))], structured_content=answer
        )

    return Server(
        "pyserini_compneg",
        version=metadata.version("pyserini_compneg"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _run(backend: Backend, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if name not in _TOOLS:
        others = suggestion(name, _TOOLS) or f"; there are {', '.join(_TOOLS)}"
        raise HTTPException(404, f"no tool {shown(name)}{others}")
    model, work = _TOOLS[name]

    def answer() -> Mapping[str, Any]:
        return work(backend, model.model_validate(_meant(arguments, model)))

    return await backend.pool.run(partial(backend.with_notes, answer), asyncio.Event().wait)


def _meant(arguments: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The arguments without those that are null for their default, and with whole floats as whole numbers.

    Some clients send null for what they leave out, and some have no kind of numbers but floats.
    """
    optional = {name for name, field in model.model_fields.items() if not field.is_required()}
    given = {name: value for name, value in arguments.items() if not (value is None and name in optional)}
    meant: dict[str, Any] = json.loads(json.dumps(given), parse_float=_number)
    return meant


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _text_only(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without halves of surrogate pairs. Stored texts may contain them, but messages cannot."""
    text = json.dumps(answer, ensure_ascii=False)
    whole: dict[str, Any] = json.loads(without_halves(text, "\N{REPLACEMENT CHARACTER}"))
    return whole


def run_on_standard_input(indexes: Mapping[str, ServedIndex], options: ServeOptions, limits: Limits) -> None:
    """Serves the tools on standard input and output until the input ends."""
    backend = Backend(indexes, limits, options)

    async def run() -> None:
        _take_signals_between_tasks()
        reloading = asyncio.create_task(backend.reload_for_ever())
        try:
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
