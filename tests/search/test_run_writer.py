import io
import json
import math

import pytest
import pytrec_eval
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.search.run_writer import Hit, printed_scores, write_run
from pyserini_compneg.support.errors import OutputError


def written(hits, output_format="trec", qid="1"):
    handle = io.StringIO()
    write_run(handle, qid, hits, output_format, "tag")
    return handle.getvalue()


def test_formats():
    hits = [Hit("b", 2.5), Hit("é", -0.0)]
    assert written(hits) == "1 Q0 b 1 2.500000 tag\n1 Q0 é 2 0.000000 tag\n"
    assert written(hits, "msmarco") == "1\tb\t1\n1\té\t2\n"
    assert json.loads(written(hits, "json")) == {
        "id": "1",
        "hits": [{"docid": "b", "rank": 1, "score": 2.5}, {"docid": "é", "rank": 2, "score": 0.0}],
    }
    assert "-0" not in written(hits, "json")
    assert "é" in written(hits, "json")


def test_a_query_without_hits():
    assert written([]) == written([], "msmarco") == ""
    assert written([], "json") == '{"id": "1", "hits": []}\n'


def test_ties_and_near_ties_decrease():
    hits = [Hit("a", 1.0), Hit("b", 1.0), Hit("c", 0.9999995), Hit("d", 0.9999989), Hit("e", -1.0), Hit("f", -1.0)]
    assert [line.split()[4] for line in written(hits).splitlines()] == (
        ["1.000000", "0.999999", "0.999998", "0.999997", "-1.000000", "-1.000001"]
    )


# Scores of few values, so that many tie: small and large, where 32-bit floats lie more than 0.000001 apart, and powers
# of two, where that distance changes.
SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.integers(-40, 40).map(lambda n: math.ldexp(1.0, n)),
    st.integers(-40, 40).map(lambda n: -math.ldexp(1.0, n)),
    st.floats(-1e9, 1e9),
    st.sampled_from([0.0, -0.0, 1e-7, -1e-7, 15.9999995, 30000.0, 8388608.5]),
)


@given(
    st.lists(SCORES, min_size=1, max_size=3).flatmap(lambda pool: st.lists(st.sampled_from(pool), max_size=12)),
    st.permutations([f"d{i:02}" for i in range(12)]),
)
@example([30000.0, 30000.0], [f"d{i:02}" for i in range(12)])
@example([8388608.5, 8388608.5], [f"d{i:02}" for i in range(12)])
def test_trec_eval_ranks_as_we_do(scores, docids):
    hits = [Hit(docid, score) for docid, score in zip(docids, sorted(scores, reverse=True), strict=False)]
    printed = printed_scores(hits)
    assert all(above > below for above, below in zip(printed, printed[1:], strict=False))
    run = {"1": {line.split()[2]: float(line.split()[4]) for line in written(hits).splitlines()}}
    assert list(run["1"].values()) == printed
    for rank, hit in enumerate(hits, 1):
        evaluator = pytrec_eval.RelevanceEvaluator({"1": {hit.docid: 1}}, {"recip_rank"})
        assert evaluator.evaluate(run)["1"]["recip_rank"] == pytest.approx(1 / rank, abs=1e-12)


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_scores_change_no_more_than_their_ties_need(scores):
    hits = [Hit(str(i), score) for i, score in enumerate(sorted(scores, reverse=True))]
    for rank, (hit, printed) in enumerate(zip(hits, printed_scores(hits), strict=True), 1):
        assert abs(printed - hit.score) <= 0.5e-6 + 1e-9 + rank * 3 * max(1e-6, 2.0**-23 * 1.1e6)


@pytest.mark.parametrize("output_format", ["trec", "msmarco"])
def test_white_space_fits_no_columns(output_format):
    for docid in ("a b", "", "a\n"):
        assert refusal(written, [Hit(docid, 1.0)], output_format, error=OutputError) == (
            f"the document id {docid!r} cannot stand in a run, whose columns end at white space; use json"
        )
    with pytest.raises(OutputError, match="the query id 'a b' cannot stand in a run"):
        written([], output_format, qid="a b")
    assert json.loads(written([Hit("a b", 1.0)], "json", qid="q 1"))["hits"][0]["docid"] == "a b"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1e39])
def test_scores_are_finite_singles(score):
    message = refusal(written, [Hit("a", score)], error=OutputError)
    assert message == f"the score of document 'a' must be a finite 32-bit number, got {score}"


def test_misuse():
    with pytest.raises(ValueError, match="hits are not ranked: 'b' scores 2.0 after 1.0"):
        written([Hit("a", 1.0), Hit("b", 2.0)])
    with pytest.raises(ValueError, match="unknown output format 'xml'; expected one of trec, msmarco, json"):
        written([], "xml")
