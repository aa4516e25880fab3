"""Tools for language models, by the Model Context Protocol: the tools of Pyserini's server, and two more.

A model of ``parameters`` describes and checks the arguments of each tool.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from typing import Any

from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.parameters import (
    DocumentOfIdParameters,
    ExplainOfIdParameters,
    Parameters,
    ReadingParameters,
    SearchParameters,
)
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.surrogates import without_halves
from pyserini_compneg.support.terminal import shown, suggestion

_INSTRUCTIONS = (
    "Search document collections. A query is an expression: texts joined by AND, OR and NOT in capitals, with "
    'parentheses, and with quotes around a text that holds these words, such as: spy films NOT "Get Smart". '
    "NOT lowers documents; NOT! removes those that have all words of its text. AND also finds documents that lack one "
    "of its sides; their field lacks says which. AND! finds only those that have a word of each. The query * alone "
    "finds all documents, to be filtered and sorted. Scores may be negative."
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
