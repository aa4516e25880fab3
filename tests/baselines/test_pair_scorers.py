"""Bi-encoders and cross-encoders of sentence-transformers, told apart by their files."""

import json
import shutil

import numpy as np
import pytest
from checkpoints import (
    edit_json,
    needs_sentence_transformers,
    write_cross_encoder,
    write_dense,
    write_masked_lm,
    write_sparse_encoder,
    write_t5,
)
from refusals import refusal

from pyserini_compneg.baselines import check_pair_scorer
from pyserini_compneg.support.errors import EncodingError

pytestmark = pytest.mark.slow

PAIRS = [
    ("spy films", "A spy comedy."),
    ("comedies", "A spy comedy."),
    ("spy films", ""),
    ("spy films", "western " * 400),
    ("half a pair: \ud83d", "A spy comedy."),
]
READABLE = [tuple(text.encode(errors="replace").decode() for text in pair) for pair in PAIRS]


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("torch", reason="sentence-transformers runs on torch")
    return needs_sentence_transformers()


@pytest.fixture(scope="module")
def pair_scorer(library):
    from pyserini_compneg.baselines import pair_scorer

    return lambda folder: pair_scorer(str(folder))


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("cross") / "model")


def test_the_probability_of_a_cross_encoder(library, pair_scorer, folder, tmp_path):
    model = library.CrossEncoder(str(folder), device="cpu")
    logits = model.predict(READABLE, activation_fn=lambda logits: logits, show_progress_bar=False).astype(float)
    scorer = pair_scorer(folder)
    found = scorer.scores(PAIRS)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-5)
    assert len({*found.round(6)}) == len(PAIRS)
    np.testing.assert_allclose(scorer.scores(PAIRS[:1]), found[:1], rtol=1e-5)  # the others of a batch change nothing
    model.save(str(tmp_path / "saved"))  # as the library saves it, with modules.json
    np.testing.assert_allclose(pair_scorer(tmp_path / "saved").scores(PAIRS), found, rtol=1e-5)


def test_the_entailment_of_a_model_of_inference(library, pair_scorer, tmp_path):
    folder = write_cross_encoder(tmp_path, {0: "contradiction", 1: "ENTAILMENT", 2: "neutral"})
    swapped = [(document, query) for query, document in READABLE]  # the premise comes first
    logits = library.CrossEncoder(str(folder), device="cpu").predict(swapped, show_progress_bar=False).astype(float)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pair_scorer(folder).scores(PAIRS), shares[:, 1], rtol=1e-4)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_similarity_of_a_bi_encoder(library, pair_scorer, tmp_path, similarity):
    folder = write_dense(tmp_path / "model")
    edit_json(folder / "config_sentence_transformers.json", similarity_fn_name=similarity)
    model, scorer = library.SentenceTransformer(str(folder), device="cpu"), pair_scorer(folder)
    queries = model.encode_query([query for query, _ in READABLE], show_progress_bar=False).astype(float)
    documents = model.encode_document([text for _, text in READABLE], show_progress_bar=False).astype(float)
    products = (queries * documents).sum(axis=1)
    if similarity == "cosine":
        lengths = np.linalg.norm(queries, axis=1) * np.linalg.norm(documents, axis=1)
        products = (1 + products / lengths) / 2
    np.testing.assert_allclose(scorer.scores(PAIRS), products, rtol=1e-4)
    other = "cosine" if similarity == "dot" else "dot"
    edit_json(folder / "config_sentence_transformers.json", similarity_fn_name=other)
    assert pair_scorer(folder).model_hash != scorer.model_hash


def test_a_monot5_answers_with_true_or_false(pair_scorer, tmp_path):
    """By the loss of both answers, which the library computes; a document is cut, and not the question."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = write_t5(tmp_path / "t5")
    model, words = T5ForConditionalGeneration.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    cut = [(query, " ".join(document.split()[:15])) for query, document in READABLE]
    expected = []
    for query, document in cut:
        tokens = words(f"Query: {query} Document: {document} Relevant:", return_tensors="pt")["input_ids"]
        assert tokens.shape[1] <= 24
        answers = [torch.tensor([words(answer, add_special_tokens=False)["input_ids"]]) for answer in ("false", "true")]
        losses = [model(input_ids=tokens, labels=answer).loss.item() for answer in answers]
        expected.append(1 / (1 + np.exp(losses[1] - losses[0])))
    scorer = pair_scorer(folder)
    np.testing.assert_allclose(scorer.scores(PAIRS), expected, rtol=1e-4)
    np.testing.assert_allclose(np.exp(scorer.log_probabilities(PAIRS[:1])), expected[:1], rtol=1e-4)
    assert len({*np.round(expected, 6)}) == len(PAIRS)


def test_a_t5_that_cannot_answer_is_refused_before_its_weights_are_read(tmp_path):
    folder = write_t5(tmp_path / "t5", "yes no")
    (folder / "model.safetensors").unlink()

    def refused():
        message = refusal(check_pair_scorer, str(folder), error=EncodingError)
        assert message.startswith(f"{folder}: ")
        return message.removeprefix(f"{folder}: ")

    said = "its tokenizer has no token for 'false', so it is not a MonoT5; rerank with a T5 that was trained to rank"
    assert refused() == said
    for file in folder.glob("token*"):
        file.unlink()
    assert refused() == "has no tokenizer, none of spiece.model, tokenizer.json; get a whole model"
    edit_json(folder / "config.json", decoder_start_token_id=None)
    assert refused() == "its config.json has no decoder_start_token_id, with which an answer begins; get a whole model"


def test_documents_are_encoded_once(pair_scorer, tmp_path, monkeypatch):
    monkeypatch.setattr("pyserini_compneg.baselines.pair_scorers._KEPT_DOCUMENTS", 2)
    scorer = pair_scorer(write_dense(tmp_path / "model"))
    encode, asked = scorer.encode_documents, []
    monkeypatch.setattr(scorer, "encode_documents", lambda texts: asked.append(list(texts)) or encode(texts))
    before = scorer.scores([("q", "a"), ("q", "b"), ("r", "a"), ("q", "c")])
    np.testing.assert_allclose(scorer.scores([("q", "c"), ("q", "b")]), before[[3, 1]], rtol=1e-6)
    scorer.scores([("q", "a")])
    assert asked == [["a", "b", "c"], ["a"]]


def test_what_cannot_rerank_is_said_in_one_line(pair_scorer, folder, tmp_path, capfd):
    import torch
    from safetensors.torch import load_file, save_file

    def refused(model):
        return refusal(pair_scorer, model, error=EncodingError)

    headless = shutil.copytree(folder, tmp_path / "headless")
    weights = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if "class" not in name}
    save_file(weights, headless / "model.safetensors", {"format": "pt"})
    capfd.readouterr()
    lacking = "its weights lack 'classifier.bias', which would be random; get a whole model"
    assert refused(headless) == f"{headless}: {lacking}"
    (headless / "model.safetensors").unlink()
    torch.save(weights, headless / "pytorch_model.bin")
    assert refused(headless) == f"{headless}: {lacking}"
    assert capfd.readouterr().err == ""
    poolless = shutil.copytree(folder, tmp_path / "poolless")  # a classifier reads what its pooler gives
    weights = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if "pool" not in name}
    save_file(weights, poolless / "model.safetensors", {"format": "pt"})
    assert "pooler" in refused(poolless) and refused(poolless).endswith("which would be random; get a whole model")
    wordless = shutil.copytree(folder, tmp_path / "wordless")
    for file in wordless.glob("*token*"):
        file.unlink()
    (wordless / "vocab.txt").unlink(missing_ok=True)
    assert refused(wordless).startswith(f"{wordless}: has no tokenizer, none of ")
    bodiless = write_dense(tmp_path / "bodiless")
    whole = load_file(bodiless / "model.safetensors")
    layers = {name: tensor for name, tensor in whole.items() if ".layer.0.output" not in name}
    assert len(layers) < len(whole)
    save_file(layers, bodiless / "model.safetensors", {"format": "pt"})
    assert "output" in refused(bodiless) and refused(bodiless).endswith(", which would be random; get a whole model")
    few = {name: tensor[:9] if "word_embeddings" in name else tensor for name, tensor in whole.items()}
    save_file(few, bodiless / "model.safetensors", {"format": "pt"})
    config = json.loads((bodiless / "config.json").read_text())
    (bodiless / "config.json").write_text(json.dumps(config | {"vocab_size": 9}))
    assert refused(bodiless).endswith(" tokens, and its weights 9; get a whole model")
    (bodiless / "config.json").write_text(json.dumps(config | {"architectures": {"BertModel": 0}}))
    (bodiless / "modules.json").unlink(missing_ok=True)
    (bodiless / "config_sentence_transformers.json").unlink(missing_ok=True)
    assert "has no head that scores (no network); " in refused(bodiless)
    labels = write_cross_encoder(tmp_path / "labels", {0: "a", 1: "b"})
    (labels / "model.safetensors").unlink()  # the labels are known without it
    assert refused(labels) == (
        f"{labels}: its 2 labels are a, b; rerank with a model of one label, or one called 'entailment'"
    )
    for wrong in (["a", "b"], {"first": "a", "1": "b"}):
        edit_json(labels / "config.json", id2label=wrong)
        assert refused(labels) == f"{labels}: its id2label must name a label for each number, got {wrong}"
    kinds = "a cross-encoder, which classifies sequences, a MonoT5, a ColBERT, or a bi-encoder"
    remedy = f"rerank with {kinds} of sentence-transformers"
    masked = write_masked_lm(tmp_path / "masked")
    assert refused(masked) == f"{masked}: has no head that scores (BertForMaskedLM); {remedy}"
    sparse = write_sparse_encoder(tmp_path / "sparse", masked)
    assert refused(sparse) == f"{sparse}: has no head that scores (SparseEncoder); {remedy}"
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty") == f"{tmp_path / 'empty'}: has no head that scores (no network); {remedy}"
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"x")
    assert refused(broken).startswith(f"{broken}: the model cannot be loaded: ")
    remedy = "expected a folder, or owner/name on the Hugging Face hub"
    assert refused("bm25") == f"no model of sentence-transformers 'bm25'; {remedy}"


def test_damaged_weights_give_no_number(pair_scorer, folder, tmp_path):
    from safetensors.torch import load_file, save_file

    damaged = shutil.copytree(folder, tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"].fill_(float("nan"))
    save_file(weights, damaged / "model.safetensors", {"format": "pt"})
    assert np.isnan(pair_scorer(damaged).scores(PAIRS)).all()
    weights["classifier.bias"].fill_(float("inf"))
    save_file(weights, damaged / "model.safetensors", {"format": "pt"})
    assert np.isnan(pair_scorer(damaged).scores(PAIRS)).all()
