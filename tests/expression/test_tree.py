import copy
import dataclasses
import pickle
from functools import partial

import pytest
from refusals import refusal

from pyserini_compneg.expression import MAX_DEPTH, Atom, Difference, Intersection, Union
from pyserini_compneg.support.errors import QueryError

A, B = Atom("a"), Atom("b")


def chain(depth):
    expression = A
    for _ in range(depth - 1):
        expression = Difference(expression, B)
    return expression


def test_atoms_drop_the_blanks_around_them_and_keep_those_inside():
    assert Atom(" two  words\n").text == "two  words"


BLANK = "the text of an atom must not be blank, got {!r}"
FEW = "{} needs a tuple of two or more operands, got {!r}"


@pytest.mark.parametrize(
    ("make", "value", "said"),
    [
        *((Atom, text, BLANK.format(text)) for text in ("", "  ", "\t\n", None, 3)),
        *(
            (node, some, FEW.format(node.__name__, some))
            for node in (Union, Intersection)
            for some in ((), (A,), [A, B])
        ),
        (Union, (A, "b"), "an operand of Union must be an expression, got 'b'"),
        (partial(Difference, A), "b" * 100, f"an operand of Difference must be an expression, got '{'b' * 56}..."),
        (chain, MAX_DEPTH + 1, "an expression may be 100 levels deep, this one is deeper; flatten it"),
    ],
)
def test_what_is_no_expression_is_refused(make, value, said):
    assert refusal(make, value, error=QueryError) == said


def test_the_deepest_tree_can_be_compared_hashed_shown_copied_and_pickled():
    deepest = chain(MAX_DEPTH)
    assert deepest.depth == MAX_DEPTH
    assert deepest == chain(MAX_DEPTH)
    assert hash(deepest) == hash(chain(MAX_DEPTH))
    assert repr(deepest).count("Difference") == MAX_DEPTH - 1
    assert copy.deepcopy(deepest) == pickle.loads(pickle.dumps(deepest)) == deepest


def test_nodes_are_compared_by_kind_and_order_and_do_not_change():
    assert Union((A, B)) != Intersection((A, B))
    assert Union((A, B)) != Union((B, A))
    with pytest.raises(dataclasses.FrozenInstanceError):
        A.text = "b"
