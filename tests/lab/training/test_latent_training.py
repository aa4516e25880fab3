"""Latent models: their training by the command, its parts, and what is refused."""

import errno
import json
import os
import re
import shutil
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from checkpoints import edit_json, sample_texts
from json_lines import write_jsonl
from refusals import EXISTS, START_ANEW, UNFINISHED, refusal

from pyserini_compneg.commands.train import main
from pyserini_compneg.encode.models import (
    LAYERS_OF_TOKENS,
    model_folder,
    read_concepts,
    read_latent_head,
    token_network,
)
from pyserini_compneg.lab.training import LatentSettings, train_latent
from pyserini_compneg.support.errors import ArgumentError, CompNegError, EncodingError, OutputError

torch = pytest.importorskip("torch", reason="training runs on torch")
transformers = pytest.importorskip("transformers", reason="networks are loaded by transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from pyserini_compneg.encode.networks import load_trunk  # noqa: E402
from pyserini_compneg.lab.training import autoencoder, latent_model, latent_names, token_vectors  # noqa: E402

WIDTH = 32
TEXTS = [f"Film {number}: {text}" for number, text in enumerate(sample_texts(40))]
SMALL = LatentSettings(latents=48, active=4, steps=12)


@pytest.fixture
def texts(tmp_path):
    records = [{"id": f"d{number}", "contents": text} for number, text in enumerate(TEXTS)]
    return write_jsonl(tmp_path / "texts.jsonl.gz", *records, {"id": "blank", "contents": " "})


def late_interaction(folder, trunk, *layers):
    """A folder of PyLate: a network, and linear layers for tokens, of which all but the first have a bias."""
    shutil.copytree(trunk, folder)
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
    for number, (weight, bias) in enumerate(layers, 1):
        layer = folder / f"{number}_Dense"
        layer.mkdir()
        settings = {"in_features": weight.shape[1], "out_features": len(weight), "bias": bias is not None}
        settings["activation_function"] = "torch.nn.modules.linear.Identity"
        (layer / "config.json").write_text(json.dumps(settings))
        tensors = {"linear.weight": weight} | ({} if bias is None else {"linear.bias": bias})
        save_file(tensors, layer / "model.safetensors")
        modules.append({"type": "pylate.models.Dense.Dense", "path": layer.name})
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def layers():
    draw = torch.Generator().manual_seed(3)
    return (torch.randn(16, WIDTH, generator=draw), None), (
        torch.randn(8, 16, generator=draw),
        torch.randn(8, generator=draw),
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lit_by(folder, texts, longest=64):
    """The latents that each text lights, with the network and the weights of a latent model alone."""
    trunk, head = load_trunk(folder), read_latent_head(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    weights = load_file(folder / "latent.safetensors")
    for text in texts:
        tokens = tokenizer(text, truncation=True, max_length=longest, return_tensors="pt")
        own = [number not in head.silent for number in tokens["input_ids"][0].tolist()]
        with torch.inference_mode():
            vectors = trunk(tokens["input_ids"]).last_hidden_state[0][own]
        values, index = (vectors @ weights["weight"].T + weights["bias"]).topk(head.active)
        yield set(index[values > 0].tolist())


def test_a_latent_model_by_the_command(trunk, texts, tmp_path, capsys):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "corpus.tsv").write_text("id\ttext\na\tFilms about spies\n")
    output = tmp_path / "made" / "latent"
    edit_json(shutil.copytree(trunk, tmp_path / "base") / "config.json", architectures=["BertModel"])
    (tmp_path / "base" / "README.md").write_text("---\nlicense: mit\n---\n")
    command = ["latent", "--base", str(tmp_path / "base"), "--texts", str(texts), "--texts", str(tmp_path / "more")]
    assert main([*command, "--output", str(output), "--latents", "48", "--active", "4"]) == 0
    figures = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert [*figures] == ["tokens", "unexplained", "dead", "latents a text"]
    assert {path.name for path in output.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("latent.json", "latent.safetensors", "concepts.json", "README.md"),
    }
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["latent"]
    facts = json.loads((output / "latent.json").read_text())
    assert facts["texts"] == len(TEXTS) + 1
    assert facts["base"] == str(tmp_path / "base")
    assert {name: float(value) for name, value in figures.items()} == {
        **{name: facts[name] for name in ("tokens", "unexplained", "dead")},
        "latents a text": facts["mean_latents"],
    }
    head = read_latent_head(output)
    names = read_concepts(output, head.latents)
    assert len(names) == head.latents == 48 - facts["dead"]
    assert all(names)
    assert {path.stat().st_mode for path in output.iterdir()} == {texts.stat().st_mode}
    assert load_file(output / "latent.safetensors")["weight"].shape == (head.latents, WIDTH)
    card = (output / "README.md").read_text()
    assert "whose card states the licence mit" in card
    assert "- 41 of 41 texts: texts.jsonl.gz, corpus.tsv" in card


def test_latents_are_counted_in_texts_as_long_as_documents(trunk, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(token_vectors, "LONGEST", 12)
    figures = train_latent(str(trunk), [texts], tmp_path / "made", SMALL)
    whole, cut = ([len(found) for found in lit_by(tmp_path / "made", TEXTS, longest)] for longest in (64, 12))
    assert np.mean(cut) < 0.8 * np.mean(whole)
    assert figures["latents a text"] == pytest.approx(np.mean(whole), rel=0.02)


@pytest.mark.parametrize("kind", ["trunk", "late", "sparse"])
def test_the_written_weights_give_the_latents_of_the_training(kind, trunk, checkpoints, texts, tmp_path):
    """Also behind linear layers for tokens, which are not written, but multiplied into the weights."""
    base = {"trunk": trunk, "sparse": checkpoints.sparse_encoder}.get(kind)
    base = base or late_interaction(tmp_path / "base", trunk, *layers())
    figures = train_latent(str(base), [texts], tmp_path / "made", SMALL)
    assert load_file(tmp_path / "made" / "latent.safetensors")["weight"].shape[1] == WIDTH
    found = [len(latents) for latents in lit_by(tmp_path / "made", TEXTS)]
    assert np.mean(found) == pytest.approx(figures["latents a text"], rel=0.02)
    assert not (tmp_path / "made" / "modules.json").exists()


def test_layers_for_tokens_are_one_linear_layer(trunk, tmp_path):
    (first, _), (second, bias) = layers()
    base = late_interaction(tmp_path / "base", trunk, (first, None), (second, bias))
    encoder = token_vectors.TokenEncoder(token_network(model_folder(str(base), LAYERS_OF_TOKENS), "m"), "m")
    plain = token_vectors.TokenEncoder(token_network(trunk, "m"), "m")
    drawn = token_vectors.draw_texts(TEXTS[:5], encoder, 10**6, 0)
    expected = plain(drawn.texts) @ first.T @ second.T + bias
    assert torch.allclose(encoder(drawn.texts), expected, atol=1e-3)


@pytest.mark.parametrize(("latents", "active", "together"), [(48, 6, 8), (48, 4, 6), (5, 4, 5)])
def test_latents_are_learned_with_more_of_them_lit_than_in_texts(
    trunk, texts, tmp_path, monkeypatch, latents, active, together
):
    """With four thirds as many, or with all."""
    learn, found = autoencoder.Autoencoder.learn, set()

    def noted(module, *arguments, **options):
        found.add(module.active)
        learn(module, *arguments, **options)

    monkeypatch.setattr(autoencoder.Autoencoder, "learn", noted)
    train_latent(str(trunk), [texts], tmp_path / "made", LatentSettings(latents=latents, active=active, steps=2))
    assert found == {together}
    assert read_latent_head(tmp_path / "made").active == active


@pytest.mark.parametrize("place", ["vectors", "steps"])
def test_a_killed_training_continues_with_the_same_bits(trunk, texts, tmp_path, monkeypatch, place):
    monkeypatch.setattr(token_vectors, "_TOGETHER", 8)
    train_latent(str(trunk), [texts], tmp_path / "whole", SMALL)
    for module in (token_vectors, autoencoder):
        monkeypatch.setattr(module, "SECONDS", 0)
    owner, name = (token_vectors.TokenEncoder, "__call__") if place == "vectors" else (autoencoder.Autoencoder, "learn")
    method, calls = getattr(owner, name), []

    def counted(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return method(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    killed = tmp_path / "killed"
    with pytest.raises(KeyboardInterrupt):
        train_latent(str(trunk), [texts], killed, SMALL)
    assert not killed.exists()
    assert refusal(train_latent, str(trunk), [texts], killed, SMALL, error=CompNegError) == f"{killed}: {UNFINISHED}"
    other = LatentSettings(latents=48, active=4, steps=13, existing="resume")
    why = f"the unfinished work cannot be continued, because steps changed since; {START_ANEW}"
    assert refusal(train_latent, str(trunk), [texts], killed, other, error=CompNegError) == f"{killed}: {why}"
    before = len(calls)
    resumed = LatentSettings(latents=48, active=4, steps=12, existing="resume")
    train_latent(str(trunk), [texts], killed, resumed)
    batches = -(-len(TEXTS) // 8)  # of the training, and of the texts whose latents are counted
    assert len(calls) - before == {"vectors": batches - 2 + batches, "steps": 10}[place]
    assert contents(killed) == contents(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"killed", "whole", texts.name}


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux only")
def test_a_disk_without_space_for_the_vectors(trunk, texts, tmp_path, monkeypatch):
    """A mapped file that cannot grow would kill the process."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    said = refusal(train_latent, str(trunk), [texts], tmp_path / "made", SMALL, error=OutputError)
    assert said == (
        f"{tmp_path}/made: cannot be written: no space left on device; free some space, and continue with --resume"
    )


def test_only_a_latent_model_is_replaced(trunk, texts, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    assert refusal(train_latent, str(trunk), [texts], made, error=CompNegError) == f"{made}: {EXISTS}"
    settings = LatentSettings(latents=8, active=2, steps=1, existing="overwrite")
    said = "is not a model that was trained here (no latent.json); choose another --output"
    assert refusal(train_latent, str(trunk), [texts], made, settings, error=CompNegError) == f"{made}: {said}"
    made.rmdir()
    train_latent(str(trunk), [texts], made, LatentSettings(latents=4, active=2, steps=1))
    train_latent(str(trunk), [texts], made, settings)
    assert json.loads((made / "latent.json").read_text())["seed"] == 0
    assert read_latent_head(made).active == 2


def write_base(folder, kind, trunk):
    """A base that cannot be used; returns its end of the message."""
    if kind == "tanh":
        late_interaction(folder, trunk, layers()[0])
        edit_json(folder / "1_Dense" / "config.json", activation_function="torch.nn.modules.activation.Tanh")
        return "1_Dense has the activation Tanh; expected a linear layer for tokens"
    if kind == "residual":
        late_interaction(folder, trunk, layers()[0])
        edit_json(folder / "1_Dense" / "config.json", use_residual=True)
        return "1_Dense has a residual connection; expected a linear layer for tokens"
    if kind == "widths":
        late_interaction(folder, trunk, layers()[1])
        return "a layer for tokens takes 16 numbers, and gets 32; take all files of one model"
    shutil.copytree(trunk, folder)
    if kind == "classes":
        (folder / "modules.json").write_text(json.dumps([{"type": "mine.Transformer", "path": ""}]))
        return "needs custom code (modules.json has the class 'mine.Transformer'), which is never run here"
    if kind == "static":
        (folder / "modules.json").write_text(
            json.dumps([{"type": "sentence_transformers.models.StaticEmbedding", "path": ""}])
        )
        return "a model of StaticEmbedding gives no vectors of tokens in their context"
    if kind == "cross-encoder":
        edit_json(folder / "config.json", architectures=["BertForSequenceClassification"])
        return (
            "BertForSequenceClassification is made for other things than vectors of tokens; "
            "name a dense model, a late-interaction model or a BERT-like encoder"
        )
    if kind == "weights":
        weights = load_file(folder / "model.safetensors")
        lacking = {name: weight for name, weight in weights.items() if "layer.1." not in name}
        save_file(lacking, folder / "model.safetensors", {"format": "pt"})
        return (
            "its weights lack encoder.layer.1.attention.output.LayerNorm.bias and 15 more; "
            "name a trained model, with all its weights"
        )
    if kind in ("exported", "empty"):
        (folder / "model.safetensors").unlink()
        if kind == "exported":
            (folder / "model.onnx").touch()
        what = "comes exported, without the weights" if kind == "exported" else "no weights"
        return f"{what} (model.safetensors or pytorch_model.bin); name another model"
    (folder / "config.json").unlink()
    return "no model: config.json is missing"


@pytest.mark.parametrize(
    "kind",
    ["tanh", "residual", "widths", "classes", "static", "cross-encoder", "weights", "exported", "empty", "nothing"],
)
def test_bases_that_are_refused(kind, trunk, texts, tmp_path):
    folder = tmp_path / "base"
    said = write_base(folder, kind, trunk)
    assert refusal(train_latent, str(folder), [texts], tmp_path / "made", SMALL, error=EncodingError) == (
        f"{folder}: {said}"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"base", texts.name}


def test_texts_that_are_refused(trunk, tmp_path):
    bad = write_jsonl(tmp_path / "bad.jsonl", {"id": "a", "contents": "x"}, {"id": "b", "vector": {}})
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "empty.jsonl").touch()
    blank = write_jsonl(tmp_path / "blank.jsonl", {"id": "a", "contents": " "})
    silent = write_jsonl(tmp_path / "silent.jsonl", {"id": "a", "contents": "Of the"}, {"id": "b", "contents": "王"})
    no_word = "no text has a word that the model knows, stop words aside"
    for paths, why in (
        ([tmp_path / "none"], "no text is there"),
        ([blank], "no text is there"),
        ([blank, silent], no_word),
    ):
        assert refusal(train_latent, str(trunk), paths, tmp_path / "made", SMALL) == (
            f"{', '.join(map(str, paths))}: nothing to learn from: {why}; name other texts"
        )
    said = refusal(train_latent, str(trunk), [bad], tmp_path / "made", SMALL)
    assert said.startswith(f"{bad}:2: only a `vector`, where texts are encoded")
    assert refusal(train_latent, str(trunk), str(bad), tmp_path / "made", error=ArgumentError).startswith("texts must")
    assert not (tmp_path / "made.training").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["latent", "--output", "o", "--texts", "t"], "latent needs --base"),
        (["latent", "--output", "o", "--base", "b"], "latent needs --texts"),
        (["latent", "--show"], "--show is for a CONFIG, and latent is none"),
        (["latent", "--output", "o", "--data", "d"], "--data is for a CONFIG, and latent is none"),
        (["reader", "--output", "o", "--texts", "t"], "--texts is for a latent model: compneg train latent"),
        (["reader", "--output", "o", "--latents", "8"], "--latents is for a latent model: compneg train latent"),
        (["reader", "--output", "o", "--format", "csv"], "--format is for a latent model: compneg train latent"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit(arguments, said, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}\n")


def test_more_latents_than_the_memory_has_room_for(trunk, texts, tmp_path, monkeypatch):
    """The number that fits does."""
    monkeypatch.setattr(latent_model, "memory_left", lambda: 20_000_000)
    few = partial(refusal, train_latent, str(trunk), [texts], tmp_path / "made", error=ArgumentError)
    said = few(LatentSettings(latents=1_000_000, active=4, steps=1))
    found = re.fullmatch(
        r"1,000,000 latents need 66\.8 GB of memory, and 0\.0 GB are left; give at most (\d+) with --latents", said
    )
    most = int(found[1])
    assert few(LatentSettings(latents=most + 1, active=4, steps=1)).endswith(f" at most {most} with --latents")
    assert few(LatentSettings(latents=100, active=100, steps=1)).endswith("; give fewer with --active")
    assert {path.name for path in tmp_path.iterdir()} == {texts.name}
    train_latent(str(trunk), [texts], tmp_path / "made", LatentSettings(latents=most, active=4, steps=1))


def test_numbers_out_of_their_range():
    said = "active must be at most the number of latents, 5, got 6"
    assert refusal(LatentSettings, latents=5, error=ArgumentError) == said
    said = "latents must be at most 1,000,000, got 1000001"
    assert refusal(LatentSettings, latents=1_000_001, error=ArgumentError) == said
    assert refusal(LatentSettings, steps=0, error=ArgumentError) == "steps must be a whole number from 1, got 0"
    said = "seed must be a whole number from 0 to 4294967295, got 4294967296"
    assert refusal(LatentSettings, seed=2**32, error=ArgumentError) == said


def test_texts_are_drawn_at_random_up_to_a_number_of_tokens(trunk, caplog):
    encoder = token_vectors.TokenEncoder(token_network(trunk, "m"), "m")
    whole = token_vectors.draw_texts(TEXTS, encoder, 10**6, 0)
    assert (len(whole.texts), whole.among) == (len(TEXTS), len(TEXTS))
    most, found = whole.tokens // 4, []
    with caplog.at_level("INFO"):
        for seed in range(40):
            drawn = token_vectors.draw_texts(iter(TEXTS), encoder, most, seed)
            assert 0.7 * most < drawn.tokens <= most
            found += [int(one.text[5 : one.text.index(":")]) for one in drawn.texts]
    assert caplog.messages[-1].startswith(f"{len(drawn.texts)} of {len(TEXTS)} texts are taken, with ")
    thirds = np.histogram(found, bins=[0, 13, 26, 40])[0] / len(found)
    assert np.abs(thirds - [13 / 40, 13 / 40, 14 / 40]).max() < 0.1


def test_signs_stop_words_and_special_tokens_are_silent(trunk):
    encoder = token_vectors.TokenEncoder(token_network(trunk, "m"), "m")
    (text,) = token_vectors.draw_texts(["The film, of the spy."], encoder, 100, 0).texts
    assert [text.text[:end].split()[-1] for end in text.ends[text.ends > 0].tolist()] == ["film", "spy"]
    assert len(encoder([text])) == text.tokens == 2


def write_pieces(folder, kind):
    """A tokenizer of this kind. Returns its tokens that should be silent, and others."""
    from tokenizers import Tokenizer, models

    if kind == "wordpiece":
        silent, others = ["[UNK]", "the", "of", ",", "##,"], ["spy", "##the", "##s", "王", "##王", "Ġ", "▁x"]
        model = models.WordPiece({piece: number for number, piece in enumerate(silent + others)}, unk_token="[UNK]")
    elif kind == "sentencepiece":
        silent, others = ["[UNK]", "▁the", "▁of", ",", "▁,", "▁"], ["▁spy", "the", "of", "s", "▁王", "王", "##x"]
        model = models.Unigram([(piece, -1.0) for piece in silent + others], 0)
    elif kind == "bytes":  # “ is the bytes âĢľ, and ë is Ã«
        merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "f"), ("Ġ", "of"), ("Ã", "«"), ("â", "Ģ"), ("âĢ", "ľ")]
        silent = ["[UNK]", "Ġthe", "Ġof", "âĢľ", ",", "Ċ", "Ġ"]
        others = ["the", "of", "Ã«", "th", *"thefoÃ«âĢľ", "âĢ"]
        pieces = dict.fromkeys(silent + others)
        model = models.BPE({piece: number for number, piece in enumerate(pieces)}, merges, unk_token="[UNK]")
    else:
        silent, others = ["[UNK]", "the", "of", ","], ["spy", "s"]
        model = models.WordLevel({piece: number for number, piece in enumerate(silent + others)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens(["[UNK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return silent, others


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece", "bytes", "words"])
def test_stop_words_are_silent_only_where_they_begin_a_word(kind, tmp_path):
    silent, others = write_pieces(tmp_path, kind)
    tokenizer = token_vectors.TextTokenizer(tmp_path, 64)
    found = {tokenizer.terms[number] for number in token_vectors.silent_tokens(tokenizer)}
    assert found == {*silent} and {*others} == {*tokenizer.terms} - found


def test_gradients_are_those_of_torch():
    torch.manual_seed(0)
    module = autoencoder.Autoencoder(np.random.default_rng(0).normal(size=(200, 6)).astype(np.float16), 20, 3)
    vectors = torch.randn(50, 6)
    module.learn(vectors, helps=False)
    weights = [weight.clone().requires_grad_() for weight in (module.encoder, module.decoder, module.bias)]
    inputs = (vectors - module.mean) / module.scale
    values, index = (inputs @ weights[0].T + weights[2]).topk(3)
    rebuilt = torch.einsum("bk,bkd->bd", values.relu(), weights[1][index])
    (rebuilt - inputs).square().sum(1).mean().backward()
    for found, expected in zip((module.encoder, module.decoder, module.bias), weights, strict=True):
        assert torch.allclose(found.grad, expected.grad, atol=1e-5)


def test_latents_that_are_dead_learn_what_the_others_leave():
    torch.manual_seed(0)
    module = autoencoder.Autoencoder(np.random.default_rng(0).normal(size=(200, 6)).astype(np.float16), 20, 3)
    module.bias[5:] = -100.0
    module.unused[5:] = 1000
    module.bias[7] = 0.1
    module.unused[7] = 0  # lives
    vectors = torch.randn(50, 6)
    module.learn(vectors, helps=False)
    assert not module.encoder.grad[10].any()
    module.bias[10] = -1.0  # may help, but is not among the largest
    module.learn(vectors, helps=True)
    assert module.encoder.grad[10].any()


def test_vectors_of_few_directions_are_explained(tmp_path):
    draw = np.random.default_rng(1)
    directions = draw.normal(size=(12, 16))
    codes = draw.uniform(1, 2, (4000, 12)) * (draw.random((4000, 12)) < 0.15)
    vectors = (codes @ directions).astype(np.float16)
    torch.manual_seed(0)
    module = autoencoder.fit(vectors, 24, 4, 300, tmp_path / "last" / "steps.pt")
    assert module.unexplained(autoencoder.drawn_vectors(vectors, 500)) < 0.15


def tokenized(text, *pieces):
    """A text whose tokens are some of its parts, between two special tokens."""
    ends, place = [0], 0
    for piece in pieces:
        place = text.index(piece, place) + len(piece)
        ends.append(place)
    return token_vectors.TokenizedText(text, np.arange(len(ends) + 1, dtype=np.int32), np.array([*ends, 0], np.int32))


@pytest.mark.parametrize(
    ("text", "pieces", "words"),
    [
        ("The Kings' queen.", ["The", "King", "s", "'", "queen", "."], ["the", "kings", "kings", "'", "queen", "."]),
        ("don't go", ["don", "'", "t", " go"], ["don't", "don't", "don't", "go"]),
        ("monarchs", ["mon"], ["monarchs"]),
        ("王" * 40, ["王", "王王"], ["王", "王王"]),
        ("、" + "王" * 40 + "。", ["王", "王王"], ["王", "王王"]),
    ],
)
def test_words_of_tokens(text, pieces, words):
    assert latent_names.words_of_tokens(tokenized(text, *pieces)) == words


def test_a_latent_has_the_name_of_the_words_that_light_it_most():
    """The first lights up for kings and queens, the second for signs alone, the third never."""
    words = ["king", "kings", "queen", "the", "of", "x", ",", "duke", "earl"]
    strength = [3.0, 2.9, 2.0, 9.0, 0.0, 9.0, 9.0, 1.0, 0.5]
    lit = latent_names.LitWords()
    for _ in range(3):
        index = np.array([[1 if word == "," else 0] for word in words])
        lit.add(words, index, np.array([[value] for value in strength], np.float32))
    assert lit.names(3) == ["king, queen, duke", ",", ""]


def test_the_number_of_latents_of_a_text():
    texts = [tokenized("a bc dd", "a", "bc", "dd"), tokenized("e", "e")]
    vectors = np.eye(4, dtype=np.float16)[[0, 1, 0, 3]]
    weight, bias = torch.eye(4), torch.zeros(4)
    assert latent_names.describe(vectors, texts, weight, bias, 1) == ["dd", "bc", "", "e"]
    found = latent_model.mean_latents(lambda _: torch.from_numpy(vectors).float(), texts, weight, bias, 1)
    assert found == 1.5


def test_packages_that_are_missing(monkeypatch, tmp_path):
    from pyserini_compneg.lab.training import training
    from pyserini_compneg.support.errors import install_hint

    monkeypatch.setattr(training, "find_spec", lambda name: None if name == "tokenizers" else SimpleNamespace())
    said = refusal(train_latent, "m", ["t"], tmp_path / "made")
    assert said == f"training needs tokenizers; {install_hint('train')}"


def test_the_help_has_the_defaults(capsys):
    main(["--help"])
    said = dict(re.findall(r"--(latents|active|tokens) N [^-]*?default (\d+)", capsys.readouterr().out))
    settings = LatentSettings()
    assert {name: int(default) for name, default in said.items()} == {
        name: getattr(settings, name) for name in ("latents", "active", "tokens")
    }
