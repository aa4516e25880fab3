import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pair_index import document_pairs
from refusals import refusal
from score_oracle import evaluate, score
from scoring_strategies import DOCUMENTS, nodes

from pyserini_compneg.compose import Linear, Max, Product, Sum, adapted
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.support.errors import QueryError

AB = Product(({"a": 4.0}, {"b": 1.0}))


def pairs_only(node):
    """Whether every product that may become a vector has two operands."""
    if isinstance(node, Product):
        return len(node.operands) == 2 and node.is_sum_over_tuples
    return all(map(pairs_only, node.wanted))


@given(nodes(), DOCUMENTS)
def test_the_materialised_form_finds_and_scores_alike(node, document):
    assume(pairs_only(node))
    pairs = document_pairs(document, top=len(document))
    found, other = evaluate(node, document), evaluate(adapted(node, "materialised"), pairs)
    magnitude = sum(abs(weight) for vector in leaf_vectors(node) for weight in vector.values()) * 50
    assert other == (None if found is None else pytest.approx(found, abs=1e-12 * magnitude * 9))


PAIRS = {"cpt": "materialised"}
NEGATIVE = Linear({"x": -1.0})
IN_MAX = Sum((Max((AB, Linear({"c": 1.0}))), NEGATIVE, Linear({"y": -1.0})))
BOTH_SIGNS = Linear({"a": 2.0, "¬a": -2.0, "x": -1.0, "¬x": 1.0})
CANCELLING = [Sum((AB, Linear({"a": 4.0}), Linear({"a": penalty}))) for penalty in (-4.0, -5.0)]


@pytest.mark.parametrize(
    ("node", "settings", "lower"),
    [
        (IN_MAX, {}, IN_MAX),  # any index runs the factored form
        (Product(AB.operands, weight=-3.0), PAIRS, Linear({"a∩b": -6.0})),
        (Sum((AB, Linear({"a": 4.0}), Linear({"x": -3.0}))), PAIRS, Linear({"a∩b": 2.0, "a": 4.0, "x": -3.0})),
        (Sum((Sum((AB, Linear({"c": 1.0}))), Linear({"a∩b": 1.0}))), PAIRS, Linear({"a∩b": 3.0, "c": 1.0})),
        (IN_MAX, PAIRS, Sum((Linear({"x": -1.0, "y": -1.0}), Max((Linear({"a∩b": 2.0}), Linear({"c": 1.0})))))),
        # Vectors that cancel stay apart, because they find more.
        *((node, PAIRS, Sum((Linear({"a∩b": 2.0}), *node.children[1:]))) for node in CANCELLING),
        # Signed documents are asked for complements in linear leaves alone.
        (
            Max((Sum((AB, Linear({"a": 2.0, "x": -1.0}))), Linear({"b": 1.0}))),
            {"signed": True},
            Max((Sum((AB, BOTH_SIGNS)), Linear({"b": 1.0, "¬b": -1.0}))),
        ),
        (
            Sum((Product(({"a": 4.0}, {"a": 1.0, "b": 1.0})), NEGATIVE)),
            {**PAIRS, "signed": True},
            Linear({"a": 2.0, "a∩b": 2.0, "x": -1.0, "¬x": 1.0}),
        ),
    ],
)
def test_lowered_by_hand(node, settings, lower):
    assert adapted(node, **settings) == lower


@pytest.mark.parametrize(("power", "root"), [(1.0, 1), (1.0, 2), (None, 2)])
def test_other_products_are_no_sums_over_pairs(power, root):
    node = Sum((Product(AB.operands, power, root), Linear({"x": -1.0})))
    remedy = "use the factored form (--cpt factored), or --intersection cpt"
    said = f"a product of power {power or 0.5:g} and root {root} is not a sum over pairs; {remedy}"
    assert refusal(adapted, node, "materialised", error=QueryError) == said


def test_an_unknown_form():
    said = "cpt must be one of factored, materialised, got 'pairs'"
    assert refusal(adapted, AB, "pairs", error=QueryError) == said


SIGNED = st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).filter(bool).map(float))


@given(nodes(), SIGNED)
def test_signed_documents_are_scored_by_their_signed_weights(node, document):
    stored = {term if weight > 0 else f"¬{term}": abs(weight) for term, weight in document.items()}
    matched, value, _ = score(node, document)
    assert evaluate(adapted(node, signed=True), stored) == (pytest.approx(value, abs=1e-9) if matched else None)
