"""One side of a model, documents' or queries', from texts to vectors."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.encode.export import export_model, read_report
from pyserini_compneg.encode.models import ModelOptions, NeuralSide, Side, StaticSide
from pyserini_compneg.encode.models.batching import SparseModel, encode_tokens
from pyserini_compneg.encode.models.onnx_model import OnnxModel
from pyserini_compneg.encode.models.tokenizer import TextTokenizer, TokenIds, index_term
from pyserini_compneg.errors import EncodingError


class SideEncoder(ABC):
    """Texts in, vectors out, for one side of a model."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer

    @abstractmethod
    def encode_tokens(self, ids: Sequence[Sequence[int]]) -> list[dict[str, float]]:
        """The vectors of tokenised texts."""

    def tokenize(self, texts: Sequence[str]) -> TokenIds:
        """The tokens of texts, for :meth:`encode_tokens`. It may run in another thread while the model runs."""
        return self._tokenizer(texts)

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vectors of texts."""
        return self.encode_tokens(self.tokenize(texts).ids)

    def own_terms(self, texts: Sequence[str]) -> list[list[str]]:
        """The terms of each text's own tokens, each once, without special tokens and the prompt."""
        return [self._terms_of(ids) for ids in self._tokenizer(texts, prompted=False).ids]

    def _terms_of(self, ids: Sequence[int]) -> list[str]:
        tokenizer = self._tokenizer
        return [tokenizer.terms[number] for number in dict.fromkeys(ids) if number not in tokenizer.special]


def load_side(side: Side, options: ModelOptions) -> SideEncoder:
    """Loads a model, exporting it first where that was not done before.

    Raises:
        EncodingError: A checkpoint that cannot be used.
        OutputError: An export that cannot be written.
    """
    return StaticEncoder(side, options) if isinstance(side, StaticSide) else NeuralEncoder(side, options)


class NeuralEncoder(SideEncoder):
    """Runs a masked language model.

    Args:
        side: The checkpoint's part.
        options: How it is run.
    """

    def __init__(self, side: NeuralSide, options: ModelOptions) -> None:
        length = _length(side, options)
        # In int8 the texts of a batch would share a scale, and the vector of a text would depend on the others.
        self._batch_size = 1 if options.precision == "int8" else options.batch_size
        if options.backend == "onnx":
            folder = export_model(side, options.precision)
            width = read_report(folder)["width"]
            self._model: SparseModel = OnnxModel(folder, options.device)
            super().__init__(TextTokenizer(folder, length, prompt=side.prompt, lowercase=side.lowercase))
        else:
            from pyserini_compneg.encode.models.torch_model import TorchModel

            super().__init__(
                TextTokenizer(side.folder, length, prompt=side.prompt, lowercase=side.lowercase, as_transformers=True)
            )
            model = TorchModel(side, options.device, half=options.precision == "fp16")
            self._model, width = model, model.module.width
        self._tokenizer.fit(width, str(side.folder))
        self._static = StaticEncoder(side.own_terms, options) if side.own_terms else None

    def encode_tokens(self, ids: Sequence[Sequence[int]]) -> list[dict[str, float]]:
        """See :class:`SideEncoder`."""
        vectors = encode_tokens(self._model, ids, self._tokenizer.terms, self._batch_size)
        if self._static is None:
            return vectors
        weights = self._static.weights
        return [
            {term: value * weights[term] for term, value in vector.items() if term in own and weights.get(term)}
            for vector, own in zip(vectors, map(self._term_set, ids), strict=True)
        ]

    def _term_set(self, ids: Sequence[int]) -> set[str]:
        return {self._tokenizer.terms[number] for number in ids}


class StaticEncoder(SideEncoder):
    """Looks up the weight of each token of a text. How often the token occurs does not count.

    Without a file of weights, each token weighs 1, and special tokens weigh nothing.

    Args:
        side: The checkpoint's part.
        options: Only the length is used.

    Attributes:
        weights: The weights of terms.
    """

    def __init__(self, side: StaticSide, options: ModelOptions) -> None:
        super().__init__(TextTokenizer(side.folder, _length(side, options), False, side.prompt))
        if side.weights is None:
            self.weights = dict.fromkeys(self._terms_of(range(len(self._tokenizer.terms))), 1.0)
        elif side.weights.suffix == ".json":
            self.weights = _json_weights(side.weights)
        else:
            self.weights = _tensor_weights(side.weights, self._tokenizer.terms)

    def encode_tokens(self, ids: Sequence[Sequence[int]]) -> list[dict[str, float]]:
        """See :class:`SideEncoder`."""
        terms, weights = self._tokenizer.terms, self.weights
        own = ([terms[number] for number in dict.fromkeys(text)] for text in ids)
        return [{term: weights[term] for term in text if weights.get(term)} for text in own]


def _length(side: Side, options: ModelOptions) -> int:
    if options.max_length is not None and options.max_length > side.longest:
        raise EncodingError(
            f"{side.folder}: can read {side.longest} tokens of a text, not --max-length {options.max_length}"
        )
    return options.max_length or side.max_length


def _json_weights(file: Path) -> dict[str, float]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        weights = {index_term(token): float(weight) for token, weight in values.items()}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as cause:
        raise EncodingError(f"{file}: expected JSON of tokens and their weights: {cause}") from None
    return _checked(weights, file)


def _tensor_weights(file: Path, terms: Sequence[str]) -> dict[str, float]:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise EncodingError(f"{file}: needs the package safetensors; pip install 'pyserini_compneg[onnx]'") from None
    try:
        weights = load_file(file)["weight"].astype("float64").tolist()
    except Exception as cause:  # of the library, of its own class
        raise EncodingError(f"{file}: cannot be read: {cause}") from None
    if not isinstance(weights, list) or len(weights) < len(terms) or isinstance(weights[0], list):
        raise EncodingError(f"{file}: expected a weight for each of {len(terms):,} tokens")
    return _checked(dict(zip(terms, weights, strict=False)), file)


def _checked(weights: dict[str, float], file: Path) -> dict[str, float]:
    """Checks that weights are 0 or more: a negative one would lower documents that have a word of the query."""
    for term, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise EncodingError(f"{file}: the weight of {term!r} must be a finite number, 0 or more, got {weight}")
    return weights
