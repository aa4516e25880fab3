from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import InputError
from pyserini_compneg.support.errors import ArgumentError

QRELS = {"1": {"a": 1, "b": 0}, "2": {"a": 2}, "3": {"a": 0}}


NOTATIONS = "ndcg_cut.3 nDCG@3, ndcg_cut.10 NDCG@10, recall.100 R@100, recall_100 Recall@100, map AP, map MAP, "
NOTATIONS += "recip_rank RR, recip_rank MRR, P.10 P@10"


@pytest.mark.parametrize(("trec_name", "name"), [pair.split() for pair in NOTATIONS.split(", ")])
def test_both_notations_mean_the_same(trec_name, name):
    trec, other = parse_measures([trec_name, name])
    assert (trec.name, other.name) == (trec_name, name)
    assert trec.definition == other.definition


CAPITALS = "ndcg@10 nDCG@10, p(rel=2)@5 P(rel=2)@5, MRR@10 MRR@10, mrr@10 RR@10, NDCG_CUT.10 ndcg_cut.10, "
CAPITALS += "Recip_Rank recip_rank, bpref bpref, BPREF bpref, Right_Rank@10 right_rank@10"


@pytest.mark.parametrize(("given", "name"), [pair.split() for pair in CAPITALS.split(", ")])
def test_capitals_do_not_matter(given, name):
    assert [measure.name for measure in parse_measures([given, name])] == [name]


MISTAKES = {"ndgc@10": "nDCG@10", "recal.100": "recall", "right_ranks": "right_rank", "R100": "R@100", "ndgc@7": "ndcg"}


@pytest.mark.parametrize(("given", "name"), MISTAKES.items())
def test_a_typing_mistake_gets_a_suggestion(given, name):
    said = refusal(parse_measures, [given], error=InputError)
    assert said == f"unknown measure {given!r}; did you mean {name}?"


def test_names_may_stand_for_measures():
    assert parse_measures("nDCG@10") == parse_measures(["nDCG@10"])
    qrels, run = {"1": {"a": 1}}, {"1": {"b": 2.0, "a": 1.0}}
    assert evaluate(qrels, run, "RR") == evaluate(qrels, run, ["RR"]) == evaluate(qrels, run, parse_measures("RR"))


def test_several_cutoffs_and_repeated_names():
    names = [measure.name for measure in parse_measures(["recall.10,100", "map", "map", "P(rel=2)@5"])]
    assert names == ["R@10", "R@100", "map", "P(rel=2)@5"]


UNKNOWN = """unknown measure {!r}; expected for example one of ndcg_cut.10, recall.100, map, recip_rank, P.10, \
nDCG@10, R@100, AP, RR, paired_accuracy, right_rank, delta_recall@1, delta_mrr@10"""
NO_MEAN = "measure {!r} is not a mean that trec_eval computes; expected one like "
CUTOFF = "the cutoff of measure {!r} must be a whole number from 1 to 1000000"
REFUSED = {
    "": ["official", "paired_accuracy@1"],  # ir_measures knows them otherwise
    UNKNOWN: ["", "foo", "nDCG@-1", "recip_rank.10", "import os", "nDCG@ten", "delta_mrr"],
    NO_MEAN: ["num_rel", "NumRet", "RBP", "ERR@20"],
    CUTOFF: ["nDCG@0", "P.0", "RR@0", "delta_recall@0", "delta_mrr@-1"],  # with which trec_eval's code would abort
}


@pytest.mark.parametrize(("said", "name"), [(said, name) for said, names in REFUSED.items() for name in names])
def test_names_that_are_refused(said, name):
    assert refusal(parse_measures, ["map", name], error=InputError).startswith(said.format(name))


@pytest.mark.parametrize("run", [{}, {"1": {}}, {"9": {"a": 1.0}}])
def test_missing_queries_score_0_and_others_are_ignored(run):
    assert evaluate(QRELS, run, parse_measures(["RR", "AP"])) == dict.fromkeys(QRELS, {"RR": 0.0, "AP": 0.0})


@pytest.mark.parametrize("judged", [{}, {"a": -1}, {f"d{i}": -1_000_000 for i in range(40)}])
def test_queries_without_any_judgement_from_0_on_score_0(judged):
    measures = parse_measures(["nDCG@3", "AP", "RR", "P@1", "R@9", "bpref", "Rprec", "infAP"])
    run = {qid: {f"d{i}": float(i) for i in range(50)} | {"a": 99.0} for qid in "123"}
    for _ in range(20):
        results = evaluate({"1": {"a": 1}, "2": judged, "3": {"a": 1}}, run, measures)
        assert set(results["2"].values()) == {0.0}
        assert results["1"] == results["3"] == dict.fromkeys(results["1"], 1.0)


@given(st.integers(1, 30), st.integers(1, 30))
def test_reciprocal_rank_with_a_cutoff(rank, cutoff):
    run = {"1": {f"d{i}": float(-i) for i in range(1, 31)}}
    results = evaluate({"1": {f"d{rank}": 1}}, run, parse_measures([f"RR@{cutoff}"]))
    assert results["1"][f"RR@{cutoff}"] == pytest.approx(1 / rank if rank <= cutoff else 0.0, abs=1e-12)


@pytest.mark.parametrize(("qrels", "run", "name"), [("q.txt", {}, "qrels"), ({}, "r.txt", "run"), ({}, [], "run")])
def test_files_are_read_first(qrels, run, name):
    with pytest.raises(ArgumentError, match=f"{name} must be a mapping of queries, as read_{name} reads a file"):
        evaluate(qrels, run, "nDCG@10")


NAN = float("nan")
SCORE = "run: query '1', document 'a': the score must be a finite number, got "
RELEVANCE = "qrels: query '1', document 'a': the relevance must be "
NOT_IN_C = "has a NUL character or half of a surrogate pair"
TWICE = "the document id 7 is given twice, as a number and as a text"
IN_MEMORY = {
    "NaN": ({"1": {"a": 1}}, {"1": {"b": 5.0, "a": NAN}}, SCORE + "nan"),
    "NaN of a query without judgements": ({}, {"1": {"a": NAN}}, SCORE + "nan"),
    "infinity": ({"1": {"a": 1}}, {"1": {"a": float("inf")}}, SCORE + "inf"),
    "too large": ({"1": {"a": 1}}, {"1": {"a": 10**400}}, f"{SCORE}{'1' + '0' * 56}..."),
    "None": ({"1": {"a": 1}}, {"1": {"a": None}}, SCORE + "None"),
    "text": ({"1": {"a": 1}}, {"1": {"a": "2"}}, SCORE + "'2'"),
    "truth": ({"1": {"a": 1}}, {"1": {"a": True}}, SCORE + "True"),
    "hits": (
        {"1": {"a": 1}},
        {"1": ["a"]},
        "run: query '1': expected a mapping of documents, got ['a']; give dict(hits)",
    ),
    "a part": ({"1": {"a": 0.5}}, {}, RELEVANCE + "a whole number, got 0.5"),
    "NaN as relevance": ({"1": {"a": np.float32("nan")}}, {}, RELEVANCE + "a whole number, got np.float32(nan)"),
    "time as relevance": (
        {"1": {"a": np.timedelta64(1, "D")}},
        {},
        RELEVANCE + "a whole number, got np.timedelta64(1,'D')",
    ),
    "text as relevance": ({"1": {"a": "1"}}, {}, RELEVANCE + "a whole number, got '1'"),
    "large": ({"1": {"a": 10**30}}, {}, RELEVANCE + f"at most 1000000, got 1{'0' * 30}"),
    "query id": ({1.5: {"a": 1}}, {}, "qrels: the query id must be a text or a whole number, got 1.5"),
    "document id": (
        {},
        {"1": {None: 1.0}},
        "run: query '1': the document id must be a text or a whole number, got None",
    ),
    "same ids": ({1: {7: 1, "7": 0}}, {}, "qrels: query '1': " + TWICE),
    "NUL": ({"1\0a": {"a": 1}, "1\0b": {"a": 1}}, {}, rf"qrels: the query id '1\x00a' {NOT_IN_C}"),
    "surrogate": ({"1": {"\ud800": 1}}, {}, rf"qrels: query '1': the document id '\ud800' {NOT_IN_C}"),
}


@pytest.mark.parametrize("measure", ["nDCG@10", "right_rank"])
@pytest.mark.parametrize(("qrels", "run", "said"), IN_MEMORY.values(), ids=IN_MEMORY)
def test_dictionaries_are_checked_as_files_are(qrels, run, said, measure):
    assert refusal(evaluate, qrels, run, measure, error=InputError).startswith(said)


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (None, "measures must be a list, got None"),
        ([], "measures must name at least one measure, got []"),
        (["RR", 1], "a measure must be a name or a Measure, got 1"),
    ],
)
def test_what_is_no_measure(measures, said):
    assert refusal(evaluate, {"1": {"a": 1}}, {"1": {"a": 1.0}}, measures, error=ArgumentError) == said


@pytest.mark.parametrize("number", [np.int64, np.int8, np.float32, float, Fraction])
def test_numbers_of_every_type_count(number):
    qrels, run = {"1": {"a": number(2), "b": number(1)}}, {"1": {"b": number(2), "a": number(1)}}
    plain = evaluate({"1": {"a": 2, "b": 1}}, {"1": {"b": 2.0, "a": 1.0}}, ["nDCG@10", "RR"])
    assert evaluate(qrels, run, ["nDCG@10", "RR"]) == plain
    assert refusal(evaluate, {"1": {"a": number(5)}}, {"1": {"a": NAN}}, "RR", error=InputError) == SCORE + "nan"


@pytest.mark.parametrize("measure", ["RR", "right_rank", "paired_first"])
def test_whole_numbers_may_be_ids(measure):
    qrels, run = {2: {7: 1, 8: 0}, 1: {7: 0, 8: 1}}, {1: {"7": 2.0, "8": 1.0}, np.int64(2): {"7": 2.0, "8": 1.0}}
    values = evaluate(qrels, run, measure)
    assert list(values) == [2, 1]
    as_text = {"2": {"7": 1, "8": 0}, "1": {"7": 0, "8": 1}}
    assert list(values.values()) == list(evaluate(as_text, run, measure).values())
    assert any(value[measure] for value in values.values())


def test_what_a_relevance_below_0_means():
    """0 for most measures, no judgement for Bpref, and pooled without a judgement for infAP."""
    names = ["nDCG@10", "AP", "P@3", "RR", "R@3", "Rprec", "Bpref", "infAP"]
    run = {"1": {"x": 3.0, "a": 2.0, "b": 1.0}}
    negative, zero, none = (
        evaluate({"1": {"a": 2, "b": 1, "c": 0, **judged}}, run, names)["1"] for judged in ({"x": -1}, {"x": 0}, {})
    )
    assert {name for name in names if negative[name] != zero[name]} == {"Bpref", "infAP"}
    assert negative["Bpref"] == none["Bpref"] == 1.0
    assert negative["infAP"] > 1.4 * none["infAP"] == pytest.approx(1.4 * zero["infAP"], abs=1e-4)
