"""Measures of contrast against trec_eval's own code, hand-made rankings and the formulas of their papers."""

import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.contrast import PAIRED, partners
from pyserini_compneg.support.errors import InputError

QRELS = {"1": {"a": 1, "b": 0}, "2": {"a": 0, "b": 1}}
SCORES = st.sampled_from([-1.0, 0.0, 1.0, 1.0 + 1e-9, 2.0, 1e300])
RANKINGS = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "é", "aa"]), SCORES)


def values(qrels, run, names):
    results = evaluate(qrels, run, parse_measures(names))
    return {qid: tuple(result[name] for name in names) for qid, result in results.items()}


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        ("ab", "ba", "paired_accuracy"),
        ("ab", "ab", "paired_first"),
        ("ba", "ba", "paired_second"),
        ("ba", "ab", "paired_reversed"),
        ("", "ba", None),
    ],
)
def test_each_pair_has_one_outcome_or_a_tie(one, other, outcome):
    """Query 1 asks for a, query 2 for b; each ranks in the order of the letters, or has a tie."""
    run = {
        qid: {docid: float(-order.index(docid)) if order else 0.0 for docid in "ab"}
        for qid, order in zip(QRELS, (one, other), strict=True)
    }
    found = values(QRELS, run, list(PAIRED))
    assert found == {qid: tuple(float(name == outcome) for name in PAIRED) for qid in QRELS}
    turned = values(dict(reversed(QRELS.items())), run, ["paired_first", "paired_second"])
    assert turned["1"] == (float(outcome == "paired_second"), float(outcome == "paired_first"))


@given(RANKINGS, st.integers(1, 4))
def test_differences_are_those_of_trec_evals_measures(ranking, n):
    run = {"1": ranking} if ranking else {}
    [ours] = values({"1": {"a": 1, "b": 0}}, run, [f"delta_recall@{n}", f"delta_mrr@{n}"]).values()
    [relevant] = values({"1": {"a": 1}}, run, [f"R@{n}", f"RR@{n}"]).values()
    [excluded] = values({"1": {"b": 1}}, run, [f"R@{n}", f"RR@{n}"]).values()
    assert ours == pytest.approx([plus - minus for plus, minus in zip(relevant, excluded, strict=True)], abs=1e-12)


@given(st.permutations("abcdefghijklmnop"), st.integers(1, 10))
def test_right_rank_among_the_first_documents_is_that_of_their_ranks(docids, cutoff):
    """As the released scorer of ExcluIR has it: a document that it does not read is not retrieved."""
    top = docids[:cutoff]
    expected = "a" in top and ("b" not in top or top.index("a") < top.index("b"))
    qrels, run = {"1": {"a": 1, "b": 0}}, {"1": {docid: -float(rank) for rank, docid in enumerate(docids)}}
    first = {"1": {docid: run["1"][docid] for docid in top}}
    assert values(qrels, run, [f"right_rank@{cutoff}"]) == values(qrels, first, ["right_rank"]) == {"1": (expected,)}


@given(st.lists(RANKINGS, min_size=4, max_size=4))
def test_pairs_are_right_where_both_queries_are(rankings):
    qrels = {f"{pair}_{side}": {good: 1, bad: 0} for pair, side, good, bad in PAIRS}
    run = {qid: ranking for qid, ranking in zip(qrels, rankings, strict=True) if ranking}
    right = {qid: above(run.get(qid, {}), good, bad) for qid, (_, _, good, bad) in zip(qrels, PAIRS, strict=True)}
    results = evaluate(qrels, run, parse_measures(["paired_accuracy", "right_rank"]))
    for qid, result in results.items():
        assert result["right_rank"] == right[qid]
        assert result["paired_accuracy"] == all(right[other] for other in qrels if other[0] == qid[0])


PAIRS = [("1", "q1", "a", "b"), ("2", "q1", "c", "d"), ("1", "q2", "b", "a"), ("2", "q2", "d", "c")]


def above(ranking, good, bad):
    """Whether a document's score, as four bytes, is above another's; what is missing is below everything."""
    keys = [(docid in ranking, four_bytes(ranking.get(docid, 0.0))) for docid in (good, bad)]
    return keys[0] > keys[1]


def four_bytes(score):
    try:
        return struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return float("inf")


@pytest.mark.parametrize(("judged", "counts"), [({"a": 1}, "1 and 0"), ({"a": 1, "b": 2, "c": 0}, "2 and 1")])
@pytest.mark.parametrize("kind", ["paired_accuracy", "right_rank", "delta_recall", "delta_mrr"])
def test_judgements_that_are_no_contrast(kind, judged, counts):
    name = kind + "@5" * kind.startswith("delta")
    assert refusal(evaluate, {"1": {"x": 3, "y": -2}, "2": judged}, {}, parse_measures([name]), error=InputError) == (
        f"{kind} needs 1 relevant and 1 excluded document (relevance 0) for each query; query '2' has {counts}"
    )


@pytest.mark.parametrize(
    ("others", "agree", "disagree"),
    [([], 0, 0), ([{"a": 1, "b": 0}], 1, 0), ([{"a": 0, "b": 1}] * 2, 0, 2), ([*QRELS.values()], 1, 1)],
)
def test_queries_without_a_partner_of_their_own(others, agree, disagree):
    assert refusal(
        partners, {"1": {"a": 1, "b": 0}, **{f"other {i}": other for i, other in enumerate(others)}}, error=InputError
    ) == (
        "paired_accuracy needs pairs of queries that judge the same two documents in opposite ways; query '1' "
        f"shares 'a' and 'b' with {agree} queries that agree and {disagree} that disagree"
    )


def test_trec_evals_code_is_loaded_for_its_own_measures_only():
    code = (
        "import sys; from pyserini_compneg.eval import evaluate, parse_measures\n"
        "evaluate({'1': {'a': 1, 'b': 0}}, {}, parse_measures(['right_rank']))\n"
        "sys.exit('ir_measures' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
