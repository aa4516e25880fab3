"""Hybrid encoders, ``bm25+MODEL``: BM25 and models in one vector. Their terms stay separate; their scores are added.

MODEL is a model of terms, a latent model, or both: ``bm25+mini``, ``bm25+latent:FOLDER``, ``bm25+mini+latent:FOLDER``.
In the vector, the model's terms have the prefix ``PREFIX``, and latents begin with ``LATENT_SIGN``. All weights of a
document have BM25's impact scale. The query's model weights are multiplied by the *model weight*, and those of latents
by the *latent weight*, so the balance is chosen at search time, without encoding documents again. Every operator sees a
composed query as one vector. Operators that compare weights of terms, as CPT does to find the heaviest, therefore
compare how much a document weight of 1 would add to the score.
"""

from __future__ import annotations

import itertools
import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from urllib.parse import quote

from pyserini_compneg.compose.words import WordEncoder
from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder
from pyserini_compneg.encode.models import LATENT, MINI
from pyserini_compneg.encode.models.latents import LATENT_SIGN
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.files import content_digest
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
LATENT_WEIGHT = 0.05

_SIDES = {PREFIX: "model", LATENT_SIGN: "latent"}
_LATENT_PART = re.compile(rf"(^|(?<=.)\+){LATENT}(:|$)")
_SIGNS = {PREFIX: (PREFIX, quote(PREFIX)), "": (LATENT_SIGN, "%7E")}
"""For each prefix, the first character of a model's terms, and what stands in its place in words of BM25."""

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
    """The document side of BM25 and a model, or two, by the prefixes of their terms. The impact scale is BM25's."""

    def __init__(self, bm25: Bm25DocumentEncoder, models: Mapping[str, DocumentEncoder]) -> None:
        self._bm25, self._models = bm25, models
        encoders = list(models.values())
        self.impact_scale = bm25.impact_scale
        self.signed = any(model.signed for model in encoders)
        self.most_lines = encoders[0].most_lines
        self.query_tokenizer = encoders[0].query_tokenizer
        self.concepts = next((model.concepts for model in encoders if model.concepts), None)
        self.settings: Mapping[str, float | int | str] = hybrid_settings(
            [bm25.settings, *(model.settings for model in encoders)]
        )

    def stream(self, batches: Iterable[Sequence[str]]) -> Iterator[list[dict[str, float]]]:
        texts, *copies = itertools.tee(batches, 1 + len(self._models))
        streams = [model.stream(copy) for model, copy in zip(self._models.values(), copies, strict=True)]
        for *theirs, ours in zip(*streams, self._bm25.stream(texts), strict=True):
            of_texts = zip(ours, *theirs, strict=True)
            yield [joined(own, dict(zip(self._models, vectors, strict=True))) for own, *vectors in of_texts]


class HybridQueryEncoder:
    """The query side of BM25 and a model, or two.

    ``models`` has, by the prefix of its terms, each model and the number that multiplies its weights; 0 leaves it out.
    """

    def __init__(self, bm25: TokenEncoder, models: Mapping[str, tuple[TokenEncoder, float]]) -> None:
        self._bm25, self._models = bm25, models

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        vectors = [
            [scale(vector, weight) for vector in model.encode_batch(texts)] for model, weight in self._models.values()
        ]
        of_texts = zip(self._bm25.encode_batch(texts), *vectors, strict=True)
        return [joined(ours, dict(zip(self._models, theirs, strict=True))) for ours, *theirs in of_texts]

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """The words of BM25, as they are in joined vectors."""
        none: dict[str, dict[str, float]] = {prefix: {} for prefix in self._models}
        return [own and list(joined(dict.fromkeys(own, 1.0), none)) for own in self._bm25.words(texts)]

    def term_spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        spans = self._bm25.term_spans(texts)
        for prefix, (model, _) in self._models.items():
            found = model.term_spans(texts)
            spans = [
                [*ours, *(TermSpan(_model_term(prefix, term), start, end) for term, start, end in theirs)]
                for ours, theirs in zip(spans, found, strict=True)
            ]
        return spans


def hybrid_settings(parts: Sequence[Mapping[str, float | int | str]]) -> dict[str, float | int | str]:
    """The settings of BM25 and of models, in one. Two models have one hash, ``model``, of both.

    A setting that differs between two models is left out: the files of each give its own, also in an update.
    """
    models = [part for part in parts if "model" in part]
    differing = {name for part in models for name in part if any(one.get(name) != part[name] for one in models)}
    settings = {name: value for part in parts for name, value in part.items() if name not in differing}
    return settings | {"model": joint_hash([str(part["model"]) for part in models])}


def joint_hash(hashes: Sequence[str]) -> str:
    """The hash that identifies the models of an encoder."""
    return hashes[0] if len(hashes) == 1 else content_digest(*hashes, digits=16)


def joined(bm25: Mapping[str, float], models: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Joins vectors. The terms of a model get its prefix, ``PREFIX``; latents have a sign of their own, and get none.

    >>> joined({"comedi": 2.0}, {"@": {"comedy": 1.5, "##s": 0.5}, "": {"~17": 0.25}})
    {'comedi': 2.0, '@comedy': 1.5, '@##s': 0.5, '~17': 0.25}
    """
    vector = dict(bm25)
    for sign, encoded in map(_SIGNS.__getitem__, models):
        if any(term.startswith(sign) for term in vector):
            vector = {encoded + term[1:] if term[0] == sign else term: weight for term, weight in vector.items()}
    for prefix, weights in models.items():
        vector |= {_model_term(prefix, term): weight for term, weight in weights.items()}
    return vector


@lru_cache(maxsize=1 << 16)
def _model_term(prefix: str, term: str) -> str:
    return index_term(prefix + term)


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


def split_latent(model: str) -> tuple[str, str]:
    """The model of terms and the latent model that the model of an encoder names; empty if there is none.

    >>> split_latent("mini+latent:books"), split_latent("latent"), split_latent("+latent")
    (('mini', 'latent:books'), ('', 'latent'), ('+latent', ''))
    """
    found = _LATENT_PART.search(model)
    return (model[: found.start()], model[found.start() :].removeprefix("+")) if found else (model, "")


def model_parts(name: str) -> dict[str, str]:
    """The names of an encoder's models, by the prefixes of their terms in a hybrid's vectors.

    >>> model_parts("bm25+mini+latent:books"), model_parts("mini"), model_parts("bm25")
    ({'@': 'mini', '': 'latent:books'}, {'@': 'mini'}, {})

    Raises:
        EncodingError: There are two models without BM25, a hybrid without a model, a latent model that is not last, or
            a model's folder whose own name has ``+latent``.
    """
    hybrid, model = split_name(name)
    plain, latent = split_latent(model)
    if f"{plain}+".startswith(f"{LATENT}+"):
        what, remedy = "a latent model is named once, and last", f"write bm25+{LATENT}, or bm25+{MINI}+{LATENT}"
        if _has_model(plain):
            remedy = f"write ./{plain} for the folder"
        raise EncodingError(what, where=name, remedy=remedy)
    if plain not in ("", MINI) and latent and _has_model(model):
        what = f"{model} is a folder, and the +{LATENT} in its name begins the name of a latent model"
        raise EncodingError(what, where=name, remedy="rename the folder")
    if plain and latent and not hybrid:
        what = "a latent model can be added to bm25, or to bm25 and a model, but not to a model alone"
        raise EncodingError(what, where=name, remedy=f"write bm25+{name}, or rename a folder of this name")
    parts = {PREFIX: plain, "": latent}
    return {} if name == BM25 else {prefix: part for prefix, part in parts.items() if part}


def _has_model(place: str) -> bool:
    folder = Path(place).expanduser()
    return any((folder / file).is_file() for file in ("config.json", "modules.json"))


def needs_statistics(name: str) -> bool:
    """Whether an encoder weighs the terms of queries by idf, from an index: BM25, latents and hybrids.

    >>> [name for name in ("bm25", "mini", "latent:books", "bm25+mini") if needs_statistics(name)]
    ['bm25', 'latent:books', 'bm25+mini']
    """
    return name == BM25 or split_name(name)[0] or "" in model_parts(name)


def with_places(name: str, change: Callable[[str], str]) -> str:
    """The name of an encoder, with other places of its models.

    >>> with_places("bm25+mini+latent:books", str.upper)
    'bm25+mini+latent:BOOKS'
    """
    hybrid, model = split_name(name)
    plain, latent = split_latent(model)
    parts = [BM25] * hybrid
    parts += [plain if plain in (BM25, MINI) else change(plain)] * bool(plain)
    kind, colon, place = latent.partition(":")
    return "+".join([*parts, *[kind + colon + (change(place) if colon else "")] * bool(kind)])


def short_name(name: str) -> str:
    """The name of an encoder with the last parts of its models' places.

    >>> short_name("bm25+mini+latent:models/books/")
    'bm25+mini+latent:books'
    """
    return with_places(name, lambda place: Path(place).name)


def places(name: str) -> list[str]:
    """The folders, or names of the hub, of an encoder's models. Those of this package have none.

    >>> places("bm25+mini+latent:models/books"), places("bm25")
    (['models/books'], [])
    """
    parts = (part.partition(":")[2] if prefix == "" else part for prefix, part in model_parts(name).items())
    return [place for place in parts if place not in ("", MINI)]


def warn_of_english(encoder: str, language: str) -> None:
    """Warns of the models of this package with texts in another language."""
    if language != ENGLISH and (own := [one for one in model_parts(encoder).values() if one in (MINI, LATENT)]):
        said = "%s was trained on English; take bm25 alone for --language %s, or a model of that language"
        _logger.warning(said, own[0], language)


def checked_weight(weight: object, default: float = MODEL_WEIGHT) -> float:
    """The weight of a model or of latents, or the default for None.

    Raises:
        EncodingError: The weight is negative or not a finite number.
    """
    if weight is None:
        return default
    if not is_number(weight) or not 0 <= weight < math.inf:
        raise EncodingError(f"the weight of a model must be a finite number, 0 or more, got {weight!r}")
    return float(weight)
