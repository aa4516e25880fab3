"""Checkpoints run by torch, against the untouched model of transformers; ``parity`` compares sentence-transformers."""

import shutil
from functools import cache

import pytest

torch = pytest.importorskip("torch", reason="checkpoints are run by torch")
transformers = pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")

from checkpoints import MAX_LENGTH, edit_json, needs_sentence_transformers, sample_texts, write_tokenizer  # noqa: E402
from head_oracle import HEADS, term_weight  # noqa: E402
from refusals import refusal  # noqa: E402
from varied_texts import varied_texts  # noqa: E402

from pyserini_compneg.commands.export import main  # noqa: E402
from pyserini_compneg.encode.models import Head, ModelOptions, NeuralSide, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.models.batching import encode_tokens  # noqa: E402
from pyserini_compneg.encode.models.loading import quiet_transformers  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel, load_for_training, load_trunk  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.support.errors import EncodingError  # noqa: E402

TEXTS = varied_texts(60)
OF_ONE = "; take config.json and the weights of one model"
AGAIN = "; copy or download the weights again, or take config.json and the weights of one model"
ALL = "; name a trained model, with all its weights"
NEWER = " 'unheard-of', which config.json names; install a newer transformers"
SOURCE = f"; compare it with the model's source; this is transformers {transformers.__version__}"


def encode(folder, texts, head=None, **options):
    side = read_checkpoint(folder, head=head).document
    tokenizer = TextTokenizer(side.folder, side.max_length)
    return encode_tokens(TorchModel(side), tokenizer(texts).ids, tokenizer.terms, **options)


@cache
def logits(folder, text):
    """Those of the model as it is, for each of the text's tokens."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer(text, truncation=True, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        return model(**ids).logits[0]


def assert_alike(found, expected, tolerance=1e-4):
    for term in {**found, **expected}:
        assert abs(found.get(term, 0.0) - expected.get(term, 0.0)) <= tolerance, term


@pytest.mark.parametrize("kind", ["bert", "distilbert", "older"])
def test_pyserinis_formula(checkpoints, kind):
    """max log(1 + ReLU(logits)) · mask, over a batch with padding, by the model as transformers loads it."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = getattr(checkpoints, kind)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        weights = torch.log1p(torch.relu(model(**batch).logits)) * batch["attention_mask"][:, :, None]
    dense = weights.amax(1)
    terms = TextTokenizer(folder, MAX_LENGTH).terms
    found = encode(folder, TEXTS)
    assert sum(map(len, found)) > 10 * len(found)
    for vector, row in zip(found, dense, strict=True):
        assert_alike(vector, {terms[i]: row[i].item() for i in row.nonzero().flatten().tolist()})


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_every_head_by_hand(checkpoints, head):
    terms = TextTokenizer(checkpoints.bert, MAX_LENGTH).terms
    for text in TEXTS[14:60:15]:
        columns = zip(*logits(checkpoints.bert, text).tolist(), strict=True)
        (vector,) = encode(checkpoints.bert, [text], head)
        assert_alike(vector, {term: term_weight(column, head) for term, column in zip(terms, columns, strict=True)})
        assert (min(vector.values()) < 0) == head.signed


def test_a_megabyte_is_cut_and_no_text_is_the_special_tokens(checkpoints):
    assert encode(checkpoints.bert, ["the spy " * 131_072]) == encode(checkpoints.bert, ["the spy " * MAX_LENGTH])
    assert encode(checkpoints.bert, ["", " ", "\x00"])[1:] == encode(checkpoints.bert, [""]) * 2


def test_without_cuda_the_processor_is_used(checkpoints, caplog):
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    model = TorchModel(read_checkpoint(checkpoints.bert).document, "cuda", half=True)
    assert model.device == "cpu"
    assert {parameter.dtype for parameter in model.module.parameters()} == {torch.float32}
    assert caplog.messages == ["this torch has no CUDA; models run on the processor"]


def refused(folder):
    return refusal(TorchModel, NeuralSide(folder, Head(), MAX_LENGTH, MAX_LENGTH), error=EncodingError)


def test_weights_that_cannot_be_loaded(checkpoints, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(checkpoints.bert, folder)
    (folder / "model.safetensors").write_bytes((checkpoints.bert / "model.safetensors").read_bytes()[:-100])
    said = refused(folder)
    assert said.startswith(f"{folder}: its weights cannot be loaded: ") and said.endswith(AGAIN)


@pytest.mark.parametrize(
    ("settings", "start", "end"),
    [
        (
            {"layer_norm_eps": float("nan")},
            "config.json cannot be read: `layer_norm_eps` is NaN",
            "copy or download it again",
        ),
        (
            {"num_hidden_layers": 9**6},
            "config.json: `num_hidden_layers` must be a whole number from 1 to 1,000, got",
            "",
        ),
        ({"max_position_embeddings": 10**12}, "config.json describes 32,000,", AGAIN),
        ({"intermediate_size": 77}, "bert.encoder.layer.0.intermediate.dense.bias has the shape (", f" (77,){OF_ONE}"),
        ({"num_hidden_layers": 1}, "config.json describes fewer layers, none for bert.encoder.layer.1.", OF_ONE),
        ({"num_hidden_layers": 3}, "its weights lack bert.encoder.layer.2.", ALL),
        ({"hidden_act": "gelux"}, "config.json describes no masked language model: no 'gelux'", SOURCE),
        ({"layer_norm_eps": "x"}, "config.json describes no masked language model: ", SOURCE),
        ({"num_attention_heads": 7}, "config.json describes no masked language model: ", SOURCE),
        ({"model_type": "unheard-of"}, f"transformers {transformers.__version__} does not know the type", NEWER),
        ({"chunk_size_feed_forward": 7}, "the network cannot be run: ", "; name another model"),
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_one_line(checkpoints, tmp_path, monkeypatch, capfd, settings, start, end):
    """Before anything is said of an export or written."""
    pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(checkpoints.bert, tmp_path / "m")
    edit_json(folder / "config.json", **settings)
    assert main(["--encoder", str(folder)]) == 2
    said, error = capfd.readouterr()
    assert error.startswith(f"error: {folder}: {start}") and error.endswith(f"{end}\n")
    assert said == "" and error.count("\n") == 1
    assert [path.suffix for path in tmp_path.glob("cache/*/*")] in ([], [".lock"])


def test_a_head_that_was_never_trained(checkpoints, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "m"
    shutil.copytree(checkpoints.bert, folder)
    weights = load_file(checkpoints.bert / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("cls.predictions.transform")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert refused(folder) == (f"{folder}: its weights lack cls.predictions.transform.LayerNorm.bias and 3 more{ALL}")


@pytest.mark.parametrize(
    ("settings", "said", "end"),
    [
        ({"num_hidden_layers": 1}, "config.json describes fewer layers, none for bert.encoder.layer.1.", OF_ONE),
        ({"num_hidden_layers": 3}, "its weights lack encoder.layer.2.", ALL),
        ({"hidden_act": "gelux"}, "config.json describes no network: no 'gelux'", SOURCE),
    ],
    ids=str,
)
def test_a_trunk_that_is_damaged(checkpoints, tmp_path, settings, said, end):
    folder = shutil.copytree(checkpoints.bert, tmp_path / "m")
    edit_json(folder / "config.json", **settings)
    refused = refusal(load_trunk, folder, error=EncodingError)
    assert refused.startswith(f"{folder}: {said}") and refused.endswith(end)


def test_the_trunk_below_a_head_gives_the_vectors_of_tokens(checkpoints):
    """The masked language model lacks a pooler, which the trunk then has and nothing uses."""
    trunk, ids = load_trunk(checkpoints.bert), torch.tensor([[2, 5, 6, 3]])
    whole = transformers.AutoModelForMaskedLM.from_pretrained(checkpoints.bert).eval()
    with torch.inference_mode():
        vectors = trunk(input_ids=ids).last_hidden_state
        expected = whole(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    assert torch.allclose(vectors, expected, atol=1e-5)


def test_an_encoder_with_a_decoder_is_no_trunk(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints.bert, tmp_path / "t5")
    settings = transformers.T5Config(vocab_size=50, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5Model(settings).save_pretrained(folder)
    said = "T5Model is an encoder with a decoder; name a BERT-like model"
    assert refusal(load_trunk, folder, error=EncodingError) == f"{folder}: {said}"


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_an_attention_that_is_not_installed_is_not_asked_for(checkpoints, tmp_path, key):
    folder = shutil.copytree(checkpoints.bert, tmp_path / "m")
    edit_json(folder / "config.json", **{key: "flash_attention_2"})
    assert encode(folder, TEXTS[:2]) == encode(checkpoints.bert, TEXTS[:2])


def test_weights_of_another_shape_as_transformers_4_reports_them(checkpoints, monkeypatch):
    from transformers import AutoModelForMaskedLM

    report = {"mismatched_keys": ["bert.x"], "missing_keys": []}
    monkeypatch.setattr(AutoModelForMaskedLM, "from_pretrained", lambda *_, **__: (None, report))
    said = "bert.x has another shape than config.json describes"
    assert refused(checkpoints.bert) == f"{checkpoints.bert}: {said}{OF_ONE}"


def test_a_lack_of_memory_and_faults_of_this_package(checkpoints, monkeypatch):
    def fails(error):
        def forward(*_, **__):
            raise error

        monkeypatch.setattr("transformers.BertForMaskedLM.forward", forward)

    fails(torch.OutOfMemoryError("out of memory"))
    assert refused(checkpoints.bert) == f"{checkpoints.bert}: the network cannot be run: out of memory"
    fails(NameError("typo"))
    with pytest.raises(NameError):
        TorchModel(read_checkpoint(checkpoints.bert).document)


def test_transformers_is_as_loud_as_before_when_the_last_of_two_is_done():
    from transformers.utils import logging as reports

    reports.set_verbosity_info()
    first, second = quiet_transformers(), quiet_transformers()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (reports.get_verbosity(), reports.is_progress_bar_enabled()) == (reports.ERROR, False)
    second.__exit__(None, None, None)
    assert reports.get_verbosity() == reports.INFO
    reports.set_verbosity_warning()


@pytest.mark.slow
def test_bigbird_attends_to_all_tokens(tmp_path):
    """transformers gives long texts another attention, until it reads a short one."""
    needs_sentence_transformers()
    from built_checkpoints import build
    from transformers import AutoModelForMaskedLM

    folder, text = tmp_path / "m", "the spy film of a music " * 10
    build(folder, "big_bird", "tokenizer.json", "masked LM", {"network.block_size": 4, "network.num_random_blocks": 1})
    ids = torch.tensor(TextTokenizer(folder, MAX_LENGTH)([text]).ids)
    edit_json(folder / "config.json", attention_type="original_full")
    full = AutoModelForMaskedLM.from_pretrained(folder).eval()
    edit_json(folder / "config.json", attention_type="block_sparse")
    sparse = AutoModelForMaskedLM.from_pretrained(folder).eval()
    trained = load_for_training(folder, "m")[0].eval()
    with torch.inference_mode():
        found, as_trained, logits = (model(input_ids=ids).logits for model in (sparse, trained, full))
    assert not torch.allclose(found, logits, atol=1e-3)
    assert torch.allclose(as_trained, logits, atol=1e-5)


def test_a_user_may_ask_for_another_number_of_terms_than_the_model(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints.sparse_encoder, tmp_path / "m")
    edit_json(folder / "config_sentence_transformers.json", max_active_dims=5)
    checkpoint, options = read_checkpoint(folder), ModelOptions("torch")
    for chosen, count in ((options, 5), (ModelOptions("torch", top_terms=7), 7)):
        (vector,) = ModelDocumentEncoder(checkpoint, chosen).encode_batch(sample_texts(1))
        assert len(vector) == count
    assert ModelDocumentEncoder(checkpoint, options).settings["top_terms"] == 5  # for updates of an index


def test_weights_and_tokenizers_of_different_sizes(checkpoints, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(checkpoints.bert, folder)
    size = write_tokenizer(folder)
    (folder / "tokenizer.json").unlink()
    lines = [f"word{number}\n" for number in range(size + 1)]
    lines[:5] = ["[PAD]\n", "[UNK]\n", "[CLS]\n", "[SEP]\n", "[MASK]\n"]
    (folder / "vocab.txt").write_text("".join(lines))
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert refusal(load_side, read_checkpoint(folder).document, ModelOptions("torch"), error=EncodingError) == (
        f"{folder}: the tokenizer has {size + 1:,} tokens, the model {size:,}; they are not of one model"
    )


def write_kind(folder, kind, **settings):
    """A masked language model of a class of transformers, its tokenizer, and its logits for a text."""
    import transformers

    size = write_tokenizer(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"max_position_embeddings": MAX_LENGTH, "initializer_range": 0.3, "pad_token_id": 0}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(vocab_size=size, **sizes | settings)
        model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    for name, value in model.named_parameters():
        if name.endswith("bias") and value.shape == (size,):
            value.data.copy_(torch.linspace(-1, 1, size))
    model.save_pretrained(folder)


@pytest.mark.parametrize("kind", ["Bert", "Albert"])
def test_the_bias_of_a_decoder_that_transformers_4_saved(tmp_path, caplog, kind):
    """Beside the decoder, which is not tied to the embeddings; transformers 5 would leave it without a bias."""
    from safetensors.torch import load_file, save_file

    write_kind(tmp_path, kind, tie_word_embeddings=False, **({"embedding_size": 16} if kind == "Albert" else {}))
    texts, weights = TEXTS[14:20], load_file(tmp_path / "model.safetensors")
    expected = encode(tmp_path, texts)
    (name,) = (name for name in weights if name.endswith(".decoder.bias"))
    beside = name.replace(".decoder", "")
    save_file({beside: weights.pop(name)} | weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    caplog.set_level("INFO")
    assert encode(tmp_path, texts) == expected
    assert caplog.messages == [f"{tmp_path}: the bias of its decoder is {beside}, as transformers 4 saved it"]
    (tmp_path / "model.safetensors").unlink()
    bias = torch.linspace(-1, 1, len(TextTokenizer(tmp_path, 9).terms))
    torch.save(weights | {beside: bias}, tmp_path / "pytorch_model.bin")
    assert encode(tmp_path, texts) == expected


def test_a_network_with_an_attention_of_its_own_is_named(tmp_path, caplog):
    caplog.set_level("INFO")
    write_kind(tmp_path, "RoFormer", embedding_size=32, max_position_embeddings=600)
    TorchModel(NeuralSide(tmp_path, Head(), 600, 600))
    (said,) = caplog.messages
    assert said.startswith(f"{tmp_path}: attention is not computed in blocks, ")
    assert said.endswith(": transformers cannot exchange it in RoFormerForMaskedLM")


def test_a_head_that_does_not_end_with_its_decoder(checkpoints, monkeypatch):
    from transformers import BertForMaskedLM

    forward = BertForMaskedLM.forward

    def doubled(self, *args, **given):
        found = forward(self, *args, **given)
        found.logits = found.logits * 2
        return found

    monkeypatch.setattr(BertForMaskedLM, "forward", doubled)
    assert refused(checkpoints.bert) == f"{checkpoints.bert}: the head of BertForMaskedLM is of an unknown kind"
