"""Texts of many blocks: attention in blocks of queries gives the vectors of transformers' own eager attention."""

import pytest

torch = pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
onnx = pytest.importorskip("onnx", reason="exports are read by onnx")
pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

import numpy as np  # noqa: E402
from checkpoints import LONG_LENGTH, sample_texts, write_masked_lm  # noqa: E402

from pyserini_compneg.encode.export import export_model  # noqa: E402
from pyserini_compneg.encode.models import ModelOptions, load_checkpoint, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.models.onnx_model import OnnxModel  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.networks import attention  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder  # noqa: E402

TEXT = " ".join(sample_texts(60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_masked_lm(tmp_path_factory.mktemp("long") / "modernbert", "modernbert")


def batch(folder, *lengths):
    """The first so many tokens of a long text, as a batch with padding."""
    (ids,) = TextTokenizer(folder, LONG_LENGTH)([TEXT]).ids
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    return np.array(ids[: max(lengths)]) * mask, mask


def dense(entries, shape):
    rows, columns, weights = entries
    vectors = np.zeros(shape)
    vectors[rows, columns] = weights
    return vectors


def eager(folder, ids, mask):
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    return np.log1p(np.maximum(logits, 0) * mask[:, :, None]).max(1)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_blocks_give_the_vectors_of_eager_attention(folder, precision):
    export = export_model(read_checkpoint(folder).document, precision)
    graph = onnx.load(export / "model.onnx")
    assert {function.name for function in graph.functions} == {"attention", "near_attention"}
    model = OnnxModel(export)
    for lengths in [(LONG_LENGTH, 700), (513, 512, 3), (129, 128), (3,)]:
        ids, mask = batch(folder, *lengths)
        expected = eager(folder, ids, mask)
        found = dense(model(ids, mask), expected.shape)
        if precision == "fp32":
            np.testing.assert_allclose(found, expected, atol=1e-4)
        else:
            cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
            assert cosines.min() > 0.95


def test_torch_uses_them_too(folder):
    ids, mask = batch(folder, LONG_LENGTH, 700)
    model = TorchModel(read_checkpoint(folder).document)
    expected = eager(folder, ids, mask)
    np.testing.assert_allclose(dense(model(ids, mask), expected.shape), expected, atol=1e-4)
    assert model.module.model.config._attn_implementation == "compneg_blocks"


def test_a_network_that_they_would_change_stays_eager(folder, monkeypatch):
    monkeypatch.setattr(attention, "_padding", lambda *_, attention_mask, **__: torch.ones_like(attention_mask))
    ids, mask = batch(folder, 600, 20)
    model = TorchModel(read_checkpoint(folder).document)
    assert model.module.model.config._attn_implementation == "eager"
    expected = eager(folder, ids, mask)
    np.testing.assert_allclose(dense(model(ids, mask), expected.shape), expected, atol=1e-4)


def test_a_text_is_read_as_far_as_the_model_can(folder):
    options = ModelOptions("torch")
    encoder = ModelDocumentEncoder(load_checkpoint(str(folder), options), options)
    assert encoder.settings["max_length"] == LONG_LENGTH
    words = ["spy"] * (LONG_LENGTH - 2)
    whole, longer = encoder.encode_batch([" ".join(words), " ".join([*words, "comedy"])])
    assert whole == longer
