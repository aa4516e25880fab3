"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path

import yaml
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from pyserini_compneg.serve.answers import API
from pyserini_compneg.serve.backend import CLIENT_GONE, Backend, gather_notes, unexpected
from pyserini_compneg.serve.gate import ApiKeys, Gate, error_answer
from pyserini_compneg.serve.limits import Limits
from pyserini_compneg.serve.metrics import Metrics
from pyserini_compneg.serve.routes import router
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.settings_files import first_fault

PAGE = Path(__file__).parents[1] / "resources" / "page"

NAME = "pyserini_compneg"
DESCRIPTION = "Exact search of composed and negated queries on Lucene impact indexes; routes as in Pyserini's server."

_ROUTES = f"Expected route /{API}/{{index}}/search or /{API}/{{index}}/doc/{{docid}}; /docs has all"

_logger = logging.getLogger(__name__)


def create_app(
    indexes: Mapping[str, ServedIndex],
    api_keys: Sequence[str] = (),
    *,
    threads: int = 2,
    queue: int = 64,
    seconds: float = 10.0,
    limits: Limits | None = None,
    with_tools: bool = False,
    hosts: Container[str] | None = None,
) -> Gate:
    """The application; it closes the indexes when it ends.

    Args:
        indexes: The open indexes by their names.
        api_keys: Who may search; everyone where none is given.
        threads: Searches at once.
        queue: Searches that may wait. More are refused with status 429.
        seconds: The limit for a search, waiting included.
        limits: What a request may cost.
        with_tools: Add the tools for language models, at ``/mcp``.
        hosts: The names by which the server may be called; None for any name.
    """
    limits = limits or Limits()
    gather_notes()
    pool = SearchPool(threads, queue, seconds)
    metrics = Metrics(pool)
    backend = Backend(indexes, pool, limits, metrics.warned)
    metrics.opened(backend.documents())
    for name, index in indexes.items():
        metrics.watch(name, partial(_is_degraded, index))
    mcp = None
    if with_tools:  # the library takes longer to import than all else
        from pyserini_compneg.serve.mcp_tools import http_route, tools

        mcp = tools(backend)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        reloading = asyncio.create_task(backend.reload_for_ever(metrics.reloaded))
        async with mcp.session_manager.run() if mcp else _nothing():
            yield
        reloading.cancel()
        with suppress(asyncio.CancelledError):
            await reloading
        pool.close()
        for index in indexes.values():
            index.close()

    app = FastAPI(
        title=NAME,
        version=API,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.backend = backend
    app.include_router(router)
    _add_pages(app, backend, metrics)
    _add_error_handlers(app, backend)
    if mcp:
        app.router.routes.append(http_route(mcp))
    guarded = (f"/{API}/", "/mcp")
    return Gate(app, ApiKeys(api_keys), metrics, pool, guarded, most_bytes=limits.body_bytes, hosts=hosts)


def _is_degraded(index: ServedIndex) -> bool:
    return index.degraded is not None


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


def _add_pages(app: FastAPI, backend: Backend, metrics: Metrics) -> None:
    """What belongs to no index."""

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def about(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return FileResponse(PAGE / "index.html", headers={"Vary": "Accept", "Cache-Control": "no-cache"})
        links = {"openapi": "/openapi.yaml", "documentation": "/docs"}
        return JSONResponse(
            {"name": NAME, "version": API, "description": DESCRIPTION, **links}, headers={"Vary": "Accept"}
        )

    @app.api_route("/health", methods=["GET", "HEAD"], include_in_schema=False)
    async def health() -> Response:
        return JSONResponse(backend.health())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(PAGE / "docs.html")

    @app.get("/openapi.yaml", include_in_schema=False)
    async def openapi_yaml() -> Response:
        text = yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True)
        return Response(text, media_type="application/yaml")

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_json() -> Response:
        return JSONResponse(app.openapi())

    @app.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _add_error_handlers(app: FastAPI, backend: Backend) -> None:
    @app.exception_handler(RequestValidationError)
    async def bad_parameters(_: Request, error: RequestValidationError) -> Response:
        faults = [{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]  # the first says: in the query
        return error_answer(HTTPException(400, first_fault(faults)))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        if error.detail == HTTPStatus(error.status_code).phrase:  # it is Starlette's own
            said = {404: _ROUTES, 405: "Method not allowed; /docs has the methods of each route"}
            error.detail = said.get(error.status_code, error.detail)
        return error_answer(error)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return error_answer(HTTPException(CLIENT_GONE, "the client is gone"))

    @app.exception_handler(CompNegError)
    async def failed(_: Request, error: CompNegError) -> Response:
        return error_answer(backend.refusal(error))

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> Response:
        return error_answer(unexpected())  # and it is raised again, so that it gets into the log
