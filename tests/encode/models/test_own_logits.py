import json
import shutil

import pytest
from checkpoints import token_weights
from refusals import refusal

from pyserini_compneg.encode.models import Head, read_checkpoint
from pyserini_compneg.encode.models.checkpoint import OWN_LOGITS_FILE
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.support.errors import EncodingError

torch = pytest.importorskip("torch", reason="the reference is torch")

from safetensors.torch import save_file  # noqa: E402
from transformers import AutoModelForMaskedLM  # noqa: E402

from pyserini_compneg.encode.models.batching import encode_tokens  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402

TERMS = len(token_weights())
TEXTS = ["a spy film", "cats", "the film is about a spy, and a film " * 9]


@pytest.fixture
def folder(tmp_path, checkpoints):
    """A model that knows little of the texts' own tokens but what these logits say."""
    shutil.copytree(checkpoints.signed, tmp_path / "m")
    config = tmp_path / "m" / "1_SpladePooling" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"own_logits": True}))
    return tmp_path / "m"


def write(folder, logits):
    save_file({"logits": logits}, folder / "1_SpladePooling" / OWN_LOGITS_FILE)


def encoded(side, model):
    tokenizer = TextTokenizer(side.folder, side.max_length, as_transformers=True)
    tokenizer.fit(TERMS, "m")
    return encode_tokens(model, tokenizer(TEXTS).ids, tokenizer.terms), tokenizer


def test_they_are_added_to_what_texts_say_of_their_own_terms(folder):
    """Against the formula, with all logits of the masked language model, and its decoder."""
    drawn = torch.randn(TERMS, generator=torch.Generator().manual_seed(1)) * 3
    write(folder, drawn)
    side = read_checkpoint(folder).document
    ours, tokenizer = encoded(side, TorchModel(side))
    model = AutoModelForMaskedLM.from_pretrained(side.folder).eval()
    bias = model.get_output_embeddings().bias
    raised = 0
    for ids, vector in zip(tokenizer(TEXTS).ids, ours, strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        highest = logits.amax(0)
        for place, token in enumerate(ids):
            own = logits[place, token] - bias[token] + drawn[token]
            raised += bool(own > highest[token])
            highest[token] = torch.maximum(highest[token], own)
        low = torch.log1p(torch.relu(-logits.amin(0) - side.head.epsilon))
        high = torch.log1p(torch.relu(highest - side.head.epsilon))
        expected = torch.where(high >= low, high, -low)
        got = torch.tensor([vector.get(term, 0.0) for term in tokenizer.terms])
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    assert raised


def test_logits_of_minus_infinity_change_nothing(folder, checkpoints):
    write(folder, torch.full((TERMS,), -torch.inf))
    side, plain = read_checkpoint(folder).document, read_checkpoint(checkpoints.signed).document
    assert encoded(side, TorchModel(side))[0] == encoded(plain, TorchModel(plain))[0]


@pytest.mark.slow
def test_exports_have_them(folder, checkpoints, monkeypatch, tmp_path):
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    from pyserini_compneg.encode.export import export_model, exported_folder
    from pyserini_compneg.encode.models.onnx_model import OnnxModel

    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    draw = torch.Generator().manual_seed(0)
    write(folder, torch.randn(TERMS, generator=draw) * 10)
    side = read_checkpoint(folder).document
    exported, _ = encoded(side, OnnxModel(export_model(side)))
    reference, _ = encoded(side, TorchModel(side))
    for ours, theirs in zip(exported, reference, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert export_model(side) != exported_folder(read_checkpoint(checkpoints.signed).document)


def test_they_must_be_there(folder):
    message = refusal(read_checkpoint, folder, "m", error=EncodingError)
    assert message == "m: 1_SpladePooling: has no own_logits.safetensors, which its config.json asks for"


def test_files_of_another_model(folder, checkpoints):
    path, head = folder / "1_SpladePooling" / OWN_LOGITS_FILE, read_checkpoint(checkpoints.signed).document.head
    expected = f"{path}: expected {TERMS} logits, for a head that takes maxima, got "
    for logits, of_user, said in (
        (torch.zeros(3), None, f"{expected}(3,) for {head}"),
        (torch.zeros(TERMS), Head("relu", "sum"), f"{expected}({TERMS},) for relu:sum"),
    ):
        write(folder, logits)
        assert refusal(TorchModel, read_checkpoint(folder, head=of_user).document, error=EncodingError) == said
    path.write_bytes(b"nothing")
    with pytest.raises(EncodingError, match="own_logits.safetensors: cannot be read: "):
        TorchModel(read_checkpoint(folder).document)
