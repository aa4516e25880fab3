"""Dense indexes in the cache: made once for a model and its documents, and never half."""

import pytest
from dense_encoder import StandInDenseEncoder, direction

from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.errors import OutputError
from pyserini_compneg.index import dense
from pyserini_compneg.index.dense import dense_index
from pyserini_compneg.lucene.dense import DenseReader


def documents(*texts):
    return lambda: [SourceDocument(text, text, None, "films.jsonl") for text in texts]


def test_an_index_is_made_once(tmp_path):
    encoder = StandInDenseEncoder()
    index = dense_index(documents("a", "b"), encoder, tmp_path)
    assert dense_index(documents("a", "b"), encoder, tmp_path) == index
    assert encoder.batches == [["a", "b"]]
    assert sorted(path.name for path in index.parent.iterdir() if path.is_dir()) == ["index", "vectors"]
    with DenseReader(index) as reader:
        assert reader.search([direction("b")[None]], 1)[0].docids == ["b"]


def test_models_and_documents_have_indexes_of_their_own(tmp_path):
    encoder, other = StandInDenseEncoder(), StandInDenseEncoder()
    other.model_hash = "fedcba9876543210"
    pairs = [("ab", encoder), ("ac", encoder), ("ba", encoder), ("ab", other)]
    made = [dense_index(documents(*texts), model, tmp_path) for texts, model in pairs]
    assert len(set(made)) == 4


def test_the_cache_is_the_package_s_own_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path))
    assert dense_index(documents("a"), StandInDenseEncoder()).is_relative_to(tmp_path / "dense")


def test_an_index_that_was_not_finished_is_made_anew_of_the_vectors_that_are_there(tmp_path, monkeypatch):
    encoder = StandInDenseEncoder()

    def half(vectors, index, documents):
        index.mkdir()
        (index / "segments_1").write_text("")
        raise OutputError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(dense, "write_dense_index", half)
        with pytest.raises(OutputError, match="disk full"):
            dense_index(documents("a", "b"), encoder, tmp_path)
    index = dense_index(documents("a", "b"), encoder, tmp_path)
    assert encoder.batches == [["a", "b"]]
    with DenseReader(index) as reader:
        assert reader.document_count == 2


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dense, "write_dense_index", full)
    with pytest.raises(OutputError) as error:
        dense_index(documents("a"), StandInDenseEncoder(), tmp_path)
    folder = next(tmp_path.iterdir())
    assert str(error.value) == (
        f"{folder}: cannot be written: no space left on device; name another place in COMPNEG_CACHE"
    )
