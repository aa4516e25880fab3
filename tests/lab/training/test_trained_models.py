"""What a training leaves: a folder that inference, sentence-transformers and further trainings take."""

import pytest
from tiny_training import tiny_config

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from sentence_transformers import SparseEncoder  # noqa: E402

from pyserini_compneg.encode.models import Head, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.bases import load_base  # noqa: E402
from pyserini_compneg.lab.training.encoder_module import EncoderModule  # noqa: E402

IDS = torch.tensor([[2, *range(20, 60, 4), 3], [2, 50, 3, *[0] * 9]])


def vectors(side):
    """Of some ids by the network that inference runs."""
    with torch.no_grad():
        return TorchModel(side).module(IDS, torch.zeros_like(IDS), (IDS > 0).long())


@pytest.mark.parametrize(
    ("start", "vocabulary", "head"),
    [
        ("bert", "training", "relu:max"),
        ("distilbert", "all", "snrelu:absmax:0.1"),
        ("trunk", "all", "relu:max"),
        ("trunk", "training", "snrelu:absmax:0.1"),
    ],
)
def test_the_folder_is_what_was_trained(tmp_path, checkpoints, trunk, dataset, start, vocabulary, head):
    base = trunk if start == "trunk" else getattr(checkpoints, start)
    model = {"head": head, "vocabulary": vocabulary}
    config = tiny_config(base, dataset, dev=False, steps=2, model=model)
    train(config, tmp_path / "m")
    side = read_checkpoint(tmp_path / "m").document
    assert side.head == Head.parse(head)
    assert (side.own_logits is not None) == (start == "trunk")
    ours = vectors(side)
    again = load_base(tmp_path / "m", "m", side.head)
    module = EncoderModule(again, side.head, 32, None).eval()
    features = {"input_ids": IDS, "attention_mask": (IDS > 0).long()}
    with torch.no_grad():
        torch.testing.assert_close(module(features)["sentence_embedding"], ours, atol=1e-5, rtol=1e-5)
    assert (ours != 0).any()


@pytest.mark.slow
def test_training_goes_on_from_what_was_trained(tmp_path, checkpoints, dataset):
    """Of two encoders each from its own."""
    model = {"query_encoder": "separate", "head": "snrelu:sum:0.1"}
    train(tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model=model), tmp_path / "first")
    model["head"] = None
    train(
        tiny_config(tmp_path / "first", dataset, dev=False, steps=1, learning_rate=0.0, model=model),
        tmp_path / "second",
    )
    first, second = (read_checkpoint(tmp_path / name) for name in ("first", "second"))
    assert second.query.head == Head.parse("snrelu:sum:0.1")
    assert not torch.equal(vectors(first.query), vectors(first.document))
    for one, other in ((first.query, second.query), (first.document, second.document)):
        torch.testing.assert_close(vectors(one), vectors(other))


@pytest.mark.slow
@pytest.mark.parametrize("model", [{"vocabulary": "training"}, {"query_encoder": "separate"}])
def test_sentence_transformers_loads_what_has_no_sign(tmp_path, checkpoints, dataset, model):
    train(tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model=model), tmp_path / "m")
    loaded = SparseEncoder(str(tmp_path / "m"))
    checkpoint = read_checkpoint(tmp_path / "m")
    for task, side in (("query", checkpoint.query), ("document", checkpoint.document)):
        features = {"input_ids": IDS, "attention_mask": (IDS > 0).long()}
        with torch.no_grad():
            theirs = loaded(features, task=task)["sentence_embedding"]
        torch.testing.assert_close(vectors(side), theirs, atol=1e-5, rtol=1e-5)
        assert (theirs > 0).any()


@pytest.mark.slow
@pytest.mark.parametrize(("start", "head"), [("bert", "snrelu:sum:0.1"), ("trunk", "relu:max")])
def test_sentence_transformers_refuses_what_it_lacks(tmp_path, checkpoints, trunk, dataset, start, head):
    """Rather than giving other vectors."""
    base = trunk if start == "trunk" else checkpoints.bert
    train(tiny_config(base, dataset, dev=False, steps=1, model={"head": head}), tmp_path / "m")
    with pytest.raises((TypeError, ValueError)):
        SparseEncoder(str(tmp_path / "m"))


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
@pytest.mark.parametrize(("vocabulary", "terms"), [("all", 4096), ("training", 500)])
def test_what_was_trained_is_exported_in_int8(tmp_path, trunk, dataset, monkeypatch, vocabulary, terms):
    """Tokens pick rows for embeddings and for own terms of one table or of two; in one slice or in several."""
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    from pyserini_compneg.encode.models import torch_model
    from pyserini_compneg.encode.models.checkpoint import MODEL_FILE
    from pyserini_compneg.encode.models.onnx_model import OnnxModel
    from pyserini_compneg.encode.networks.graph import write_graph

    monkeypatch.setattr(torch_model, "SLICE", terms)
    train(tiny_config(trunk, dataset, dev=False, steps=1, model={"vocabulary": vocabulary}), tmp_path / "m")
    module = TorchModel(read_checkpoint(tmp_path / "m").document).module
    write_graph(module, "int8", tmp_path / MODEL_FILE)
    ids = torch.tensor([[2, 30, 40, 41, 3]])
    vector = torch.zeros(module.width)
    entries = OnnxModel(tmp_path, "cpu")(ids.numpy(), torch.ones_like(ids).numpy())
    vector[entries.columns] = torch.tensor(entries.weights)
    with torch.no_grad():
        (expected,) = module(ids, torch.zeros_like(ids), torch.ones_like(ids))
    assert torch.nn.functional.cosine_similarity(vector, expected, dim=0) > 0.97
