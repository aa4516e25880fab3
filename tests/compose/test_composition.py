"""What holds for every expression and every choice of operators."""

import math
from itertools import product

import pytest
from expression_strategies import expressions
from hypothesis import given
from hypothesis import strategies as st
from lookup_encoder import LookupEncoder, letters
from score_oracle import evaluate

from pyserini_compneg.compose import (
    DIFFERENCES,
    INTERSECTIONS,
    UNIONS,
    Linear,
    Operators,
    compose_query,
    from_json,
    is_empty,
    to_json,
)
from pyserini_compneg.expression import MAX_DEPTH, Atom, Difference, Intersection, Union, parse


def top_scores(nodes, k):
    """Of an index that has one document, with all terms."""
    scores = [evaluate(node, dict.fromkeys("pqrstu", 2.0)) for node in nodes]
    return [[] if score is None else [score] for score in scores]


CHOICES = [Operators(*names) for names in product(UNIONS, INTERSECTIONS, DIFFERENCES)]


@pytest.mark.parametrize("text", ["a", "a OR b", "a AND b", "a NOT b", "(a OR b) AND c NOT d"])
def test_unknown_atoms_give_empty_queries(text):
    for operators in CHOICES:
        node = compose_query(parse(text), LookupEncoder({}), operators, top_scores=top_scores)
        assert node == Linear({})
        assert is_empty(node)


@given(
    expressions(st.sampled_from("abcd")),
    st.fixed_dictionaries(
        dict.fromkeys(
            "abcd",
            st.dictionaries(st.sampled_from("pqrstu"), st.integers(-9, 9).filter(bool).map(float)),
        )
    ),
    st.sampled_from(CHOICES),
)
def test_every_choice_is_defined_on_signed_vectors(expression, vectors, operators):
    node = compose_query(expression, LookupEncoder(vectors), operators, top_scores=top_scores)
    fields = to_json(node)
    assert from_json(fields.get("score", fields), "here") == node
    score = evaluate(node, dict.fromkeys("pqrstu", 2.0))
    assert (score is None) == is_empty(node)
    assert score is None or math.isfinite(score)


@pytest.mark.slow
@pytest.mark.parametrize("operators", CHOICES[::7] + CHOICES[3::7] + [Operators(intersection="cpt")])
def test_the_deepest_expressions_compose_and_are_read_back(operators):
    vectors = letters(a="p", b="q", c="r")
    steps = [
        lambda e: Union((e, Atom("b"))),
        lambda e: Difference(e, Atom("c")),
        lambda e: Intersection((e, Atom("a"))),
    ]
    for kinds in (steps, steps[:2], steps[1:], steps[::2]):
        deep = Intersection((Atom("a"), Atom("b")))
        for level in range(MAX_DEPTH - deep.depth):
            deep = kinds[level % len(kinds)](deep)
        assert deep.depth == MAX_DEPTH
        fields = to_json(compose_query(deep, LookupEncoder(vectors), operators, top_scores=top_scores))
        from_json(fields.get("score", fields), "here")
