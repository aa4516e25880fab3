"""Encodes texts with one side of a model, for documents or for queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyserini_compneg.encode.export import export_model, read_report, static_tokenizer
from pyserini_compneg.encode.models import ModelOptions, NeuralSide, Side, StaticSide, static_weights
from pyserini_compneg.encode.models.batching import SparseModel, encode_tokens
from pyserini_compneg.encode.models.checkpoint import LONG
from pyserini_compneg.encode.models.latents import LatentHead
from pyserini_compneg.encode.models.loading import check_packages
from pyserini_compneg.encode.models.onnx_model import OnnxModel
from pyserini_compneg.encode.models.tokenizer import TextTokenizer, TokenIds
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.vectors import TermSpan


class SideEncoder:
    """Turns texts into vectors, with one side of a model.

    Without a network, each token of a text has the weight of its term, regardless of its frequency. With a network and
    weights, a vector has only terms of the text, times these weights. ``columns`` are the terms of the network's
    vectors, if they are not the tokens.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        model: SparseModel | None,
        weights: Mapping[str, float] | None,
        batch_size: int = 1,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._columns = tokenizer.terms if columns is None else columns
        self._model = model
        self.weights = weights or {}
        self._weighs = weights is not None
        self._batch_size = batch_size

    def tokenize(self, texts: Sequence[str]) -> TokenIds:
        """The tokens of texts, for :meth:`encode_tokens`. Another thread may tokenize while the model runs."""
        return self._tokenizer(texts)

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        return self.encode_tokens(self.tokenize(texts).ids)

    def encode_tokens(self, ids: Sequence[Sequence[int]]) -> list[dict[str, float]]:
        terms, weights = self._tokenizer.terms, self.weights
        own = [dict.fromkeys(terms[number] for number in text) for text in ids] if self._weighs else []
        if self._model is None:
            return [{term: weights[term] for term in text if weights.get(term)} for text in own]
        vectors = encode_tokens(self._model, ids, self._columns, self._batch_size)
        if not self._weighs:
            return vectors
        return [
            {term: value * weights[term] for term, value in vector.items() if term in text and weights.get(term)}
            for vector, text in zip(vectors, own, strict=True)
        ]

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        return self._tokenizer.spans(texts)

    def own_terms(self, texts: Sequence[str]) -> list[list[str]]:
        """The distinct terms of each text's own tokens, without special tokens and the prompt."""
        terms, special = self._tokenizer.terms, self._tokenizer.special
        tokens = self._tokenizer(texts, prompted=False).ids
        return [[terms[number] for number in dict.fromkeys(ids) if number not in special] for ids in tokens]


def load_side(side: Side, options: ModelOptions, kept: Path | None = None) -> SideEncoder:
    """Loads one side of a model. The onnx backend exports it first if necessary.

    ``kept`` is the tokenizer of queries that an index keeps; see :func:`static_tokenizer`.
    """
    if options.max_length is not None and options.max_length > side.longest:
        said = f"can read {side.longest} tokens of a text, not --max-length {options.max_length}"
        raise EncodingError(said, where=side.folder)
    length = options.max_length or side.max_length
    if isinstance(side, StaticSide):
        tokenizer = static_tokenizer(side, length, kept)
        return SideEncoder(tokenizer, None, static_weights(side, tokenizer))
    own = static_weights(side.own_terms, static_tokenizer(side.own_terms, kept=kept)) if side.own_terms else None
    # In int8 the texts of a batch would share a scale, and the vector of a text would depend on the others.
    batch_size = 1 if options.precision == "int8" else options.batch_size
    columns = side.head.terms if isinstance(side.head, LatentHead) else None
    return SideEncoder(*_network(side, options, length), own, batch_size, columns)


def _network(side: NeuralSide, options: ModelOptions, length: int) -> tuple[TextTokenizer, SparseModel]:
    if options.backend == "onnx":
        folder = export_model(side, options.runs_in)
        report = read_report(folder)
        width = report["width"]
        # In int8 a batch is one text. Several threads help a short one little, and long ones together take much memory.
        side_by_side = options.runs_in == "int8" and length <= LONG
        model: SparseModel = OnnxModel(folder, options.device, report.get("unpadded") is True, side_by_side)
    else:
        check_packages("torch")
        from pyserini_compneg.encode.networks import TorchModel

        folder = side.folder
        model = network = TorchModel(side, options.device, half=options.precision == "fp16")
        width = network.module.width
    tokenizer = TextTokenizer(
        folder,
        length,
        side.special_tokens,
        side.prompt,
        side.lowercase,
        as_transformers=options.backend == "torch",
        arguments=side.arguments,
    )
    if not isinstance(side.head, LatentHead):  # whose columns are no tokens
        tokenizer.fit(width, str(side.folder))
    return tokenizer, model
