"""A full scan with scipy: scores every document for a composed query. Our search has to find the same."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from synthetic import TERMS, VOCABULARY, blocks, docid, term_names

from pyserini_compneg.compose import Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.support.vectors import SparseVector

_PEAK_BYTES_A_POSTING = 16
"""While rows are turned into columns: both hold a number of 4 bytes and an impact of 2, and some are copied."""

Scores: TypeAlias = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""For each document its score, and whether it matches."""


class TopDocuments(NamedTuple):
    """The first hits, best first; equal scores by docid."""

    docids: list[str]
    scores: NDArray[np.float32]


class BruteForce:
    """The collection as a matrix of columns, a column a term: an inverted index without compression."""

    def __init__(self, documents: int) -> None:
        terms = np.empty(documents * TERMS, dtype=np.int32)
        impacts = np.empty(documents * TERMS, dtype=np.uint16)
        for block in blocks(documents):
            part = slice(TERMS * block.first, TERMS * (block.first + len(block.terms)))
            terms[part], impacts[part] = block.terms.ravel(), block.impacts.ravel()
        rows = np.arange(0, documents * TERMS + 1, TERMS)
        start = time.perf_counter()
        self._columns = sparse.csr_matrix((impacts, terms, rows), shape=(documents, VOCABULARY)).tocsc()
        self.load_seconds = time.perf_counter() - start
        arrays = (self._columns.data, self._columns.indices, self._columns.indptr)
        self.resident_bytes = sum(array.nbytes for array in arrays)
        self._numbers = {name: number for number, name in enumerate(term_names())}

    @staticmethod
    def needed_bytes(documents: int) -> int:
        """The memory that it takes to load a collection."""
        return documents * TERMS * _PEAK_BYTES_A_POSTING

    def search(self, node: ScoringNode, k: int) -> TopDocuments:
        """The k best of the documents that match."""
        values, matched = self._score(node)
        scores = np.where(matched, values, -math.inf).astype(np.float32)
        least = np.partition(scores, -k)[-k] if k < len(scores) else -math.inf
        found = np.flatnonzero((scores >= least) & matched)
        best = found[np.lexsort((found, -scores[found]))[:k]]
        return TopDocuments([docid(number) for number in best.tolist()], scores[best])

    def _score(self, node: ScoringNode) -> Scores:
        match node:
            case Linear(weights):
                values = self._sum({term: weight for term, weight in weights.items() if weight > 0})
                matched = values > 0
                negative = {term: weight for term, weight in weights.items() if weight < 0}
                return (values + self._sum(negative) if negative else values), matched
            case Product(operands):
                values = np.prod([self._sum(operand, 1 / len(operands)) for operand in operands], axis=0)
                return values, values > 0
            case Max(children):
                scored = [self._score(child) for child in children]
                best = np.max([np.where(matched, values, -math.inf) for values, matched in scored], axis=0)
                return best, np.any([matched for _, matched in scored], axis=0)
            case Sum(children):
                scored = [self._score(child) for child in children]
                total = np.sum([values for values, _ in scored], axis=0)
                return total, np.any([matched for _, matched in scored], axis=0)

    def _sum(self, weights: SparseVector, power: float = 1.0) -> NDArray[np.float64]:
        """Σ (w·d)^power for all documents."""
        part = self._columns[:, [self._numbers[term] for term in weights]]
        factors = np.array(list(weights.values()))
        if power != 1:
            part, factors = part.astype(float).power(power), factors**power
        values: NDArray[np.float64] = part @ factors
        return values
