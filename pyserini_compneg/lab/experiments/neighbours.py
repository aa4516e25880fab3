"""The nearest neighbours of a word: the words that occur in the same documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any

from pyserini_compneg.eval.term_frequencies import words_of

COUNT = 10
LEAST_DOCUMENTS = 5
"""A word of fewer documents is no neighbour: it would be near by chance."""

MOST_SHARE = 0.1
"""A word of a larger share of the documents, such as "the", is no neighbour: it says nothing about a meaning."""


class WordNeighbours:
    """A space of words. A word's vector has the documents in which it occurs. Near words have a high cosine.

    A result that avoids a word but not its meaning still has the word's neighbours (Widdows 2003, Section 4.1). Widdows
    took the vectors of a model; these are counted in the documents.

    Args:
        texts: The documents.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        import numpy as np
        from scipy.sparse import csr_matrix

        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(word, len(numbers)) for word in set(words_of(text))] for text in texts]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
        incidence = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(rows), len(numbers)))
        self._numbers, self._words = numbers, list(numbers)
        self._documents = np.asarray(incidence.sum(axis=0)).ravel()
        self._by_word = incidence.T.tocsr()
        self._common = self._documents > MOST_SHARE * len(rows)
        self._eligible = (self._documents >= LEAST_DOCUMENTS) & ~self._common

    def is_common(self, word: str) -> bool:
        """Whether a word is in too many documents to say anything about a meaning."""
        return word in self._numbers and bool(self._common[self._numbers[word]])

    def of(self, words: Collection[str], other_than: Collection[str] = ()) -> list[str]:
        """The ten words that are nearest to one of some words, and nearer to it than to any of other words.

        Args:
            words: The words whose neighbours are wanted. They are no neighbours themselves; unknown words have none.
            other_than: A neighbour is farther from each of these words, and is none of them.

        Returns:
            The nearest first, equally near ones in alphabetical order.

        >>> texts = ["war soldier", "war soldier spy", "war", "spy code", "spy"] * 5 + ["film"] * 200
        >>> WordNeighbours(texts).of(["war"], other_than=["spy"])
        ['soldier']
        """
        import numpy as np

        near, far = self._cosines(words), self._cosines(other_than)
        near[~self._eligible | (near <= far)] = 0.0
        near[[self._numbers[word] for word in (*words, *other_than) if word in self._numbers]] = 0.0
        ranked = sorted((-near[number], self._words[number]) for number in np.flatnonzero(near))
        return [word for _, word in ranked[:COUNT]]

    def _cosines(self, words: Collection[str]) -> Any:
        """For every word of the space, its highest cosine with one of some words."""
        import numpy as np

        best = np.zeros(len(self._words))
        for word in words:
            if word in self._numbers:
                number = self._numbers[word]
                shared = (self._by_word @ self._by_word[number].T).toarray().ravel()
                best = np.maximum(best, shared / np.sqrt(self._documents * self._documents[number]))
        return best
