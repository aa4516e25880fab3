"""All documents ranked by late interaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from pyserini_compneg.baselines.late_interaction import LateInteraction, TokenVectors, without_tokens
from pyserini_compneg.baselines.reranking import composed_score, signed_parts
from pyserini_compneg.expression import Expression
from pyserini_compneg.search.ranked_hits import ranked
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.support.progress import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 1024
"""Documents whose tokens are compared at once: 24 MB, with 32 tokens of a query and 180 of a document."""


class TokenIndex:
    """The vectors of all documents' tokens in memory, 4 bytes a number. They are made at the first search.

    Args:
        docids: The documents.
        texts: Gives their texts, in the same order.
        model: The model.
    """

    def __init__(self, docids: Sequence[str], texts: Callable[[], Iterator[str]], model: LateInteraction) -> None:
        self._docids, self._texts, self._model = docids, texts, model

    def search(self, expressions: Sequence[Expression], k: int) -> list[list[Hit]]:
        """Ranks all documents by their scores for expressions without NOT!, composed as in :class:`Reranked`."""
        parts = [part for expression in expressions for part, _ in signed_parts(expression)]
        texts = list(dict.fromkeys(text for part in parts for text in (part.text, *part.without)))
        queries = dict(zip(texts, self._model.encode_queries(texts), strict=True))
        return [ranked(map(Hit, self._docids, self._composed(one, queries)), k) for one in expressions]

    def _composed(self, expression: Expression, queries: Mapping[str, TokenVectors]) -> Iterator[float]:
        scores = {}
        for part, _ in signed_parts(expression):
            query = without_tokens(queries[part.text], [queries[text] for text in part.without])
            scores[part] = self._scores(query).tolist()
        for place in range(len(self._docids)):
            of_document = {part: column[place] for part, column in scores.items()}
            yield composed_score(expression, of_document.__getitem__)

    def _scores(self, query: TokenVectors) -> NDArray[np.float64]:
        """The score of each document, as :meth:`LateInteraction.scores` gives it."""
        import numpy as np

        products = ((query.vectors @ vectors.T, starts) for vectors, starts in self._blocks)
        best = [np.maximum.reduceat(product, starts, axis=1) for product, starts in products]
        return self._model.total(np.concatenate(best, axis=1))

    @cached_property
    def _blocks(self) -> list[tuple[NDArray[np.float32], list[int]]]:
        """The vectors of blocks of documents, and where each document begins."""
        import numpy as np

        blocks, texts = [], self._texts()
        with progress(None, len(self._docids), " docs", "encoding") as bar:
            while batch := list(islice(texts, _BLOCK)):
                found = [document.vectors for document in self._model.encode_documents(batch)]
                # a document without tokens has a vector of zeros, to which nothing is similar
                vectors = [one if len(one) else np.zeros((1, one.shape[1]), np.float32) for one in found]
                starts = [0, *accumulate(map(len, vectors))][:-1]
                blocks.append((np.concatenate(vectors), starts))
                bar.update(len(batch))
        return blocks
