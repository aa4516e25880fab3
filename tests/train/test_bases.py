"""What a training can start from."""

import json
import re
import shutil

import pytest
from checkpoints import write_pooling, write_router
from tiny_training import tiny_config

from pyserini_compneg.errors import EncodingError, TrainingError

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from pyserini_compneg.models import Head, read_checkpoint  # noqa: E402
from pyserini_compneg.models.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.train import train  # noqa: E402
from pyserini_compneg.train.encoder_module import EncoderModule  # noqa: E402
from pyserini_compneg.train.masked_lm import freeze, load_base, static_query_side  # noqa: E402
from pyserini_compneg.train.modules import build_modules  # noqa: E402
from pyserini_compneg.train.run import _outside_trunk  # noqa: E402


def test_the_learning_rate_of_the_head_is_for_what_follows_the_trunk(trunk, checkpoints):
    for base in (trunk, checkpoints.distilbert):
        module = EncoderModule(load_base(base, "m", Head()), Head(), 32, None)
        pattern = _outside_trunk(module)
        names = [f"model.0.{name}" for name, _ in module.named_parameters()]
        matched = {name for name in names if re.search(pattern, name)}
        assert matched == {name for name in names if not name.startswith("model.0.model.bert.")} - {
            name for name in names if name.startswith("model.0.model.distilbert.")
        }
        assert 0 < len(matched) < len(names)


def test_what_follows_the_trunk_is_found_where_names_repeat(tmp_path, checkpoints):
    """ModernBERT's trunk is called ``model``, as the masked language model is here."""
    from transformers import AutoTokenizer, ModernBertConfig, ModernBertForMaskedLM

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1}
    marks = {name: 0 for name in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")}
    ModernBertForMaskedLM(ModernBertConfig(vocab_size=1009, **marks, **sizes)).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(checkpoints.bert).save_pretrained(tmp_path)
    base = load_base(tmp_path, "owner/modern")
    freeze(base.model, 1, "owner/modern")
    module = EncoderModule(base, Head(), 32, None)
    names = [f"model.0.{name}" for name, _ in module.named_parameters()]
    matched = {name.removeprefix("model.0.") for name in names if re.search(_outside_trunk(module), name)}
    assert matched == {"model.head.dense.weight", "model.head.norm.weight", "decoder.bias"}
    left = {name for name, weight in module.named_parameters() if weight.requires_grad}
    assert not any(".layers.0." in name or ".embeddings." in name for name in left)
    assert any(".layers.1." in name for name in left)


def test_frozen_layers_stay_as_they_are(tmp_path, checkpoints, dataset):
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model={"frozen_layers": 1, "dropout": 0})
    train(config, tmp_path / "m")
    before, after = (load_file(place / "model.safetensors") for place in (checkpoints.bert, tmp_path / "m"))
    same = {name for name, weight in before.items() if torch.equal(weight, after[name])}
    assert all(name in same for name in before if ".embeddings." in name or ".layer.0." in name)
    assert not any(".layer.1." in name and name.endswith("weight") for name in same)
    for name, dropout in (("first", None), ("second", 0.0)):
        base = load_base(checkpoints.bert, name, dropout=dropout)
        left_out = {part.p for part in base.model.modules() if isinstance(part, torch.nn.Dropout)}
        assert left_out == {0.1 if dropout is None else dropout}
    with pytest.raises(TrainingError, match="^model.frozen_layers must be 2 or less for m, got 3$"):
        freeze(base.model, 3, "m")


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


def test_logits_of_own_terms_are_read_as_inference_reads_them(tmp_path, trunk, dataset):
    """In 32 bits, whatever the file has; what cannot be read is one line."""
    train(tiny_config(trunk, dataset, dev=False, steps=1), tmp_path / "m")
    file = tmp_path / "m" / "1_SpladePooling" / "own_logits.safetensors"
    save_file({"logits": load_file(file)["logits"].half()}, file)
    assert load_base(tmp_path / "m", "m").own_logits.dtype == torch.float32
    save_file({"logits": torch.zeros(3)}, file)
    with pytest.raises(EncodingError, match="expected 1009 logits"):
        load_base(tmp_path / "m", "m")
    file.write_bytes(b"nothing")
    with pytest.raises(EncodingError, match=r"own_logits.safetensors: cannot be read: "):
        load_base(tmp_path / "m", "m")


def test_a_prompt_for_static_queries_is_refused(tmp_path, checkpoints):
    write_router(tmp_path / "m", checkpoints.bert, prompts={"query": "search: "})
    with pytest.raises(TrainingError) as error:
        static_query_side(tmp_path / "m", "owner/m")
    assert str(error.value) == "owner/m: has a prompt for queries, which would be lost; name another model.base"


def saved_trunk(folder, checkpoints, config, model):
    """A trunk of random weights, with the tokenizer of the tests."""
    from transformers import AutoTokenizer

    model(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints.bert).save_pretrained(folder)
    return folder


def test_a_new_head_lets_everything_through_whatever_its_norm_is_called(tmp_path, checkpoints):
    from transformers import ModernBertConfig, ModernBertModel

    marks = {name: 0 for name in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")}
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1}
    config = ModernBertConfig(vocab_size=1009, **marks, **sizes)
    base = load_base(saved_trunk(tmp_path, checkpoints, config, ModernBertModel), "m")
    assert base.model.head.norm.weight.tolist() == [1.0] * 8


def test_a_trunk_that_says_untied_gets_a_tied_decoder_all_the_same(tmp_path, trunk, dataset):
    shutil.copytree(trunk, tmp_path / "trunk")
    file = tmp_path / "trunk" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tie_word_embeddings": False}))
    train(tiny_config(tmp_path / "trunk", dataset, dev=False, steps=1), tmp_path / "m")
    assert TorchModel(read_checkpoint(tmp_path / "m").document).module.width == 1009


@pytest.mark.parametrize("side", ["padding_side", "truncation_side"])
def test_texts_are_read_from_their_beginning(tmp_path, checkpoints, side):
    """As inference reads them, whatever the tokenizer's settings say."""
    shutil.copytree(checkpoints.bert, tmp_path / "m")
    file = tmp_path / "m" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {side: "left"}))
    texts = ["films", "a spy film about a spy and a film"]
    ours, theirs = (
        EncoderModule(load_base(folder, "m"), Head(), 8, None).preprocess(texts)["input_ids"]
        for folder in (tmp_path / "m", checkpoints.bert)
    )
    assert torch.equal(ours, theirs)


def test_a_tokenizer_without_padding_is_refused(tmp_path, checkpoints):
    shutil.copytree(checkpoints.bert, tmp_path / "m")
    file = tmp_path / "m" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pad_token": None}))
    with pytest.raises(TrainingError) as error:
        load_base(tmp_path / "m", "owner/m")
    assert str(error.value) == "owner/m: its tokenizer has no padding token; give it one in tokenizer_config.json"


def test_each_of_two_encoders_keeps_its_head(tmp_path, checkpoints, dataset):
    write_router(tmp_path / "m", checkpoints.bert)
    place = tmp_path / "m" / "query_0_SparseStaticEmbedding"
    shutil.rmtree(place)
    file = tmp_path / "m" / "router_config.json"
    text = file.read_text().replace("query_0_SparseStaticEmbedding", "query_0_Transformer")
    router = json.loads(text)
    router["structure"]["query"].append("query_1_SpladePooling")
    router["types"]["query_0_Transformer"] = router["types"]["document_0_Transformer"]
    router["types"]["query_1_SpladePooling"] = router["types"]["document_1_SpladePooling"]
    file.write_text(json.dumps(router))
    for part in ("0_Transformer", "1_SpladePooling"):
        shutil.copytree(tmp_path / "m" / f"document_{part}", tmp_path / "m" / f"query_{part}")
    write_pooling(tmp_path / "m" / "query_1_SpladePooling", "relu")
    model = {"query_encoder": "separate", "head": None}
    query, document = build_modules(tiny_config(tmp_path / "m", dataset, steps=1, model=model), [])
    assert (str(query.head), str(document.head)) == ("relu:max", "log1p_relu:max")

    vocabulary = tmp_path / "m" / "query_0_Transformer" / "tokenizer.json"
    vocabulary.write_text(vocabulary.read_text().replace('"film":', '"movie":'))
    with pytest.raises(TrainingError, match="its queries and documents have other tokens; name another base$"):
        build_modules(tiny_config(tmp_path / "m", dataset, steps=1, model=model), [])


def test_logits_that_are_no_numbers_are_refused(tmp_path, trunk, dataset):
    train(tiny_config(trunk, dataset, dev=False, steps=1), tmp_path / "m")
    file = tmp_path / "m" / "1_SpladePooling" / "own_logits.safetensors"
    logits = load_file(file)["logits"]
    logits[5] = float("nan")
    save_file({"logits": logits}, file)
    with pytest.raises(TrainingError) as error:
        load_base(tmp_path / "m", "m")
    assert str(error.value) == "m: own_logits.safetensors has logits that are no numbers; it is damaged"


def test_static_weights_of_another_tokenizer_are_refused(tmp_path, checkpoints, dataset):
    shutil.copytree(checkpoints.opensearch, tmp_path / "m")
    (tmp_path / "m" / "idf.json").write_text('{"no token of it": 2.0}')
    with pytest.raises(TrainingError) as error:
        build_modules(tiny_config(tmp_path / "m", dataset, steps=1, model={"query_encoder": "static"}), [])
    assert str(error.value) == f"{tmp_path}/m: weighs no token of its own tokenizer; it is damaged"
