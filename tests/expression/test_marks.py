import json
import re

import pytest
from expression_strategies import expressions
from hypothesis import given
from refusals import refusal

from pyserini_compneg.expression import from_marks, leaves, parse, verbalise
from pyserini_compneg.support.errors import QueryError

TEMPLATES = {
    "_": "a",
    "_ or _": "a OR b",
    "_ or _ or _": "a OR b OR c",
    "_ that are also _": "a AND b",
    "_ that are also both _ and _": "a AND b AND c",
    "_ that are also _ but not _": "a AND b NOT c",
    "_ that are not _": "a NOT b",
}


def marked(template):
    names = iter("abc")
    return "".join(f"<mark>{next(names)}</mark>" if char == "_" else char for char in template)


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_seven_templates(template):
    expression = from_marks(marked(template))
    assert expression == parse(TEMPLATES[template])
    assert verbalise(expression) == marked(template).replace("<mark>", "").replace("</mark>", "")


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("birds", "birds"),
        ("_ or _", "_ or _"),
        ("<mark>a</mark> and <mark>b</mark>", "_ and _"),
        ("<mark>a</mark> or <mark>b", "_ or <mark>b"),
        ("", ""),
    ],
)
def test_unknown_wordings_are_refused(text, wording):
    known = ", ".join(map(repr, TEMPLATES))
    expected = f"expected one of {known}; each _ is <mark>...</mark>"
    message = refusal(from_marks, text, error=QueryError)
    assert message == f"unknown wording {wording!r} in {text!r}; {expected}"


def test_a_blank_atom_is_refused():
    message = refusal(from_marks, "<mark>a</mark> or <mark> </mark>", error=QueryError)
    assert message == "the text of an atom must not be blank, got ' '"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a OR b OR c OR d", "a or b or c or d"),
        ("a AND b AND c AND d", "a that are also b, c and d"),
        ("a AND b AND c NOT d", "a that are also both b and c but not d"),
        ("a NOT b NOT c", "a that are not b or c"),
        ("a NOT (b OR c) NOT d", "a that are not b or c or d"),
        ("a AND b NOT (c OR d)", "a that are also b but not c or d"),
        ("a NOT (b AND c)", "a that are not (b that are also c)"),
        ("(a OR b) NOT c", "(a or b) that are not c"),
        ("(a OR b) AND c", "(a or b) that are also c"),
        ("a OR b NOT c", "a or (b that are not c)"),
        ("a NOT b AND c", "(a that are not b) that are also c"),
    ],
)
def test_other_trees(text, words):
    assert verbalise(parse(text)) == words


@given(expressions())
def test_every_tree_can_be_said_and_names_its_atoms_in_order(expression):
    words = verbalise(expression)
    position = 0
    for atom in leaves(expression):
        position = words.index(atom.text, position) + len(atom.text)


def test_real_queries(shared_data):
    for query in map(json.loads, (shared_data / "filmsets" / "dev.jsonl").open(encoding="utf-8")):
        assert re.sub("<mark>.*?</mark>", "_", query["original_query"]) == query["metadata"]["template"]
        assert verbalise(from_marks(query["original_query"])) == query["query"]
