"""An encoder of composed queries for Pyserini's own searcher, for the queries that it can run."""

from __future__ import annotations

from pathlib import Path

from pyserini_compneg.compose import WEIGHT_SCALE, Max, Operators, Product, QueryEncoder
from pyserini_compneg.compose.lowering import FACTORED
from pyserini_compneg.compose.token_form import stock_obstacle, whole_weights
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.search.searcher import SignedImpactSearcher

_REMEDIES = {
    Product: "give cpt='materialised' for an index that holds pairs, or Operators(intersection='maxpool')",
    Max: "give Operators(union='maxpool')",
}
_OURS = "search with SignedImpactSearcher, or with SearchCollection -generator ComposedQueryGenerator"


class ComposedQueryEncoder:
    """Composes expressions for ``LuceneImpactSearcher(index, query_encoder)`` of Pyserini.

    That searcher only calls ``encode``, so this is no subclass of Pyserini's ``QueryEncoder``, whose import loads torch
    and takes seconds. That searcher takes only positive whole weights. It also leaves out terms that every document
    has; our search keeps them, so scores and ranks can differ. Make the encoder before you import anything of Pyserini;
    then it finds a Java that is recent enough.

    Args:
        index_dir: The index that is to be searched.
        encoder: As for :class:`SignedImpactSearcher`.
        operators: How union, intersection and difference are composed.
        cpt: The form of conjunctions.
        weight_scale: Query weights are round(w · weight_scale).

    Raises:
        CompNegError: As :class:`SignedImpactSearcher`.
    """

    def __init__(
        self,
        index_dir: str | Path,
        encoder: str | Path | QueryEncoder | None = None,
        operators: Operators | None = None,
        cpt: str = FACTORED,
        weight_scale: float = WEIGHT_SCALE,
    ) -> None:
        self._searcher = SignedImpactSearcher(index_dir, encoder, operators, cpt, weight_scale)

    def encode(self, text: str) -> dict[str, int]:
        """The weights of the terms of a query.

        Args:
            text: An expression.

        Raises:
            QuerySyntaxError: A text that is no expression.
            EncodingError: An atom that the encoder cannot encode.
            CompositionError: A query that Pyserini's searcher cannot run; the message says what can.
        """
        (node,) = self._searcher.compose([text])
        if (obstacle := stock_obstacle(node)) is not None:
            kind, what = obstacle
            remedy = f"{_REMEDIES[kind]}; or {_OURS}" if kind else _OURS
            raise CompositionError(f"query {text!r}: LuceneImpactSearcher cannot run {what}; {remedy}")
        return whole_weights(node)
