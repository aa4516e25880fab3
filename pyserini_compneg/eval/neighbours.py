"""The nearest neighbours of words: those that occur in the same documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any

from pyserini_compneg.eval.term_frequencies import words_of

_LEAST_DOCUMENTS = 5
_MOST_SHARE = 0.1


class WordNeighbours:
    """A space of words, each the vector of the documents it occurs in; close are words with a high cosine.

    A word's neighbours say what else would be found of a meaning if the word itself was avoided (Widdows 2003, Section
    4.1). He took the vectors of another model; these need none.

    Args:
        texts: The documents.
        least_documents: Words of fewer documents are nobody's neighbours: they would be it by chance.
        most_share: Nor are words of a larger share of the documents, such as "the", which say nothing of a meaning.
    """

    def __init__(
        self, texts: Iterable[str], least_documents: int = _LEAST_DOCUMENTS, most_share: float = _MOST_SHARE
    ) -> None:
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
        self._common = self._documents > most_share * len(rows)
        self._able = (self._documents >= least_documents) & ~self._common

    def is_common(self, word: str) -> bool:
        """Whether a word is in too many documents to mean anything in particular."""
        return word in self._numbers and bool(self._common[self._numbers[word]])

    def of(self, words: Collection[str], other_than: Collection[str] = (), count: int = 10) -> list[str]:
        """The words that are closest to one of some words, and closer to it than to any of others.

        Args:
            words: Whose neighbours; unknown ones have none. They themselves are left out.
            other_than: Words that a neighbour must not be as close to, nor be.
            count: How many, at most.

        Returns:
            The closest first, equal ones in the order of the alphabet.

        >>> texts = ["war soldier", "war soldier spy", "war", "spy code", "spy"] * 5
        >>> WordNeighbours(texts, most_share=1.0).of(["war"], other_than=["spy"])
        ['soldier']
        """
        import numpy as np

        near, far = self._cosines(words), self._cosines(other_than)
        near[~self._able | (near <= far)] = 0.0
        near[[self._numbers[word] for word in (*words, *other_than) if word in self._numbers]] = 0.0
        found = [(-near[number], self._words[number]) for number in np.flatnonzero(near)]
        return [word for _, word in sorted(found)[:count]]

    def _cosines(self, words: Collection[str]) -> Any:
        """For every word, the highest cosine with one of some words."""
        import numpy as np

        best = np.zeros(len(self._words))
        for word in words:
            if word in self._numbers:
                number = self._numbers[word]
                shared = (self._by_word @ self._by_word[number].T).toarray().ravel()
                best = np.maximum(best, shared / np.sqrt(self._documents * self._documents[number]))
        return best
