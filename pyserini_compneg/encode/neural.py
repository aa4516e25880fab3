"""Encoders of queries and of documents with a model of the hub."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pyserini_compneg.encode.cached import VectorCache
from pyserini_compneg.encode.export import found_export, static_tokenizer
from pyserini_compneg.encode.hybrid import joint_hash
from pyserini_compneg.encode.models import (
    Checkpoint,
    ModelOptions,
    NeuralSide,
    Side,
    StaticSide,
    model_hash,
    static_weights,
)
from pyserini_compneg.encode.models.cache import content_hash, transformers_major
from pyserini_compneg.encode.models.latents import LatentHead
from pyserini_compneg.encode.models.options import checked_ablation
from pyserini_compneg.encode.models.tokenizer import TOKENIZER_FILE, TextTokenizer, TokenIds
from pyserini_compneg.encode.sides import SideEncoder, load_side
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.files import cache_home
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import TermSpan, positive_part

IMPACT_SCALE = 256 / 5
"""Pyserini's and Anserini's scale for SPLADE: impact = round(weight / 5 * 256)."""

_LIGHT = 0.7
"""A document with a text often lacks a light token of the text in its vector, so a text with fewer words excludes more.
With 0.5, 43 % of FilmSets' dev queries had an excluded text in the first ten hits of splade-tiny, with 0.7, 2 %. Chosen
among 0.5, 0.6, 0.7, 0.8 and 1 on dev queries of FilmSets, NegConstraint and ExcluIR and train queries of QUEST: a
larger share loses more relevant documents."""

_MOST_TEXTS = 512
"""The most texts that are encoded together."""
_MOST_CHARACTERS = 1 << 20
"""The most characters of texts that are encoded together, about 262,144 tokens. A killed ``encode`` loses no more of
long texts."""
_TOKEN = 4
"""The characters of a token, about."""
_logger = logging.getLogger(__name__)
_LOADED: WeakValueDictionary[Any, SideEncoder] = WeakValueDictionary()
"""The networks for queries that are in use, so an index that is opened again need not load the same one again."""


def latent_head(checkpoint: Checkpoint) -> LatentHead | None:
    """The head of a latent model; None for other models."""
    side = checkpoint.document
    return side.head if isinstance(side, NeuralSide) and isinstance(side.head, LatentHead) else None


def encoder_hash(checkpoints: Iterable[Checkpoint]) -> str:
    """The hash of an encoder's models. An index identifies its encoder by this hash."""
    return joint_hash(list(map(checkpoint_hash, checkpoints)))


def checkpoint_hash(checkpoint: Checkpoint) -> str:
    """The hash of the side that encodes documents."""
    side = checkpoint.document
    if isinstance(side, StaticSide):
        raise EncodingError("has no network for documents, so it cannot index them", where=checkpoint.name)
    return model_hash(side)


def document_settings(checkpoint: Checkpoint, options: ModelOptions | None) -> Mapping[str, float | int | str]:
    """The settings that determine the vectors of documents, for the manifest. The model is not loaded."""
    options = (options or ModelOptions()).for_side(checkpoint.document)
    return {
        "model": checkpoint_hash(checkpoint),
        "precision": options.runs_in,
        "max_length": options.max_length or checkpoint.document.max_length,
        **({"top_terms": options.top_terms} if options.top_terms is not None else {}),
        **({"threshold": options.threshold} if options.threshold else {}),
        **({"head": str(options.head)} if options.head else {}),
    }


class ModelQueryEncoder:
    """Encodes queries. Each text is encoded once; its vector is cached in a file that processes share."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        options: ModelOptions | None = None,
        ablation: str | None = None,
        kept: Path | None = None,
    ) -> None:
        options, ablation = (options or ModelOptions()).for_side(checkpoint.query), checked_ablation(ablation)
        if ablation not in ("none", "no-weighting") and latent_head(checkpoint):
            what = "is a latent model, whose terms are no tokens of the query"
            raise EncodingError(what, where=checkpoint.name, remedy=f"leave out --ablation {ablation}")
        self.name = checkpoint.name
        self._side = checkpoint.query
        self._kept = None if ablation == "doc-only" else kept
        if ablation == "doc-only":
            side = checkpoint.query
            lengths = side.max_length, side.longest
            self._side = StaticSide(side.folder, None, *lengths, lowercase=side.lowercase, arguments=side.arguments)
        self._ablation = ablation
        self._options = options
        loading = replace(options, top_terms=None, threshold=0.0)  # these only prune finished vectors
        self._key = (
            (model_hash(self._side), self._side, loading, self._kept) if isinstance(self._side, NeuralSide) else None
        )
        self._loaded = _LOADED.get(self._key)
        self._cache: VectorCache | None = None
        if not isinstance(self._side, NeuralSide):
            self._encoder()

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        texts = checked_list("texts", texts)
        distinct = list(dict.fromkeys(texts))
        vectors = dict(zip(distinct, self._ablated(distinct), strict=True))
        return [dict(vectors[text]) for text in texts]

    def words(self, texts: Sequence[str]) -> list[list[str] | None]:
        """The terms of each text's own tokens, without those that weigh little, such as "in"; None if there are none.

        A term that weighs less than ``_LIGHT`` of the heaviest of them is no word.
        """
        words: list[list[str] | None] = []
        for own, vector in zip(self._encoder().own_terms(texts), self.encode_batch(texts), strict=True):
            weights = positive_part({term: vector.get(term, 0.0) for term in own})
            least = _LIGHT * max(weights.values(), default=0.0)
            words.append([term for term, weight in weights.items() if weight >= least] or None)
        return words

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        return self._encoder().term_spans(texts)

    def _ablated(self, texts: Sequence[str]) -> list[dict[str, float]]:
        vectors = self._full(texts)
        if self._ablation == "no-expansion":
            own = map(set, self._encoder().own_terms(texts))
            vectors = [
                {term: weight for term, weight in vector.items() if term in terms}
                for vector, terms in zip(vectors, own, strict=True)
            ]
        vectors = [self._options.pruned(vector) for vector in vectors]
        if self._ablation == "no-weighting":
            vectors = [{term: math.copysign(1.0, weight) for term, weight in vector.items()} for vector in vectors]
        return vectors

    def _full(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The complete vectors of the model. Texts that are not cached are encoded in one call."""
        cache = self._open_cache()
        known = cache.get(texts) if cache else {}
        unknown = [text for text in texts if text not in known]
        if unknown:
            encoder = self._encoder()
            tokens = encoder.tokenize(unknown)
            self._warn_of_cuts(unknown, tokens.cut)
            made = dict(zip(unknown, encoder.encode_tokens(tokens.ids), strict=True))
            known |= made
            if cache := self._open_cache():
                cache.put(made)
        return [known[text] for text in texts]

    def _encoder(self) -> SideEncoder:
        if self._loaded is None:
            self._loaded = load_side(self._side, self._options, self._kept)
            if self._key:
                _LOADED[self._key] = self._loaded
        return self._loaded

    def _warn_of_cuts(self, texts: Sequence[str], cut: Sequence[bool]) -> None:
        if longer := [text for text, is_cut in zip(texts, cut, strict=True) if is_cut]:
            _logger.warning(
                "%d of %d queries have more than %d tokens, and are cut off there; the first is %s",
                len(longer),
                len(texts),
                self._options.max_length or self._side.max_length,
                shown(longer[0]),
            )

    def _open_cache(self) -> VectorCache | None:
        """The cache of vectors, also named after the tokenizer; None without a network, or before an export is made."""
        if self._cache is None and isinstance(self._side, NeuralSide):
            side, options = self._side, self._options
            length, precision = options.max_length or side.max_length, options.runs_in
            export = found_export(side, precision) if options.backend == "onnx" else None
            if export is None and options.backend == "onnx":
                return None
            split_by = content_hash([export / TOKENIZER_FILE], {}) if export else f"transformers{transformers_major()}"
            name = f"{model_hash(side)}-{precision}-{options.backend}-{length}-{split_by}.sqlite"
            self._cache = VectorCache(cache_home() / "queries" / name)
        return self._cache


class ModelDocumentEncoder:
    """Encodes documents. A blank text has an empty vector. ``most_lines`` documents are sorted by length together."""

    impact_scale = IMPACT_SCALE
    most_lines: int | None = _MOST_TEXTS
    concepts = None

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions | None = None) -> None:
        side = checkpoint.document
        options = (options or ModelOptions()).for_side(side)
        self.settings = document_settings(checkpoint, options)
        self._options = options
        self.signed = isinstance(side, NeuralSide) and side.head.signed
        self.query_tokenizer = _query_tokenizer(checkpoint.query)
        self._encoder = load_side(side, options)

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        return next(self.stream([texts]))

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        """The vectors of batches of texts, in the order of the texts. While a batch is encoded, the next is tokenised.

        Small batches, such as those of small files and of long texts, are encoded together: texts are sorted by length,
        so little padding is computed.
        """
        longest = _TOKEN * int(self.settings["max_length"])
        cut = 0
        waiting: deque[tuple[list[int], Future[TokenIds]]] = deque()
        with ThreadPoolExecutor(1, "tokenizer") as pool:
            for group in chain(_groups(batches, longest), [None]):
                if group is not None:
                    sizes, texts = list(map(len, group)), list(chain.from_iterable(group))
                    waiting.append((sizes, pool.submit(self._tokenize, texts)))
                ahead = 0 if group is None else 1  # this group is tokenised while those before it are encoded
                while len(waiting) > ahead:
                    sizes, future = waiting.popleft()
                    tokens = future.result()
                    cut += sum(tokens.cut)
                    vectors = map(self._options.pruned, self._encoder.encode_tokens(tokens.ids))
                    yield from (list(islice(vectors, size)) for size in sizes)
        if cut:
            length = self.settings["max_length"]
            _logger.warning("%d documents have more than %s tokens, and are cut off there", cut, length)

    def _tokenize(self, texts: Sequence[str]) -> TokenIds:
        """The tokens of texts; a blank text has no tokens."""
        tokens = self._encoder.tokenize(texts)
        ids = [ids if text and not text.isspace() else [] for text, ids in zip(texts, tokens.ids, strict=True)]
        return TokenIds(ids, tokens.cut)


def _query_tokenizer(side: Side) -> TextTokenizer | None:
    """The tokenizer of queries that no network encodes, or of weights that multiply a network's vectors; else None.

    Weights of queries' tokens that no search could use are refused here, before documents are encoded.
    """
    static = side if isinstance(side, StaticSide) else side.own_terms
    if static is None:
        return None
    tokenizer = static_tokenizer(static)
    static_weights(static, tokenizer)
    return tokenizer


def _groups(batches: Iterable[Sequence[str]], longest: int) -> Iterator[list[list[str]]]:
    """Batches in a row with up to _MOST_TEXTS texts and _MOST_CHARACTERS together, or a larger batch alone.

    ``longest`` is the number of characters that are read of a text, about.
    """
    group: list[list[str]] = []
    count = characters = 0
    for batch in batches:
        texts = checked_list("texts", batch)
        size = sum(min(len(text), longest) for text in texts)
        if group and (count + len(texts) > _MOST_TEXTS or characters + size > _MOST_CHARACTERS):
            yield group
            group, count, characters = [], 0, 0
        group.append(texts)
        count, characters = count + len(texts), characters + size
    if group:
        yield group
