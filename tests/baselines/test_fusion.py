import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refusal
from score_oracle import evaluate, fused_score

from pyserini_compneg.baselines.fusion import MOST_PRODUCTS, fused
from pyserini_compneg.compose import Linear, Product, Sum, is_empty
from pyserini_compneg.expression import Atom, Difference, Intersection, Union, parse
from pyserini_compneg.support.errors import QueryError

ATOMS = st.sampled_from("ABCD").map(Atom)
TERMS = "pqrs"
VECTORS = st.fixed_dictionaries(
    {
        text: st.dictionaries(st.sampled_from(TERMS), st.integers(1, 300).map(lambda w: w / 100), min_size=1)
        for text in "ABCD"
    }
)
IMPACTS = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 500))


def several(node):
    return lambda children: st.lists(children, min_size=2, max_size=3).map(tuple).map(node)


POSITIVE = st.recursive(ATOMS, lambda inner: several(Union)(inner) | several(Intersection)(inner), max_leaves=5)
DIFFERENCES = st.builds(Difference, POSITIVE, ATOMS | several(Union)(ATOMS))
CONJUNCTIONS = POSITIVE | DIFFERENCES | several(Intersection)(POSITIVE | DIFFERENCES)
FUSIBLE = CONJUNCTIONS | several(Union)(CONJUNCTIONS)


def dot(vector, impacts):
    return sum(weight * impacts.get(term, 0) for term, weight in vector.items())


@given(FUSIBLE, VECTORS, IMPACTS, st.sampled_from([1, 7.3, 51.2, 256]))
def test_scores_are_those_of_the_models_own_scores_fused(expression, vectors, impacts, impact_scale):
    assume(fused_score(expression, dict.fromkeys("ABCD", 1.0))[2] <= 4)
    scores = {text: dot(vector, impacts) / impact_scale for text, vector in vectors.items()}
    plus, minus, degree = fused_score(expression, scores)
    score = evaluate(fused(expression, vectors, impact_scale), impacts)
    if plus == 0:
        assert score is None
    else:
        unit = (100 * impact_scale) ** degree
        assert score == pytest.approx(unit * (plus - minus), abs=1e-9 * unit * (plus + minus))


@given(FUSIBLE, VECTORS, st.lists(IMPACTS, min_size=1, max_size=5))
def test_scaled_scores_are_those_of_shares_of_the_best_fused(expression, vectors, others):
    documents = [dict.fromkeys(TERMS, 7), *others]
    best = {text: max(dot(vector, document) for document in documents) for text, vector in vectors.items()}
    assume(fused_score(expression, dict.fromkeys("ABCD", 1.0))[2] <= 3)
    node = fused(expression, vectors, best_scores={text: 100 * score for text, score in best.items()})
    found = {}
    for number, document in enumerate(documents):
        shares = {text: dot(vector, document) / best[text] for text, vector in vectors.items()}
        plus, minus, _ = fused_score(expression, shares)
        score = evaluate(node, document)
        assert (score is None) == (plus == 0)
        if plus:
            found[number] = score, plus - minus, plus + minus
    score, value, _ = found[0]  # the document that has everything, with an error of its own
    unit = max((abs(score / value) for score, value, size in found.values() if abs(value) > size / 2), default=None)
    for score, value, size in found.values() if unit else ():
        assert score == pytest.approx(unit * value, abs=3e-3 * unit * size)


VECTORS_BY_HAND = {"A": {"a": 1.0, "s": 0.5}, "B": {"b": 2.0, "s": 1.0}, "C": {"c": 3.0, "s": 0.25}, "unknown": {}}
A, B, C = {"a": 100.0, "s": 50.0}, {"b": 200.0, "s": 100.0}, {"c": 300.0, "s": 25.0}


def minus(vector, factor=1):
    return Linear({term: -factor * weight for term, weight in vector.items()})


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("A", Linear(A)),
        ("A OR B", Sum((Linear(A), Linear(B)))),
        ("A NOT B", Sum((Linear(A), minus(B)))),
        ("A NOT (B OR C)", Sum((Linear(A), minus(B), minus(C)))),
        ("A OR (B NOT C)", Sum((Linear(A), Linear(B), minus(C)))),
        ("A AND B", Product((A, B), 1.0)),
        ("A AND (B OR C)", Sum((Product((A, B), 1.0), Product((A, C), 1.0)))),
        ("A OR unknown", Linear(A)),
        ("A NOT unknown", Linear(A)),
        ("A AND B OR (unknown AND C)", Product((A, B), 1.0)),
        ("unknown", Linear({})),
        ("unknown AND A NOT B", Linear({})),
    ],
)
def test_trees_of_one_degree_need_no_impact_scale(text, node):
    assert fused(parse(text), VECTORS_BY_HAND) == node
    assert is_empty(node) == (node == Linear({}))


@pytest.mark.parametrize("text", ["A AND B NOT C", "(A NOT C) AND B", "A AND (B NOT C)"])
def test_a_score_beside_a_product_gets_the_unit_that_is_missing(text):
    assert fused(parse(text), VECTORS_BY_HAND, 10) == Sum((Product((A, B), 1.0), minus(C, 1000)))


OPERATORS = "; use operators"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A NOT (B AND C)", f"score fusion cannot subtract 'B AND C', only atoms and unions of atoms{OPERATORS}"),
        ("A NOT (B NOT C)", f"score fusion cannot subtract 'B NOT C', only atoms and unions of atoms{OPERATORS}"),
        (
            "((A NOT B) OR C) AND B",
            f"score fusion cannot multiply 'A NOT B OR C', which holds a difference{OPERATORS}",
        ),
        (
            "A AND B NOT C",
            "scores can be added to products of scores only if the index gives its impact scale; use "
            "score-fusion-scaled, or an index of this package",
        ),
        (" AND ".join("A" * 17), f"score fusion cannot multiply 17 scores (the limit is 16){OPERATORS}"),
        (
            " AND ".join(["(A OR B)"] * 10),
            f"score fusion cannot add up 1024 products (the limit is {MOST_PRODUCTS}){OPERATORS}",
        ),
    ],
)
def test_what_cannot_be_fused_is_refused(text, message):
    assert refusal(fused, parse(text), VECTORS_BY_HAND, error=QueryError) == message


def test_weights_out_of_range():
    with pytest.raises(QueryError) as error:
        fused(parse("A AND A AND A NOT B"), VECTORS_BY_HAND, 1e8)
    limit = "the limit is 1e+18; lower the weight scale"
    assert str(error.value) == f"the weight of 'b' becomes 2e+22 at weight scale 1e+20, {limit}"
    assert (
        refusal(fused, parse("A AND B"), VECTORS_BY_HAND | {"B": {"b": -1.0}}, error=QueryError)
        == "product[1].vector: the weight of 'b' in a product must be positive, got -100.0"
    )
