"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from http import HTTPStatus
from pathlib import Path

import yaml
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.following import following
from pyserini_compneg.serve.gate import Gate, error_answer
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.replies import API
from pyserini_compneg.serve.routes import router
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import ServerSettings
from pyserini_compneg.serve.warm_up import warm_up
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.settings_files import first_fault

PAGE = Path(__file__).parents[1] / "resources" / "page"

NAME = "pyserini_compneg"
DESCRIPTION = "Exact search of composed and negated queries on Lucene impact indexes; routes as in Pyserini's server."

_REFUSALS = {
    404: f"Expected route /{API}/{{index}}/search or /{API}/{{index}}/doc/{{docid}}; /docs has all",
    405: "Method not allowed; /docs has the methods of each route",
}


def create_app(
    indexes: Mapping[str, ServedIndex],
    options: ServeOptions,
    settings: ServerSettings,
    hosts: Container[str] | None = None,
) -> Gate:
    """The application, which closes the indexes when it ends. ``hosts`` are its names; None allows any name."""
    backend = Backend(indexes, settings.limits, options)
    mcp = None
    if options.mcp == "http":  # the library is slow to import
        from pyserini_compneg.serve.mcp_tools import tools
        from pyserini_compneg.serve.mcp_transports import http_route

        mcp = tools(backend)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await warm_up(app, indexes)
        reloading = asyncio.create_task(backend.reload_for_ever())
        with following(backend):
            async with mcp.session_manager.run() if mcp else nullcontext():
                yield
        reloading.cancel()
        with suppress(asyncio.CancelledError):
            await reloading
        backend.pool.close()
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
    _add_pages(app, backend)
    _add_error_handlers(app, backend)
    if mcp:
        app.router.routes.append(http_route(mcp))
    return Gate(app, backend, (f"/{API}/", "/mcp"), settings, hosts, options.log_queries)


def _add_pages(app: FastAPI, backend: Backend) -> None:
    """The routes without an index."""

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
        return Response(backend.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _add_error_handlers(app: FastAPI, backend: Backend) -> None:
    async def refused(_: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            faults = [{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]  # the first item is "query"
            return error_answer(HTTPException(400, first_fault(faults)))
        if (
            isinstance(error, HTTPException) and error.detail == HTTPStatus(error.status_code).phrase
        ):  # raised by Starlette
            error.detail = _REFUSALS.get(error.status_code, error.detail)
        return error_answer(backend.refusal(error))  # a failure is raised again, for the log

    for kind in (RequestValidationError, HTTPException, ClientDisconnect, CompNegError, Exception):
        app.add_exception_handler(kind, refused)
