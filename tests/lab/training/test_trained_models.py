"""What a training leaves: a folder that inference, sentence-transformers and further trainings take."""

import math

import pytest
from tiny_training import tiny_config

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file  # noqa: E402
from sentence_transformers import SparseEncoder  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from pyserini_compneg.encode.models import Head, ModelOptions, StaticSide, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.bases import IDF_SCALE, build_modules, idf_weights, load_base  # noqa: E402
from pyserini_compneg.lab.training.encoder_module import EncoderModule, StaticQueryModule  # noqa: E402

IDS = torch.tensor([[2, *range(20, 60, 4), 3], [2, 50, 3, *[0] * 9]])


def vectors(side):
    with torch.no_grad():
        return TorchModel(side).module(IDS, torch.zeros_like(IDS), (IDS > 0).long())


@pytest.mark.parametrize(
    ("start", "model", "loads"),
    [
        ("bert", {"vocabulary": "training", "head": "relu:max"}, True),
        pytest.param("bert", {"query_encoder": "separate", "head": "relu:max"}, True, marks=pytest.mark.slow),
        pytest.param("distilbert", {"head": "snrelu:absmax"}, False, marks=pytest.mark.slow),
        pytest.param("trunk", {"head": "relu:max"}, False, marks=pytest.mark.slow),
        ("trunk", {"vocabulary": "training", "head": "snrelu:absmax"}, False),
    ],
)
def test_the_folder_is_what_was_trained(tmp_path, checkpoints, trunk, dataset, start, model, loads):
    """Sentence-transformers loads what has no sign and no logits of own terms, and refuses to give other vectors."""
    base = trunk if start == "trunk" else getattr(checkpoints, start)
    train(tiny_config(base, dataset, dev=False, steps=2, model=model), tmp_path / "m")
    checkpoint, features = read_checkpoint(tmp_path / "m"), {"input_ids": IDS, "attention_mask": (IDS > 0).long()}
    assert (checkpoint.query == checkpoint.document) == ("query_encoder" not in model)
    loaded = SparseEncoder(str(tmp_path / "m")) if loads else None
    for which, side in (("query", checkpoint.query), ("document", checkpoint.document)):
        assert str(side.head).startswith(model["head"])
        assert (side.own_logits is not None) == (start == "trunk")
        ours = vectors(side)
        module = EncoderModule(load_base(tmp_path / "m", "m", side.head, which), side.head, 32, None).eval()
        with torch.no_grad():
            again = module(dict(features))["sentence_embedding"]
            theirs = loaded(dict(features), task=which)["sentence_embedding"] if loaded else ours
        torch.testing.assert_close(again, ours, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
        assert (ours != 0).any()
    if not loads:
        with pytest.raises((TypeError, ValueError)):
            SparseEncoder(str(tmp_path / "m"))


@pytest.mark.slow
def test_training_goes_on_from_what_was_trained(tmp_path, checkpoints, dataset):
    """Of two encoders each from its own."""
    model = {"query_encoder": "separate", "head": "snrelu:sum"}
    train(tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model=model), tmp_path / "first")
    model["head"] = None
    train(
        tiny_config(tmp_path / "first", dataset, dev=False, steps=1, learning_rate=0.0, model=model),
        tmp_path / "second",
    )
    first, second = (read_checkpoint(tmp_path / name) for name in ("first", "second"))
    assert second.query.head == Head("snrelu", "sum", first.query.head.epsilon)
    assert not torch.equal(vectors(first.query), vectors(first.document))
    for one, other in ((first.query, second.query), (first.document, second.document)):
        torch.testing.assert_close(vectors(one), vectors(other))


def test_training_may_read_less_than_the_model_does(tmp_path, checkpoints, dataset, monkeypatch):
    seen = {}
    forward = EncoderModule.forward

    def noting(self, features, **more):
        longest = features["input_ids"].shape[1]
        seen[self.training] = max(seen.get(self.training, 0), longest)
        return forward(self, features, **more)

    monkeypatch.setattr(EncoderModule, "forward", noting)
    train(tiny_config(checkpoints.bert, dataset, steps=2, max_length=9), tmp_path / "m")
    assert seen == {True: 9, False: 32}
    assert read_checkpoint(tmp_path / "m").document.max_length == 32


@pytest.mark.slow
def test_what_was_trained_is_exported_in_int8(tmp_path, trunk, dataset, monkeypatch):
    """Tokens pick rows for embeddings and for own terms of two tables, in several slices."""
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    from pyserini_compneg.encode.models.checkpoint import MODEL_FILE
    from pyserini_compneg.encode.models.onnx_model import OnnxModel
    from pyserini_compneg.encode.networks import torch_model
    from pyserini_compneg.encode.networks.graph import write_graph

    monkeypatch.setattr(torch_model, "SLICE", 500)
    train(tiny_config(trunk, dataset, dev=False, steps=1, model={"vocabulary": "training"}), tmp_path / "m")
    module = TorchModel(read_checkpoint(tmp_path / "m").document).module
    write_graph(module, "int8", tmp_path / MODEL_FILE)
    ids = torch.tensor([[2, 30, 40, 41, 3]])
    vector = torch.zeros(module.width)
    _, columns, weights = OnnxModel(tmp_path, "cpu")(ids.numpy(), torch.ones_like(ids).numpy())
    vector[columns] = torch.tensor(weights)
    with torch.no_grad():
        (expected,) = module(ids, torch.zeros_like(ids), torch.ones_like(ids))
    assert torch.nn.functional.cosine_similarity(vector, expected, dim=0) > 0.97


STATIC = {"query_encoder": "static"}
TEXTS = ["a spy film film", "films about the sea"]


@pytest.fixture
def tokenizer(checkpoints):
    return AutoTokenizer.from_pretrained(checkpoints.bert)


def of_words(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def by_terms(side, vector):
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
