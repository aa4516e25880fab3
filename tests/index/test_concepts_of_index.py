"""An index keeps the names of its latents, however it was built, and through updates."""

import json
from functools import partial

import pytest
from impact_indexes import write_stock_index
from json_lines import write_jsonl
from stand_in_encoder import StandInEncoder

from pyserini_compneg.encode import Bm25DocumentEncoder, document_encoders
from pyserini_compneg.encode.corpus import encode_collection
from pyserini_compneg.encode.hybrid import PREFIX, HybridDocumentEncoder
from pyserini_compneg.index import build_index, build_sharded_index, update_index, verify_index
from pyserini_compneg.lucene import INDEX_CONCEPTS, Manifest, open_reader

CONCEPTS = ["ship, sail", "", "mönarch, king"]
DOCUMENTS = [{"id": f"d{number}", "contents": f"sailors on ship {number}"} for number in range(6)]


class NamingEncoder(StandInEncoder):
    """An encoder with names of latents."""

    concepts = CONCEPTS


@pytest.fixture
def collection(tmp_path):
    return write_jsonl(tmp_path / "c.jsonl", *DOCUMENTS)


@pytest.fixture
def naming(monkeypatch):
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: NamingEncoder())


def names_of(index):
    with open_reader(index) as reader:
        return list(reader.concepts)


@pytest.mark.parametrize("encoder", ["m", "bm25+m"])
@pytest.mark.parametrize("passages", [{}, {"words": 2, "overlap": 0}])
def test_a_build_from_texts(tmp_path, collection, naming, monkeypatch, encoder, passages):
    index = tmp_path / "index"
    build_index(collection, index, encoder, passages=passages)
    assert names_of(index) == CONCEPTS
    assert "mönarch" in (index / INDEX_CONCEPTS).read_text(encoding="utf-8")
    assert verify_index(index) > 0
    build_index(collection, index, encoder, passages=passages, existing="overwrite")  # the file is a part of the index
    assert names_of(index) == CONCEPTS
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())
    build_index(collection, index, encoder, passages=passages, existing="overwrite")
    assert names_of(index) == []


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("passages", [{}, {"words": 2, "overlap": 0}])
@pytest.mark.parametrize("shards", [0, 2])
def test_a_build_from_encoded_texts(tmp_path, collection, hybrid, passages, shards):
    """No model is loaded: the names are beside the vectors."""
    model = NamingEncoder()
    if hybrid:
        model = HybridDocumentEncoder(Bm25DocumentEncoder(4.0), {PREFIX: StandInEncoder(), "": NamingEncoder()})
    name = "bm25+m+latent:l" if hybrid else "latent:l"
    encode_collection(collection, tmp_path / "v", name, model=model, passages=passages or None)
    built = partial(build_sharded_index, shards=shards) if shards else build_index
    built(tmp_path / "v", tmp_path / "index", encoder=name)
    assert names_of(tmp_path / "index") == CONCEPTS


def test_vectors_without_latents_name_none(tmp_path, collection):
    encode_collection(collection, tmp_path / "v", "m", model=StandInEncoder())
    assert "concepts" not in json.loads((tmp_path / "v" / "vectors.about").read_text())
    build_index(tmp_path / "v", tmp_path / "index", "m")
    assert not (tmp_path / "index" / INDEX_CONCEPTS).exists()
    assert names_of(tmp_path / "index") == []


@pytest.mark.parametrize("shards", [0, 2])
def test_an_update_keeps_the_names(tmp_path, collection, shards):
    encode_collection(collection, tmp_path / "v", "m", model=NamingEncoder())
    built = partial(build_sharded_index, shards=shards) if shards else build_index
    built(tmp_path / "v", tmp_path / "index", encoder="m")
    changed = write_jsonl(tmp_path / "u.jsonl", {"id": "d1", "vector": {"~2": 1.5}}, {"id": "new", "vector": {"~0": 2}})
    with open_reader(tmp_path / "index") as reader:
        update_index(tmp_path / "index", changed, ["d3"], optimize=True)
        assert reader.reopen() and list(reader.concepts) == CONCEPTS
        assert reader.document_frequencies(["~2"]) == [1]


def test_names_that_are_added_to_an_index_of_stock_anserini(tmp_path):
    index = write_stock_index(tmp_path, {"a": {"~2": 3}, "b": {"~0": 2}})
    (index / INDEX_CONCEPTS).write_text(json.dumps(CONCEPTS))
    assert names_of(index) == CONCEPTS
    changed = write_jsonl(tmp_path / "u.jsonl", {"id": "a", "vector": {"~2": 4}})
    update_index(index, changed, adopt=Manifest("latent:m"))
    assert names_of(index) == CONCEPTS


def test_a_reader_has_the_names_of_the_index_that_it_opens_again(tmp_path, collection):
    for concepts in (CONCEPTS, ["other"]):
        encoder = NamingEncoder()
        encoder.concepts = concepts
        encode_collection(collection, tmp_path / "v", "m", model=encoder, existing="overwrite")
        build_index(tmp_path / "v", tmp_path / "index", "m", existing="overwrite")
        if concepts is CONCEPTS:
            reader = open_reader(tmp_path / "index")
            assert list(reader.concepts) == CONCEPTS
    with reader:
        assert list(reader.concepts) == CONCEPTS
        assert reader.reopen()
        assert list(reader.concepts) == ["other"]
