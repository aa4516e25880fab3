r"""Reranking: a model reads the first documents of a ranking, and its scores join the first ones.

The model reads each atom alone. The scores r of the atoms, from 0 to 1 among the documents, are composed: the larger
score for A ∪ B, for A ∩ B the mean of the smaller score and of the mean, and r(A) − r(B) / 2 for A \ B, with the
largest of several negatives. Rankings do not depend on the zero and the unit of the model's scores, nor on those of the
first scores. Set identities come first, as with the operators. A model of late interaction scores B in A \ B without
the tokens that A has, too.

docs/how-to/reranking.md has the figures, and lab/notes/reranking.md how these rules were chosen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pyserini_compneg.baselines.late_interaction import LateInteraction
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    conjunction,
    without_differences,
    without_exclusions,
)
from pyserini_compneg.documents.source_documents import text_of
from pyserini_compneg.expression import Atom, Expression, Union, atoms
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.search.ranked_hits import as_expressions, ranked
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError
from pyserini_compneg.support.json_objects import stored_object
from pyserini_compneg.support.options import PART
from pyserini_compneg.support.progress import progress, warn_of
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from pyserini_compneg.baselines.pair_scorers import PairScorer

RERANKED = 100
SHARE = 0.15
"""The default share of the model, chosen on queries of five datasets (lab/notes/reranking.md)."""

_EXCLUDED = 0.5
"""What r(B) counts in A NOT B. A whole r(B) loses .005 on QUEST."""

_PAIRS = 512
"""The number of pairs that are scored between updates of the progress bar."""


class Part(NamedTuple):
    """A text that a model scores, and the texts whose tokens do not count in it."""

    text: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reranked:
    """Ranks the first documents of another method again, with a model that reads their texts.

    The model scores each atom, and :func:`composed_score` composes the scores. A document's score is the sum of a share
    of the composed score and of the rest of the first score. All scores are scaled to 0 for the least and 1 for the
    best of these documents. The other documents follow in their first order, with scores below 0.

    Attributes:
        model: The model, from :func:`~pyserini_compneg.baselines.pair_scorers.pair_scorer`.
        share: The share of the model, above 0; 1 for the model alone.
        hits: How many documents are ranked again.
        first: The other method; None for operators.
    """

    model: PairScorer
    share: float = SHARE
    hits: int = RERANKED
    first: Method | None = None

    def __post_init__(self) -> None:
        checked_count("hits", self.hits)
        if not PART.has(self.share):
            raise ArgumentError(f"share must be {PART.what}, got {shown(self.share)}")

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        expressions = list(
            map(without_exclusions, as_expressions(request.queries))
        )  # excluded documents are not among the hits
        first = searcher.batch_search(
            request.queries,
            request.qids,
            max(self.hits, request.k),
            request.threads,
            filter=request.filters,
            method=self.first,
            remove_query=request.remove_query,
        )
        heads = {qid: [hit.docid for hit in hits[: self.hits]] for qid, hits in first.items()}
        documents = document_texts(searcher, [docid for docids in heads.values() for docid in docids])
        queries = dict(zip(first, expressions, strict=True))
        parts = {qid: [part for part, _ in signed_parts(expression)] for qid, expression in queries.items()}
        pairs = dict.fromkeys(
            (self._read(part), docid) for qid, docids in heads.items() for part in parts[qid] for docid in docids
        )
        scores = _scored(self.model, list(pairs), documents)
        rankings = {}
        for qid, hits in first.items():
            of_parts = [_scaled([scores[docid][self._read(part)] for docid in heads[qid]]) for part in parts[qid]]
            of_documents = (dict(zip(parts[qid], row, strict=True)) for row in zip(*of_parts, strict=True))
            values = [composed_score(queries[qid], one.__getitem__) for one in of_documents]
            rankings[qid] = ranked(self._ranked_again(hits, values), request.k)
        return rankings

    def _read(self, part: Part) -> Part:
        """The part as the model can read it: only late interaction has tokens."""
        return part if isinstance(self.model, LateInteraction) else Part(part.text)

    def _ranked_again(self, hits: Sequence[Hit], values: Sequence[float]) -> Iterator[Hit]:
        """The hits with their new scores. ``values`` are the model's scores of the first ones."""
        firsts = _scaled([hit.score for hit in hits], len(values))
        for hit, first, value in zip(hits, firsts, _scaled(values), strict=False):
            yield Hit(hit.docid, (1 - self.share) * first + self.share * value)
        for hit, first in zip(hits[len(values) :], firsts[len(values) :], strict=True):
            yield Hit(hit.docid, first - 1)  # below the ones above, of which the least may have 0


def composed_score(expression: Expression, score: Callable[[Part], float], without: tuple[str, ...] = ()) -> float:
    """A document's score for an expression without NOT!, composed from the document's scores for the atoms.

    >>> from pyserini_compneg.expression import parse
    >>> scores = {"a": 0.5, "b": 0.75, "c": 0.125, "d": 0.875}
    >>> [composed_score(parse(text), lambda part: scores[part.text]) for text in ("a AND b NOT c", "a OR d")]
    [0.5, 0.875]
    """
    match expression:
        case Atom(text):
            return score(Part(text, without))
        case Union():
            return max(composed_score(member, score, without) for member in alternatives(expression))
    parts = conjunction(expression)
    kept = [composed_score(member, score, without) for member in parts.kept]
    seen = _seen(parts, without)
    excluded = max((composed_score(member, score, seen) for member in parts.excluded), default=0.0)
    return (fmean(kept) + min(kept)) / 2 - _EXCLUDED * excluded


def signed_parts(
    expression: Expression, without: tuple[str, ...] = (), is_wanted: bool = True
) -> Iterator[tuple[Part, bool]]:
    """The parts that :func:`composed_score` asks for, and whether the query wants each or excludes it.

    >>> from pyserini_compneg.expression import parse
    >>> [(part.text, part.without, wanted) for part, wanted in signed_parts(parse("a AND b NOT c"))]
    [('a', (), True), ('b', (), True), ('c', ('a', 'b'), False)]
    """
    match expression:
        case Atom(text):
            yield Part(text, without), is_wanted
            return
        case Union():
            for member in alternatives(expression):
                yield from signed_parts(member, without, is_wanted)
            return
    parts = conjunction(expression)
    for member in parts.kept:
        yield from signed_parts(member, without, is_wanted)
    for member in parts.excluded:
        yield from signed_parts(member, _seen(parts, without), not is_wanted)


def _seen(parts: Conjunction, without: tuple[str, ...]) -> tuple[str, ...]:
    """The texts whose tokens do not count in what is excluded: those of the atoms that are wanted beside it."""
    wanted = [text for member in parts.kept for text in atoms(without_differences(member))]
    return tuple(dict.fromkeys([*without, *wanted]))


def _scaled(values: Sequence[float], count: int | None = None) -> list[float]:
    """The values, scaled so that the least of the first ``count``, by default of all, becomes 0, and the greatest 1."""
    least, greatest = min(values[:count], default=0.0), max(values[:count], default=0.0)
    return [(value - least) / ((greatest - least) or 1.0) for value in values]


def _scored(
    model: PairScorer, pairs: Sequence[tuple[Part, str]], documents: Mapping[str, str]
) -> dict[str, dict[Part, float]]:
    """The model's scores of each document, by the parts that it is paired with."""
    scores: defaultdict[str, dict[Part, float]] = defaultdict(dict)
    with progress(None, len(pairs), " pairs", "reranking") as bar:
        for start in range(0, len(pairs), _PAIRS):
            check_cancelled()
            some = pairs[start : start + _PAIRS]
            texts = [(part.text, documents[docid]) for part, docid in some]
            if isinstance(model, LateInteraction):
                found = model.scores(texts, [part.without for part, _ in some])
            else:
                found = model.scores(texts)
            for (part, docid), score in zip(some, map(float, found), strict=True):
                if not math.isfinite(score):
                    what = f"scores document {shown(docid)} with {score} for {shown(part.text)}"
                    raise EncodingError(what, where=model.name, remedy="its weights are damaged")
                scores[docid][part] = score
            bar.update(len(some))
    return scores


def document_texts(searcher: SignedImpactSearcher, docids: Sequence[str]) -> dict[str, str]:
    """The stored texts of documents, by their ids."""
    known = list(dict.fromkeys(docids))
    folder = searcher.reader.folder
    texts = {docid: _text(folder, docid, raw) for docid, raw in zip(known, searcher.reader.raws(known), strict=True)}
    empty = {docid: shown(docid) for docid, text in texts.items() if not text.strip()}
    if texts and len(empty) == len(texts):
        what = "reranking reads the documents' texts, and the stored sources have none (contents, or title and text)"
        raise IndexFormatError(f"{what}, such as {docids[0]!r}", where=folder)
    warn_of("document", "documents", "has no text, so the model reads an empty one", empty, list(texts))
    return texts


def _text(folder: Path, docid: str, raw: str | None) -> str:
    """The text in a document's stored source; empty if it has no text."""
    if raw is None:
        what = "reranking reads the documents' texts, which are not stored"
        raise IndexFormatError(what, where=folder, remedy="build it with index --store-raw")
    record = stored_object(raw)
    return raw if record is None else text_of(record, f"{folder}: {docid}") or ""
