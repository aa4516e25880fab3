"""Flat dense indexes: what Anserini builds is scored as Anserini and numpy score it, planes included."""

import gzip
import json
import re

import numpy as np
import pytest
from dense_encoder import projection_score
from impact_indexes import delete_documents, write_index
from numpy.testing import assert_allclose

from pyserini_compneg.errors import EncodingError, IndexFormatError, OutputError
from pyserini_compneg.lucene import java_class
from pyserini_compneg.lucene.dense import DenseReader, write_dense_index

DIMENSIONS = 24


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def make_documents():
    """Ids that do not sort as they are numbered, and three documents of one vector."""
    vectors = unit(np.random.default_rng(1).normal(size=(600, DIMENSIONS)))
    vectors[[17, 311]] = vectors[450]
    return {f"d{(7 * i) % 600}é": vector for i, vector in enumerate(vectors)}


def make_queries(rows):
    choice = np.random.default_rng(2)
    return [np.linalg.qr(choice.normal(size=(DIMENSIONS, rows)))[0].T for _ in range(5)]


def write_vectors(folder, documents, name="vectors.jsonl.gz"):
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / name, "wt", encoding="utf-8") as handle:
        for docid, vector in documents.items():
            handle.write(json.dumps({"docid": docid, "vector": [float(str(x)) for x in vector]}) + "\n")
    return folder


def join_segments(folder, indexes):
    """An index of the segments of others, as they are."""

    def directory(path):
        place = java_class("java.io.File")(str(path)).toPath()
        return java_class("org.apache.lucene.store.FSDirectory").open(place)

    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    config.setMergePolicy(java_class("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory(folder), config)
    writer.addIndexes(*map(directory, indexes))
    writer.close()


@pytest.fixture(scope="module")
def documents():
    return make_documents()


@pytest.fixture(scope="module")
def index(tmp_path_factory, documents):
    folder = tmp_path_factory.mktemp("dense")
    write_dense_index(write_vectors(folder / "vectors", documents), folder / "index", len(documents))
    return folder / "index"


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory, documents):
    """The same in three segments, and a document that is deleted."""
    folder, ids = tmp_path_factory.mktemp("parts"), list(documents)
    parts = []
    for number, start in enumerate(range(0, 600, 200)):
        part = {docid: documents[docid] for docid in ids[start : start + 200]}
        part |= {"deleted": documents["d0é"]} if number == 1 else {}
        parts.append(folder / f"part{number}")
        write_dense_index(write_vectors(folder / f"vectors{number}", part), parts[-1], len(part))
    join_segments(folder / "index", parts)
    delete_documents(folder / "index", ["deleted"])
    return folder / "index"


def expected_ranking(documents, query):
    """Scores of numpy; ties, which only equal vectors have, by docid."""
    scores = {
        docid: (1 + float(query[0] @ vector)) / 2 if len(query) == 1 else projection_score(vector, query)
        for docid, vector in documents.items()
    }
    return sorted(scores.items(), key=lambda item: (-round(item[1], 9), item[0]))


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("hits", [3, 600, 5000])
def test_every_document_is_scored_as_by_numpy(index, documents, rows, hits):
    queries = make_queries(rows)
    with DenseReader(index) as reader:
        assert (reader.document_count, reader.dimensions) == (600, DIMENSIONS)
        rankings = reader.search(queries, hits)
    for query, ranking in zip(queries, rankings, strict=True):
        expected = expected_ranking(documents, query)[:hits]
        assert ranking.docids == [docid for docid, _ in expected]
        assert_allclose(ranking.scores, [score for _, score in expected], atol=3e-7)


@pytest.mark.parametrize("rows", [1, 2])
def test_segments_threads_and_deleted_documents_change_nothing(index, in_parts, rows):
    queries = make_queries(rows)
    with DenseReader(index) as whole, DenseReader(in_parts) as parts:
        assert parts.document_count == 600
        expected = whole.search(queries, 600)
        assert parts.search(queries, 600) == parts.search(queries, 600, threads=3) == expected
        assert sorted(expected[0].docids) == sorted(make_documents())


@pytest.mark.parametrize("hits", [1, 2, 3, 10])
def test_equal_vectors_rank_by_docid_at_the_last_place_too(index, documents, hits):
    vector = list(documents.values())[450]
    same = sorted(docid for docid, other in documents.items() if (other == vector).all())
    assert len(same) == 3
    with DenseReader(index) as reader:
        ranking = reader.search([vector[None]], hits)[0]
    assert ranking.docids[:3] == same[:hits]
    assert len(set(ranking.scores[:3])) == 1


def stock_search(index, query, hits):
    settings = java_class("io.anserini.search.FlatDenseSearcher$Args")()
    settings.index, settings.quiet = str(index), True
    searcher = java_class("io.anserini.search.FlatDenseSearcher")(settings)
    found = [(hit.docid, hit.score) for hit in searcher.search(query.astype(np.float32).tolist(), hits)]
    searcher.close()
    return found


@pytest.mark.usefixtures("metadata")
@pytest.mark.parametrize("place", ["index", "in_parts"])
def test_stock_anserini_searches_the_index_and_gives_the_same_scores(place, request):
    folder = request.getfixturevalue(place)
    queries = make_queries(1)
    with DenseReader(folder) as reader:
        rankings = reader.search(queries, 600)
    for query, ranking in zip(queries, rankings, strict=True):
        assert stock_search(folder, query[0], 600) == list(zip(ranking.docids, ranking.scores, strict=True))


def test_a_query_without_directions_finds_nothing(index):
    with DenseReader(index) as reader:
        empty, found = reader.search([np.zeros((0, DIMENSIONS)), make_queries(1)[0]], 5)
        assert reader.search([], 5) == []
    assert (empty.docids, len(found.docids)) == ([], 5)


def test_vectors_of_another_model_are_refused(index):
    with DenseReader(index) as reader, pytest.raises(EncodingError) as error:
        reader.search([np.ones((1, 3))], 5)
    assert str(error.value) == (
        f"{index}: holds vectors of {DIMENSIONS} numbers, the query has shape (1, 3); use the index's model"
    )


def test_a_closed_index_says_so(index):
    reader = DenseReader(index)
    reader.close()
    reader.close()
    with pytest.raises(IndexFormatError, match=f"^{re.escape(str(index))}: cannot be searched: .*closed"):
        reader.search(make_queries(1), 5)


def test_other_folders_are_no_dense_indexes(tmp_path):
    with pytest.raises(IndexFormatError) as error:
        DenseReader(tmp_path)
    assert str(error.value) == f"{tmp_path}: not a Lucene index (it has no segments file)"
    sparse = write_index(tmp_path / "sparse", {"d1": {"a": 1}})
    with pytest.raises(IndexFormatError) as error:
        DenseReader(sparse)
    assert str(error.value) == f"{sparse}: cannot be opened: no dense vectors in a field 'vector'"


def test_a_document_that_no_vector_finds_is_noticed(index, tmp_path):
    join_segments(tmp_path / "index", [index, write_index(tmp_path / "sparse", {"none": {"a": 1}})])
    with DenseReader(tmp_path / "index") as reader, pytest.raises(IndexFormatError) as error:
        reader.search(make_queries(1), 5)
    assert str(error.value) == (
        f"{tmp_path / 'index'}: cannot be searched: only 600 of 601 documents are found by their vectors; not a flat "
        "index of all"
    )


def test_lines_that_anserini_leaves_out_are_noticed(tmp_path, documents):
    vectors = write_vectors(tmp_path / "vectors", dict(list(documents.items())[:5]) | {"empty": []})
    with pytest.raises(OutputError) as error:
        write_dense_index(vectors, tmp_path / "index", 6)
    assert str(error.value) == (
        f"{tmp_path / 'index'}: Anserini indexed 5 of 6 vectors; look for what it said, and whether the lines of "
        f"{vectors} are whole"
    )


def test_what_anserini_refuses_is_said_in_one_line(tmp_path):
    with pytest.raises(OutputError) as error:
        write_dense_index(tmp_path / "missing", tmp_path / "index", 1)
    assert str(error.value).startswith(f"{tmp_path / 'index'}: the index cannot be written: Invalid collection path")
    assert "\n" not in str(error.value)
