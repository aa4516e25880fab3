import json
import signal
import sys
from contextlib import contextmanager
from importlib import metadata

import anyio
import film_index
import httpx2
import pytest
import served
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.serve import answers
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.mcp_tools import tools
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import Limits, ServedIndexSettings
from pyserini_compneg.support.errors import IndexReadError


@contextmanager
def serving_tools(**folders):
    indexes = {name: ServedIndex(name, ServedIndexSettings(path=str(folder))) for name, folder in folders.items()}
    backend = Backend(indexes, Limits(), ServeOptions(threads=1))
    yield tools(backend)
    backend.pool.close()
    for index in indexes.values():
        index.close()


@pytest.fixture(scope="module")
def server(films):
    with serving_tools(films=films) as server:
        yield server


def call(server, name, **arguments):
    return call_all(server, (name, arguments))[0]


def call_all(server, *calls, meta=None):
    """What one client gets for calls of tools, one after another."""
    results = results_of(server, *calls, meta=meta)
    return [result.content[0].text if result.is_error else result.structured_content for result in results]


def results_of(server, *calls, meta=None):
    async def main():
        async with Client(server) as client:
            return [await client.call_tool(name, arguments, meta=meta) for name, arguments in calls]

    return anyio.run(main)


def listed(server):
    async def main():
        async with Client(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}, client.server_info

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
        asked = {"query": "*", "sort": "id:desc", "hits": 2}
        found = call(server, "search", **asked)
        assert found == client.post("/v1/films/search", json=asked).json()
        assert [one["docid"] for one in found["candidates"]] == ["d6", "d5"]
        for tool, path, parameters in (
            ("get_document", "films/doc", {"docid": "d2"}),
            ("explain", "films/explain", {"query": "spy NOT comedy", "docid": "d1"}),
            ("explain", "films/explain", {"query": "*", "docid": "d1"}),
            ("decompose", "decompose", {"query": "spy films other than comedies"}),
        ):
            assert call(server, tool, **parameters) == client.get(f"/v1/{path}", params=parameters).json()
        misread = {"query": "no comedies, no westerns", "read": "model"}
        for tool, path, more in (("search", "search", {}), ("explain", "explain", {"docid": "d1"})):
            noted = call(server, tool, **misread, **more)
            assert noted["notes"][0].startswith("text 'no comedies, no westerns' (it only excludes): may be misread; ")
            (refused,) = results_of(server, (tool, {**misread, **more, "unsure": "refuse"}))
            told = client.get(f"/v1/films/{path}", params={**misread, **more, "unsure": "refuse"}).json()
            assert (refused.is_error, refused.content[0].text) == (True, told["error"])
            assert refused.structured_content == told
        former = {"query": "spy AND comedy", "intersection": "disentangled"}
        noted = call(server, "search", **former)
        assert noted == client.post("/v1/films/search", json=former).json()
        assert noted["notes"] == ["intersection disentangled is now cpt-maxpool"]
    assert call(server, "get_document", docid="d2", index="films")["doc"]["title"] == "Spy Drama"


def test_the_list_of_indexes_has_their_filter_fields(films, tmp_path):
    fields = ["title", "text"]
    with serving_tools(films=films, fields=film_index.build(tmp_path, filter_fields=fields)) as server:
        found = {"result": ["films", "fields"], "filter_fields": {"films": [], "fields": fields}}
        assert call(server, "list_indexes") == found


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
    found, about = listed(server)
    assert about.version == metadata.version("pyserini_compneg")
    assert list(found) == ["search", "get_document", "list_indexes", "explain", "decompose"]
    for tool in found.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
    assert {"query", "index", "hits", "filter", "exclusion"} <= found["search"].input_schema["properties"].keys()
    assert found["search"].input_schema["required"] == ["query"]


def test_schemas_are_true_of_their_defaults_and_examples(server):
    known = {*Draft202012Validator.META_SCHEMA["$vocabulary"], "title", "description", "default", "examples"}
    found, _ = listed(server)
    for tool in found.values():
        Draft202012Validator.check_schema(tool.input_schema)
        for name, schema in tool.input_schema["properties"].items():
            values = [*([schema["default"]] if "default" in schema else []), *schema.get("examples", [])]
            assert all(Draft202012Validator(schema).is_valid(value) for value in values), (tool.name, name, schema)
            for part in (schema, *schema.get("anyOf", [])):  # such as minimum, for which pydantic may write ge
                assert part.keys() <= {*KEYWORDS, *known}, (tool.name, name, part)
    values = found["search"].input_schema["properties"]
    for name, value in (("filter", "id=d1"), ("filter", ["id=d1"]), ("facets", "genre"), ("facets", {"genre": 2})):
        assert Draft202012Validator(values[name]).is_valid(value)
    for name, limit, beyond in (
        *(("difference_weight", 0, -0.5), ("cpt_weight", 0.5, 0), ("cpt_terms", 1, 0), ("cpt_terms", 1000, 1001)),
        *(("max_doc_length", 1, 0), ("union", "maxpool", "damped"), ("difference", "damped", "maxpool")),
    ):
        assert [Draft202012Validator(values[name]).is_valid(value) for value in (limit, beyond)] == [True, False], name


KEYWORDS = (
    *("type", "enum", "anyOf", "items", "additionalProperties", "pattern", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)

ASKED = {"search": {"query": "spy NOT comedy"}, "explain": {"query": "spy NOT comedy", "docid": "d1"}}
ASKED |= {"get_document": {"docid": "d1"}, "decompose": {"query": "spy films"}, "list_indexes": {}}


@pytest.mark.parametrize("tool", ASKED)
def test_nothing_is_the_default_of_each_optional_argument(server, tool):
    schema = listed(server)[0][tool].input_schema
    optional = schema["properties"].keys() - set(schema.get("required", []))
    nothing = [{name: None} for name in sorted(optional)]
    given = [(tool, ASKED[tool] | more) for more in ({}, *nothing, dict.fromkeys(optional))]
    plain, *others = call_all(server, *given)
    assert isinstance(plain, dict) and others == [plain] * len(others)
    for name in schema.get("required", []):
        assert call(server, tool, **{**ASKED[tool], name: None}) == f"{name}: expected a text, got nothing"


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"hits": "1"}, {"hits": 1}),
        ({"hits": 1.0}, {"hits": 1}),
        ({"hits": "1.0"}, {"hits": 1}),
        ({"hits": "1", "offset": "2"}, {"hits": 1, "offset": 2}),
        ({"max_doc_length": 3.0}, {"max_doc_length": 3}),
        ({"cpt_terms": "3"}, {"cpt_terms": 3}),
        ({"difference_weight": "0.5"}, {"difference_weight": 0.5}),
        ({"difference_weight": "1"}, {"difference_weight": 1.0}),
        ({"exclusion": "0.5", "strict": "true"}, {"exclusion": 0.5, "strict": True}),
        ({"parse": "false"}, {"parse": False}),
        ({"explain": "True"}, {"explain": True}),
        ({"facets": {"title": 2.0}}, {"facets": {"title": 2}}),
        ({"filter": '["id=d1"]'}, {"filter": ["id=d1"]}),
        ({"filter": "id=d1"}, {"filter": {"id": "d1"}}),
        ({"hits": 1.5}, "hits: expected a whole number, got 1.5"),
        ({"hits": "1.5"}, "hits: expected a whole number, got '1.5'"),
        ({"hits": "one"}, "hits: expected a whole number, got 'one'"),
        ({"hits": True}, "hits: expected a whole number, got True"),
        ({"hits": "-1"}, "hits: expected a number from 0, got '-1'"),
        ({"hits": "9" * 18}, "hits: expected a number up to 1000, got "),
        ({"cpt_weight": True}, "cpt_weight: expected a number, got True"),
        ({"strict": 1}, "strict: expected true or false, got 1"),
        ({"strict": 0.0}, "strict: expected true or false, got 0"),
        ({"strict": "yes"}, "strict: expected true or false, got 'yes'"),
        ({"read": 1}, "read: expected 'expression', 'plain' or 'model', got 1"),
        ({"top_k": None}, "unknown key 'top_k'; "),
    ],
)
def test_numbers_and_truths_may_be_texts(server, given, same):
    asked = [("search", ASKED["search"] | more) for more in (given, same) if isinstance(more, dict)]
    found, *expected = call_all(server, *asked)
    assert [found] == expected if expected else found.startswith(same)


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
sys.exit(serve.main(sys.argv[2:]))
"""
"""The signal of a search arrives when the event loop has taken what it runs next from its queue."""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "while_busy"), [(signal.SIGTERM, 143, True), (signal.SIGINT, 130, False)])
def test_a_signal_ends_it_while_the_input_is_open(films, number, code, while_busy):
    program = {"code": SIGNAL_WITHIN_THE_EVENT_LOOP.format(number=int(number))} if while_busy else {}
    arguments = ("serve", "--index", f"films={films}", "--mcp", "stdio")
    process = film_index.start(*arguments, **{"module": "pyserini_compneg", **program})
    try:
        ask(process, "initialize", ABOUT, id=1)
        assert "result" in process.stdout.readline()
        if while_busy:
            ask(process, "notifications/initialized")
            ask(process, "tools/call", {"name": "search", "arguments": {"query": "spy"}}, id=2)
        else:
            process.send_signal(number)
        assert process.wait(60) == code
    finally:
        process.kill()


ABOUT = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


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
    process = film_index.start("serve", "--index", f"films={films}", "--mcp", "stdio", module="pyserini_compneg")
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


SLOW = """
import sys, time
from pyserini_compneg.commands import serve
from pyserini_compneg.serve import answers
search = answers.search_answer
def slow(*arguments):
    time.sleep(0.2)
    return search(*arguments)
answers.search_answer = slow
sys.exit(serve.main(sys.argv[2:]))
"""


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("reads", [True, False], ids=["waits", "is gone"])
def test_searches_that_run_when_the_input_ends_are_answered(films, reads):
    arguments = ("--index", f"films={films}", "--mcp", "stdio", "--threads", "2")
    process = film_index.start("serve", *arguments, code=SLOW)
    try:
        ask(process, "initialize", ABOUT, id="0")
        assert json.loads(process.stdout.readline())["id"] == "0"
        ask(process, "notifications/initialized")
        for number in (*range(1, 6), 5):  # a client may use an id again
            ask(process, "tools/call", {"name": "search", "arguments": {"query": "spy"}}, id=number)
        ask(process, "notifications/cancelled", {"requestId": 4})
        process.stdin.write("{")  # the last line need not end
        if not reads:
            process.stdout.close()
        process.stdin.close()
        answers = [json.loads(line) for line in process.stdout] if reads else []
        assert process.wait(60) == 0
        gone = "" if reads else "info: the client reads no answers any more\n"
        assert process.stderr.read() == f"info: index films: 6 documents\n{gone}"
    finally:
        process.kill()
    if reads:
        assert sorted(answer["id"] for answer in answers if answer.get("result")) == [1, 2, 3, 5, 5]
        assert [answer["id"] for answer in answers if "error" in answer] == [None]


@pytest.mark.once
@pytest.mark.slow
def test_the_client_of_the_protocol_on_standard_input(films):
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pyserini_compneg", "serve", "--index", f"films={films}", "--mcp", "stdio"],
        env=film_index.environment(),
    )
    given = [("search", ASKED["search"] | {"hits": "1", "filter": None}), ("list_indexes", None), ("search", {})]
    found, names, said = call_all(stdio_client(program), *given, meta={"progressToken": 7, "of.test/key": 1})
    assert [len(found["candidates"]), names["result"]] == [1, ["films"]]
    assert said == "the key 'query' is missing"


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
        assert len(asked("search", query="spy", hits="1", filter=None)["candidates"]) == 1
