r"""Reranking: a model reads the first documents of a ranking and ranks them again.

The model reads the wording of the whole query, as rerankers do, or each atom alone. Then the scores of the atoms are
composed: the larger score for A ∪ B, the smaller score for A ∩ B, and the difference for A \ B, with the largest of
several negatives. Rankings by these three do not depend on the zero and the unit of the model's scores. Set identities
come first, as with the operators. A model of late interaction scores B in A \ B without the tokens that A has, too.

Chosen on dev splits with all-MiniLM-L6-v2: for ∩, the smaller score was better than the product on FilmSets; the mean
of both forms was better than each form on ExcluIR. docs/how-to/reranking.md has the figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyserini_compneg.baselines.late_interaction import LateInteraction
from pyserini_compneg.compose.queries import parsed_queries
from pyserini_compneg.compose.rewrite import (
    Conjunction,
    alternatives,
    conjunction,
    without_differences,
    without_exclusions,
)
from pyserini_compneg.documents.source_documents import text_of
from pyserini_compneg.expression import Atom, Expression, Union, atoms, verbalise
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.search.ranked_hits import as_expressions, ranked
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError
from pyserini_compneg.support.json_objects import stored_object
from pyserini_compneg.support.progress import progress, warn_of
from pyserini_compneg.support.terminal import shown

if TYPE_CHECKING:
    from pyserini_compneg.baselines.pair_scorers import PairScorer

READS = BOTH, TEXT, ATOMS = ("both", "text", "atoms")
"""The forms of a query that a model can read, the default first."""

RERANKED = 100
_PAIRS = 512
"""The number of pairs that are scored between updates of the progress bar."""


class Part(NamedTuple):
    """A text that a model scores, and the texts whose tokens do not count in it."""

    text: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reranked:
    """Ranks the first documents of another method again, with a model that reads their texts. Other documents drop out.

    Attributes:
        model: The model, from :func:`~pyserini_compneg.baselines.pair_scorers.pair_scorer`.
        by: ``text``: by the wording of the whole query. ``atoms``: by the composed scores of its atoms. ``both``: by
            the mean of the two. All three agree for a query of one atom.
        hits: How many documents are ranked again.
        first: The other method; None for operators.
    """

    model: PairScorer
    by: str = BOTH
    hits: int = RERANKED
    first: Method | None = None

    def __post_init__(self) -> None:
        checked_count("hits", self.hits)
        if self.by not in READS:
            raise ArgumentError(f"by must be one of {', '.join(READS)}, got {shown(self.by)}")

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        expressions = list(
            map(without_exclusions, as_expressions(request.queries))
        )  # excluded documents are not among the hits
        readings = [query.reading for query in parsed_queries(request.queries)]
        wordings = [
            reading.text if reading else verbalise(one) for reading, one in zip(readings, expressions, strict=True)
        ]  # a decomposed query has an original text
        first = searcher.batch_search(
            request.queries,
            request.qids,
            self.hits,
            request.threads,
            filter=request.filters,
            method=self.first,
            remove_query=request.remove_query,
        )
        documents = document_texts(searcher, [hit.docid for hits in first.values() for hit in hits])
        read = {qid: self._read(wording, one) for qid, wording, one in zip(first, wordings, expressions, strict=True)}
        pairs = dict.fromkeys((part, hit.docid) for qid, hits in first.items() for part in read[qid] for hit in hits)
        scores = _scored(self.model, list(pairs), documents)
        rankings = {}
        for (qid, hits), wording, expression in zip(first.items(), wordings, expressions, strict=True):
            docids = [hit.docid for hit in hits]
            values = [self._value(wording, expression, scores[docid].__getitem__) for docid in docids]
            rankings[qid] = ranked(map(Hit, docids, values), request.k)
        return rankings

    def _read(self, wording: str, expression: Expression) -> list[Part]:
        """The texts of a query for the model."""
        parts = [part for part, _ in signed_parts(expression)] if self.by != TEXT else []
        return [Part(wording)] * (self.by != ATOMS) + list(map(self._part, parts))

    def _value(self, wording: str, expression: Expression, score: Callable[[Part], float]) -> float:
        parts = [score(Part(wording))] if self.by != ATOMS else []
        parts += [composed_score(expression, lambda part: score(self._part(part)))] if self.by != TEXT else []
        return sum(parts) / len(parts)

    def _part(self, part: Part) -> Part:
        """The part as the model can read it: only late interaction has tokens."""
        return part if isinstance(self.model, LateInteraction) else Part(part.text)


def composed_score(expression: Expression, score: Callable[[Part], float], without: tuple[str, ...] = ()) -> float:
    """A document's score for an expression without NOT!, composed from the document's scores for the atoms.

    >>> from pyserini_compneg.expression import parse
    >>> scores = {"a": 0.5, "b": 0.625, "c": 0.125, "d": 0.75}
    >>> [composed_score(parse(text), lambda part: scores[part.text]) for text in ("a AND b NOT c", "a OR d")]
    [0.375, 0.75]
    """
    match expression:
        case Atom(text):
            return score(Part(text, without))
        case Union():
            return max(composed_score(member, score, without) for member in alternatives(expression))
    parts = conjunction(expression)
    wanted = min(composed_score(member, score, without) for member in parts.kept)
    seen = _seen(parts, without)
    return wanted - max((composed_score(member, score, seen) for member in parts.excluded), default=0.0)


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
