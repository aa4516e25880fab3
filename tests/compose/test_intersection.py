import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pair_index import document_pairs

from pyserini_compneg.compose.intersection import TOP_TERMS, VECTOR_INTERSECTIONS, cpt_operands, cpt_pairs
from pyserini_compneg.compose.union import VECTOR_UNIONS
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.vectors import dot, top_terms

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
WEIGHTS = st.floats(1e-3, 1e3)
VECTORS = st.dictionaries(st.sampled_from("abcdef"), WEIGHTS, min_size=1)


def factored(operands, document):
    """(Σ √(aᵢdᵢ)) · (Σ √(bⱼdⱼ))."""
    a, b = ([math.sqrt(w * document.get(term, 0.0)) for term, w in operand.items()] for operand in operands)
    return sum(a) * sum(b)


def test_the_papers_birds():
    pairs = cpt_pairs([COLOMBIA, VENEZUELA])
    assert pairs["colombia∩venezuela"] == 1.0
    assert pairs["birds∩colombia"] == pairs["birds∩venezuela"] == 1.0
    # (andes, birds) and (birds, andes) are one pseudo-term, (birds, birds) is the term itself.
    assert pairs["andes∩birds"] == 2.0
    assert pairs["birds"] == 1.0
    assert len(pairs) == 16 - 3
    assert sum(pairs.values()) == 16.0


def test_pairs_by_hand():
    assert cpt_pairs([{"a": 4.0, "b": 9.0}, {"b": 1.0, "c": 0.25}]) == {
        "b": 3.0,
        "b∩c": 1.5,
        "a∩b": 2.0,
        "a∩c": 1.0,
    }


def test_signs_stand_between_terms_in_code_point_order():
    assert list(cpt_pairs([{"é": 1.0}, {"z": 1.0}])) == ["z\u2229é"]


def test_only_the_heaviest_positive_terms_take_part():
    many = {f"t{i}": float(i) for i in range(1, 9)}
    assert cpt_operands([many, {"a": -9.0, "b": 1.0}]) == [{f"t{i}": float(i) for i in (8, 7, 6, 5, 4)}, {"b": 1.0}]
    assert TOP_TERMS == 5
    assert len(cpt_pairs([many, {"x": 1.0}], top=2)) == 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_pseudo_terms_are_pairs(count):
    with pytest.raises(CompositionError) as error:
        cpt_pairs([{"a": 1.0}] * count)
    remedy = "use the factored form (--cpt factored), which takes any number"
    assert str(error.value) == f"pseudo-terms are pairs, of two operands, got {count} operands; {remedy}"


@given(VECTORS, VECTORS, VECTORS)
def test_a_sum_over_pairs_is_a_product_of_sums(a, b, document):
    pairs = (
        math.sqrt(x * y) * math.sqrt(document.get(s, 0.0) * document.get(t, 0.0))
        for s, x in a.items()
        for t, y in b.items()
    )
    assert sum(pairs) == pytest.approx(factored([a, b], document))


@given(VECTORS, VECTORS, VECTORS, st.integers(1, 6))
@example({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 3.0}, {"a": 5.0, "b": 7.0}, 5)
def test_both_forms_score_alike(a, b, document, top):
    materialised = dot(cpt_pairs([a, b], top), document_pairs(document, top))
    kept = top_terms(document, top)
    assert materialised == pytest.approx(factored(cpt_operands([a, b], top), kept))


def test_documents_by_hand():
    assert document_pairs({"a": 4.0, "b": 9.0, "c": 1.0, "d": -5.0}, top=2) == {"b": 9.0, "a∩b": 6.0, "a": 4.0}


def test_the_ablations_are_those_of_the_union():
    assert dict(VECTOR_INTERSECTIONS) == {name: VECTOR_UNIONS[name] for name in ("addition", "maxpool")}
