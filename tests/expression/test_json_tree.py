import json

import pytest
from expression_strategies import expressions
from hypothesis import given
from refusals import refusal

from pyserini_compneg.expression import MAX_DEPTH, Difference, from_json, parse, to_json
from pyserini_compneg.support.errors import QueryError

KINDS = '"union", "intersection", "strict_intersection", "difference" or "exclusion"'
ONE_KEY = f"expected a text or an object with one key, {KINDS}"


@given(expressions(exclusions=True))
def test_from_json_reads_what_to_json_writes(expression):
    assert from_json(json.loads(json.dumps(to_json(expression))), "test") == expression


def test_every_node_has_its_key():
    assert to_json(parse("(a OR b) AND c NOT d")) == {
        "difference": [{"intersection": [{"union": ["a", "b"]}, "c"]}, "d"],
    }
    assert to_json(parse("a AND! b NOT! c")) == {"exclusion": [{"strict_intersection": ["a", "b"]}, "c"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, f"$: {ONE_KEY}, got 3"),
        (None, f"$: {ONE_KEY}, got None"),
        (["a", "b"], f"$: {ONE_KEY}, got ['a', 'b']"),
        ({}, f"$: {ONE_KEY}, got {{}}"),
        ({"Union": ["a", "b"]}, f"$: {ONE_KEY}, got {{'Union': ['a', 'b']}}"),
        ({"union": ["a", {"not": "b"}]}, f"$.union[1]: {ONE_KEY}, got {{'not': 'b'}}"),
        ({"union": "ab"}, "$.union: expected a list of operands, got 'ab'"),
        ({"union": ["a"]}, "$.union: expected two or more operands, got 1"),
        (
            {"union": ["a", {"difference": ["a", "b", "c"]}]},
            "$.union[1].difference: expected two operands, [left, right], got 3",
        ),
        ({"strict_intersection": ["a"]}, "$.strict_intersection: expected two or more operands, got 1"),
        ({"exclusion": ["a"]}, "$.exclusion: expected two operands, [left, right], got 1"),
        (
            {"exclusion": ["a", {"filter": {"genre": []}}]},
            "$.exclusion[1].filter: a filter in an Exclusion must have one field and one value, got genre=nothing; "
            "exclude others in turn",
        ),
        (
            {"exclusion": ["a", {"filter": {"a b": 1}}]},
            "$.exclusion[1].filter: a filter field must be named by a letter, then letters, digits, _ . -, got 'a b'",
        ),
        ({"exclusion": [{"filter": {"a": 1}}, "b"]}, f"$.exclusion[0]: {ONE_KEY}, got {{'filter': {{'a': 1}}}}"),
        ({"intersection": ["a", " "]}, "$.intersection[1]: a text must not be blank, got ' '"),
    ],
)
def test_bad_shapes_are_refused_with_their_path(value, message):
    assert refusal(from_json, value, "queries.jsonl:7", error=QueryError) == f"queries.jsonl:7: {message}"


def test_depth_is_limited():
    value = "a"
    for _ in range(MAX_DEPTH - 1):
        value = {"difference": [value, "b"]}
    assert from_json(value, "test").depth == MAX_DEPTH
    message = refusal(from_json, {"difference": [value, "b"]}, "test", error=QueryError)
    assert message == "test: the value is more than 100 levels deep; flatten it"
    assert isinstance(from_json(value, "test"), Difference)
