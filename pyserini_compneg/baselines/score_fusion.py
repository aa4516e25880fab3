"""Score fusion: a baseline that searches for each atom alone, and adds, multiplies and subtracts the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyserini_compneg.baselines.fusion import fused, fused_lists
from pyserini_compneg.compose import Linear, ScoringNode, Sum, quantised
from pyserini_compneg.compose.sources import atom_vectors
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.search.ranked_hits import (
    SearchRequest,
    as_expressions,
    ranked,
    ranked_hits,
    warn_of_no_result,
)
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import IndexFormatError
from pyserini_compneg.support.gathered import gathered_warnings
from pyserini_compneg.support.vectors import SparseVector


@dataclass(frozen=True, slots=True)
class ScoreFusion:
    """Ranks by the scores of the atoms, fused: + for ∪, · for ∩ and − for a difference.

    Attributes:
        scaled: Whether the scores of each atom are scaled to 0 to 1 first, its best one being 1. The score that becomes
            0 is that of a document without the atom's terms, or with ``depth`` that of the last document in the list.
        depth: None fuses the exact scores of all documents. A number fuses lists: the first so many documents of each
            atom, of which a document has the score 0 where a list lacks it. With a filter these are the first documents
            that it allows, so scores may differ from those without the filter.

    Source: Krasakis, Yates, Kanoulas, Section 4.2.2. They rank for each query independently and fuse the scores, and do
    not say how long the lists are, nor what a missing document counts.
    """

    scaled: bool = False
    depth: int | None = None

    def __post_init__(self) -> None:
        """Checks the number."""
        if self.depth is not None:
            checked_count("depth", self.depth)

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        """As for every method.

        Raises:
            IndexFormatError: Also an index of signed documents, where no score has 0 as its lower end.
            QueryError: Also a composed query, or one that cannot be fused.
        """
        expressions, reader = as_expressions(request.queries), searcher.reader
        if reader.manifest is not None and reader.manifest.signed:
            raise IndexFormatError(
                f"{reader.folder} holds negative weights of documents, for which score fusion is not defined"
            )
        texts = list(dict.fromkeys(text for expression in expressions for text in atoms(expression)))
        vectors = atom_vectors(texts, searcher.encoder)
        if self.depth is None:
            nodes = self._trees(searcher, expressions, vectors, request.threads)
            return searcher.batch_search(nodes, request.qids, request.k, request.threads, filter=request.filters)
        rankings = self._of_lists(searcher, expressions, vectors, request)
        asked = [Sum(tuple(Linear(vectors[text]) for text in atoms(expression))) for expression in expressions]
        warn_of_no_result(reader, request.qids, rankings, asked, request.filters)
        return dict(zip(request.qids, rankings, strict=True))

    def _trees(
        self,
        searcher: SignedImpactSearcher,
        expressions: Sequence[Expression],
        vectors: Mapping[str, SparseVector],
        threads: int,
    ) -> list[ScoringNode]:
        """Scoring trees that fuse the scores of all documents. They hold factors between units."""
        scores = None
        if self.scaled:
            nodes = [quantised(Linear(vector), searcher.weight_scale) for vector in vectors.values()]
            scores = dict(zip(vectors, searcher.best_scores(nodes, threads), strict=True))
        scale = _impact_scale(searcher)
        return [fused(expression, vectors, scale, scores, searcher.weight_scale) for expression in expressions]

    def _of_lists(
        self,
        searcher: SignedImpactSearcher,
        expressions: Sequence[Expression],
        vectors: Mapping[str, SparseVector],
        request: SearchRequest,
    ) -> list[list[Hit]]:
        """The rankings of fused lists. Each atom is searched for once with each filter."""
        assert self.depth is not None
        asked = list(zip(expressions, request.filters, strict=True))
        pairs = list(dict.fromkeys((text, filter) for expression, filter in asked for text in atoms(expression)))
        nodes = [quantised(Linear(vectors[text]), searcher.weight_scale) for text, _ in pairs]
        names, filters = [text for text, _ in pairs], [filter for _, filter in pairs]
        with gathered_warnings():
            found = ranked_hits(searcher.reader, nodes, names, self.depth, request.threads, filters)
        lists = {pair: _min_max(hits) if self.scaled else dict(hits) for pair, hits in zip(pairs, found, strict=True)}
        scale = _impact_scale(searcher)
        unit = 1.0 if self.scaled else scale and scale * searcher.weight_scale
        rankings = []
        for expression, filter in asked:
            own = {text: lists[text, filter] for text in atoms(expression)}
            rankings.append(ranked(map(Hit._make, fused_lists(expression, own, unit).items()), request.k))
        return rankings


def _impact_scale(searcher: SignedImpactSearcher) -> float | None:
    return searcher.reader.manifest.impact_scale if searcher.reader.manifest else None


def _min_max(hits: Sequence[Hit]) -> dict[str, float]:
    """The scores of a list, the first one scaled to 1 and the last one to 0. All are 1 where all are equal."""
    if not hits:
        return {}
    high, low = hits[0].score, hits[-1].score
    return {docid: (score - low) / (high - low) if high > low else 1.0 for docid, score in hits}
