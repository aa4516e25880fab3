"""One side of a model, documents' or queries', from texts to vectors."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyserini_compneg.encode.export import export_model, read_report
from pyserini_compneg.encode.models import ModelOptions, NeuralSide, Side, StaticSide
from pyserini_compneg.encode.models.batching import SparseModel, encode_tokens
from pyserini_compneg.encode.models.onnx_model import OnnxModel
from pyserini_compneg.encode.models.tokenizer import TextTokenizer, TokenIds, index_term
from pyserini_compneg.support.errors import EncodingError, in_one_line, install_hint
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import is_number


class SideEncoder:
    """Texts in, vectors out, for one side of a model.

    Args:
        tokenizer: Its tokenizer.
        model: The network; None where each token of a text has a weight of its own, however often it occurs.
        weights: The weights of terms. With a network, its vectors have only terms of the text, times these weights.
        batch_size: The texts that the network takes at once.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        model: SparseModel | None,
        weights: Mapping[str, float] | None,
        batch_size: int = 1,
    ) -> None:
        self._tokenizer = tokenizer
        self._model = model
        self.weights = weights or {}
        self._weighs = weights is not None
        self._batch_size = batch_size

    def tokenize(self, texts: Sequence[str]) -> TokenIds:
        """The tokens of texts, for :meth:`encode_tokens`. It may run in another thread while the model runs."""
        return self._tokenizer(texts)

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vectors of texts."""
        return self.encode_tokens(self.tokenize(texts).ids)

    def encode_tokens(self, ids: Sequence[Sequence[int]]) -> list[dict[str, float]]:
        """The vectors of tokenised texts."""
        terms, weights = self._tokenizer.terms, self.weights
        own = [dict.fromkeys(terms[number] for number in text) for text in ids] if self._weighs else []
        if self._model is None:
            return [{term: weights[term] for term in text if weights.get(term)} for text in own]
        vectors = encode_tokens(self._model, ids, terms, self._batch_size)
        if not self._weighs:
            return vectors
        return [
            {term: value * weights[term] for term, value in vector.items() if term in text and weights.get(term)}
            for vector, text in zip(vectors, own, strict=True)
        ]

    def own_terms(self, texts: Sequence[str]) -> list[list[str]]:
        """The terms of each text's own tokens, each once, without special tokens and the prompt."""
        terms, special = self._tokenizer.terms, self._tokenizer.special
        tokens = self._tokenizer(texts, prompted=False).ids
        return [[terms[number] for number in dict.fromkeys(ids) if number not in special] for ids in tokens]


def load_side(side: Side, options: ModelOptions) -> SideEncoder:
    """Loads a model, exporting it first where that was not done before.

    Raises:
        EncodingError: A checkpoint that cannot be used.
        OutputError: An export that cannot be written.
    """
    if options.max_length is not None and options.max_length > side.longest:
        said = f"can read {side.longest} tokens of a text, not --max-length {options.max_length}"
        raise EncodingError(f"{side.folder}: {said}")
    length = options.max_length or side.max_length
    if isinstance(side, StaticSide):
        tokenizer = TextTokenizer(side.folder, length, False, side.prompt)
        return SideEncoder(tokenizer, None, _weights(side.weights, tokenizer))
    own = load_side(side.own_terms, options).weights if side.own_terms else None
    # In int8 the texts of a batch would share a scale, and the vector of a text would depend on the others.
    batch_size = 1 if options.precision == "int8" else options.batch_size
    return SideEncoder(*_network(side, options, length), own, batch_size)


def _network(side: NeuralSide, options: ModelOptions, length: int) -> tuple[TextTokenizer, SparseModel]:
    if options.backend == "onnx":
        folder = export_model(side, options.runs_in)
        width = read_report(folder)["width"]
        model: SparseModel = OnnxModel(folder, options.device)
    else:
        from pyserini_compneg.encode.models.torch_model import TorchModel

        folder = side.folder
        model = network = TorchModel(side, options.device, half=options.precision == "fp16")
        width = network.module.width
    as_transformers = options.backend == "torch"
    tokenizer = TextTokenizer(
        folder, length, prompt=side.prompt, lowercase=side.lowercase, as_transformers=as_transformers
    )
    tokenizer.fit(width, str(side.folder))
    return tokenizer, model


def _weights(file: Path | None, tokenizer: TextTokenizer) -> dict[str, float]:
    """The weights of terms, 0 or more: a negative one would lower documents that have a word of the query."""
    if file is None:
        return {term: 1.0 for number, term in enumerate(tokenizer.terms) if number not in tokenizer.special}
    weights = _json_weights(file) if file.suffix == ".json" else _tensor_weights(file, tokenizer.terms)
    for term, weight in weights.items():
        if not is_number(weight) or not 0 <= weight <= sys.float_info.max:
            said = f"the weight of {shown(term)} must be a finite number, 0 or more, got {shown(weight)}"
            raise EncodingError(f"{file}: {said}")
    return {term: float(weight) for term, weight in weights.items()}


def _json_weights(file: Path) -> dict[str, float]:
    with in_one_line(EncodingError, f"{file}: expected JSON of tokens and their weights"):
        values = json.loads(file.read_text(encoding="utf-8"))
        return {index_term(token): weight for token, weight in values.items()}


def _tensor_weights(file: Path, terms: Sequence[str]) -> dict[str, float]:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise EncodingError(f"{file}: needs the package safetensors; {install_hint('onnx')}") from None
    with in_one_line(EncodingError, f"{file}: cannot be read"):
        weights = load_file(file)["weight"].astype("float64").tolist()
    if not isinstance(weights, list) or len(weights) < len(terms) or isinstance(weights[0], list):
        raise EncodingError(f"{file}: expected a weight for each of {len(terms):,} tokens")
    return dict(zip(terms, weights, strict=False))
