"""BM25's scores of a collection in memory, which mini is trained to be added to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pyserini_compneg.encode.bm25 import Bm25DocumentEncoder, lucene_idf, term_counts
from pyserini_compneg.lucene import analyze


class Bm25Scores:
    """The scores that an index of ``--encoder bm25`` gives, without its rounding."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [count for count in term_counts(texts) if count]
        vectors = Bm25DocumentEncoder(sum(counts) / max(1, len(counts))).encode_batch(texts)
        self._columns = {term: number for number, term in enumerate(sorted(set().union(*vectors)))}
        self._documents = self._matrix(vectors)
        frequencies = np.bincount(self._documents.indices, minlength=len(self._columns))
        self._postings = self._documents.T.tocsr()
        self._idf = [lucene_idf(int(frequency), len(counts)) for frequency in frequencies]

    def __call__(self, queries: Sequence[str], documents: Sequence[int] | None = None) -> NDArray[np.float32]:
        """The scores of all documents, or of those with some numbers, (queries, documents).

        >>> (Bm25Scores(["spy films", "war films"])(["spy", "a war", "love"]) > 0).astype(int).tolist()
        [[1, 0], [0, 1], [0, 0]]
        """
        vectors = [
            {term: count * self._idf[self._columns[term]] for term, count in Counter(terms).items()}
            for terms in ([term for term in terms if term in self._columns] for terms in analyze(queries))
        ]
        postings = self._postings if documents is None else self._documents[documents].T
        scores: NDArray[np.float32] = (self._matrix(vectors) @ postings).toarray()
        return scores

    def _matrix(self, vectors: Sequence[Mapping[str, float]]) -> csr_array:
        bounds = np.cumsum([0, *map(len, vectors)])
        columns = [self._columns[term] for vector in vectors for term in vector]
        weights = np.array([weight for vector in vectors for weight in vector.values()], np.float32)
        return csr_array((weights, columns, bounds), shape=(len(vectors), len(self._columns)))
