import json
import re
import shutil

import pytest
from checkpoints import edit_json, write_pooling, write_router
from refusals import refusal
from tiny_training import tiny_config, train_error

from pyserini_compneg.support.errors import CompNegError, InputError

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from pyserini_compneg.encode.models import Head, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.bases import (  # noqa: E402
    build_modules,  # noqa: E402
    freeze,
    load_base,
)
from pyserini_compneg.lab.training.encoder_module import EncoderModule  # noqa: E402
from pyserini_compneg.lab.training.examples import read_examples  # noqa: E402
from pyserini_compneg.lab.training.fine_tuning import _outside_trunk  # noqa: E402

TINY = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1}
MARKS = {name: 0 for name in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")}


@pytest.fixture
def copied(tmp_path, checkpoints):
    return shutil.copytree(checkpoints.bert, tmp_path / "base")


def load_error(folder):
    return refusal(load_base, folder, "owner/m", error=CompNegError)


def build_error(base, dataset, **model):
    return refusal(build_modules, tiny_config(base, dataset, steps=1, model=model), [], error=CompNegError)


def outside_trunk(module):
    """The weights that have the learning rate of the head."""
    names = {f"model.0.{name}" for name, _ in module.named_parameters()}
    return {name.removeprefix("model.0.") for name in names if re.search(_outside_trunk(module), name)}


def test_what_follows_the_trunk(trunk, checkpoints, copied):
    """ModernBERT's trunk is called ``model``, as the masked language model is here."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    for place, prefix in ((trunk, "bert"), (checkpoints.distilbert, "distilbert")):
        module = EncoderModule(load_base(place, "m", Head()), Head(), 32, None)
        names = {name for name, _ in module.named_parameters()}
        assert outside_trunk(module) == {name for name in names if not name.startswith(f"model.{prefix}.")}
        assert 0 < len(outside_trunk(module)) < len(names)

    ModernBertForMaskedLM(ModernBertConfig(vocab_size=1009, **MARKS, **TINY)).save_pretrained(copied)
    base = load_base(copied, "owner/modern")
    freeze(base.model, 1, "owner/modern")
    module = EncoderModule(base, Head(), 32, None)
    assert outside_trunk(module) == {"model.head.dense.weight", "model.head.norm.weight", "decoder.bias"}
    trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
    assert not any(".layers.0." in name or ".embeddings." in name for name in trained)
    assert any(".layers.1." in name for name in trained)


def test_frozen_layers_and_dropout(tmp_path, checkpoints, dataset):
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=2, model={"frozen_layers": 1, "dropout": 0})
    train(config, tmp_path / "m")
    before, after = (load_file(folder / "model.safetensors") for folder in (checkpoints.bert, tmp_path / "m"))
    same = {name for name, weight in before.items() if torch.equal(weight, after[name])}
    assert all(name in same for name in before if ".embeddings." in name or ".layer.0." in name)
    assert not any(".layer.1." in name and name.endswith("weight") for name in same)
    with pytest.raises(InputError, match="^model.frozen_layers must be 2 or less for m, got 3$"):
        freeze(load_base(checkpoints.bert, "m").model, 3, "m")
    for given, expected in ((None, 0.1), (0.0, 0.0)):  # by default that of the base
        model = load_base(checkpoints.bert, "m", dropout=given).model
        assert {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)} == {expected}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bert", {"max_length": 65}, "model.max_length must be 64 or less for this model, got 65"),
        ("bert", {"head": "relu:sum"}, "head relu:sum: a sum over all tokens cannot be trained; choose relu:max"),
        ("opensearch", {}, "{}: has a separate encoder for queries; set model.query_encoder to separate or static"),
        ("opensearch", {"query_encoder": "separate"}, "{}: encodes a query without a network; set model.query_encoder"),
        ("legacy", {}, "{}: has a prompt, converts texts to lower case, or weighs only the tokens of a text; this "),
    ],
)
def test_settings_that_do_not_fit_the_base(tmp_path, checkpoints, dataset, name, settings, message):
    base = getattr(checkpoints, name)
    said = train_error(tiny_config(base, dataset, steps=2, model=settings), tmp_path / "m")
    assert said.startswith(message.format(base))


def test_networks_that_are_refused(tmp_path, copied):
    """A trunk that lacks weights, other architectures, and another tokenizer: before the training, not afterwards."""
    from transformers import BertConfig, BertForMaskedLM, GPT2Config

    weights = load_file(copied / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if ".1." not in name}
    save_file(kept, copied / "model.safetensors", {"format": "pt"})
    lacking = r"owner/m: lacks the weights bert.encoder.layer.1\S*, which do not belong to a head"
    assert re.fullmatch(lacking, load_error(copied))
    for tokens in (900, 9000):
        BertForMaskedLM(BertConfig(vocab_size=tokens, **TINY)).save_pretrained(copied)
        expected = f"owner/m: the tokenizer has 1,009 tokens, the model {tokens:,}; they are not of one model"
        assert load_error(copied) == expected
    GPT2Config(n_layer=1).save_pretrained(tmp_path)
    assert load_error(tmp_path).startswith("owner/m: config.json describes no masked language model: ")


def test_positions_of_padding_are_no_tokens(copied):
    """RoBERTa counts positions from behind that of padding."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    settings = RobertaConfig(vocab_size=1009, max_position_embeddings=34, pad_token_id=1, **TINY)
    RobertaForMaskedLM(settings).save_pretrained(copied)
    base = load_base(copied, "owner/m")
    EncoderModule(base, Head(), 32, None)
    with pytest.raises(InputError, match="^model.max_length must be 32 or less for this model, got 33$"):
        EncoderModule(base, Head(), 33, None)


def test_a_new_head(trunk, copied):
    """Before anything is learned, a text's own tokens are among its terms, and its vector is sparse.

    The layer before the decoder passes everything on, whatever its norm is called.
    """
    from transformers import ModernBertConfig, ModernBertModel

    ModernBertModel(ModernBertConfig(vocab_size=1009, **MARKS, **TINY)).save_pretrained(copied)
    assert load_base(copied, "m").model.head.norm.weight.tolist() == [1.0] * 8
    base = load_base(trunk, "trunk")
    module = EncoderModule(base, Head(), 32, None).eval()
    vector = module(module.preprocess(["films about spies"]))["sentence_embedding"][0]
    own = base.tokenizer("films about spies", add_special_tokens=False)["input_ids"]
    assert (vector[own] > 0).all()
    assert (vector > 0).sum() < 0.5 * len(vector)


def test_a_trained_head_that_gets_signs_keeps_its_weights(tmp_path, trunk, checkpoints, dataset):
    """Logits that were above 0 have the weights they had; those below have none before they are below −2ε."""
    train(tiny_config(trunk, dataset, dev=False, steps=1), tmp_path / "m")
    for folder in (checkpoints.bert, tmp_path / "m"):
        unsigned, signed, again = (
            EncoderModule(load_base(folder, "m", head), head, 32, None).eval()
            for head in map(Head.parse, ("relu:max", "snrelu:sum:50", "snrelu:absmax:50"))
        )
        texts = unsigned.preprocess(["films about spies"])
        vector = unsigned(dict(texts))["sentence_embedding"]
        assert (vector > 0).any()
        for other in (signed, again):
            assert torch.allclose(other(dict(texts))["sentence_embedding"], vector, atol=1e-4)
    signed = load_base(checkpoints.signed, "m", Head.parse("snrelu:sum:50"))
    before = load_base(checkpoints.signed, "m")
    assert torch.equal(signed.model.get_output_embeddings().bias, before.model.get_output_embeddings().bias)


@pytest.mark.parametrize("kind", ["bert", "trunk"])
@pytest.mark.parametrize("pooling", ["absmax", "sum"])
def test_the_base_chooses_how_wide_the_dead_zone_is(checkpoints, trunk, dataset, kind, pooling):
    """One term in a hundred begins below it; ε and the lift of the logits are part of the model."""
    base = checkpoints.bert if kind == "bert" else trunk
    config = tiny_config(base, dataset, dev=False, steps=1, model={"head": f"snrelu:{pooling}"})
    sources = [read_examples(source, 1) for source in config.data]
    _, module = build_modules(config, sources)
    texts = sorted({one.positive for one in sources[0]})
    vectors = module.eval()(module.preprocess(texts))["sentence_embedding"]
    _, lowest = module.extreme_logits(texts)
    assert module.head.epsilon > 0
    assert (lowest < -module.head.epsilon).float().mean() == pytest.approx(0.01, abs=0.005)
    assert (vectors[lowest < -module.head.epsilon] < 0).float().mean() > 0.5

    again = config.model_copy(update={"model": config.model.model_copy(update={"head": str(module.head)})})
    fixed = build_modules(again, sources)[1].eval()
    assert torch.equal(fixed(fixed.preprocess(texts))["sentence_embedding"], vectors)


def test_a_signed_base_keeps_its_dead_zone(checkpoints, dataset):
    config = tiny_config(checkpoints.signed, dataset, dev=False, steps=1, model={"head": "snrelu:absmax"})
    kept = read_checkpoint(checkpoints.signed).document.head.epsilon
    sources = [read_examples(source, 1) for source in config.data]
    assert build_modules(config, sources)[1].head == Head("snrelu", "absmax", kept)


def test_a_dead_zone_that_leaves_vectors_dense_is_refused(checkpoints, dataset):
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=1, model={"head": "snrelu:sum:0.1"})
    sources = [read_examples(source, 1) for source in config.data]
    said = refusal(build_modules, config, sources, error=CompNegError)
    assert said == (
        f"{checkpoints.bert}: with the head snrelu:sum and ε = 0.1 a passage begins with negative weights for 100% "
        "of all terms, and 10% at most can be trained; leave ε out, and the base chooses it"
    )


def test_logits_of_own_terms_are_read_as_inference_reads_them(tmp_path, trunk, dataset):
    """In 32 bits, whatever the file has. A trunk that says untied gets a tied decoder all the same."""
    shutil.copytree(trunk, tmp_path / "trunk")
    edit_json(tmp_path / "trunk" / "config.json", tie_word_embeddings=False)
    train(tiny_config(tmp_path / "trunk", dataset, dev=False, steps=1), tmp_path / "m")
    assert TorchModel(read_checkpoint(tmp_path / "m").document).module.width == 1009
    file = tmp_path / "m" / "1_SpladePooling" / "own_logits.safetensors"
    logits = load_file(file)["logits"]
    save_file({"logits": logits.half()}, file)
    assert load_base(tmp_path / "m", "m").own_logits.dtype == torch.float32
    logits[5] = float("nan")
    save_file({"logits": logits}, file)
    expected = "owner/m: own_logits.safetensors has numbers that are not finite; it is damaged"
    assert load_error(tmp_path / "m") == expected


def test_texts_are_read_from_their_beginning(copied, checkpoints):
    """As inference reads them, whatever the tokenizer's settings say; they must name a token for padding."""
    edit_json(copied / "tokenizer_config.json", padding_side="left", truncation_side="left")
    texts = ["films", "a spy film about a spy and a film"]
    ours, theirs = (
        EncoderModule(load_base(folder, "m"), Head(), 8, None).preprocess(texts)["input_ids"]
        for folder in (copied, checkpoints.bert)
    )
    assert torch.equal(ours, theirs)
    edit_json(copied / "tokenizer_config.json", pad_token=None)
    expected = "owner/m: its tokenizer has no padding token; give it one in tokenizer_config.json"
    assert load_error(copied) == expected


def test_each_of_two_encoders_keeps_its_head(tmp_path, checkpoints, dataset):
    base = tmp_path / "m"
    write_router(base, checkpoints.bert)
    shutil.rmtree(base / "query_0_SparseStaticEmbedding")
    parts = ("0_Transformer", "1_SpladePooling")
    router = json.loads((base / "router_config.json").read_text())
    types = {f"{side}_{part}": router["types"][f"document_{part}"] for side in ("query", "document") for part in parts}
    structure = {**router["structure"], "query": [f"query_{part}" for part in parts]}
    edit_json(base / "router_config.json", types=types, structure=structure)
    for part in parts:
        shutil.copytree(base / f"document_{part}", base / f"query_{part}")
    write_pooling(base / "query_1_SpladePooling", "relu")
    model = {"query_encoder": "separate", "head": None}
    query, document = build_modules(tiny_config(base, dataset, steps=1, model=model), [])
    assert (str(query.head), str(document.head)) == ("relu:max", "log1p_relu:max")

    vocabulary = base / "query_0_Transformer" / "tokenizer.json"
    vocabulary.write_text(vocabulary.read_text().replace('"film":', '"movie":'))
    expected = f"{base}: its queries and documents have different tokens; name another model.base"
    assert build_error(base, dataset, **model) == expected


def test_static_queries_that_cannot_be_trained(tmp_path, checkpoints, dataset):
    write_router(tmp_path / "prompt", checkpoints.bert, prompts={"query": "search: "})
    assert build_error(tmp_path / "prompt", dataset, query_encoder="static") == (
        f"{tmp_path}/prompt: has a prompt for queries, which would be lost; name another model.base"
    )
    shutil.copytree(checkpoints.opensearch, tmp_path / "other")
    (tmp_path / "other" / "idf.json").write_text('{"no token of it": 2.0}')
    assert build_error(tmp_path / "other", dataset, query_encoder="static") == (
        f"{tmp_path}/other: has no weights for the tokens of its tokenizer; it is damaged"
    )
