import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_encoder import LookupEncoder
from scoring_strategies import DOCUMENTS, POSITIVE, ROOTS, nodes

from pyserini_compneg.compose import Linear, Max, Operators, Product, Sum, compose_query, evaluate
from pyserini_compneg.compose.damping import damped
from pyserini_compneg.compose.scoring import matches
from pyserini_compneg.errors import CompositionError

EXCLUDED = st.dictionaries(st.sampled_from("uvwxyz"), st.integers(1, 9).map(float), min_size=1, max_size=4)
FULL_DOCUMENTS = st.dictionaries(st.sampled_from("abcdefuvwxyz"), st.integers(1, 50).map(float))
BEST = 1000.0
WEIGHT = 0.5

ENCODER = LookupEncoder(
    {"birds": {"bird": 3.0, "fly": 1.0}, "parrots": {"bird": 1.0, "parrot": 2.0}, "bats": {"bat": 1.0}}
)
DAMPED = Operators(intersection="cpt", difference="damped")


def asked(node):
    return BEST


def score(node, document):
    return evaluate(node, document) or 0.0


@given(POSITIVE, EXCLUDED, FULL_DOCUMENTS)
def test_a_vector_is_damped_by_the_share_of_the_best_score(wanted, excluded, document):
    node = damped(Linear(wanted), excluded, asked, WEIGHT)
    share = score(Linear(excluded), document) / BEST
    expected = score(Linear(wanted), document) * (1 - WEIGHT * share**4)
    assert score(node, document) == pytest.approx(expected)


@given(
    st.lists(POSITIVE, min_size=2, max_size=3).map(tuple),
    st.sampled_from([None, 0.5, 0.2]),
    ROOTS,
    EXCLUDED,
    FULL_DOCUMENTS,
)
def test_a_conjunction_is_damped_by_the_share_of_its_own_arithmetic(operands, power, root, excluded, document):
    wanted = Product(operands, power, root, 3.0)
    share = score(Product((excluded,) * len(operands), power, root), document) / BEST
    expected = score(wanted, document) * (1 - WEIGHT * share**4)
    assert score(damped(wanted, excluded, asked, WEIGHT), document) == pytest.approx(expected)


@given(nodes(), EXCLUDED, DOCUMENTS, FULL_DOCUMENTS)
def test_documents_without_what_is_excluded_keep_their_score_and_all_stay_found(node, excluded, without, document):
    changed = damped(node, excluded, asked, WEIGHT)
    assert evaluate(changed, without) == pytest.approx(evaluate(node, without), abs=1e-6)
    assert matches(changed, document) == matches(node, document)


def test_a_maximum_is_damped_by_the_child():
    node = damped(Max((Linear({"a": 1.0}), Linear({"b": 2.0}))), {"x": 1.0}, lambda _: 10.0, WEIGHT)
    assert isinstance(node, Max)
    assert evaluate(node, {"a": 8.0, "b": 3.0, "x": 10.0}) == pytest.approx(8.0 / 2)


@pytest.mark.parametrize(("best", "weight"), [(0.0, 0.5), (10.0, 0.0)])
def test_nothing_to_damp(best, weight):
    assert damped(Linear({"a": 1.0}), {"x": 1.0}, lambda _: best, weight) == Linear({"a": 1.0})


def test_expressions():
    birds, parrots = ENCODER.encode_batch(["birds"])[0], {"parrot": 200.0}
    whole = {term: 100 * weight for term, weight in birds.items()}
    penalty = Product((whole, *(parrots,) * 4), 1.0, weight=-0.5 / 1000.0**4)
    questions = []

    def ask(node):
        questions.append(node)
        return 1000.0

    assert compose_query("birds NOT parrots", ENCODER, DAMPED, best_score=ask) == Sum((Linear(whole), penalty))
    assert questions == [Linear(parrots)]  # bird is wanted
    both = compose_query("birds AND bats NOT parrots", ENCODER, DAMPED, best_score=ask)
    assert [len(child.operands) for child in both.children] == [2, 2 + 2 * 4]
    assert questions[1] == Product((parrots,) * 2)
    assert compose_query("parrots NOT birds NOT parrots", ENCODER, DAMPED, best_score=ask).children[1].operands[1] == {
        "fly": 100.0
    }
    assert compose_query("birds NOT birds", ENCODER, DAMPED, best_score=ask) == Linear(whole)


def test_without_an_index():
    with pytest.raises(CompositionError) as error:
        compose_query("birds NOT parrots", ENCODER, DAMPED)
    assert str(error.value) == ("damped needs an index, for the best score of the excluded part; name one (--index)")


def test_pairs_cannot_damp():
    with pytest.raises(CompositionError) as error:
        compose_query("birds NOT parrots", ENCODER, DAMPED, cpt="materialised", best_score=asked)
    assert str(error.value) == (
        "query 'birds NOT parrots': a product of power 1 and root 1 is no sum over pairs; use the factored form "
        "(--cpt factored), or another --difference"
    )
