r"""Reranking: a model reads the first documents of a ranking, and its scores join the first ones.

The model reads each atom alone. The scores r of the atoms, from 0 to 1 among the documents, are composed: the larger
score for A ∪ B, for A ∩ B the mean of the smaller score and of the mean, and r(A) − r(B) / 2 for A \ B, with the
largest of several negatives. Rankings do not depend on the zero and the unit of the model's scores, nor on those of the
first scores. Set identities come first, as with the operators.

docs/how-to/reranking.md has the figures, and lab/notes/reranking.md how these rules were chosen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from pyserini_compneg.compose.rewrite import alternatives, conjunction, without_exclusions
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
SHARE = 0.2
"""The default share of the model, chosen on train halves of five datasets (lab/notes/reranking.md)."""

_EXCLUDED = 0.5
"""What r(B) counts in A NOT B, chosen in the same way."""

_PAIRS = 512
"""The number of pairs that are scored between updates of the progress bar."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """Ranks the first documents of another method again, with a model that reads their texts.

    The model scores each atom, and :func:`composed_score` composes the scores. A document's score is the sum of a share
    of the composed score and of the rest of the first score. All scores are scaled to 0 for the least and 1 for the
    best of these documents. The other documents follow in their first order, with scores from 0 down.

    Attributes:
        model: The model, from :func:`~pyserini_compneg.baselines.pair_scorers.pair_scorer`.
        share: The share of the model, above 0; at 1 the first scores only order documents that the model ranks alike.
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
        documents = _texts(searcher, [docid for docids in heads.values() for docid in docids])
        read = dict(zip(first, expressions, strict=True))
        pairs = dict.fromkeys(
            (text, docid) for qid, docids in heads.items() for text in atoms(read[qid]) for docid in docids
        )
        scores = _scored(self.model, list(pairs), documents)
        rankings = {}
        for qid, hits in first.items():
            texts = atoms(read[qid])
            of_atoms = [_scaled([scores[docid][text] for docid in heads[qid]]) for text in texts]
            of_documents = (dict(zip(texts, row, strict=True)) for row in zip(*of_atoms, strict=True))
            values = [composed_score(read[qid], one.__getitem__) for one in of_documents]
            rankings[qid] = ranked(self._ranked_again(hits, values), request.k)
        return rankings

    def _ranked_again(self, hits: Sequence[Hit], values: Sequence[float]) -> Iterator[Hit]:
        """The hits with their new scores. ``values`` are the model's scores of the first ones."""
        firsts = _scaled([hit.score for hit in hits], len(values))
        for hit, first, value in zip(hits, firsts, _scaled(values), strict=False):
            yield Hit(hit.docid, (1 - self.share) * first + self.share * value)
        yield from map(Hit, (hit.docid for hit in hits[len(values) :]), firsts[len(values) :])


def composed_score(expression: Expression, score: Callable[[str], float]) -> float:
    """A document's score for an expression without NOT!, composed from the document's scores for the atoms.

    >>> from pyserini_compneg.expression import parse
    >>> scores = {"a": 0.5, "b": 0.75, "c": 0.125, "d": 0.875}
    >>> composed_score(parse("a AND b NOT c"), scores.__getitem__), composed_score(parse("a OR d"), scores.__getitem__)
    (0.5, 0.875)
    """
    match expression:
        case Atom(text):
            return score(text)
        case Union():
            return max(composed_score(member, score) for member in alternatives(expression))
    parts = conjunction(expression)
    kept = [composed_score(member, score) for member in parts.kept]
    wanted = (fmean(kept) + min(kept)) / 2
    return wanted - _EXCLUDED * max((composed_score(member, score) for member in parts.excluded), default=0.0)


def _scaled(values: Sequence[float], count: int | None = None) -> list[float]:
    """The values, scaled so that the least of the first ``count``, by default of all, becomes 0, and the greatest 1."""
    least, greatest = min(values[:count], default=0.0), max(values[:count], default=0.0)
    return [(value - least) / ((greatest - least) or 1.0) for value in values]


def _scored(
    model: PairScorer, pairs: Sequence[tuple[str, str]], documents: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """The model's scores of each document, by the texts that it is paired with."""
    scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
    with progress(None, len(pairs), " pairs", "reranking") as bar:
        for start in range(0, len(pairs), _PAIRS):
            check_cancelled()
            some = pairs[start : start + _PAIRS]
            found = model.scores([(text, documents[docid]) for text, docid in some])
            for (text, docid), score in zip(some, map(float, found), strict=True):
                if not math.isfinite(score):
                    what = f"scores document {shown(docid)} with {score} for {shown(text)}"
                    raise EncodingError(what, where=model.name, remedy="its weights are damaged")
                scores[docid][text] = score
            bar.update(len(some))
    return scores


def _texts(searcher: SignedImpactSearcher, docids: Sequence[str]) -> dict[str, str]:
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
