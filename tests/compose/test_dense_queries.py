"""Expressions as subspaces: what each operator makes of unit vectors, nested too."""

import numpy as np
import pytest
from dense_encoder import StandInDenseEncoder

from pyserini_compneg.compose.dense import DENSE_OPERATORS, DenseOperators, dense_queries
from pyserini_compneg.errors import CompositionError, EncodingError
from pyserini_compneg.expression import parse

A, B, C, D = np.eye(4)
AB = (A + B) / np.sqrt(2)


def encoder():
    wordings = dict.fromkeys(["a or b", "a that are also b", "a that are not b"], D)
    return StandInDenseEncoder(a=A, b=B, c=C, d=D, ab=AB, **wordings)


def composed(text, **operators):
    return dense_queries([parse(text)], encoder(), DenseOperators(**operators))[0]


def projector(vectors):
    """What tells a subspace, whatever basis it is given by."""
    basis = np.linalg.qr(np.array(vectors).T)[0]
    return basis @ basis.T


def assert_spans(rows, *vectors):
    assert len(rows) == len(vectors)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6)
    if len(vectors) == 1:
        np.testing.assert_allclose(rows[0], vectors[0] / np.linalg.norm(vectors[0]), atol=1e-6)
    else:
        np.testing.assert_allclose(rows.T @ rows, projector(vectors), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "operators", "vectors"),
    [
        ("a", {}, [A]),
        ("a OR b", {}, [A, B]),
        ("a OR b OR c", {}, [A, B, C]),
        ("a OR b", {"union": "addition"}, [A + B]),
        ("a OR a", {}, [A]),
        ("a AND b", {}, [A + B]),
        ("ab NOT b", {}, [A]),
        ("ab NOT b", {"difference": "subtraction"}, [AB - B]),
        ("ab NOT b", {"difference": "ignore"}, [AB]),
        ("a NOT b NOT c", {"difference": "subtraction"}, [A - B - C]),
        ("a NOT (b OR c)", {"difference": "subtraction"}, [A - B - C]),
        ("(a AND c) NOT ab", {}, [A + C - AB / np.sqrt(2)]),
        ("a AND c NOT b", {"difference": "subtraction"}, [A + C - B]),
        ("(a NOT b) AND c", {"difference": "subtraction"}, [A + C - B]),
        ("(ab OR c) NOT b", {}, [A, C]),
        ("(a OR b) NOT b", {}, [A]),
        ("(a OR b) AND c", {}, [A + B + C]),
        ("(a OR b) AND (c OR d)", {"union": "addition"}, [A + B + C + D]),
        ("(ab NOT b) OR c", {}, [A, C]),
        ("ab NOT (b NOT c)", {}, [A]),
        ("a NOT (ab AND c)", {}, [A - (AB + C) / np.sqrt(2) / 2]),
    ],
)
def test_what_expressions_become(text, operators, vectors):
    assert_spans(composed(text, **operators), *vectors)


@pytest.mark.parametrize("text", ["a NOT a", "a NOT (a OR b)", "(a AND b) NOT (a OR b)"])
def test_nothing_may_be_left(text):
    assert composed(text).shape == (0, 4)


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("a OR b", {"union": "vanilla"}),
        ("a AND b", {"intersection": "vanilla"}),
        ("a NOT b", {"difference": "vanilla"}),
    ],
)
def test_vanilla_encodes_the_wording(text, operators):
    assert_spans(composed(text, **operators), D)


def test_what_is_vanilla_inside_is_composed_outside():
    assert_spans(composed("(a OR b) NOT c", union="vanilla"), D)
    assert_spans(composed("c NOT (a OR b)", union="vanilla", difference="subtraction"), C - D)


def test_every_text_is_encoded_once_and_in_one_batch():
    asked = encoder()
    dense_queries([parse("a AND b"), parse("b NOT c"), parse("a")], asked, DenseOperators())
    assert asked.batches == [["a", "b", "c"]]


def test_no_expressions_are_no_queries():
    assert dense_queries([], encoder(), DenseOperators()) == []


def test_an_encoder_must_give_a_vector_for_each_text():
    short = encoder()
    short.encode_queries = lambda texts: np.zeros((1, 4), np.float32)
    with pytest.raises(EncodingError) as error:
        dense_queries([parse("a OR b")], short, DenseOperators())
    assert str(error.value) == "the encoder must give a vector for each text, got 1 for 2 texts"


@pytest.mark.parametrize("kind", DENSE_OPERATORS)
def test_unknown_operators_are_refused(kind):
    with pytest.raises(CompositionError) as error:
        DenseOperators(**{kind: "cpt"})
    known = ", ".join(DENSE_OPERATORS[kind])
    assert str(error.value) == f"{kind} of dense vectors must be one of {known}, got 'cpt'"


def test_the_first_operators_are_the_defaults():
    assert DenseOperators() == DenseOperators(**{kind: names[0] for kind, names in DENSE_OPERATORS.items()})
