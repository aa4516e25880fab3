import pytest
from filter_oracle import allows
from refusals import refusal

from pyserini_compneg.expression import Filter
from pyserini_compneg.support.errors import ArgumentError

_VALUE = "a value of the filter field 'a' must be a text such as Comedy or 1990..1999, a number, true or false, got "


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, 'a filter must name fields, such as {"genre": "Comedy"}, got {}'),
        ({"a b": 1}, "a filter field must be named by a letter, then letters, digits, _ . -, got 'a b'"),
        ({"a": None}, f"{_VALUE}None"),
        ({"a": ["x", {}]}, f"{_VALUE}{{}}"),
        ({"a": " "}, f"{_VALUE}' '"),
        ({"a": float("nan")}, f"{_VALUE}nan"),
        ({"a": "1999..1990"}, "the range 1999..1990 of 'a' ends before it begins; write 1990..1999"),
        ({"a": [7, ">= 1990-05"]}, "'a' has no value '>= 1990-05'; write the range as \"1990-05..\""),
        ({"a": "<2000"}, "'a' has no value '<2000'; write the range as \"..<2000\""),
        ({"a": "1990<..<1990"}, "the range 1990<..<1990 of 'a' contains nothing"),
        ({"a": "1990-05<..<1990-06"}, "the range 1990-05<..<1990-06 of 'a' contains nothing"),
    ],
)
def test_filters_that_are_none(fields, message):
    assert refusal(Filter, fields, error=ArgumentError) == message


def test_a_sign_before_words_is_text():
    assert allows(Filter({"a": "> all", "id": ">1"}), {"a": ["> all"], "id": [">1"]})


def test_two_filters():
    joined = Filter({"id": ["a", "b"], "g": "x"}) & Filter({"id": ["b", "c"], "h": 1.0})
    assert joined == Filter({"id": ["b"], "g": ["x"], "h": "1"})
    said = "two filters name the field 'g'; give its values in one of them"
    assert refusal(Filter({"g": 1}).__and__, Filter({"g": 2}), error=ArgumentError) == said
    assert str(Filter({"id": list("abcd"), "g": ["y", "x"]})) == "g=x or y, id=one of 4 values"
