"""Tiny checkpoints with random weights, in the formats in which models lie on the Hugging Face hub."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pyserini_compneg

SAMPLE = Path(pyserini_compneg.__file__).parent / "resources" / "sample"
MAX_LENGTH = 64
LONG_LENGTH = 1024
ODD_TOKENS = ("¬", "∩", "¬spy", "spy∩film")
"""What the signs of complements and pairs make of a vocabulary, as multilingual ones have it."""

_WIDTH, _LAYERS, _HEADS, _POSITIVE = 32, 2, 2, 40
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_MODULE_TYPES = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "MLMTransformer": "sentence_transformers.sparse_encoder.models.MLMTransformer",
    "SpladePooling": "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling",
    "SparseStaticEmbedding": "sentence_transformers.sparse_encoder.modules.SparseStaticEmbedding",
    "Router": "sentence_transformers.base.modules.router.Router",
}


@cache
def sample_texts(count: int) -> list[str]:
    """The texts of the first documents of the sample."""
    with gzip.open(SAMPLE / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(count), strict=False)]


def needs_sentence_transformers() -> Any:
    """The package, by which vectors are compared. Where it is absent the test is skipped, but never in CI."""
    if "CI" in os.environ:
        import sentence_transformers

        return sentence_transformers
    return pytest.importorskip("sentence_transformers")


def write_tokenizer(folder: Path, kind: str = "tokenizer.json") -> int:
    """Writes a WordPiece tokenizer of about a thousand tokens of the sample, as ``tokenizer.json`` or ``vocab.txt``.

    Returns how many tokens there are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary()
    if kind == "vocab.txt":
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": MAX_LENGTH}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        return len(vocabulary)
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[(token, vocabulary.index(token)) for token in ("[CLS]", "[SEP]")]
    )
    names = {f"{token.strip('[]').lower()}_token": token for token in _SPECIAL}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_LENGTH, **names).save_pretrained(folder)
    return len(vocabulary)


@cache
def _vocabulary() -> tuple[str, ...]:
    """Characters, their continuations, and the most frequent words and endings; a trainer breaks ties by chance."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    texts = map(normalizer.normalize_str, sample_texts(300))
    words = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(text))
    characters = Counter(character for word in words for character in word)
    endings = Counter(f"##{word[-2:]}" for word in words if len(word) > 4 and word.isalpha())
    learnt = [*_frequent(characters, 80), *(f"##{one}" for one in _frequent(characters, 80)), *_frequent(endings, 150)]
    learnt += [word for word in _frequent(words, 800) if word not in learnt][: 1000 - len(learnt)]
    return (*_SPECIAL, *learnt, *ODD_TOKENS)


def _frequent(counts: Counter[str], most: int) -> list[str]:
    return sorted(counts, key=lambda token: (-counts[token], token))[:most]


def write_masked_lm(folder: Path, kind: str = "bert", seed: int = 0, tokenizer: str = "tokenizer.json") -> Path:
    """Writes a masked language model, ``bert``, ``distilbert`` or ``modernbert``, whose vectors have some 40 terms."""
    model, logits = _made(folder, kind, seed, tokenizer)
    if kind == "modernbert":
        edit_json(folder / "tokenizer_config.json", model_max_length=LONG_LENGTH)
    model.get_output_embeddings().bias.data.sub_(_level(logits.amax(1)))
    model.save_pretrained(folder)
    return folder


def write_signed(folder: Path) -> Path:
    """A SparseEncoder with SNReLU, whose vectors have some 40 terms of either sign."""
    model, logits = _made(folder, "bert", 3, "tokenizer.json")
    epsilon = _level(logits.abs().amax(1))
    model.save_pretrained(folder)
    return write_sparse_encoder(folder, folder, activation="snrelu", pooling="absmax", epsilon=epsilon)


def _made(folder: Path, kind: str, seed: int, tokenizer: str) -> Any:
    """A tokenizer, written; a model, and its logits for texts of the sample, those of padding being 0."""
    import torch
    from transformers import AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    size = write_tokenizer(folder, tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _network(kind, size).eval()
    _keep_own_tokens(model)
    tokens = AutoTokenizer.from_pretrained(folder)(
        sample_texts(20), padding=True, truncation=True, return_tensors="pt", return_token_type_ids=False
    )
    with torch.inference_mode():
        return model, model(**tokens).logits * tokens["attention_mask"][:, :, None]


def _level(largest: Any) -> float:
    """What so many terms of a text are above, on average."""
    return largest.sort(descending=True).values[:, _POSITIVE].mean().item()


def _network(kind: str, size: int) -> Any:
    from transformers import BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

    if kind == "distilbert":
        sizes = {"dim": _WIDTH, "hidden_dim": 2 * _WIDTH, "n_layers": _LAYERS, "n_heads": _HEADS}
        return DistilBertForMaskedLM(DistilBertConfig(vocab_size=size, **sizes, **_SHARED))
    if kind == "modernbert":
        return _long_network(size)
    return BertForMaskedLM(_bert(size))


def _long_network(size: int) -> Any:
    """A network of a layer without and two with a window."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    sizes = {"hidden_size": _WIDTH, "intermediate_size": 2 * _WIDTH, "num_hidden_layers": 3, "local_attention": 16}
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 1)
    settings = _SHARED | {"max_position_embeddings": LONG_LENGTH, "decoder_bias": True} | tokens
    return ModernBertForMaskedLM(ModernBertConfig(vocab_size=size, num_attention_heads=_HEADS, **sizes, **settings))


_SHARED = {"max_position_embeddings": MAX_LENGTH, "initializer_range": 0.3, "pad_token_id": 0}


def _bert(size: int, **settings: Any) -> Any:
    from transformers import BertConfig

    sizes = {"hidden_size": _WIDTH, "intermediate_size": 2 * _WIDTH, "num_hidden_layers": _LAYERS}
    return BertConfig(vocab_size=size, num_attention_heads=_HEADS, **sizes, **_SHARED, **settings)


def _keep_own_tokens(model: Any) -> None:
    """Lets little happen to the tokens on their way, so that a text's own are among its terms, as in real models."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("transform.dense.weight", "vocab_transform.weight")):
                weight.mul_(0.2).add_(torch.eye(_WIDTH))
            elif weight.dim() == 2 and "word_embeddings" not in name:
                weight.mul_(0.3)


def token_weights(seed: int = 1) -> list[float]:
    """A weight for each token, as idf would be; that of special tokens is 0."""
    choice = random.Random(seed)
    return [0.0 if token in _SPECIAL else round(choice.uniform(0.2, 6.0), 4) for token in _vocabulary()]


def write_opensearch(folder: Path, masked_lm: Path) -> Path:
    """A model with OpenSearch's weights of query tokens at its root."""
    shutil.copytree(masked_lm, folder)
    weights = dict(zip(_vocabulary(), token_weights(), strict=True))
    (folder / "idf.json").write_text(json.dumps(weights), encoding="utf-8")
    return folder


def write_modules(folder: Path, names: Sequence[str], prompts: Mapping[str, str] | None = None) -> None:
    """The files at the root of a folder of sentence-transformers, with the classes of its modules."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": _MODULE_TYPES[name]}
        for i, name in enumerate(names)
    ]
    write_json(folder / "modules.json", modules)
    settings = {"model_type": "SparseEncoder", "prompts": dict(prompts or {}), "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", settings | {"similarity_fn_name": "dot"})


def write_sparse_encoder(
    folder: Path, masked_lm: Path, *, first: str = "Transformer", prompts: Mapping[str, str] | None = None, **head: Any
) -> Path:
    """A SparseEncoder as sentence-transformers saves it: a masked language model and SpladePooling.

    The first module's class is Transformer, or MLMTransformer, its former name.
    """
    write_modules(folder, [first, "SpladePooling"], prompts)
    write_transformer(folder, masked_lm)
    write_pooling(folder / "1_SpladePooling", **head)
    return folder


def write_transformer(folder: Path, masked_lm: Path) -> None:
    """The module of a masked language model."""
    if masked_lm != folder:
        shutil.copytree(masked_lm, folder, dirs_exist_ok=True)
    write_json(folder / "sentence_bert_config.json", {"transformer_task": "fill-mask", **_FILL_MASK})


_FILL_MASK = {
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "token_embeddings",
}


def write_pooling(folder: Path, activation: str = "relu", pooling: str = "max", **more: Any) -> None:
    """The module SpladePooling."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {"pooling_strategy": pooling, "activation_function": activation, **more})


def write_static(folder: Path, tokenizer: Path | None = None) -> None:
    """The module SparseStaticEmbedding, with the tokenizer of a folder and weights of 1, or a small one with others."""
    import numpy as np
    from safetensors.numpy import save_file

    if tokenizer:
        folder.mkdir(parents=True)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(tokenizer / name, folder / name)
        weights = [1.0] * len(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"])
    else:
        write_tokenizer(folder)
        weights = token_weights()
    write_json(folder / "config.json", {"frozen": False})
    save_file({"weight": np.array(weights, np.float32)}, folder / "model.safetensors")


def write_router(
    folder: Path,
    masked_lm: Path,
    prompts: Mapping[str, str] | None = None,
    tokenizer: Path | None = None,
) -> Path:
    """A Router: queries by the weights of their own tokens, documents by the model, with log(1 + log(1 + ReLU)).

    The tokenizer of queries is small, or that of a folder.
    """
    write_modules(folder, ["Router"], prompts)
    neural = ["Transformer", "SpladePooling"]
    routes = {"query": ["SparseStaticEmbedding"], "document": neural}
    structure = {side: [f"{side}_{i}_{name}" for i, name in enumerate(names)] for side, names in routes.items()}
    types = {part: _MODULE_TYPES[part.rsplit("_", 1)[1]] for parts in structure.values() for part in parts}
    parameters = {"default_route": "document", "allow_empty_key": True, "route_mappings": {}}
    write_json(folder / "router_config.json", {"types": types, "structure": structure, "parameters": parameters})
    for part in types:
        if part.endswith("_Transformer"):
            write_transformer(folder / part, masked_lm)
        elif part.endswith("_SpladePooling"):
            write_pooling(folder / part, "log1p_relu")
        else:
            write_static(folder / part, tokenizer)
    return folder


def write_json(path: Path, value: object) -> None:
    """Writes JSON, readable by people."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def edit_json(path: Path, **changes: Any) -> None:
    """Changes keys of a JSON object in a file; None deletes them."""
    values = json.loads(path.read_text(encoding="utf-8")) | changes
    write_json(path, {name: value for name, value in values.items() if value is not None})


def write_dense(folder: Path, pooling: str = "mean") -> Path:
    """A dense model of sentence-transformers with prompts, whose vectors it does not normalise, and a longest text."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    network = Transformer(str(write_masked_lm(folder / "network")), max_seq_length=24)
    shutil.rmtree(folder / "network")
    modules = [network, Pooling(network.get_embedding_dimension(), pooling)]
    prompts = {"query": "film about ", "document": "film: "}
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save(str(folder))
    return folder


def write_late_interaction(
    folder: Path, similarity: str | None = None, expansion: Mapping[str, Any] | None = None
) -> Path:
    """A MultiVectorEncoder of sentence-transformers, with prompts, a longest document and skipped punctuation."""
    import string

    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    expanded: Any = None if expansion is None else dict(expansion)
    network = Transformer(str(write_masked_lm(folder / "network")), document_length=24, query_expansion=expanded)
    shutil.rmtree(folder / "network")
    settings = {"bias": False, "activation_function": torch.nn.Identity(), "module_input_name": "token_embeddings"}
    layer = Dense(_WIDTH, 16, init_weight=_projection(), **settings)
    modules = [network, layer, MultiVectorMask(list(string.punctuation)), Normalize("token_embeddings")]
    prompts = {"query": "query : ", "document": "document : "}
    made = MultiVectorEncoder(modules=modules, prompts=prompts, similarity_fn_name=similarity, device="cpu")
    made.save_pretrained(str(folder), create_model_card=False)
    return folder


def write_pylate(folder: Path) -> Path:
    """A ColBERT as PyLate saves it: a network, a layer of its own class, and settings at the root."""
    _write_trunk(folder, "BertModel")
    layer = folder / "1_Dense"
    layer.mkdir()
    settings: dict[str, Any] = {"in_features": _WIDTH, "out_features": 16, "bias": False}
    write_json(layer / "config.json", settings | {"activation_function": "torch.nn.modules.linear.Identity"})
    save_weights(layer, {"linear.weight": _projection()})
    types = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(types.items())]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 63, "do_lower_case": False})
    settings = {"model_type": "ColBERT", "similarity_fn_name": "MaxSim", "skiplist_words": [",", "."]}
    settings |= {"query_length": 12, "document_length": 24, "attend_to_expansion_tokens": False}
    settings |= {"query_prefix": "spy ", "document_prefix": "film "}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder


def write_stanford(folder: Path) -> Path:
    """A ColBERT as Stanford's code saves it: a layer among the weights, and settings in ``artifact.metadata``."""
    from safetensors.torch import load_file

    _write_trunk(folder, "HF_ColBERT")
    weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_weights(folder, weights | {"linear.weight": _projection()})
    settings = {"query_maxlen": 12, "doc_maxlen": 24, "mask_punctuation": True}
    write_json(folder / "artifact.metadata", settings | {"query_token_id": "film", "doc_token_id": "spy"})
    return folder


def _projection() -> Any:
    import torch

    return torch.randn(16, _WIDTH, generator=torch.Generator().manual_seed(5))


def _write_trunk(folder: Path, architecture: str) -> None:
    """A network without a head, under the name of an architecture."""
    from transformers import AutoModel

    AutoModel.from_pretrained(write_masked_lm(folder)).save_pretrained(folder)
    edit_json(folder / "config.json", architectures=[architecture])


def save_weights(folder: Path, weights: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    whole = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(whole, folder / "model.safetensors", {"format": "pt"})


def write_cross_encoder(folder: Path, labels: Mapping[int, str] | None = None, seed: int = 0) -> Path:
    """A cross-encoder of the hub: a network that classifies sequences, with one logit or with labels."""
    import torch
    from transformers import BertForSequenceClassification

    settings: dict[str, Any] = {"num_labels": 1} if labels is None else {"id2label": dict(labels)}
    config = _bert(write_tokenizer(folder), **settings)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertForSequenceClassification(config).eval().save_pretrained(folder)
    return folder


def write_t5(folder: Path, words: str = "true false", tokens: int = 24, seed: int = 0) -> Path:
    """A T5 of the hub that writes text, whose tokens are words."""
    torch = pytest.importorskip("torch", reason="checkpoints are written by torch")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    texts = f"<pad> </s> <unk> Query : Document Relevant spy films comedies western A comedy . {words}".split()
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(texts)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=tokens, **special).save_pretrained(folder)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    config = T5Config(vocab_size=len(texts), decoder_start_token_id=0, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        T5ForConditionalGeneration(config).eval().save_pretrained(folder)
    return folder
