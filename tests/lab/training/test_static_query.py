"""Queries without a network: where their weights start, what they give, and what is written of them."""

import math

import pytest
from tiny_training import tiny_config

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file  # noqa: E402
from sentence_transformers import SparseEncoder  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from pyserini_compneg.encode.models import ModelOptions, StaticSide, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.bases import (  # noqa: E402
    IDF_SCALE,
    StaticQueryModule,
    build_modules,  # noqa: E402
    idf_weights,
)

STATIC = {"query_encoder": "static"}
TEXTS = ["a spy film film", "films about the sea"]


@pytest.fixture
def tokenizer(checkpoints):
    return AutoTokenizer.from_pretrained(checkpoints.bert)


def of_words(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def by_terms(side, vector):
    """A dense vector as inference has them."""
    terms = TextTokenizer(side.folder, 64).terms
    return {terms[column]: vector[column].item() for column in vector.nonzero()[:, 0].tolist()}


def test_weights_start_as_idf(tokenizer):
    """N = 3 texts, of which one is given twice; two of them have the word."""
    weights = idf_weights(tokenizer, ["a film", "the film", "a film", "the sea"], 1012)
    (film,) = of_words(tokenizer, "film")
    assert weights.shape == (1012,)
    assert weights[film].item() == pytest.approx(IDF_SCALE * math.log(1 + 1.5 / 2.5))
    assert weights[1011].item() == pytest.approx(IDF_SCALE * math.log(1 + 3.5 / 0.5))
    assert not weights[tokenizer.all_special_ids].any()


def test_each_token_counts_once_and_none_below_0(tokenizer):
    weights = torch.linspace(-1, 2, 1009)
    module = StaticQueryModule(tokenizer, weights, None)
    vectors = module(module.preprocess(TEXTS))["sentence_embedding"]
    expected = torch.zeros(2, 1009)
    for row, text in enumerate(TEXTS):
        own = of_words(tokenizer, text)
        expected[row, own] = weights[own].clamp(min=0)
    torch.testing.assert_close(vectors, expected)
    assert (expected > 0).any()
    vocabulary = sorted({of_words(tokenizer, word)[0] for word in ("film", "sea")})
    few = StaticQueryModule(tokenizer, weights, vocabulary)
    torch.testing.assert_close(few(few.preprocess(TEXTS))["sentence_embedding"], expected[:, vocabulary])
    assert few.get_embedding_dimension() == 2


@pytest.mark.parametrize("vocabulary", ["all", "training"])
def test_what_is_written_is_read_alike_here_and_by_sentence_transformers(tmp_path, checkpoints, dataset, vocabulary):
    model = {**STATIC, "vocabulary": vocabulary}
    train(tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model=model), tmp_path / "m")
    side = read_checkpoint(tmp_path / "m").query
    assert isinstance(side, StaticSide)
    theirs = SparseEncoder(str(tmp_path / "m")).encode_query(TEXTS, convert_to_sparse_tensor=False)
    for ours, other in zip(load_side(side, ModelOptions()).encode_batch(TEXTS), theirs, strict=True):
        assert ours == pytest.approx(by_terms(side, other))
        assert ours


def test_the_weights_are_learned_at_the_rate_of_the_head(tmp_path, checkpoints, dataset):
    for name, rate in (("still", None), ("moved", 1e-2)):
        settings = {"steps": 3, "learning_rate": 0.0, "head_learning_rate": rate}
        train(tiny_config(checkpoints.bert, dataset, dev=False, model=STATIC, **settings), tmp_path / name)
    file = "query_0_SparseStaticEmbedding/model.safetensors"
    still, moved = (load_file(tmp_path / name / file)["weight"] for name in ("still", "moved"))
    assert 0 < (moved - still).abs().max() < 0.1


def test_training_goes_on_from_the_weights_of_a_checkpoint(checkpoints, dataset):
    query, _ = build_modules(tiny_config(checkpoints.opensearch, dataset, steps=1, model=STATIC), [])
    side = read_checkpoint(checkpoints.opensearch).query
    (ours,) = query(query.preprocess(TEXTS[1:]))["sentence_embedding"]
    (theirs,) = load_side(side, ModelOptions()).encode_batch(TEXTS[1:])
    assert by_terms(side, ours) == pytest.approx(theirs)
