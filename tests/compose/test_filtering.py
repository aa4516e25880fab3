import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_strategies import DOCUMENTS, POSITIVE

from pyserini_compneg.compose import Linear, Product, Sum, evaluate
from pyserini_compneg.compose.filtering import filtered, negated_terms, wanted_and_negated
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.expression import format_expression, parse


@pytest.mark.parametrize(
    ("text", "wanted", "negated"),
    [
        ("a", "a", []),
        ("a OR b", "a OR b", []),
        ("a NOT b NOT c", "a", ["b", "c"]),
        ("a NOT (b OR (c OR d))", "a", ["b", "c", "d"]),
        ("(a OR b) NOT c", "a OR b", ["c"]),
        ("(a NOT b) AND (c NOT d)", "a AND c", ["b", "d"]),
    ],
)
def test_wanted_and_negated(text, wanted, negated):
    found, texts = wanted_and_negated(parse(text))
    assert (format_expression(found), texts) == (wanted, negated)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a NOT b) OR c", "filtering works on the whole ranking, not within 'a NOT b OR c'"),
        ("a NOT (b AND c)", "filtering leaves out atoms and unions of atoms, not 'b AND c'"),
        ("a NOT (b NOT c)", "filtering leaves out atoms and unions of atoms, not 'b NOT c'"),
    ],
)
def test_what_no_filter_can_say(text, message):
    with pytest.raises(CompositionError) as error:
        wanted_and_negated(parse(text))
    assert str(error.value) == message


def test_negated_terms():
    wanted = [{"film": 1.0, "spy": -1.0}, {"war": 1.0}]
    negated = [{"film": 9.0, "spy": 3.0, "b": 2.0, "a": 2.0, "z": -5.0, "last": 1.0}, {"a": 1.0, "c": 0.5}, {}]
    assert negated_terms(wanted, negated, 2) == ["spy", "a", "c"]
    assert negated_terms(wanted, negated, 100) == ["spy", "a", "b", "last", "c"]
    assert negated_terms(wanted, [], 5) == []


@given(st.lists(POSITIVE, min_size=2, max_size=2), st.lists(st.sampled_from("abcdef"), max_size=3), st.lists(DOCUMENTS))
def test_a_filter_lets_through_what_holds_no_negated_term(operands, terms, documents):
    for wanted in (Linear(operands[0]), Product(tuple(operands)), Sum((Product(tuple(operands)), Linear(operands[0])))):
        scores = [evaluate(wanted, document) for document in documents]
        node = filtered(wanted, terms, max((score for score in scores if score is not None), default=0.0))
        for document, score in zip(documents, scores, strict=True):
            kept = evaluate(node, document)
            if document.keys().isdisjoint(terms):
                assert kept == score
            else:
                assert kept is None if score is None else kept < 0


@pytest.mark.parametrize(("best", "weight"), [(1.0, 2.0), (1023.5, 1024.0), (1024.0, 2048.0), (2.0**30 - 64, 2.0**30)])
def test_a_filter_outweighs_the_best_score(best, weight):
    node = filtered(Linear({"a": 1.0}), ["x", "y"], best)
    assert node == Sum((Linear({"a": 1.0}), Linear({"x": -weight, "y": -weight})))


def test_without_terms_or_documents_there_is_nothing_to_filter():
    assert filtered(Linear({"a": 1.0}), [], 9.0) == filtered(Linear({"a": 1.0}), ["x"], 0.0) == Linear({"a": 1.0})


def test_a_score_that_is_too_large():
    with pytest.raises(CompositionError) as error:
        filtered(Linear({"a": 1.0}), ["x"], 2.0**31)
    limit = "cannot be outweighed (the limit is 2^30); lower the weight scale"
    assert str(error.value) == f"a best score of 2.14748e+09 {limit}"
