"""The tools, called by the client of their own library."""

import json
import os
import signal
import sys

import anyio
import film_index
import httpx2
import pytest
import served
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from pyserini_compneg.errors import IndexReadError
from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.mcp_tools import tools
from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import IndexSettings


@pytest.fixture(scope="module")
def server(films):
    pool = SearchPool(1, 8, 10)
    index = ServedIndex("films", IndexSettings(path=str(films)))
    yield tools(Backend({"films": index}, pool))
    pool.close()
    index.close()


def call(server, name, **arguments):
    """The structured answer of a tool, or the text of its error."""

    async def main():
        async with Client(server) as client:
            result = await client.call_tool(name, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return anyio.run(main)


def test_search_and_get_document(server):
    answer = call(server, "search", query="spy NOT comedy", hits=1)
    assert [candidate["docid"] for candidate in answer["candidates"]] == ["d2"]
    document = call(server, "get_document", docid="d2", index="films")
    assert document["doc"]["title"] == "Spy Drama"


def test_filters_and_what_not_excludes(server):
    found = call(server, "search", query="spy NOT! comedy", exclusion="any", filter=["id=d1", "id=d2", "id=d4"])
    assert [candidate["docid"] for candidate in found["candidates"]] == ["d2"]


def test_indexes_explain_and_decompose(server):
    assert call(server, "list_indexes")["result"] == ["films"]
    (document,) = call(server, "explain", query="spy NOT comedy", docid="d1")["documents"]
    assert min(document["contributions"], key=lambda part: part["amount"])["term"] == "comedi"
    assert call(server, "decompose", query="spy films other than comedies")["expression"] == "spy films NOT comedies"


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("search", {"query": "(spy"}, '"(" is not closed'),
        ("search", {"query": "spy", "hits": 0}, "hits: expected a number from 1, got 0"),
        (
            "search",
            {"query": "spy", "filter": ["genre=spy"]},
            "films: cannot be filtered: it has no filter fields",
        ),
        ("search", {"query": "spy", "exclusion": "some"}, "exclusion must be one of any, all, or a number above 0"),
        ("search", {"query": "spy", "index": "books"}, "Unable to open index: books; there are films"),
        ("get_document", {"docid": "d9"}, "Document not found: d9"),
    ],
)
def test_errors_are_told_in_a_sentence(server, tool, arguments, error):
    assert error in call(server, tool, **arguments)


def test_what_is_wrong_with_an_index_is_not_told(server, monkeypatch):
    def fail(*_):
        raise IndexReadError("/secret/path: broken")

    monkeypatch.setattr(answers, "document_answer", fail)
    said = call(server, "get_document", docid="d2")
    assert "Internal server error" in said
    assert "secret" not in said


SIGNAL_WITHIN_THE_EVENT_LOOP = """
import asyncio, os, sys
from pyserini_compneg.commands import serve
from pyserini_compneg.serve import mcp_tools
run, Stages = asyncio.Handle._run, mcp_tools.Stages
def interrupted(handle):
    asyncio.Handle._run = run
    os.kill(os.getpid(), {number})
    run(handle)
def begin():
    asyncio.Handle._run = interrupted
    return Stages()
mcp_tools.Stages = begin
sys.exit(serve.main(sys.argv[1:]))
"""
"""The signal of a search arrives when the event loop has taken what it runs next from its queue."""


@pytest.mark.parametrize(("number", "code", "while_busy"), [(signal.SIGTERM, 143, True), (signal.SIGINT, 130, False)])
def test_a_signal_ends_it_while_the_input_is_open(films, number, code, while_busy):
    program = {"code": SIGNAL_WITHIN_THE_EVENT_LOOP.format(number=int(number))} if while_busy else {}
    arguments = ("--index", f"films={films}", "--mcp", "stdio")
    process = film_index.start(*arguments, **{"module": "pyserini_compneg.serve", **program})
    try:
        about = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        ask(process, "initialize", about, id=1)
        assert "result" in process.stdout.readline()
        if while_busy:
            ask(process, "notifications/initialized")
            ask(process, "tools/call", {"name": "search", "arguments": {"query": "spy"}}, id=2)
        else:
            process.send_signal(number)
        assert process.wait(60) == code
    finally:
        process.kill()


def ask(process, method, params=None, **ids):
    process.stdin.write(f"{json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params or {}, **ids})}\n")
    process.stdin.flush()


@pytest.mark.once
def test_warnings_are_notes_on_standard_input(films):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    arguments = ["-m", "pyserini_compneg.serve", "--index", f"films={films}", "--mcp", "stdio"]
    process = stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))
    assert "no result for query zebra" in call(process, "search", query="zebra")["notes"][0]


@pytest.mark.once
def test_http_with_a_key(films, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"indexes: {{films: {films}}}\napi_keys: [a-long-key]\n")
    with served.serving("--config", config, "--mcp", "http") as server:
        assert httpx2.post(f"{server.url}/mcp", json={}, timeout=60).status_code == 401
        client = httpx2.AsyncClient(headers={"Authorization": "Bearer a-long-key"}, timeout=60)
        transport = streamable_http_client(f"{server.url}/mcp", http_client=client)
        assert call(transport, "list_indexes")["result"] == ["films"]
