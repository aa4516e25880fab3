"""Checkpoints of random weights that transformers and sentence-transformers themselves build and save."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from checkpoints import MAX_LENGTH, edit_json, sample_texts, write_json, write_tokenizer
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

_SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
_SIZES |= {"max_position_embeddings": 80, "initializer_range": 0.3}
_SEQ2SEQ = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
_SEQ2SEQ |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "forced_eos_token_id": None}
_WITH_IMAGES = ("neomme",)
_OWN_SIZES: Mapping[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    **dict.fromkeys(("bart", "mbart", "mvp"), _SEQ2SEQ),
    "convbert": {"embedding_size": 32, "num_attention_heads": 4, "head_ratio": 2},
    "deberta": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "distilbert": {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 2},
    "electra": {"embedding_size": 16},
    "esm": {"mask_token_id": 4, "position_embedding_type": "rotary"},
    "eurobert": {"num_key_value_heads": 2, "head_dim": 16},
    **dict.fromkeys(("flaubert", "xlm"), {"emb_dim": 32, "n_layers": 2, "n_heads": 2}),
    "funnel": {"d_model": 32, "d_head": 16, "n_head": 2, "d_inner": 64, "block_sizes": [1, 1]},
    "longformer": {"attention_window": 16},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 16},
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32, "embedding_size": 16, "intermediate_size": 32},
    "mra": {"max_position_embeddings": 128},
    "neomme": {"head_dim": 16, "num_key_value_heads": 1, "embedding_rank": 16},
    "nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 8},
    "perceiver": {"d_latents": 32, "d_model": 32, "num_latents": 8, "qk_channels": 32, "v_channels": 32}
    | {"num_self_attends_per_block": 1, "num_self_attention_heads": 2, "num_cross_attention_heads": 2},
    "reformer": {"attn_layers": ["local", "local"], "axial_pos_shape": [8, 10], "axial_pos_embds_dim": [16, 16]}
    | {"feed_forward_size": 64, "attention_head_size": 16, "local_attn_chunk_length": 10, "is_decoder": False},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 24},
    "squeezebert": {"embedding_size": 32, "post_attention_groups": 1}
    | dict.fromkeys(("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups"), 2),
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
}
"""Where a network names its sizes in its own way, or has more of them."""

_UNIGRAM = {
    "AlbertTokenizer": "<pad> <unk> [CLS] [SEP] [MASK]",
    "CamembertTokenizer": "<s>NOTUSED <pad> </s>NOTUSED <unk> <s> </s> <mask>",
    "DebertaV2Tokenizer": "[PAD] [UNK] [CLS] [SEP] [MASK]",
    "XLMRobertaTokenizer": "<s> <pad> </s> <unk> <mask>",
}
"""The classes of tokenizers with vocabularies of SentencePiece, and their special tokens, in this order."""

_RELEASE_5 = {
    "sentence_transformers.base.modules.transformer.Transformer": "sparse_encoder.models.MLMTransformer",
    "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling": "sparse_encoder.models.SpladePooling",
    "sentence_transformers.base.modules.router.Router": "models.Router",
    "sentence_transformers.sparse_encoder.modules.sparse_static_embedding.SparseStaticEmbedding": (
        "sparse_encoder.models.SparseStaticEmbedding"
    ),
}
"""The classes of modules, and what sentence-transformers 5.1.2 with transformers 4.57 wrote for them."""


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "encoding.md"


def build(folder: Path, network: str, tokenizer: str, layout: str, settings: Mapping[str, Any]) -> Any:
    """Writes a checkpoint.

    Args:
        folder: The folder to write.
        network: A type of transformers.
        tokenizer: A class of transformers, or the only file of a tokenizer.
        layout: What is saved; one of those in the table.
        settings: ``network.KEY`` goes into the network's configuration. ``tokenizer.KEY``, ``Transformer.KEY``,
            ``SpladePooling.KEY`` and ``SparseEncoder.KEY`` are arguments of these classes. ``weights`` says how weights
            are stored, and ``FILE:KEY`` replaces a value in a JSON file that was saved.

    Returns:
        The SparseEncoder that was saved; None for a layout that sentence-transformers does not save.
    """
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Normalize, Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    parts = ("network", "tokenizer", "Transformer", "SpladePooling", "SparseEncoder")
    chosen = {
        part: {key[len(part) + 1 :]: settings[key] for key in settings if key.startswith(f"{part}.")} for part in parts
    }
    base = folder.with_name(f"{folder.name}-network")
    _write_network(base, network, tokenizer, chosen["network"], chosen["tokenizer"])

    def neural(**pooling: Any) -> list[Any]:
        words = {"tokenizer_name_or_path": str(_words(base))} if network in _WITH_IMAGES else {}
        loaded = Transformer(str(base), transformer_task="fill-mask", **chosen["Transformer"], **words)
        return [loaded, SpladePooling(**chosen["SpladePooling"] | pooling)]

    def static() -> Any:
        made = SparseStaticEmbedding(transformers.AutoTokenizer.from_pretrained(base))
        made.weight.data.copy_(torch.linspace(0, 5, len(made.weight)))
        return made

    def save(modules: list[Any], place: Path = folder) -> Any:
        encoder = SparseEncoder(modules=modules, device="cpu", **chosen["SparseEncoder"])
        encoder.save_pretrained(str(place), create_model_card=False)
        return encoder

    encoder = None
    layout, _, release = layout.partition(", release ")
    if layout in ("masked LM", "masked LM, idf.json"):
        shutil.copytree(base, folder)
    if layout == "masked LM, idf.json":
        tokens = transformers.AutoTokenizer.from_pretrained(base)
        write_json(folder / "idf.json", {token: number % 7 / 2 for token, number in tokens.get_vocab().items()})
        queries = SparseStaticEmbedding.from_json(str(folder / "idf.json"), tokens)
        encoder = SparseEncoder(modules=[Router.for_query_document([queries], neural())], device="cpu")
    elif layout == "SparseEncoder":
        encoder = save(neural())
    elif layout == "trunk":
        transformers.AutoModel.from_pretrained(base).save_pretrained(folder)
    elif layout == "SparseStaticEmbedding":
        encoder = save([static()])
    elif layout == "SparseEncoder, Normalize":
        encoder = save([*neural(), Normalize()])
    elif layout == "Router, static queries":
        encoder = save([Router.for_query_document([static()], neural())])
    elif layout == "Router, lexical queries":
        encoder = save([Router.for_query_document([*neural(), static()], neural(activation_function="log1p_relu"))])
    elif layout == "Router, other routes":
        mapped = {("query", "text"): "short", (None, "text"): "long"}
        routes = {"short": [static()], "long": neural()}
        encoder = save([Router(routes, default_route="long", route_mappings=mapped)])
    elif layout == "Router, two models":
        both = folder.with_name(f"{folder.name}-two") / "models"
        save(neural(), both / "queries")
        _write_network(base, network, tokenizer, chosen["network"], chosen["tokenizer"], seed=1)
        save(neural(activation_function="log1p_relu"), both / "documents")
        recipe = PAGE.read_text(encoding="utf-8").split("### Two models")[1].split("```python")[1].split("```")[0]
        with chdir(both.parent):
            exec(recipe, {})
        shutil.move(both / "both", folder)
    _store_weights(folder, settings.get("weights", ""))
    if release:
        _as_release_5(folder)
    for key in (key for key in settings if ":" in key):
        file, _, name = key.partition(":")
        edit_json(folder / file, **{name: settings[key]})
    return encoder


def _write_network(
    folder: Path, network: str, tokenizer: str, sizes: dict[str, Any], words: dict[str, Any], seed: int = 0
) -> None:
    _write_tokenizer(folder, tokenizer, words)
    made = transformers.AutoTokenizer.from_pretrained(folder)
    own = _OWN_SIZES.get(network, {})
    others = _SIZES if network != "funnel" else {key: value for key, value in _SIZES.items() if "num" not in key}
    settings = {"vocab_size": len(made), "pad_token_id": made.pad_token_id, **others, **own, **sizes}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = transformers.AutoConfig.for_model(network, **settings)
        model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    for name, value in model.named_parameters():
        if name.endswith("bias") and value.shape == (len(made),):  # transformers begins with 0
            value.data.copy_(torch.linspace(-1, 1, len(made)))
    model.save_pretrained(folder)


def _write_tokenizer(folder: Path, kind: str, settings: dict[str, Any]) -> None:
    if kind in ("tokenizer.json", "vocab.txt"):
        write_tokenizer(folder, kind)
        return
    if kind in _UNIGRAM:
        special = _UNIGRAM[kind].split()
        words: Any = [(token, 0.0) for token in special] + _pieces()
        given = {"vocab": words}
    elif kind == "BertTokenizer":
        write_tokenizer(folder, "vocab.txt")
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        shutil.rmtree(folder)
        given = {"vocab": {token: number for number, token in enumerate(lines)}}
    else:
        vocabulary, merges = _byte_pairs()
        given = {"vocab": dict(vocabulary), "merges": list(merges)}
    made = getattr(transformers, kind)(**{"model_max_length": MAX_LENGTH} | given | settings)
    made.save_pretrained(folder)


@cache
def _byte_pairs() -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]:
    """A vocabulary of byte-level BPE, and its merges."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special, alphabet = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(sample_texts(200), trainer)
    model = json.loads(made.to_str())["model"]
    return tuple(model["vocab"].items()), tuple(map(tuple, model["merges"]))


@cache
def _pieces() -> list[tuple[str, float]]:
    """Pieces of a Unigram vocabulary, and their logarithms."""
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.train_from_iterator(sample_texts(200), trainers.UnigramTrainer(vocab_size=700, show_progress=False))
    return [(piece, value) for piece, value in json.loads(made.to_str())["model"]["vocab"]]


def _words(folder: Path) -> Path:
    """The tokenizer alone. That of images needs torchvision."""
    words = folder.with_name(f"{folder.name}-words")
    shutil.copytree(folder, words, ignore=lambda _, names: [name for name in names if "token" not in name])
    return words


def _store_weights(folder: Path, kind: str) -> None:
    """Stores the weights of a network in another type of numbers, ``in parts``, in ``.bin``, or as transformers 4."""
    if not kind:
        return
    place = next(path.parent for path in sorted(folder.rglob("model.safetensors")) if "Static" not in path.parent.name)
    model = transformers.AutoModelForMaskedLM.from_pretrained(place)
    (place / "model.safetensors").unlink()
    if kind in ("float16", "bfloat16"):
        model.to(getattr(torch, kind)).save_pretrained(place)
    elif kind == "in parts":
        model.save_pretrained(place, max_shard_size="100KB")
        assert len(list(place.glob("*.safetensors"))) > 1
    elif kind == "transformers 4":
        values = {name: value.clone() for name, value in model.state_dict().items()}
        (name,) = (name for name in values if name.endswith(".decoder.bias"))
        values[name.replace(".decoder", "")] = values.pop(name)
        save_file(values, place / "model.safetensors", {"format": "pt"})
    else:
        values = model.state_dict()
        files = {name: "pytorch_model.bin" for name in values}
        if kind == ".bin in parts":
            files = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(values)}
            write_json(place / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": files})
        for file in {*files.values()}:
            torch.save({name: value for name, value in values.items() if files[name] == file}, place / file)


def _as_release_5(folder: Path) -> None:
    """Changes files of release 6 into those that sentence-transformers 5.1.2 wrote with transformers 4.57.1."""
    for file in sorted(folder.rglob("*.json")):
        if file.name in ("modules.json", "router_config.json"):
            text = file.read_text(encoding="utf-8")
            for new, old in _RELEASE_5.items():
                text = text.replace(f'"{new}"', f'"sentence_transformers.{old}"')
            file.write_text(text, encoding="utf-8")
        elif file.name == "sentence_bert_config.json":
            length = json.loads((file.parent / "tokenizer_config.json").read_text(encoding="utf-8"))["model_max_length"]
            write_json(file, {"max_seq_length": length, "do_lower_case": False})
        elif "pooling_strategy" in file.read_text(encoding="utf-8"):
            values = json.loads(file.read_text(encoding="utf-8"))
            write_json(file, values | {"word_embedding_dimension": values.pop("embedding_dimension")})
