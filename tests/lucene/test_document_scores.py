"""Scores of given documents: those of the ranking bit by bit, whatever is asked for and in which order."""

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from impact_indexes import add_documents, pairs, write_index
from lookup_encoder import LookupEncoder
from random_searches import collections, trees
from refusals import refusal
from test_exactness import PINNED, SHAPES, few

from pyserini_compneg.compose import Linear, Product, Sum
from pyserini_compneg.lucene import ImpactWriter
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import IndexFormatError


@few
@example(PINNED, SHAPES, Random(1), 2)
@given(collections(), st.lists(trees(), min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(1, 3))
def test_scores_are_those_of_the_ranking(tmp_path_factory, collection, nodes, random, threads):
    index = write_index(tmp_path_factory.mktemp("scored"), *collection.segments, deleted=collection.deleted)
    asked = [random.choices([*collection.live], k=random.randint(0, 80)) if collection.live else [] for _ in nodes]
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        rankings = [dict(pairs(ranking)) for ranking in searcher.reader.search(nodes, 1 + len(collection.live))]
        scores = searcher.batch_score(nodes, asked, threads)
        assert scores == [
            [ranking.get(docid) for docid in docids] for ranking, docids in zip(rankings, asked, strict=True)
        ]


def test_more_documents_than_a_window_has(tmp_path):
    documents = {f"d{i}": {"a": i % 7 + 1, f"t{i % 3}": 2} for i in range(10_000)}
    node = Sum((Product(({"a": 1.0}, {"t1": 2.0})), Linear({"t2": 1.0, "a": -1.0})))
    with SignedImpactSearcher(write_index(tmp_path / "index", documents), LookupEncoder({})) as searcher:
        ranking = dict(pairs(searcher.reader.search([node], len(documents))[0]))
        docids = list(reversed(documents))
        assert searcher.score(node, docids) == [ranking.get(docid) for docid in docids]
        assert 0 < len(ranking) < len(documents)


def test_no_documents_no_queries_and_no_negative_zero(tmp_path):
    with SignedImpactSearcher(write_index(tmp_path / "index", {"d": {"a": 1}}), LookupEncoder({})) as searcher:
        assert searcher.score(Linear({"a": 1.0}), []) == []
        (cancelled,) = searcher.score(Sum((Linear({"a": 1.0}), Linear({"a": -1.0}))), ["d"])
        assert math.copysign(1, cancelled) == 1
        assert searcher.batch_score([], []) == []
        assert searcher.batch_score([Linear({"a": 1.0}), Linear({"b": 1.0})], [["d"], ["d", "d"]]) == [
            [1.0],
            [None, None],
        ]


def test_threads_beyond_all_numbers_of_java(tmp_path):
    with SignedImpactSearcher(write_index(tmp_path / "index", {"d": {"a": 1}}), LookupEncoder({})) as searcher:
        assert searcher.batch_score([Linear({"a": 1.0})], [["d"]], 10**12) == [[1.0]]
        assert searcher.search(Linear({"a": 1.0}), threads=10**12) == [("d", 1.0)]


@pytest.mark.parametrize("docid", ["x", "", "d\0d", "\ud800", "gone"])
def test_unknown_documents(tmp_path, docid, caplog):
    index = write_index(tmp_path / "index", {"d": {"a": 1}, "gone": {"a": 1}}, deleted=["gone"])
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        assert searcher.score(Linear({"a": 1.0}), ["d", docid, "d"]) == [1.0, None, 1.0]
        said = f"document {docid!r}: not in the index, so there is no score"
        assert [record.getMessage() for record in caplog.records] == [said]
        assert refusal(searcher.explain, Linear({"a": 1.0}), docid) == f"{index} has no document {docid!r}"
        assert searcher.reader.raw(docid) is None


def test_a_document_that_is_back_after_its_deletion(tmp_path):
    index = write_index(tmp_path / "index", {"d": {"a": 1}, "other": {"a": 1}}, deleted=["d"])
    with ImpactWriter(index, existing="resume") as writer:
        add_documents(writer, {"d": {"a": 5}})
        writer.commit()
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        assert searcher.score(Linear({"a": 1.0}), ["d", "other"]) == [5.0, 1.0]


def test_scores_beyond_floats_and_lists_that_do_not_fit(tmp_path):
    index = write_index(tmp_path / "index", {"d": {"a": 1 << 20}})
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        said = "a score is beyond 3.4e38: the query has too large weights or too many conjuncts"
        for call, docids in ((searcher.score, ["d"]), (searcher.explain, "d")):
            node = Product(({"a": 1e18},) * 3, 1.0)
            assert refusal(call, node, docids, error=IndexFormatError) == f"{index}: cannot be searched: {said}"
        with pytest.raises(ValueError, match="1 queries need as many lists of docids, got 2"):
            searcher.batch_score([Linear({"a": 1.0})], [["d"], ["d"]])
