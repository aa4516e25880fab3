import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pair_index import document_pairs
from scoring_strategies import DOCUMENTS, defined_score, nodes

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, Sum, evaluate, lowered
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.support.errors import QueryError

AB = Product(({"a": 4.0}, {"b": 1.0}))


def pairs_only(node):
    """Whether every product that may become a vector has two operands."""
    match node:
        case Product(operands):
            return len(operands) == 2 and node.is_sum_over_tuples
        case Max(children) | Sum(children):
            return all(map(pairs_only, children))
        case Damped(child) | Excluding(child):
            return pairs_only(child)
    return True


@given(nodes())
def test_any_index_runs_the_factored_form(node):
    assert lowered(node) is node


@given(nodes(), DOCUMENTS)
def test_the_materialised_form_finds_and_scores_alike(node, document):
    assume(pairs_only(node))
    pairs = document_pairs(document, top=len(document))
    score, other = evaluate(node, document), evaluate(lowered(node, "materialised"), pairs)
    magnitude = sum(abs(weight) for vector in leaf_vectors(node) for weight in vector.values()) * 50
    assert other == (None if score is None else pytest.approx(score, abs=1e-12 * magnitude * 9))


def test_a_conjunction_is_a_vector_over_pairs():
    assert lowered(Product(AB.operands, weight=-3.0), "materialised") == Linear({"a∩b": -6.0})


def test_sums_of_vectors_are_one_vector():
    node = Sum((AB, Linear({"a": 4.0, "b": 1.0}), Linear({"x": -3.0})))
    assert lowered(node, "materialised") == Linear({"a∩b": 2.0, "a": 4.0, "b": 1.0, "x": -3.0})
    assert lowered(Sum((Sum((AB, Linear({"c": 1.0}))), Linear({"a∩b": 1.0}))), "materialised") == Linear(
        {"a∩b": 3.0, "c": 1.0}
    )


def test_a_maximum_stays_and_its_children_are_lowered():
    node = Sum((Max((AB, Linear({"c": 1.0}))), Linear({"x": -1.0}), Linear({"y": -1.0})))
    lower = lowered(node, "materialised")
    assert lower == Sum((Linear({"x": -1.0, "y": -1.0}), Max((Linear({"a∩b": 2.0}), Linear({"c": 1.0})))))


@pytest.mark.parametrize("penalty", [-4.0, -5.0])
def test_vectors_that_cancel_stay_apart_because_they_find_more(penalty):
    node = Sum((AB, Linear({"a": 4.0}), Linear({"a": penalty})))
    assert lowered(node, "materialised") == Sum((Linear({"a∩b": 2.0}), Linear({"a": 4.0}), Linear({"a": penalty})))


@pytest.mark.parametrize(("power", "root"), [(1.0, 1), (1.0, 2), (None, 2)])
def test_other_products_are_no_sums_over_pairs(power, root):
    with pytest.raises(QueryError) as error:
        lowered(Sum((Product(AB.operands, power, root), Linear({"x": -1.0}))), "materialised")
    remedy = "use the factored form (--cpt factored), or --intersection cpt"
    assert str(error.value) == f"a product of power {power or 0.5:g} and root {root} is no sum over pairs; {remedy}"


def test_an_unknown_form():
    with pytest.raises(QueryError) as error:
        lowered(AB, "pairs")
    assert str(error.value) == "cpt must be one of factored, materialised, got 'pairs'"


def test_signed_documents_are_asked_for_complements_in_linear_leaves_alone():
    node = Max((Sum((AB, Linear({"a": 2.0, "x": -1.0}))), Linear({"b": 1.0})))
    linear = Linear({"a": 2.0, "¬a": -2.0, "x": -1.0, "¬x": 1.0})
    assert lowered(node, signed=True) == Max((Sum((AB, linear)), Linear({"b": 1.0, "¬b": -1.0})))


def test_pairs_have_no_complements():
    node = Sum((Product(({"a": 4.0}, {"a": 1.0, "b": 1.0})), Linear({"x": -1.0})))
    assert lowered(node, "materialised", signed=True) == Linear({"a": 2.0, "a∩b": 2.0, "x": -1.0, "¬x": 1.0})


SIGNED = st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).filter(bool).map(float))


@given(nodes(), SIGNED)
def test_signed_documents_are_scored_by_their_signed_weights(node, document):
    stored = {term if weight > 0 else f"¬{term}": abs(weight) for term, weight in document.items()}
    matches, score = defined_score(node, document)
    assert evaluate(lowered(node, signed=True), stored) == (pytest.approx(score, abs=1e-9) if matches else None)
