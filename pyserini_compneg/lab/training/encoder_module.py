"""The encoders in training, modules of sentence-transformers, which turn texts into sparse vectors."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sentence_transformers.base.modules import InputModule
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding
from torch import Tensor, nn

from pyserini_compneg.encode.models import OWN_LOGITS_FILE, Head
from pyserini_compneg.encode.networks import own_logits, sliced_extremes, sliced_pooled
from pyserini_compneg.support.errors import InputError

_BASE, _SPARSE = "sentence_transformers.base.modules", "sentence_transformers.sparse_encoder.modules"
_TYPES = {
    "Router": f"{_BASE}.router.Router",
    "Transformer": f"{_BASE}.transformer.Transformer",
    "SpladePooling": f"{_SPARSE}.splade_pooling.SpladePooling",
    "SparseStaticEmbedding": f"{_SPARSE}.sparse_static_embedding.SparseStaticEmbedding",
}
_FILL_MASK = {
    "transformer_task": "fill-mask",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "token_embeddings",
}


_TEXTS_AT_ONCE = 16


class MaskedLanguageModel(NamedTuple):
    """A network to train. Its decoder is a linear layer with a bias."""

    model: Any
    tokenizer: Any
    longest: int
    """The number of tokens of a text that the network can read."""

    own_logits: Tensor | None
    """Values that replace the decoder's bias in the logits of tokens for their own terms, (vocabulary,), or None."""

    head: Head | None
    """Activation and pooling, if the checkpoint names them."""


class EncoderModule(InputModule):  # type: ignore[misc]  # mypy has no types of sentence-transformers
    """A masked language model without its decoder, the decoder, and the sliced head.

    Vectors have the terms whose ids are in ``vocabulary``, ascending, or all terms. In training ``training_length``
    tokens of a text are read, otherwise ``max_length``.
    """

    def __init__(
        self,
        base: MaskedLanguageModel,
        head: Head,
        max_length: int,
        vocabulary: Sequence[int] | None,
        training_length: int | None = None,
    ) -> None:
        super().__init__()
        if head.pooling == "sum" and not head.signed:
            remedy = f"choose {head.activation}:max"
            raise InputError("a sum over all tokens cannot be trained", where=f"head {head}", remedy=remedy)
        if max_length > base.longest:
            raise InputError(f"model.max_length must be {base.longest} or less for this model, got {max_length}")
        self.head = head
        self.max_length = max_length
        self._training_length = training_length or max_length
        self.tokenizer = base.tokenizer
        decoder = base.model.get_output_embeddings()
        self._decoder_name = next(name for name, part in base.model.named_modules() if part is decoder)
        self.model = base.model
        self.decoder = decoder  # after the model, so that named_parameters() gives tied weights their names there
        self.model.set_submodule(self._decoder_name, nn.Identity())
        self._takes_types = "token_type_ids" in signature(self.model.forward).parameters
        self.own = None if base.own_logits is None else nn.Parameter(base.own_logits)
        self.register_buffer("vocabulary", None if vocabulary is None else torch.tensor(vocabulary))

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: Any) -> dict[str, Tensor]:
        """Token ids and their mask, padded to the longest text."""
        length = self._training_length if self.training else self.max_length
        tokens = self.tokenizer(list(inputs), padding=True, truncation=True, max_length=length, return_tensors="pt")
        return {"input_ids": tokens["input_ids"], "attention_mask": tokens["attention_mask"]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        hidden, mask, weight, bias, own = self._pooled_inputs(features)
        features["sentence_embedding"] = sliced_pooled(hidden, mask, weight, bias, self.head, own)
        return features

    @torch.no_grad()  # type: ignore[untyped-decorator]  # mypy has no types of torch
    def extreme_logits(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The largest and the smallest logit of each term over the tokens of each text, both (texts, terms)."""
        was_training, extremes = self.training, []
        self.eval()
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            inputs = self._pooled_inputs(self.preprocess(texts[start : start + _TEXTS_AT_ONCE]))
            extremes.append(sliced_extremes(*inputs))
        self.train(was_training)
        highest, lowest = zip(*extremes, strict=True)
        return torch.cat(highest), torch.cat(lowest)

    def _pooled_inputs(self, features: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """The hidden states and their mask, the decoder's weights and biases, and the logits of own terms."""
        ids, mask = features["input_ids"], features["attention_mask"]
        types = {"token_type_ids": torch.zeros_like(ids)} if self._takes_types else {}
        hidden = self.model(input_ids=ids, attention_mask=mask, **types).logits
        weight, bias = self.decoder.weight, self.decoder.bias
        own = None
        if self.own is not None:
            own = own_logits(ids, mask, hidden, nn.functional.embedding(ids, weight), self.own)
        if self.vocabulary is not None:
            weight, bias = weight[self.vocabulary], bias[self.vocabulary]
            own = None if own is None else own[:, self.vocabulary]
        return hidden, mask, weight, bias, own

    def get_embedding_dimension(self) -> int:
        return len(self.decoder.bias if self.vocabulary is None else self.vocabulary)

    @property
    def max_seq_length(self) -> int:
        return self.max_length

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Writes a masked language model and a head into the folders of a SparseEncoder."""
        folder = Path(output_path)
        self.write(folder, folder / "1_SpladePooling")

    def write(self, network: Path, pooling: Path) -> None:
        """Writes the model with its tokenizer, and the head; terms outside the vocabulary weigh 0."""
        from safetensors.torch import save_file

        model, decoder, own = copy.deepcopy((self.model, self.decoder, self.own))
        model.set_submodule(self._decoder_name, decoder)
        if self.vocabulary is not None:
            others = torch.ones_like(decoder.bias, dtype=torch.bool)
            others[self.vocabulary] = False
            with torch.no_grad():  # a logit of 0 gives a weight of 0
                decoder.weight = nn.Parameter(decoder.weight.masked_fill(others[:, None], 0))
                decoder.bias = nn.Parameter(decoder.bias.masked_fill(others, 0))
                if own is not None:
                    own[others] = -math.inf
            model.config.tie_word_embeddings = False
        model.save_pretrained(network)
        self.tokenizer.save_pretrained(network)
        _write_json(network / "sentence_bert_config.json", {**_FILL_MASK, "max_seq_length": self.max_length})
        pooling.mkdir(parents=True, exist_ok=True)
        config: dict[str, Any] = {"pooling_strategy": self.head.pooling, "activation_function": self.head.activation}
        if self.head.signed:
            config["epsilon"] = self.head.epsilon
        if own is not None:
            config["own_logits"] = True
            save_file({"logits": own.detach().cpu()}, pooling / OWN_LOGITS_FILE)
        _write_json(pooling / "config.json", config)


class StaticQueryModule(SparseStaticEmbedding):  # type: ignore[misc]  # mypy has no types of sentence-transformers
    """A query encoder without a network: a learned weight of 0 or more for each token of the vocabulary, (tokens,)."""

    def __init__(self, tokenizer: Any, weight: Tensor, vocabulary: Sequence[int] | None) -> None:
        super().__init__(tokenizer, weight)
        self.register_buffer("vocabulary", None if vocabulary is None else torch.tensor(vocabulary))

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        features = super().forward(features)
        vectors = torch.relu(features["sentence_embedding"])
        features["sentence_embedding"] = vectors if self.vocabulary is None else vectors[:, self.vocabulary]
        return features

    def get_embedding_dimension(self) -> int:
        return self.num_dimensions if self.vocabulary is None else len(self.vocabulary)

    def write(self, folder: Path) -> None:
        """Writes the weights and the tokenizer like sentence-transformers. Terms outside the vocabulary weigh 0."""
        weight = torch.relu(self.weight.detach()).cpu()
        if self.vocabulary is not None:
            kept = torch.zeros_like(weight)
            kept[self.vocabulary] = weight[self.vocabulary]
            weight = kept
        weight = weight[: len(self.tokenizer.get_vocab())].contiguous()  # the size that sentence-transformers expects
        folder.mkdir(parents=True, exist_ok=True)
        SparseStaticEmbedding(self.tokenizer, weight).save(str(folder))


def write_layout(folder: Path, query: EncoderModule | StaticQueryModule, document: EncoderModule) -> None:
    """Writes a trained model in the layout of sentence-transformers: one chain of modules, or a router of two."""
    _write_json(
        folder / "config_sentence_transformers.json",
        {"model_type": "SparseEncoder", "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "dot"},
    )
    if query is document:
        document.save(str(folder))
        _write_modules(folder, [("", "Transformer"), ("1_SpladePooling", "SpladePooling")])
        return
    structure = {side: [f"{side}_0_Transformer", f"{side}_1_SpladePooling"] for side in ("query", "document")}
    if isinstance(query, StaticQueryModule):
        structure["query"] = ["query_0_SparseStaticEmbedding"]
    types = {part: _TYPES[part.rsplit("_", 1)[1]] for parts in structure.values() for part in parts}
    parameters = {"default_route": "document", "allow_empty_key": True, "route_mappings": {}}
    _write_json(folder / "router_config.json", {"types": types, "structure": structure, "parameters": parameters})
    _write_modules(folder, [("", "Router")])
    query.write(*(folder / part for part in structure["query"]))
    document.write(*(folder / part for part in structure["document"]))


def _write_modules(folder: Path, parts: Sequence[tuple[str, str]]) -> None:
    modules = [{"idx": i, "name": str(i), "path": path, "type": _TYPES[kind]} for i, (path, kind) in enumerate(parts)]
    _write_json(folder / "modules.json", modules)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
