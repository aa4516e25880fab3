"""Tools for language models, by the Model Context Protocol: named as in Pyserini's server, and two more."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from pyserini_compneg.errors import CompNegError
from pyserini_compneg.serve import answers
from pyserini_compneg.serve.answers import Answer
from pyserini_compneg.serve.backend import Backend, gather_notes, refusal, with_notes
from pyserini_compneg.serve.parameters import (
    DocumentParameters,
    ExplainParameters,
    ReadingParameters,
    SearchParameters,
)
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.stages import Stages
from pyserini_compneg.settings_files import first_fault

_INSTRUCTIONS = (
    "Search document collections. A query is an expression: texts joined by AND, OR and NOT in capitals, with "
    'parentheses, and with quotes around a text that holds these words, such as: spy films NOT "Get Smart". '
    "NOT lowers documents; NOT! removes those that match. Scores may be negative."
)

_Read = Literal["expression", "plain", "model"]


def tools(backend: Backend) -> MCPServer[Any]:
    """A server with the tools ``search``, ``get_document``, ``list_indexes``, ``explain`` and ``decompose``.

    Args:
        backend: The indexes, and the threads that search them.
    """
    server = MCPServer("pyserini_compneg", instructions=_INSTRUCTIONS, log_level="WARNING")

    @server.tool()
    async def search(
        query: str,
        index: str | None = None,
        hits: int = 10,
        parse: bool = True,
        read: _Read = "expression",
        union: str | None = None,
        intersection: str | None = None,
        difference: str | None = None,
        exclusion: float | str | None = None,
        filter: list[str] | None = None,
        offset: int = 0,
        max_doc_length: int | None = None,
    ) -> dict[str, Any]:
        """Find the best documents of an index for a query.

        Args:
            query: An expression, such as: spy films AND comedies NOT animated films
            index: Name of the index; list_indexes has all. It may be left out where there is only one.
            hits: Number of documents
            parse: Give the fields of documents, not their JSON as a text
            read: expression; plain, one text without operators; or model, plain words that a small model takes apart
            union: Operator for OR; leave it out for the best one
            intersection: Operator for AND; leave it out for the best one
            difference: Operator for NOT; leave it out for the best one
            exclusion: What matches B in A NOT! B: any, all, or a share of the best score; leave it out for 0.5
            filter: Find only documents with these values of fields, such as genre=comedy or year=1950..1959; an error
                says which fields there are
            offset: Hits to leave out before the first
            max_doc_length: Characters of a document's text
        """
        given: dict[str, Any] = {
            **{"query": query, "hits": hits, "parse": parse, "read": read, "offset": offset},
            **{"union": union, "intersection": intersection, "difference": difference},
            **{"exclusion": exclusion, "filter": filter, "max_doc_length": max_doc_length},
        }
        return await _run(
            backend, lambda: partial(answers.search_answer, _index(backend, index), SearchParameters(**given))
        )

    @server.tool()
    async def get_document(docid: str, index: str | None = None, parse: bool = True) -> dict[str, Any]:
        """Fetch a document by its id.

        Args:
            docid: Id of the document
            index: Name of the index
            parse: Give the fields of the document, not its JSON as a text
        """
        asked = DocumentParameters(parse=parse)
        return await _run(backend, lambda: partial(answers.document_answer, _index(backend, index), docid, asked))

    @server.tool()
    async def list_indexes() -> list[str]:
        """List the names of all indexes."""
        return list(backend.indexes)

    @server.tool()
    async def explain(query: str, docid: str, index: str | None = None, read: _Read = "expression") -> dict[str, Any]:
        """Say what each term of a query adds to the score of a document, or takes from it.

        Args:
            query: An expression, as for search
            docid: Id of the document
            index: Name of the index
            read: As for search
        """
        given: dict[str, Any] = {"query": query, "read": read}
        return await _run(
            backend,
            lambda: partial(answers.explain_answer, _index(backend, index), ExplainParameters(**given), docid=docid),
        )

    @server.tool()
    async def decompose(query: str) -> dict[str, Any]:
        """Read plain English words as an expression: what is wanted, what is excluded, and how it is joined.

        Args:
            query: Plain words, such as: spy films other than comedies
        """
        return await _run(backend, lambda: partial(_reading, ReadingParameters(query=query)))

    return server


def _reading(asked: ReadingParameters, _: Stages) -> Answer:
    return answers.reading_answer(asked)


def _index(backend: Backend, name: str | None) -> ServedIndex:
    if name is None and len(backend.indexes) > 1:
        raise HTTPException(400, f"Name an index; there are {', '.join(backend.indexes)}")
    return backend.index(next(iter(backend.indexes)) if name is None else name)


async def _run(backend: Backend, prepare: Callable[[], Callable[[Stages], Answer]]) -> Answer:
    """Has the work done in the pool. What is wrong is told to the model in one sentence."""
    stages = Stages()
    try:
        return await backend.pool.run(lambda: with_notes(lambda: prepare()(stages)), stages, asyncio.Event().wait)
    except HTTPException as error:
        raise ToolError(error.detail) from None
    except ValidationError as error:
        raise ToolError(first_fault(error.errors(include_url=False))) from None
    except CompNegError as error:
        raise ToolError(refusal(error).detail) from None


def run_on_standard_input(indexes: Mapping[str, ServedIndex], threads: int, queue: int, seconds: float) -> None:
    """Serves the tools on standard input and output, until the input ends.

    Args:
        indexes: The open indexes by their names.
        threads: Searches at once.
        queue: Searches that may wait.
        seconds: The limit for a search, waiting included.
    """
    gather_notes()
    pool = SearchPool(threads, queue, seconds)
    backend = Backend(indexes, pool)

    async def run() -> None:
        _take_signals_between_tasks()
        reloading = asyncio.create_task(backend.reload_for_ever(lambda *_: None))
        try:
            await tools(backend).run_stdio_async()
        finally:
            reloading.cancel()

    try:
        asyncio.run(run())
    except (SystemExit, KeyboardInterrupt) as stop:
        code = stop.code if isinstance(stop, SystemExit) else 130
        threading.Thread(target=_end_without_input, args=(code,), daemon=True).start()
        raise
    finally:
        pool.close()


def _take_signals_between_tasks() -> None:
    """Lets the event loop call the handlers of signals.

    Python calls them between any two instructions. Their exception could lose what the loop had just taken from its
    queue, and a task would wait for it for ever.
    """
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in {**handlers, signal.SIGINT: signal.default_int_handler}.items():
        if callable(handler):
            loop.add_signal_handler(number, handler, number, None)


def _end_without_input(code: int) -> None:
    """Ends the process when its main thread is done: Python would wait for the thread that reads the input."""
    threading.main_thread().join()
    os._exit(code)
