"""What a training can start from."""

import re
import shutil

import pytest
from tiny_training import tiny_config

from pyserini_compneg.errors import EncodingError, TrainingError

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from pyserini_compneg.models import Head  # noqa: E402
from pyserini_compneg.train import train  # noqa: E402
from pyserini_compneg.train.encoder_module import EncoderModule  # noqa: E402
from pyserini_compneg.train.masked_lm import load_base  # noqa: E402
from pyserini_compneg.train.run import _outside  # noqa: E402


def test_the_learning_rate_of_the_head_is_for_what_follows_the_trunk(trunk, checkpoints):
    for base in (trunk, checkpoints.distilbert):
        module = EncoderModule(load_base(base, "m", Head()), Head(), 32, None)
        pattern = _outside(module.model.base_model_prefix)
        names = [f"model.0.{name}" for name, _ in module.named_parameters()]
        matched = {name for name in names if re.search(pattern, name)}
        assert matched == {name for name in names if not name.startswith("model.0.model.bert.")} - {
            name for name in names if name.startswith("model.0.model.distilbert.")
        }
        assert 0 < len(matched) < len(names)


def test_other_architectures_are_refused(tmp_path):
    from transformers import GPT2Config

    GPT2Config(n_layer=1).save_pretrained(tmp_path)
    with pytest.raises(TrainingError) as error:
        load_base(tmp_path, "owner/gpt")
    assert str(error.value).startswith("owner/gpt: no masked language model can be made of it: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bert", {"max_length": 65}, "model.max_length must be 64 or less for this model, got 65"),
        ("opensearch", {}, "{}: has an encoder of its own for queries; set model.query_encoder to separate or static"),
        (
            "opensearch",
            {"query_encoder": "separate"},
            "{}: encodes a query without a network; set model.query_encoder to static",
        ),
        (
            "legacy",
            {},
            "{}: has a prompt, puts texts into lower case, or weighs a text's own tokens only, which would be lost; "
            "name another model.base",
        ),
        (
            "bert",
            {"head": "relu:sum"},
            "head relu:sum: sums over all tokens, which the sliced head cannot; choose relu:max",
        ),
    ],
)
def test_models_that_cannot_be_trained(tmp_path, checkpoints, dataset, name, settings, message):
    base = getattr(checkpoints, name)
    with pytest.raises(TrainingError) as error:
        train(tiny_config(base, dataset, steps=2, model=settings), tmp_path / "m")
    assert str(error.value) == message.format(base)


def test_a_trunk_that_lacks_weights_is_refused(tmp_path, checkpoints):
    shutil.copytree(checkpoints.bert, tmp_path / "m")
    kept = {
        name: weight for name, weight in load_file(tmp_path / "m" / "model.safetensors").items() if ".1." not in name
    }
    save_file(kept, tmp_path / "m" / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        TrainingError, match="owner/m: its weights lack bert.encoder.layer.1.*, which is no part of a head"
    ):
        load_base(tmp_path / "m", "owner/m")


@pytest.mark.parametrize("tokens", [900, 9000])
def test_a_tokenizer_of_another_model_is_refused(tmp_path, checkpoints, tokens):
    """Before the training, not when its model is used."""
    from transformers import BertConfig, BertForMaskedLM

    shutil.copytree(checkpoints.bert, tmp_path / "m")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    BertForMaskedLM(BertConfig(vocab_size=tokens, **sizes)).save_pretrained(tmp_path / "m")
    with pytest.raises(EncodingError) as error:
        load_base(tmp_path / "m", "owner/m")
    assert str(error.value) == (
        f"owner/m: the tokenizer has 1,009 tokens, the model {tokens:,}; they are not of one model"
    )


def test_positions_of_padding_are_no_tokens(tmp_path, checkpoints):
    """RoBERTa counts positions from behind that of padding."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    shutil.copytree(checkpoints.bert, tmp_path / "m")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    settings = RobertaConfig(vocab_size=1009, max_position_embeddings=34, pad_token_id=1, **sizes)
    RobertaForMaskedLM(settings).save_pretrained(tmp_path / "m")
    base = load_base(tmp_path / "m", "owner/m")
    EncoderModule(base, Head(), 32, None)
    with pytest.raises(TrainingError, match="^model.max_length must be 32 or less for this model, got 33$"):
        EncoderModule(base, Head(), 33, None)


def test_a_new_head_matches_texts_by_their_words(trunk):
    """Before anything is learnt, a text's own tokens are among its terms, and its vector is sparse."""
    base = load_base(trunk, "trunk")
    module = EncoderModule(base, Head(), 32, None).eval()
    vector = module(module.preprocess(["films about spies"]))["sentence_embedding"][0]
    own = base.tokenizer("films about spies", add_special_tokens=False)["input_ids"]
    assert (vector[own] > 0).all()
    assert (vector > 0).sum() < 0.5 * len(vector)
