import re

import pytest
from served import make_client

from pyserini_compneg.compose import OPERATOR_SETS
from pyserini_compneg.serve.parameters import OperatorParameters
from pyserini_compneg.serve.settings import Limits

DEEP = 100_000
KNOWN = "filter, parse, max_doc_length, hits, offset, cursor, total, facets, sort, explain, highlight, operators, "
KNOWN += "union, intersection, difference, difference_weight, cpt_terms, cpt_weight, exclusion, strict, query, read, "
KNOWN += "tags, unsure"
NO_CURSOR = "this is no cursor of an answer; send the field cursor of the last answer as it is"
WHOLE = ("hits", "offset", "max_doc_length", "cpt_terms")
REAL = ("difference_weight", "cpt_weight")
TRUTH = ("parse", "explain", "highlight", "strict")


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"query": " "}, "query: must not be blank"),
        ({"query": ""}, "query: expected a text, got ''"),
        ({"query": "a" * 8001}, f"query: expected a text of at most 8000 characters, got '{'a' * 56}..."),
        ({"query": "a\x00b"}, "query: must hold no control characters"),
        ({"query": "a\x1b[31m"}, "query: must hold no control characters"),
        (
            {"query": "a AND (b"},
            '"(" is not closed; expected ")"; for plain words, use quotes or --read plain (read=plain)\n'
            "  a AND (b\n        ^",
        ),
        ({"query": "a", "hits": "ten"}, "hits: expected a whole number, got 'ten'"),
        ({"query": "a", "hits": "1.5"}, "hits: expected a whole number, got '1.5'"),
        ({"query": "a", "hits": "-1"}, "hits: expected a number from 0, got '-1'"),
        ({"query": "a", "hits": "1001"}, "hits: expected a number up to 1000, got '1001'"),
        ({"query": "a", "offset": "-1"}, "offset: expected a number from 0, got '-1'"),
        (
            {"query": "a", "offset": "9991"},
            "offset and hits reach to rank 10001, and 10000 is the last; a cursor goes on behind it",
        ),
        ({"query": "a", "cursor": "x", "offset": "1"}, "a cursor has its own place in the ranking; leave out offset"),
        ({"query": "a", "cursor": "x"}, f"cursor: {NO_CURSOR}"),
        ({"query": "a", "cursor": "é" * 40}, f"cursor: {NO_CURSOR}"),
        ({"query": "a", "total": "all"}, "total: expected 'bound' or 'exact', got 'all'"),
        (
            {"query": "a", "facets": "year:0"},
            "facets: a facet must be FIELD or FIELD:N, such as genre or year:20, got 'year:0'",
        ),
        ({"query": "a", "facets": "year,year:2"}, "facets: the facet year is given twice"),
        ({"query": "a", "facets": "year:1001"}, "facets: a facet has at most 1000 values, got 1001"),
        (
            {"query": "a", "facets": "id"},
            "facets: the field 'id' is no facet: its values are those of one document each",
        ),
        ({"query": "a", "parse": "perhaps"}, "parse: expected true or false, got 'perhaps'"),
        ({"query": "a", "parse": "false", "max_doc_length": "9"}, "max_doc_length needs parse=true"),
        ({"query": "a", "read": "llm"}, "read: expected 'expression', 'plain' or 'model', got 'llm'"),
        ({"query": "a", "read": "/etc"}, "read: expected 'expression', 'plain' or 'model', got '/etc'"),
        ({"query": "a", "union": "x"}, "union must be one of maxpool, addition, dismax, vanilla, got 'x'"),
        ({"query": "a", "difference_weight": "nan"}, "difference_weight: expected a number, got 'nan'"),
        ({"query": "a", "difference_weight": "-1"}, "difference_weight: expected a number from 0, got '-1'"),
        ({"query": "a", "cpt_terms": "0"}, "cpt_terms: expected a number from 1, got '0'"),
        ({"query": "a", "encoder": "x/y"}, f"unknown key 'encoder'; known are {KNOWN}"),
        ({"query": "a", "filters": "b=c"}, "unknown key 'filters'; did you mean filter?"),
        (
            {"query": "a", "page": "2"},
            "unknown key 'page'; the cursor of the last answer, or offset, gives the next page",
        ),
        ({"query": "a", "hits": ["1", "2"]}, "'hits' is given twice"),
        ({"query": "a", "tags": "W"}, "tags need read=model"),
        ({"query": "a", "unsure": "refuse"}, "unsure=refuse needs read=model"),
        ({"query": "a", "read": "model", "unsure": "ask"}, "unsure: expected 'note' or 'refuse', got 'ask'"),
    ],
)
def test_search(client, parameters, error):
    answer = client.get("/v1/films/search", params=parameters)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def refused(answer, key):
    return answer.status_code == 400 and re.match(f"(body: )?{key}: expected (a|true)", answer.json()["error"])


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        ((*WHOLE, *REAL), ["1_0", "١", "１", " 1", "1 ", "+1", "0x1", "true", ""]),
        (WHOLE, ["1e1"]),
        (TRUTH, ["TRUE", "tRue", "1", "yes", "on", "t", " true", ""]),
    ],
)
def test_numbers_of_an_address_are_ascii_digits_and_truths_have_one_form(client, keys, texts):
    for text in texts:
        for key in keys:
            assert refused(client.get("/v1/films/search", params={"query": "spy", key: text}), key), (key, text)
        parameters = {"query": "spy NOT! western", "exclusion": f"{text}.5"}
        assert client.get("/v1/films/search", params=parameters).status_code == 400


@pytest.mark.parametrize("value", [True, "1", "true", [1], {}, "one"])
def test_bodies_are_of_json_types(client, value):
    for key in (*WHOLE, *REAL, *(TRUTH if value is not True else ())):
        assert refused(client.post("/v1/films/search", json={"query": "spy", key: value}), key), key
    for key in ("query", "read", "tags", "union", "exclusion"):
        if not isinstance(value, str):
            assert client.post("/v1/films/search", json={"query": "spy", key: value}).status_code == 400, key
    assert client.post("/v1/films/search", json={"query": "spy", "hits": 1.0}).status_code == 400
    assert client.post("/v1/films/search", json={"query": "spy", "difference_weight": 1, "parse": True}).is_success


@pytest.mark.parametrize("path", ["/v1/films/search?query=caf%E9", "/v1/films/doc/%FF", "/v1/decompose?query=%C3"])
def test_an_address_is_utf8(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"][:31]) == (400, "The address is not UTF-8 text; ")


def costs(count, parts, most):
    return f"the query has {count:,} {parts}, and this server takes at most {most:,}"


VECTOR, FILTER = {"vector": {"a": 1}}, {"filter": {"id": "a"}}
VECTORS = costs(3, "vectors and filters", 2)
PAIRS = {"expression": {"intersection": ["spy"] * 256}, "intersection": "cpt-pairs", "cpt_terms": 1000}
SMALL = Limits(atoms=3, vectors=2, terms=4, body_bytes=500)


@pytest.mark.parametrize(
    ("limits", "body", "said"),
    [
        (SMALL, {"query": "a OR b OR a OR b"}, costs(4, "atoms", 3)),
        (SMALL, {"expression": {"union": ["a", "b", {"difference": ["c", "d"]}]}}, costs(4, "atoms", 3)),
        (SMALL, {"vector": dict.fromkeys("abcde", 1)}, costs(5, "terms", 4)),
        (SMALL, {"query_tokens": dict.fromkeys("abcde", 1)}, costs(5, "terms", 4)),
        (SMALL, {"score": {"max": [VECTOR] * 3}}, VECTORS),
        (SMALL, {"score": {"excluding": VECTOR, "excluded": [FILTER] * 2, "above": [0, 0]}}, VECTORS),
        (SMALL, {"score": {"excluding": VECTOR, "required": [VECTOR] * 2}}, VECTORS),
        (SMALL, {"query": "spy OR war OR western"}, None),
        (SMALL, {"score": {"max": [{"vector": {"a": 1, "b": 1}}, {"vector": {"c": 1, "d": 1}}]}}, None),
        (SMALL, {"query": "a" * 500}, "The body has more than 500 bytes"),
        (Limits(), {"expression": {"union": ["spy"] * 20_000}}, costs(20_000, "atoms", 256)),
        (Limits(), {"expression": {"union": ["spy " * 2000, "no"]}}, costs(8001, "characters in its atoms", 8000)),
        (Limits(), PAIRS, costs(256_000, "atoms and cpt_terms, multiplied,", 15_360)),
        (Limits(), {"vector": {f"term{number}": 1 for number in range(3000)}}, None),
    ],
)
def test_the_cost_of_a_query_is_bounded(films, limits, body, said):
    with make_client(films, limits=limits) as client:
        answer = client.post("/v1/films/search", json=body)
        assert answer.json() == {"error": said} if said else answer.is_success
        if "query" in body and len(body["query"]) < 100:
            assert client.get("/v1/films/compose", params=body).is_success == (said is None)


ONE_OF = "give one of query, expression, vector, score, query_tokens"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, f"body: {ONE_OF}, got none"),
        ({"query": "a", "vector": {"a": 1}}, f"body: {ONE_OF}, got query and vector"),
        ({"query": "a", "hit": 3}, "body: unknown key 'hit'; did you mean hits?"),
        ({"query": 7}, "body: query: expected a text, got 7"),
        ({"vector": {"a": "1"}}, "vector: $.vector: the weight of 'a' must be a finite number, got '1'"),
        ({"query_tokens": {"a": True}}, "query_tokens: $.vector: the weight of 'a' must be a finite number, got True"),
        ({"expression": {"both": ["a", "b"]}}, None),
        ({"expression": "a AND (b"}, None),
        ({"query": "a", "exclusion": True}, "body: exclusion: expected a number, got True"),
        ({"score": {"max": []}}, "score: $.max: expected a list of one or more scores, got []"),
        ({"query": "a", "tags": "W"}, "body: tags need read=model"),
        ({"vector": {"a": 1}, "read": "model"}, "body: read has no use beside vector; leave it out"),
        ({"vector": {"a": 1}, "unsure": "note"}, "body: unsure has no use beside vector; leave it out"),
        ({"query": "a", "unsure": "refuse"}, "body: unsure=refuse needs read=model"),
        ({"query_tokens": {"a": 1}, "union": "dismax"}, "body: union has no use beside query_tokens; leave it out"),
        ({"expression": {"union": ["a", "b"]}, "tags": "W", "read": "model"}, None),
        ([], "body: expected a JSON object, got a list"),
    ],
)
def test_search_by_body(client, body, error):
    answer = client.post("/v1/films/search", json=body)
    assert answer.status_code == 400
    assert error is None or answer.json() == {"error": error}


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b'{"query": NaN}', 400, "body: not valid JSON: NaN is not a JSON number"),
        (b'{"query": "a"', 400, "body: not valid JSON: Expecting ',' delimiter at column 14"),
        (b"[" * DEEP, 400, "body: not valid JSON: too many brackets within brackets"),
        (b'{"query": "caf\xe9"}', 400, "body: not UTF-8 text, at byte 14"),
        (b'{"query": "a", "query": "b"}', 400, "body: the key 'query' is given twice"),
        (b" " * 1_000_001, 413, "The body has more than 1,000,000 bytes"),
    ],
)
def test_bodies_that_are_no_json(client, body, status, error):
    answer = client.post("/v1/films/search", content=body)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"tags": "W"}, "tags: the text has 2 words and signs, got 1 tags"),
        ({"tags": "W,Z"}, "tags: expected a text of the form ^(O|W|S|X|OR|AND)(,(O|W|S|X|OR|AND))*$, got 'W,Z'"),
        ({"tags": ""}, "tags: expected a text of the form ^(O|W|S|X|OR|AND)(,(O|W|S|X|OR|AND))*$, got ''"),
        ({"hits": "3"}, "unknown key 'hits'; known are query, tags"),
    ],
)
def test_reading(client, parameters, error):
    answer = client.get("/v1/decompose", params={"query": "spy films", **parameters})
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_sets_of_operators():
    assert OperatorParameters.model_json_schema()["properties"]["operators"]["enum"] == [*OPERATOR_SETS]
