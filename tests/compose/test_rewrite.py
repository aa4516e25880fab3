import pytest
from expression_strategies import DOCUMENTS, contains, expressions
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.rewrite import alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.expression import Atom, Difference, Intersection, Union, leaves, parse

EXPRESSIONS = expressions(st.sampled_from("abcd"))


def names(members):
    return [atom.text for member in members for atom in leaves(member)]


@given(EXPRESSIONS)
def test_a_conjunction_keeps_the_meaning(expression):
    parts = conjunction(expression)
    for document in DOCUMENTS:
        kept = all(contains(member, document) for member in parts.kept)
        excluded = any(contains(member, document) for member in parts.excluded)
        assert (kept and not excluded) == contains(expression, document)


@given(EXPRESSIONS)
def test_a_conjunction_is_in_normal_form(expression):
    parts = conjunction(expression)
    assert parts.kept
    assert all(isinstance(member, (Atom, Union)) for member in parts.kept)
    assert not any(isinstance(member, Union) for member in parts.excluded)
    assert sorted(names(parts.kept + parts.excluded)) == sorted(names([expression]))


@given(EXPRESSIONS)
def test_alternatives_keep_the_meaning(expression):
    members = alternatives(expression)
    assert not any(isinstance(member, Union) for member in members)
    for document in DOCUMENTS:
        assert any(contains(member, document) for member in members) == contains(expression, document)


@pytest.mark.parametrize(
    ("text", "kept", "excluded"),
    [
        ("a", "a", ""),
        ("a AND b AND c", "abc", ""),
        ("a AND (b AND c)", "abc", ""),
        ("a NOT b NOT c", "a", "bc"),
        ("a NOT (b OR (c OR d))", "a", "bcd"),
        ("(a NOT b) AND (c NOT d)", "ac", "bd"),
        ("((a NOT b) AND c NOT d) AND e NOT f", "ace", "bdf"),
    ],
)
def test_identities(text, kept, excluded):
    parts = conjunction(parse(text))
    assert (parts.kept, parts.excluded) == (tuple(map(Atom, kept)), tuple(map(Atom, excluded)))


def test_a_nested_exclusion_is_one_negative():
    assert conjunction(parse("a NOT (b NOT c)")).excluded == (parse("b NOT c"),)


@given(EXPRESSIONS)
def test_without_vanilla_nothing_is_verbalised(expression):
    assert verbalised(expression, Operators()) == expression


@given(EXPRESSIONS)
def test_no_vanilla_node_is_left(expression):
    def nodes(node):
        children = [] if isinstance(node, Atom) else getattr(node, "operands", None) or [node.left, node.right]
        return [node, *(below for child in children for below in nodes(child))]

    for kind, setting in ((Union, "union"), (Intersection, "intersection"), (Difference, "difference")):
        after = verbalised(expression, Operators(**{setting: "vanilla"}))
        assert not any(isinstance(node, kind) for node in nodes(after))


def test_a_vanilla_subtree_is_worded_as_it_is_written():
    vanilla = Operators(intersection="vanilla")
    assert verbalised(parse("(a NOT b) AND c NOT d"), vanilla) == Difference(
        Atom("(a that are not b) that are also c"), Atom("d")
    )
    everything = Operators("vanilla", "vanilla", "vanilla")
    assert verbalised(parse("a AND b NOT c"), everything) == Atom("a that are also b but not c")


@given(EXPRESSIONS)
def test_differences_are_left_out(expression):
    without = without_differences(expression)
    assert "Difference" not in repr(without)
    assert (without == expression) == ("Difference" not in repr(expression))
