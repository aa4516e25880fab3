"""Positive queries with whole weights rank as stock Anserini ranks them, on our indexes and on its own."""

import gzip
import json
import math
import random

import numpy as np
import pytest
from impact_indexes import (
    join_indexes,
    json_lines,
    pairs,
    stock_search,
    write_index,
    write_stock_index,
    write_text_index,
)
from refusals import refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import build_index, verify_index
from pyserini_compneg.lucene import ImpactReader, Manifest, java_class
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import IndexFormatError

TERMS = [f"t{i}" for i in range(30)]


def make_documents():
    """Many ties: few impacts, short documents."""
    choice = random.Random(3)
    return {
        f"d{i:04}": {term: choice.choice([1, 2, 2, 3, 40]) for term in choice.sample(TERMS, choice.randint(1, 5))}
        for i in range(800)
    }


def make_queries():
    choice = random.Random(4)
    return [{term: choice.randint(1, 9) for term in choice.sample(TERMS, choice.randint(1, 8))} for _ in range(25)]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    folder, documents = tmp_path_factory.mktemp("parity"), make_documents()
    halves = dict(list(documents.items())[:500]), dict(list(documents.items())[500:])
    return {"ours": write_index(folder / "ours", *halves), "stock": write_stock_index(folder / "stock", documents)}


def with_ties_broken(ranking):
    """What Anserini does to scores: rounds them to 1e-4, and takes 1e-6 off for each tie with the hit before."""
    hits, previous, ties = [], None, 0
    for docid, score in ranking:
        rounded = np.float32(round(score * 1e4) / 1e4)
        ties = ties + 1 if rounded == previous else 0
        hits.append((docid, float(np.float32(rounded - np.float32(1e-6 * ties)))))
        previous = rounded
    return hits


@pytest.mark.parametrize("built_by", ["ours", "stock"])
@pytest.mark.parametrize("hits", [3, 100, 1000])
def test_positive_queries_rank_as_simple_impact_searcher(indexes, built_by, hits):
    with ImpactReader(indexes[built_by]) as reader:
        for query, ranking in zip(make_queries(), reader.search(list(map(Linear, make_queries())), hits), strict=True):
            assert with_ties_broken(pairs(ranking)) == stock_search(indexes[built_by], query, hits)


def test_an_index_of_stock_anserini_has_the_same_rankings_and_no_manifest(indexes):
    assert Manifest.read(indexes["stock"]) is None
    nodes = [Linear({term: weight * (-1) ** i for i, (term, weight) in enumerate(q.items())}) for q in make_queries()]
    with ImpactReader(indexes["ours"]) as ours, ImpactReader(indexes["stock"]) as stock:
        assert ours.document_count == stock.document_count == 800
        assert ours.document_frequencies([*TERMS, "x"]) == stock.document_frequencies([*TERMS, "x"])
        assert ours.search(nodes, 50) == stock.search(nodes, 50)


@pytest.mark.parametrize("flags", ["", "-storeRaw -optimize", "-storePositions -storeDocvectors"])
def test_an_index_of_texts_is_refused(tmp_path, flags):
    index = write_text_index(tmp_path, *flags.split(), texts=90)
    what = "has frequencies of terms, as texts have (many are 1 in every document), not impacts"
    said = f"{index}: {what}; build an index of its documents with index, which has BM25, too"
    for opens in (ImpactReader, verify_index, lambda folder: SignedImpactSearcher(folder, "bm25")):
        assert refusal(opens, index, error=IndexFormatError) == said


@pytest.mark.parametrize("flags", ["", "-storeRaw", "-storePositions -storeDocvectors -storeContents", "-optimize"])
@pytest.mark.parametrize("impacts", [[1, 2], [1, 1, 3], [7, 300], [256]])
def test_an_index_of_small_impacts_is_none_of_texts(tmp_path, impacts, flags):
    choice = random.Random(5)
    documents = {f"d{i}": {term: choice.choice(impacts) for term in choice.sample(TERMS, 4)} for i in range(90)}
    with ImpactReader(write_stock_index(tmp_path, documents, *flags.split())) as reader:
        assert reader.document_count == 90


@pytest.mark.slow
def test_pyserinis_own_searcher_reads_our_index(indexes, pyserini_host):
    class Encoder:
        def encode(self, text):
            return make_queries()[int(text)]

    stock = pyserini_host.LuceneImpactSearcher(str(indexes["ours"]), Encoder())
    with ImpactReader(indexes["ours"]) as reader:
        for i, ranking in enumerate(reader.search(list(map(Linear, make_queries())), 10)):
            found = [(hit.docid, hit.score) for hit in stock.search(str(i), 10)]
            assert found == with_ties_broken(pairs(ranking))


def write_collection(folder, documents):
    """Plain and packed files, with a byte order mark, other line ends, and blank lines."""
    folder.mkdir()
    records = [{"id": docid, "contents": "", "vector": vector} for docid, vector in documents.items()]
    (folder / "a.jsonl").write_bytes(json_lines(records[::3]).replace(b"\n", b"\r\n\n"))
    (folder / "b.json").write_bytes(b"\xef\xbb\xbf" + json_lines(records[1::3]) + b"\n")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(json_lines(records[2::3])))
    return folder


@pytest.mark.slow
def test_200_queries_find_what_they_find_in_the_index_of_stock_anserini(tmp_path):
    choice = random.Random(11)
    terms = [f"t{i}" for i in range(60)]
    documents = {
        f"d{i:04}": {term: choice.randint(1, 300) for term in choice.sample(terms, choice.randint(1, 12))}
        for i in range(900)
    }
    stock = write_stock_index(tmp_path / "stock", documents)
    ours = tmp_path / "ours"
    build_index(
        write_collection(tmp_path / "c", documents), ours, "m", threads=3, store_raw=True, store_docvectors=True
    )
    for _ in range(200):
        query = {term: choice.randint(1, 9) for term in choice.sample(terms, choice.randint(1, 8))}
        assert stock_search(ours, query, 50) == stock_search(stock, query, 50)
    reader_utils = java_class("io.anserini.index.IndexReaderUtils")
    reader = reader_utils.getReader(str(ours))
    for docid in ("d0000", "d0500", "d0899"):
        vector = reader_utils.getDocumentVector(reader, docid)
        assert {term: vector.get(term) for term in vector.keySet()} == documents[docid]
        raw = json.loads(reader_utils.documentRaw(reader, docid))
        assert raw == {"id": docid, "contents": "", "vector": documents[docid]}
    reader.close()


def write_copies(folder, segments):
    """An index of stock Anserini in which an id stands for one document or several, in one segment or more."""
    choice = random.Random(segments)
    vectors = [{term: choice.choice([1, 2, 9, 9, 20]) for term in choice.sample(TERMS[:9], 3)} for _ in range(240)]
    documents = [(f"d{int(240 * choice.random() ** 3)}", vector) for vector in vectors]
    parts = [write_stock_index(folder / str(part), documents[part::segments]) for part in range(segments)]
    return join_indexes(folder / "joined", *parts), documents


def best_copies(pairs, query, allowed=None):
    """The ranking that is expected: each id once, with its best score."""
    best = {}
    for docid, vector in pairs:
        if any(weight > 0 and term in vector for term, weight in query.items()) and (
            allowed is None or docid in allowed
        ):
            score = float(sum(weight * vector.get(term, 0) for term, weight in query.items()))
            best[docid] = max(best.get(docid, -math.inf), score)
    return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize("segments", [1, 3])
def test_of_several_documents_with_an_id_the_best_is_ranked(tmp_path, caplog, segments):
    index, documents = write_copies(tmp_path, segments)
    queries = [{"t0": 2, "t1": 1}, {"t2": 1, "t3": -1, "t4": 3}, {"t5": 1}, {"t6": 1, "t7": -2}, {"absent": 1}]
    allowed = {f"d{i}" for i in range(0, 240, 7)}
    with SignedImpactSearcher(index, encoder=object()) as searcher:
        nodes = [Linear(query) for query in queries]
        names = list(map(str, range(len(queries))))
        for k in (1, 7, 50, 1000):
            found = searcher.batch_search(nodes, names, k, threads=2)
            assert list(found.values()) == [best_copies(documents, query)[:k] for query in queries]
        for query, node in zip(queries, nodes, strict=True):
            every, hits, page = best_copies(documents, query), [], None
            while page := searcher.search(node, 3, after=hits[-1] if hits else None):
                hits += page
            assert hits == every
            some = searcher.search(node, 1000, filter={"id": sorted(allowed)})
            assert some == best_copies(documents, query, allowed)
            ids = [docid for docid, _ in every]
            assert searcher.score(node, ids) == [score for _, score in every]
            for docid, score in every[:20]:
                explained = searcher.explain(node, docid)
                assert explained.score == score == sum(part.amount for part in explained.contributions)
    said = "several documents have the same id"
    assert [said in record.message for record in caplog.records].count(True) == 1


def test_ids_that_are_unique_are_not_looked_up(tmp_path, monkeypatch):
    merged = write_stock_index(tmp_path / "merged", make_documents(), "-optimize")
    looked_up = []
    monkeypatch.setattr(ImpactReader, "_repeated", lambda *_: looked_up.append(_) or set())
    for index in (merged, write_index(tmp_path / "ours", {"a": {"t1": 3}}, {"b": {"t1": 3}})):
        if index != merged:
            Manifest("m", documents=2).write(index)
        with ImpactReader(index) as reader:
            reader.search([Linear({"t1": 1.0})], 10)
    assert not looked_up
