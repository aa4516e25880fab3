"""Hybrid encoders, ``bm25+MODEL``: BM25 and a model in one vector. Their terms stay separate; their scores are added.

In the vector, the model's terms have the prefix ``PREFIX``. All weights of a document have BM25's impact scale. The
query's model weights are multiplied by the *model weight*, so the balance is chosen at search time, without encoding
documents again. Every operator sees a composed query as one vector. Operators that compare weights of terms, as CPT
does to find the heaviest, therefore compare how much a document weight of 1 would add to the score.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from urllib.parse import quote

from pyserini_compneg.compose.words import WordEncoder
from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder
from pyserini_compneg.encode.models import MINI
from pyserini_compneg.encode.models.latents import LATENT_SIGN
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.vectors import (
    COMPLEMENT_SIGN,
    PAIR_SIGN,
    TermSpan,
    index_term,
    is_number,
    is_pseudo_term,
    scale,
)

if TYPE_CHECKING:
    from pyserini_compneg.encode.models.tokenizer import TextTokenizer

BM25 = "bm25"
HYBRID = f"{BM25}+"
"""The prefix of the name of a hybrid encoder. The model's name follows."""

PREFIX = "@"
"""The prefix of each term of the model. Lucene splits words at this sign, so no BM25 term has it, except in languages
that are split at white space only. There it is percent-encoded."""

MODEL_WEIGHT = 0.2

_SIDES = {PREFIX: "model", LATENT_SIGN: "latent"}

_logger = logging.getLogger(__name__)


class DocumentEncoder(Protocol):
    """Makes vectors of documents' texts.

    Attributes:
        impact_scale: Impact = round(weight * impact_scale), unless the user gives another scale.
        settings: All settings that the vectors depend on, for the index's manifest.
        signed: Whether weights may be negative.
        most_lines: The number of documents to encode together; None for all that are read together.
        query_tokenizer: The tokenizer that an index keeps for queries without a network; None if there is none.
        concepts: The names of the latents, which an index keeps for explanations; None if no terms are latents.
    """

    impact_scale: float
    settings: Mapping[str, float | int | str]
    signed: bool
    most_lines: int | None

    @property
    def query_tokenizer(self) -> TextTokenizer | None: ...

    @property
    def concepts(self) -> Sequence[str] | None: ...

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        """The vectors of batches of texts, in the order of the texts."""


@runtime_checkable
class TokenEncoder(WordEncoder, Protocol):
    """An encoder of queries that knows the terms of a text's tokens."""

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        """The terms of the tokens of each text, and their places in it."""


class HybridDocumentEncoder:
    """The document side of BM25 and a model. The impact scale is BM25's."""

    def __init__(self, bm25: Bm25DocumentEncoder, model: DocumentEncoder) -> None:
        self._bm25, self._model = bm25, model
        self.impact_scale = bm25.impact_scale
        self.signed, self.most_lines = model.signed, model.most_lines
        self.query_tokenizer, self.concepts = model.query_tokenizer, model.concepts
        self.settings: Mapping[str, float | int | str] = {**bm25.settings, **model.settings}

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        texts, same_texts = itertools.tee(batches)
        for theirs, ours in zip(self._model.stream(texts), self._bm25.stream(same_texts), strict=True):
            yield [joined(*pair) for pair in zip(ours, theirs, strict=True)]


class HybridQueryEncoder:
    """The query side of BM25 and a model. The model's weights are multiplied by ``model_weight``; 0 is BM25 alone."""

    def __init__(self, bm25: TokenEncoder, model: TokenEncoder, model_weight: float) -> None:
        self._bm25, self._model, self._weight = bm25, model, model_weight

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        pairs = zip(self._bm25.encode_batch(texts), self._model.encode_batch(texts), strict=True)
        return [joined(ours, theirs, self._weight) for ours, theirs in pairs]

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """The words of BM25, as they are in joined vectors."""
        return [own and list(joined(dict.fromkeys(own, 1.0), {})) for own in self._bm25.words(texts)]

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        spans, found = self._bm25.term_spans(texts), self._model.term_spans(texts)
        return [
            [*ours, *(TermSpan(_model_term(term), start, end) for term, start, end in theirs)]
            for ours, theirs in zip(spans, found, strict=True)
        ]


def joined(bm25: Mapping[str, float], model: Mapping[str, float], factor: float = 1.0) -> dict[str, float]:
    """Joins two vectors. The second is multiplied by a factor, and its terms get the prefix ``PREFIX``.

    >>> joined({"comedi": 2.0}, {"comedy": 3.0, "##s": 1.0}, 0.5)
    {'comedi': 2.0, '@comedy': 1.5, '@##s': 0.5}
    """
    if any(term.startswith(PREFIX) for term in bm25):
        bm25 = {quote(term[0]) + term[1:] if term.startswith(PREFIX) else term: weight for term, weight in bm25.items()}
    return {**bm25, **{_model_term(term): weight for term, weight in scale(model, factor).items()}}


@lru_cache(maxsize=1 << 16)
def _model_term(term: str) -> str:
    return index_term(PREFIX + term)


def side(term: str) -> str:
    """The space of a term: ``bm25``, ``model`` or ``latent``. Pairs of several, and many pairs in one, give ``both``.

    >>> side("comedi"), side("@comedy"), side("~17"), side("@comedy∩spi")
    ('bm25', 'model', 'latent', 'both')
    """
    terms = term.removeprefix(COMPLEMENT_SIGN).split(PAIR_SIGN) if is_pseudo_term(term) else [term]
    sides = {_SIDES.get(one[:1], BM25) for one in terms}
    return "both" if len(sides) > 1 or " " in term else sides.pop()


def split_name(name: str) -> tuple[bool, str]:
    """Whether an encoder's name is a hybrid's, and the name of the model. Other names are returned whole.

    >>> split_name("bm25+naver/splade-v3"), split_name("naver/splade-v3")
    ((True, 'naver/splade-v3'), (False, 'naver/splade-v3'))

    Raises:
        EncodingError: The hybrid's name lacks a model.
    """
    if not name.startswith(HYBRID):
        return False, name
    if not (model := name.removeprefix(HYBRID)).strip():
        raise EncodingError(f"{name!r} names no model", remedy="write bm25+FOLDER, or bm25+ and a name of the hub")
    return True, model


def warn_of_english(model: str, language: str) -> None:
    """Warns of the model of this package with texts in another language."""
    if model == MINI and language != ENGLISH:
        said = "mini was trained on English; take bm25 alone for --language %s, or a model of that language"
        _logger.warning(said, language)


def checked_weight(weight: object) -> float:
    """The model weight, or the default weight for None.

    Raises:
        EncodingError: The weight is negative or not a finite number.
    """
    if weight is None:
        return MODEL_WEIGHT
    if not is_number(weight) or not 0 <= weight < math.inf:
        raise EncodingError(f"the model weight must be a finite number, 0 or more, got {weight!r}")
    return float(weight)
