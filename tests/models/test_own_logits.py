"""Models with logits for a text's own tokens: read, run, exported."""

import json
import shutil

import pytest
from checkpoints import token_weights

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models import Head, read_checkpoint
from pyserini_compneg.models.model_sides import OWN_LOGITS_FILE
from pyserini_compneg.models.tokenizer import TextTokenizer

torch = pytest.importorskip("torch", reason="the reference is torch")

from safetensors.torch import save_file  # noqa: E402

from pyserini_compneg.models.batching import encode_tokens  # noqa: E402
from pyserini_compneg.models.torch_model import TorchModel  # noqa: E402

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


def test_a_texts_own_tokens_weigh_at_least_what_the_logits_say(folder, checkpoints):
    write(folder, torch.full((TERMS,), 50.0))
    side, plain = read_checkpoint(folder).document, read_checkpoint(checkpoints.signed).document
    ours, tokenizer = encoded(side, TorchModel(side))
    theirs, _ = encoded(plain, TorchModel(plain))
    heaviest = torch.log1p(torch.tensor(50.0 - side.head.epsilon)).item()
    for ids, vector, other in zip(tokenizer(TEXTS).ids, ours, theirs, strict=True):
        own = {tokenizer.terms[token] for token in ids}
        assert {term for term, weight in vector.items() if weight == pytest.approx(heaviest, abs=1e-4)} == own
        assert {term: weight for term, weight in vector.items() if term not in own} == {
            term: weight for term, weight in other.items() if term not in own
        }


def test_logits_of_minus_infinity_change_nothing(folder, checkpoints):
    write(folder, torch.full((TERMS,), -torch.inf))
    side, plain = read_checkpoint(folder).document, read_checkpoint(checkpoints.signed).document
    assert encoded(side, TorchModel(side))[0] == encoded(plain, TorchModel(plain))[0]


def test_exports_have_them(folder, checkpoints, monkeypatch, tmp_path):
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    from pyserini_compneg.export import export_model
    from pyserini_compneg.models.onnx_model import OnnxModel

    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    draw = torch.Generator().manual_seed(0)
    write(folder, torch.randn(TERMS, generator=draw) * 10)
    side = read_checkpoint(folder).document
    exported, _ = encoded(side, OnnxModel(export_model(side)))
    reference, _ = encoded(side, TorchModel(side))
    for ours, theirs in zip(exported, reference, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert export_model(side) != export_model(read_checkpoint(checkpoints.signed).document)


def test_they_must_be_there(folder):
    with pytest.raises(EncodingError) as error:
        read_checkpoint(folder, "m")
    assert str(error.value) == "m: 1_SpladePooling has no own_logits.safetensors, which its config.json tells of"


def test_they_must_be_as_many_as_terms(folder, checkpoints):
    write(folder, torch.zeros(3))
    path = folder / "1_SpladePooling" / OWN_LOGITS_FILE
    with pytest.raises(EncodingError) as error:
        TorchModel(read_checkpoint(folder).document)
    head = read_checkpoint(checkpoints.signed).document.head
    assert str(error.value) == (f"{path}: expected {TERMS} logits, for a head that takes maxima, got (3,) for {head}")


def test_the_head_must_take_maxima(folder, checkpoints):
    write(folder, torch.zeros(TERMS))
    with pytest.raises(EncodingError, match=r"for a head that takes maxima, got \(\d+,\) for relu:sum"):
        TorchModel(read_checkpoint(folder, "m", Head("relu", "sum")).document)


def test_a_broken_file(folder):
    path = folder / "1_SpladePooling" / OWN_LOGITS_FILE
    path.write_bytes(b"nothing")
    with pytest.raises(EncodingError, match="own_logits.safetensors: cannot be read: "):
        TorchModel(read_checkpoint(folder).document)
