"""Seismic, an approximate engine for learned sparse vectors, to compare with.

It takes one vector a query, reads the lists of the heaviest terms only, and skips blocks of these. Negative weights
count in the scores of what it reads. It holds the collection in memory.

Source: Bruch, Nardini, Rulli, Venturini, Efficient Inverted Indexes for Approximate Retrieval over Learned Sparse
Representations, SIGIR 2024; MIT licence; the package ``pyseismic-lsr``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from synthetic import TERMS, VOCABULARY, blocks, docid

from pyserini_compneg.vectors import SparseVector

QUERY_CUTS = (10, 25)
"""The lists it may read: ten, as its guidelines have it, or those of all positive terms."""

_HEAP_FACTOR = 0.8
"""From its guidelines; its index has its default settings."""


def available() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("seismic") is not None


class Seismic:
    """An index of the collection in memory.

    Args:
        documents: The number of documents.
        threads: Threads that build.

    Attributes:
        build_seconds: The time that the build took, the documents at hand.
    """

    def __init__(self, documents: int, threads: int) -> None:
        import seismic

        dataset = seismic.SeismicDataset(dim=VOCABULARY)
        for block in blocks(documents):
            count = len(block.terms)
            order = np.argsort(block.terms, axis=1)
            dataset.add_documents_by_id(
                [docid(number) for number in range(block.first, block.first + count)],
                np.take_along_axis(block.terms, order, axis=1).ravel().astype(np.int64),
                np.take_along_axis(block.impacts, order, axis=1).ravel().astype(np.float32),
                np.arange(0, count * TERMS + 1, TERMS),
            )
        start = time.perf_counter()
        with _silence():
            self._index = seismic.SeismicIndex.build_from_dataset(dataset, num_threads=threads)
        self.build_seconds = time.perf_counter() - start
        self._text = seismic.get_seismic_string()

    def prepared(self, weights: SparseVector, k: int, query_cut: int) -> Callable[[], list[tuple[str, float, str]]]:
        """A search, ready to run; it gives the query's id, the score and the docid of each hit."""
        terms = np.array([term.removeprefix("t") for term in weights], dtype=self._text)
        values = np.array(list(weights.values()), dtype=np.float32)
        return partial(self._index.search, "", terms, values, k, query_cut, _HEAP_FACTOR, sorted=False)


@contextmanager
def _silence() -> Iterator[None]:
    """Sends what its build prints, past Python, to nowhere."""
    sys.stdout.flush()
    saved, sink = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(sink)
