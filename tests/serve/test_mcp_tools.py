import json
import signal
from importlib import metadata

import anyio
import film_index
import httpx2
import pytest
import served
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.mcp_tools import tools
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import IndexSettings, Limits
from pyserini_compneg.support.errors import IndexReadError


@pytest.fixture(scope="module")
def server(films):
    index = ServedIndex("films", IndexSettings(path=str(films)))
    backend = Backend({"films": index}, Limits(), ServeOptions(threads=1))
    yield tools(backend)
    backend.pool.close()
    index.close()


def call(server, name, **arguments):

    async def main():
        async with Client(server) as client:
            result = await client.call_tool(name, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return anyio.run(main)


def test_tools_answer_as_routes_do(server, new_client):
    asked = {
        "query": "spy AND comedy NOT! animated",
        "exclusion": "any",
        "explain": True,
        "highlight": True,
        "filter": ["id=d1", "id=d2"],
    }
    with new_client() as client:
        found = call(server, "search", **asked)
        assert found == client.post("/v1/films/search", json=asked).json()
        assert found["hasMore"] is False and found["candidates"][0]["highlights"]
        for tool, path, parameters in (
            ("get_document", "films/doc", {"docid": "d2"}),
            ("explain", "films/explain", {"query": "spy NOT comedy", "docid": "d1"}),
            ("decompose", "decompose", {"query": "spy films other than comedies"}),
        ):
            assert call(server, tool, **parameters) == client.get(f"/v1/{path}", params=parameters).json()
    assert call(server, "list_indexes")["result"] == ["films"]
    assert call(server, "get_document", docid="d2", index="films")["doc"]["title"] == "Spy Drama"


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("search", {"query": "spy", "index": "books"}, "Unable to open index: books; there are films"),
        ("search", {"query": "spy", "top_k": 3}, "unknown key 'top_k'; known are filter, parse, "),
        (
            "search",
            {"query": "spy AND (war"},
            '"(" is not closed; expected ")"; for plain words, use quotes or --read plain (read=plain)\n'
            "  spy AND (war\n          ^",
        ),
        ("search", {"query": "spy", "filter": 3}, "filter: must be FIELD=VALUE, a list of these, or an object"),
        ("search", {"hits": 3}, "the key 'query' is missing"),
        ("search", {"query": "spy", "index": 1}, "index: expected a text, got 1"),
        ("get_document", {"docid": "d9"}, "Document not found: d9"),
        ("get_document", {"docid": "d1", "doc": "d1"}, "unknown key 'doc'; did you mean docid?"),
        ("get_document", {"docid": 1}, "docid: expected a text, got 1"),
        ("explain", {"query": "spy"}, "the key 'docid' is missing"),
        ("decompose", {"query": "spy", "model": "x"}, "unknown key 'model'; known are query, tags"),
        ("list_indexes", {"all": True}, "unknown key 'all'; there are none"),
        ("serach", {}, "no tool 'serach'; did you mean search?"),
    ],
)
def test_errors_are_told_in_a_sentence(server, tool, arguments, error):
    assert call(server, tool, **arguments).startswith(error)


def test_every_argument_is_described(server):
    async def listed():
        async with Client(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}, client.server_info

    found, about = anyio.run(listed)
    assert about.version == metadata.version("pyserini_compneg")
    assert list(found) == ["search", "get_document", "list_indexes", "explain", "decompose"]
    for tool in found.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
    assert {"query", "index", "hits", "filter", "exclusion"} <= found["search"].input_schema["properties"].keys()
    assert found["search"].input_schema["required"] == ["query"]


def test_values_have_their_types_and_texts_are_whole(server, monkeypatch):
    source = '{"id": "d1", "year": 1942, "seen": true, "title": "a \\ud800 b \\ud83d\\udc26"}'
    monkeypatch.setattr(ImpactReader, "raw", lambda *_: source)
    document = {"year": 1942, "seen": True, "title": "a \ufffd b \U0001f426"}
    assert call(server, "get_document", docid="d1")["doc"] == document


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
from pyserini_compneg.serve.search_pool import SearchPool
run, search = asyncio.Handle._run, SearchPool.run
def interrupted(handle):
    asyncio.Handle._run = run
    os.kill(os.getpid(), {number})
    run(handle)
def begin(*arguments):
    asyncio.Handle._run = interrupted
    return search(*arguments)
SearchPool.run = begin
sys.exit(serve.main(sys.argv[1:]))
"""
"""The signal of a search arrives when the event loop has taken what it runs next from its queue."""


@pytest.mark.slow
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


NO_MESSAGES = [
    ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": "\\ud800"}}', 7, "half of a surrogate pair"),
    ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "tools/list"}', None, "half of a surrogate pair"),
    ("{", None, "not valid JSON"),
    ("[" * 10_000, None, "not valid JSON"),
    ('{"id": "x"}', "x", "is not a request of JSON-RPC"),
    ("[]", None, "is not a request of JSON-RPC"),
]


@pytest.mark.once
@pytest.mark.slow
def test_every_line_of_standard_input_is_answered(films):
    process = film_index.start("--index", f"films={films}", "--mcp", "stdio", module="pyserini_compneg.serve")
    try:
        for line, number, said in NO_MESSAGES:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == number
            assert said in answer["error"]["message"]
        process.stdin.close()
        assert process.wait(60) == 0
    finally:
        process.kill()


def test_every_message_of_http_is_answered_and_no_stream_is_opened(new_client):
    with new_client(mcp="http") as client:
        for line, number, said in NO_MESSAGES:
            answer = client.post("/mcp", content=line, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["id"]) == (400, number)
            assert said in answer.json()["error"]["message"]
        for method in ("GET", "DELETE", "PUT"):
            assert client.request(method, "/mcp", headers={"Accept": "text/event-stream"}).status_code == 405


@pytest.mark.once
@pytest.mark.slow
def test_http_with_a_key(films, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"indexes: {{films: {films}}}\napi_keys: [a-long-key]\n")
    with served.serving("--config", config, "--mcp", "http") as server:
        assert httpx2.post(f"{server.url}/mcp", json={}, timeout=60).status_code == 401

        def asked(tool, **arguments):
            client = httpx2.AsyncClient(headers={"Authorization": "Bearer a-long-key"}, timeout=60)
            return call(streamable_http_client(f"{server.url}/mcp", http_client=client), tool, **arguments)

        assert asked("list_indexes")["result"] == ["films"]
        assert asked("search", query="spy", top_k=1).startswith("unknown key 'top_k'; known are filter, ")
