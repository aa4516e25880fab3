"""Score fusion, of scores as they are and of scaled ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_compneg.compose import Linear, ScoringNode, quantised
from pyserini_compneg.compose.composer import atom_vectors
from pyserini_compneg.compose.fusion import fused
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import atoms
from pyserini_compneg.reproduce.methods.method import (
    Context,
    check_settings,
    check_unsigned,
    naming,
    search_composed,
    topic_expression,
)
from pyserini_compneg.search import Hit


class ScoreFusion:
    """Ranks by the exact scores of the atoms, fused.

    Its queries hold factors between units, so they are not shown as weights of terms.

    Args:
        context: The searcher.
        settings: There are none.

    Raises:
        ProtocolError: A setting, or an index of signed documents.
    """

    name = "score-fusion"
    scaled = False

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings(self.name, settings, ())
        check_unsigned(self.name, context.searcher)
        self._context = context

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Fuses and searches."""
        return search_composed(self._context, topics, self._fuse(topics), k)

    def _fuse(self, topics: Sequence[Topic]) -> list[ScoringNode]:
        searcher = self._context.searcher
        expressions = [topic_expression(topic) for topic in topics]
        texts = list(dict.fromkeys(text for expression in expressions for text in atoms(expression)))
        vectors = atom_vectors(texts, searcher.encoder)
        scores = None
        if self.scaled:
            queries = [quantised(Linear(vectors[text]), searcher.weight_scale) for text in texts]
            scores = dict(zip(texts, self._context.searcher.best_scores(queries, self._context.threads), strict=True))
        manifest = searcher.reader.manifest
        impact_scale = manifest.impact_scale if manifest else None
        nodes = []
        for topic, expression in zip(topics, expressions, strict=True):
            with naming(topic):
                nodes.append(fused(expression, vectors, impact_scale, scores, searcher.weight_scale))
        return nodes


class ScaledScoreFusion(ScoreFusion):
    """Ranks by the exact scores of the atoms, each divided by the atom's best one, fused."""

    name = "score-fusion-scaled"
    scaled = True
