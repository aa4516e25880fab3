"""The routes below ``/v1``: Pyserini's routes, and more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Security
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel, ValidationError

from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.parameters import (
    DeleteParameters,
    DocumentOfIdParameters,
    DocumentParameters,
    ExplainOfIdParameters,
    ExplainParameters,
    ReadingParameters,
    SearchBody,
    SearchParameters,
    SwitchBody,
)
from pyserini_compneg.serve.replies import (
    API,
    DocumentReply,
    ErrorReply,
    ExplainReply,
    FilesReply,
    ReadingReply,
    SearchReply,
    SwitchReply,
    UnsureReply,
    WriteReply,
)
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.progress import stage
from pyserini_compneg.support.settings_files import first_fault
from pyserini_compneg.support.terminal import shown

BodyT = TypeVar("BodyT", bound=BaseModel)

_DESCRIPTIONS: dict[int | str, str] = {
    "default": "Any other error",
    400: "Wrong parameters, a query or a document that cannot be read, or no such index",
    401: "No API key, or a wrong one",
    403: "A page of an origin that is not allowed asks, or a change lacks one of write_keys, or a copy of copy_keys",
    404: "No such document, or no such route",
    405: "No such method",
    409: "Something else is changing the index, its version is no longer there, or it follows another server",
    413: "A body that is too large",
    415: "A body that is not called JSON",
    422: "Plain words that may be misread, with unsure=refuse",
    429: "Too many searches are waiting",
    500: "The server failed",
    504: "The search took too long",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": UnsureReply if status == 422 else ErrorReply, "description": description}
    for status, description in _DESCRIPTIONS.items()
}


def _each_once(request: Request) -> None:
    """Refuses repeated parameters, because all but one would be dropped."""
    repeated = ("filter", "docid") if request.method == "DELETE" else ("filter",)
    names = [name for name, _ in request.query_params.multi_items() if name not in repeated]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HTTPException(400, f"{shown(twice)} is given twice")


def _may_write(request: Request) -> None:
    if not request.state.may_write:
        raise HTTPException(403, "An index is changed only with one of the server's write_keys")


def _may_copy(request: Request) -> None:
    if not request.state.offers_copies:
        raise HTTPException(404, "This server gives no files: its settings have no copy_keys")
    if not request.state.may_copy:
        raise HTTPException(403, "The files of an index are read only with one of the server's copy_keys")


def _read(body: bytes, model: type[BodyT]) -> BodyT:
    """Parses the JSON body of a request as strictly as files."""
    try:
        return model.model_validate(parse_json_object(body.decode(), "body", ArgumentError), strict=True)
    except UnicodeDecodeError as error:
        raise ArgumentError(f"not UTF-8 text, at byte {error.start}", where="body") from None
    except ValidationError as error:
        raise ArgumentError(first_fault(error.errors(include_url=False)), where="body") from None


def _described(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_LINES = {"type": "string", "description": "a document on each line, as the command index takes it"}

_KEY = (
    "one of the server's api_keys, if it has any, of its write_keys, which requests that change an index need, or of "
    "its copy_keys, which requests for files need"
)

_KEYS = (  # only described here: the gate checks keys
    Security(APIKeyHeader(name="X-API-Key", scheme_name="ApiKey", description=_KEY, auto_error=False)),
    Security(HTTPBearer(scheme_name="Bearer", description=_KEY, auto_error=False)),
)

router = APIRouter(prefix=f"/{API}", responses=_ERRORS, dependencies=[Depends(_each_once), *_KEYS])


async def _answer(request: Request, work: Callable[..., Mapping[str, Any]], *arguments: Any) -> Response:
    """Runs ``work(backend, *arguments)`` in the pool, and cancels it when the client disconnects."""
    backend: Backend = request.app.state.backend

    def body() -> bytes:
        answer = backend.with_notes(partial(work, backend, *arguments))
        with stage("json"):
            return json.dumps(answer).encode()  # ASCII, because a stored text may contain half a surrogate pair

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    content = await backend.pool.run(body, gone)
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


@router.get("/{index}/search", response_model=SearchReply, summary="Search an index")
async def search(request: Request, index: str, asked: Annotated[SearchParameters, Query()]) -> Response:
    """The best documents for an expression, for a plain text, or for plain words that a model parses."""
    return await _answer(request, answers.search_answer, index, asked)


@router.post(
    "/{index}/search",
    response_model=SearchReply,
    summary="Search an index for a composed query",
    openapi_extra=_described(SearchBody),
)
async def search_composed(request: Request, index: str) -> Response:
    """The best documents for a composed query, for a tree, or for weights of tokens."""
    body = await request.body()
    if request.query_params:
        raise HTTPException(400, "a POST takes its parameters in the body, and none in the URL")
    return await _answer(request, lambda backend: answers.search_answer(backend, index, _read(body, SearchBody)))


@router.put(
    "/{index}",
    response_model=SwitchReply,
    summary="Switch an index to another version",
    openapi_extra=_described(SwitchBody),
    dependencies=[Depends(_may_write)],
)
async def switch(request: Request, index: str) -> Response:
    """Opens another folder under the name of an index. Searches that have begun end in the old one."""
    backend: Backend = request.app.state.backend
    asked = _read(await request.body(), SwitchBody)
    answer = await asyncio.to_thread(backend.switch, index, asked.index)
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


@router.post(
    "/{index}/documents",
    response_model=WriteReply,
    summary="Insert or replace documents",
    openapi_extra={"requestBody": {"required": True, "content": {"application/jsonl": {"schema": _LINES}}}},
    dependencies=[Depends(_may_write)],
)
async def add_documents(request: Request, index: str) -> Response:
    """Adds the documents of a body in JSON Lines, or none of them. A document replaces the one with its id."""
    return await _write(request, index, await request.body(), None)


@router.delete(
    "/{index}/documents",
    response_model=WriteReply,
    summary="Delete documents by their ids",
    dependencies=[Depends(_may_write)],
)
async def delete_documents(request: Request, index: str, asked: Annotated[DeleteParameters, Query()]) -> Response:
    """Deletes documents. Ids that the index does not have are counted."""
    return await _write(request, index, None, asked.docid)


async def _write(request: Request, index: str, documents: bytes | None, delete: Sequence[str] | None) -> Response:
    """Changes an index outside the pool, because a commit has no time limit, and none is cancelled."""
    backend: Backend = request.app.state.backend
    work = partial(backend.update, index, documents, delete)
    answer = await asyncio.to_thread(backend.with_notes, work)
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


@router.get(
    "/{index}/files",
    response_model=FilesReply,
    summary="List the files of an index",
    responses={304: {"description": "The generation is still that of If-None-Match"}},
    dependencies=[Depends(_may_copy)],
)
async def files(request: Request, index: str) -> Response:
    """The files of the commit that is searched. A server that follows this one copies them."""
    backend: Backend = request.app.state.backend
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    tag = f'"{backend.index(index).generation}"'
    if known & {tag, "*"}:
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "no-cache"})
    answer = await asyncio.to_thread(backend.files, index)
    headers = {"ETag": f'"{answer["generation"]}"', "Cache-Control": "no-cache"}
    return JSONResponse(answer, headers=headers)


@router.get(
    "/{index}/files/{path:path}",
    response_class=FileResponse,
    summary="Read a file of an index",
    responses={206: {"description": "The bytes that Range asks for"}, 416: {"description": "No such bytes"}},
    dependencies=[Depends(_may_copy)],
)
async def file(request: Request, index: str, path: str) -> Response:
    """The bytes of a file of the list, or a range of them. A file that a later commit has deleted is gone (404)."""
    backend: Backend = request.app.state.backend
    place = await asyncio.to_thread(backend.file, index, path)
    return FileResponse(place, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


@router.get("/{index}/doc/{docid:path}", response_model=DocumentReply, summary="Fetch a document by its id")
async def document(request: Request, index: str, docid: str, asked: Annotated[DocumentParameters, Query()]) -> Response:
    """The stored source of a document."""
    return await _answer(request, answers.document_answer, index, docid, asked)


@router.get("/{index}/doc", response_model=DocumentReply, summary="Fetch a document by its id, as a parameter")
async def document_of_id(request: Request, index: str, asked: Annotated[DocumentOfIdParameters, Query()]) -> Response:
    """The stored source of a document with any id: a path cannot hold ``.`` and ``..``."""
    return await _answer(request, answers.document_answer, index, asked.docid, asked)


@router.get("/{index}/compose", response_model=ExplainReply, summary="Compose a query")
async def compose(request: Request, index: str, asked: Annotated[ExplainParameters, Query()]) -> Response:
    """The composed form of a query: its weights, and the composed query for ``POST search``."""
    return await _answer(request, answers.explain_answer, index, asked)


@router.get("/{index}/explain/{docid:path}", response_model=ExplainReply, summary="Explain a score")
async def explain(request: Request, index: str, docid: str, asked: Annotated[ExplainParameters, Query()]) -> Response:
    """The contribution of each term to the score of a document. The contributions add up to the score."""
    return await _answer(request, answers.explain_answer, index, asked, docid)


@router.get(
    "/{index}/explain",
    response_model=ExplainReply,
    summary="Explain a score, with the id as a parameter",
)
async def explain_of_id(request: Request, index: str, asked: Annotated[ExplainOfIdParameters, Query()]) -> Response:
    """The contribution of each term to the score of a document with any id."""
    return await _answer(request, answers.explain_answer, index, asked, asked.docid)


@router.get("/decompose", response_model=ReadingReply, summary="Read plain words as an expression")
async def decompose(request: Request, asked: Annotated[ReadingParameters, Query()]) -> Response:
    """The decomposition of a text by the small model or by given tags, and the tag of each word."""
    return await _answer(request, lambda _: answers.reading_answer(asked))
