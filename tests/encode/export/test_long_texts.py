"""Texts of many blocks: attention in blocks of queries gives the vectors of transformers' own eager attention."""

import shutil

import pytest

torch = pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
onnx = pytest.importorskip("onnx", reason="exports are read by onnx")
pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

import numpy as np  # noqa: E402
from checkpoints import LONG_LENGTH, edit_json, sample_texts, write_masked_lm  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

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


def in_16_bits(folder, copy):
    """The checkpoint with its weights in 16 bits."""
    shutil.copytree(folder, copy)
    weights = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    edit_json(copy / "config.json", dtype="float16")
    return copy


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

    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    return np.log1p(np.maximum(logits, 0) * mask[:, :, None]).max(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "precision"), [("float32", "fp32"), ("float32", "int8"), ("float32", "fp16"), ("float16", "fp32")]
)
def test_blocks_give_the_vectors_of_eager_attention(folder, tmp_path, weights, precision):
    folder = in_16_bits(folder, tmp_path / "m") if weights == "float16" else folder
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
            assert cosines.min() > (0.95 if precision == "int8" else 0.999)


def test_torch_uses_them_too(folder, caplog):
    caplog.set_level("INFO")
    ids, mask = batch(folder, LONG_LENGTH, 700)
    model = TorchModel(read_checkpoint(folder).document)
    expected = eager(folder, ids, mask)
    np.testing.assert_allclose(dense(model(ids, mask), expected.shape), expected, atol=1e-4)
    assert model.module.model.config._attn_implementation == "compneg_blocks"
    assert caplog.messages == []


def all_attend(*_, attention_mask, **__):
    return torch.ones_like(attention_mask)


def fails(*_, **__):
    raise RuntimeError("The size of a mask\nand more")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"_padding": all_attend}, "it changes the vectors of ModernBertForMaskedLM"),
        ({"_attention": fails}, "The size of a mask"),
        ({"LONG": 9}, "9 tokens cannot show whether its sliding window of 8 stays the same"),
    ],
)
def test_a_network_that_they_would_change_stays_eager(folder, monkeypatch, caplog, changed, reason):
    caplog.set_level("INFO")
    for name, value in changed.items():
        monkeypatch.setattr(attention, name, value)
    ids, mask = batch(folder, 600, 20)
    model = TorchModel(read_checkpoint(folder).document)
    assert model.module.model.config._attn_implementation == "eager"
    said = "attention is not computed in blocks, so its memory may grow with the square of the length"
    assert caplog.messages == [f"{folder}: {said}: {reason}"]
    expected = eager(folder, ids, mask)
    np.testing.assert_allclose(dense(model(ids, mask), expected.shape), expected, atol=1e-4)


def test_a_text_is_read_as_far_as_the_model_can(folder):
    options = ModelOptions("torch")
    encoder = ModelDocumentEncoder(load_checkpoint(str(folder), options), options)
    assert encoder.settings["max_length"] == LONG_LENGTH
    words = ["spy"] * (LONG_LENGTH - 2)
    whole, longer = encoder.encode_batch([" ".join(words), " ".join([*words, "comedy"])])
    assert whole == longer
