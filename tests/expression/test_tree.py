import copy
import dataclasses
import pickle

import pytest

from pyserini_compneg.errors import QuerySyntaxError
from pyserini_compneg.expression import MAX_DEPTH, Atom, Difference, Intersection, Union

A, B = Atom("a"), Atom("b")


def chain(depth):
    expression = A
    for _ in range(depth - 1):
        expression = Difference(expression, B)
    return expression


def test_atoms_drop_the_blanks_around_them_and_keep_those_inside():
    assert Atom(" two  words\n").text == "two  words"


@pytest.mark.parametrize("text", ["", "  ", "\t\n", None, 3])
def test_blank_atoms_are_refused(text):
    with pytest.raises(QuerySyntaxError) as error:
        Atom(text)
    assert str(error.value) == f"the text of an atom must not be blank, got {text!r}"


@pytest.mark.parametrize("node", [Union, Intersection])
@pytest.mark.parametrize("operands", [(), (A,), [A, B]])
def test_too_few_operands_are_refused(node, operands):
    with pytest.raises(QuerySyntaxError) as error:
        node(operands)
    assert str(error.value) == f"{node.__name__} needs a tuple of two or more operands, got {operands!r}"


def test_operands_must_be_expressions():
    with pytest.raises(QuerySyntaxError) as error:
        Union((A, "b"))
    assert str(error.value) == "an operand of Union must be an expression, got 'b'"
    with pytest.raises(QuerySyntaxError) as error:
        Difference(A, "b" * 100)
    assert str(error.value) == f"an operand of Difference must be an expression, got '{'b' * 56}..."


def test_depth_is_limited():
    assert chain(MAX_DEPTH).depth == MAX_DEPTH
    with pytest.raises(QuerySyntaxError) as error:
        chain(MAX_DEPTH + 1)
    assert str(error.value) == "an expression may be 100 levels deep, this one is deeper; flatten it"


def test_the_deepest_tree_can_be_compared_hashed_shown_copied_and_pickled():
    deepest = chain(MAX_DEPTH)
    assert deepest == chain(MAX_DEPTH)
    assert hash(deepest) == hash(chain(MAX_DEPTH))
    assert repr(deepest).count("Difference") == MAX_DEPTH - 1
    assert copy.deepcopy(deepest) == pickle.loads(pickle.dumps(deepest)) == deepest


def test_nodes_are_compared_by_kind_and_order_and_do_not_change():
    assert Union((A, B)) != Intersection((A, B))
    assert Union((A, B)) != Union((B, A))
    with pytest.raises(dataclasses.FrozenInstanceError):
        A.text = "b"
