"""What requests may not ask for: each is refused with a sentence."""

import pytest

DEEP = 100_000


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"query": " "}, "query: must not be blank"),
        ({"query": ""}, "query: expected a text, got ''"),
        ({"query": "a" * 8001}, f"query: expected a text of at most 8000 characters, got '{'a' * 56}..."),
        ({"query": "a\x00b"}, "query: must hold no control characters"),
        ({"query": "a\x1b[31m"}, "query: must hold no control characters"),
        ({"query": "(a"}, '"(" is not closed; expected ")"\n  (a\n  ^'),
        ({"query": "a", "hits": "ten"}, "hits: expected a whole number, got 'ten'"),
        ({"query": "a", "hits": "1.5"}, "hits: expected a whole number, got '1.5'"),
        ({"query": "a", "hits": "0"}, "hits: expected a number from 1, got '0'"),
        ({"query": "a", "hits": "1001"}, "hits: expected a number up to 1000, got '1001'"),
        ({"query": "a", "offset": "-1"}, "offset: expected a number from 0, got '-1'"),
        ({"query": "a", "offset": "9991"}, "offset and hits reach to rank 10001, and 10000 is the last"),
        ({"query": "a", "parse": "perhaps"}, "parse: expected true or false, got 'perhaps'"),
        ({"query": "a", "parse": "false", "max_doc_length": "9"}, "max_doc_length needs parse=true"),
        ({"query": "a", "read": "llm"}, "read: expected 'expression', 'plain' or 'model', got 'llm'"),
        ({"query": "a", "read": "/etc"}, "read: expected 'expression', 'plain' or 'model', got '/etc'"),
        ({"query": "a", "union": "x"}, "union must be one of maxpool, addition, dismax, vanilla, got 'x'"),
        ({"query": "a", "difference_weight": "nan"}, "difference_weight: expected a finite number, got 'nan'"),
        ({"query": "a", "difference_weight": "-1"}, "difference_weight: expected a number from 0.0, got '-1'"),
        ({"query": "a", "cpt_terms": "0"}, "cpt_terms: expected a number from 1, got '0'"),
        ({"query": "a", "encoder": "x/y"}, "unknown key 'encoder'"),
        ({"query": "a", "k1": "0.9"}, "unknown key 'k1'"),
        ({"query": "a", "tags": "W"}, "tags need read=model"),
    ],
)
def test_search(client, parameters, error):
    answer = client.get("/v1/films/search", params=parameters)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "body: give one of query, expression, vector, score, query_tokens, got none"),
        (
            {"query": "a", "vector": {"a": 1}},
            "body: give one of query, expression, vector, score, query_tokens, got query and vector",
        ),
        ({"query": "a", "hit": 3}, "body: unknown key 'hit'; did you mean hits?"),
        ({"query": 7}, "body: query: expected a text, got 7"),
        ({"vector": {"a": "1"}}, "vector: $.vector: the weight of 'a' must be a finite number, got '1'"),
        ({"query_tokens": {"a": True}}, "query_tokens: $.vector: the weight of 'a' must be a finite number, got True"),
        ({"expression": {"both": ["a", "b"]}}, None),
        ({"score": {"max": []}}, "score: $.max: expected a list of one or more scores, got []"),
        ({"query": "a", "tags": "W"}, "body: tags need read=model"),
        ({"vector": {"a": 1}, "read": "model"}, "body: read has no use beside vector; leave it out"),
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
        (b'{"query": NaN}', 400, "body: not valid JSON: NaN is no JSON number"),
        (b'{"query": "a"', 400, "body: not valid JSON: Expecting ',' delimiter at column 14"),
        (b"[" * DEEP, 400, "body: not valid JSON: too many brackets within brackets"),
        (b'{"query": "caf\xe9"}', 400, "body: no UTF-8 text, at byte 14"),
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
        ({"hits": "3"}, "unknown key 'hits'"),
    ],
)
def test_reading(client, parameters, error):
    answer = client.get("/v1/decompose", params={"query": "spy films", **parameters})
    assert (answer.status_code, answer.json()) == (400, {"error": error})
