"""Word spaces: the space of Widdows 2003 with its queries and its negation, and a simpler space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from pyserini_compneg.baselines import COSINE
from pyserini_compneg.compose import WEIGHT_SCALE, Linear
from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import words_of
from pyserini_compneg.expression import Atom, Difference, Expression, Union, atoms
from pyserini_compneg.lab.experiments.dense import DenseMethod, VectorIndex, Vectors
from pyserini_compneg.search import Hit
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.topics import Topic

ONE_NEGATED, TWO_NEGATED = "word NOT word", "word NOT (word OR word)"
"""The templates of the queries."""

_NEIGHBOURS = 10
_LEAST_DOCUMENTS = 5
"""The fewest documents of a neighbour. A rarer word would be near by chance."""

_MOST_SHARE = 0.1
"""The largest share of documents of a neighbour. A more frequent word, such as "the", says nothing about a meaning."""

_CONTENT_WORDS, _DIMENSIONS, _REACH = 1000, 100, 7
_BANDS = {"frequent": (0, 100), "middle": (1000, 1100), "rare": (5000, 5100)}
_SHOWN_WORDS = 12
_ROUNDING = 1e-9
"""A smaller cosine is 0, up to rounding."""

_Numbers = NDArray[np.int64]

_FUNCTION_WORDS = """
a about after again all also although an and another any are as at be became because been before being between both
but by can could did do does during each either even for from had has have he her here hers herself him himself his
how however i if in into is it its itself later many may me more most much must my neither no nor not of off on
once one only or other our out over own s same she should since so some such t than that the their them themselves
then there these they this those though through thus to too two under until up upon us very was we well were what
when where whether which while who whom whose why will with within without would yet you your"""


class WordNeighbours:
    """A space of words. The vector of a word represents the documents that contain it. Near words have a high cosine.

    A result that avoids a word but not its meaning still contains the word's neighbours (Widdows 2003, Section 4.1).
    Widdows used the vectors of a model; these vectors count documents.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(word, len(numbers)) for word in set(words_of(text))] for text in texts]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
        incidence = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(rows), len(numbers)))
        self._numbers, self._words = numbers, list(numbers)
        self._documents = np.asarray(incidence.sum(axis=0)).ravel()
        self._by_word = incidence.T.tocsr()
        self._common = self._documents > _MOST_SHARE * len(rows)
        self._eligible = (self._documents >= _LEAST_DOCUMENTS) & ~self._common

    def is_common(self, word: str) -> bool:
        """Whether a word occurs in too many documents to indicate a meaning."""
        return word in self._numbers and bool(self._common[self._numbers[word]])

    def of(self, words: Collection[str], other_than: Collection[str] = ()) -> list[str]:
        """The ten words that are nearest to one of ``words``, and nearer to it than to any of ``other_than``.

        Words of both arguments are excluded. The nearest word comes first; equally near words are in alphabetical
        order.

        >>> texts = ["war soldier", "war soldier spy", "war", "spy code", "spy"] * 5 + ["film"] * 200
        >>> WordNeighbours(texts).of(["war"], other_than=["spy"])
        ['soldier']
        """
        near, far = self._cosines(words), self._cosines(other_than)
        near[~self._eligible | (near <= far)] = 0.0
        near[[self._numbers[word] for word in (*words, *other_than) if word in self._numbers]] = 0.0
        ranked = sorted((-near[number], self._words[number]) for number in np.flatnonzero(near))
        return [word for _, word in ranked[:_NEIGHBOURS]]

    def _cosines(self, words: Collection[str]) -> Any:
        """For every word of the space, its highest cosine with one of ``words``."""
        best = np.zeros(len(self._words))
        for number in (self._numbers[word] for word in words if word in self._numbers):
            shared = (self._by_word @ self._by_word[number].T).toarray().ravel()
            best = np.maximum(best, shared / np.sqrt(self._documents * self._documents[number]))
        return best


class WordSpace(VectorIndex):
    """Words and documents as vectors of length 1. Words that occur among the same words are near.

    A word is counted with each of the 1,000 most frequent content words in a window of 15 words around it. The counts
    are reduced to 100 dimensions by singular value decomposition. A document is the sum of its words' vectors, weighted
    by tf · idf. Words in fewer than five documents have no vector. Content words, and words of queries, contain only
    letters, occur in at most a tenth of the documents, and are not English function words. ``words`` has all words that
    meet these conditions, most frequent first.

    Source: Widdows 2003, Section 2.1.
    """

    def __init__(self, documents: Iterable[SourceDocument]) -> None:
        texts = {document.docid: words_of(document.text or "") for document in documents}
        occurrences = Counter(chain.from_iterable(texts.values()))
        holding = Counter(chain.from_iterable(map(set, texts.values())))
        known = [word for word, _ in occurrences.most_common() if holding[word] >= _LEAST_DOCUMENTS]
        self._numbers = {word: number for number, word in enumerate(known)}
        self._common = {*_FUNCTION_WORDS.split()} | {word for word in known if holding[word] > _MOST_SHARE * len(texts)}
        self.words = [word for word in known if word.isalpha() and word not in self._common]
        if not self.words:
            said = f"of {len(texts)} documents no word is in {_LEAST_DOCUMENTS} and in {_MOST_SHARE:.0%} at most"
            raise InputError(f"{said}, so there are no words to make queries of", remedy="give a larger collection")
        self._known, self._eligible = known, np.isin(known, self.words)
        self._alphabetical = np.argsort(np.argsort(known))  # the rank of each word in alphabetical order
        numbers = [self._numbers.get(word, -1) for text in texts.values() for word in text]
        rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts.values()])
        content = [self._numbers[word] for word in self.words[:_CONTENT_WORDS]]
        self._of_words = _unit(_reduced(_contexts(np.array(numbers), rows, content, len(known))))
        counts = _counted(rows, np.array(numbers), (len(texts), len(known)))
        self._by_word = counts.T.tocsr()
        idf = np.log(len(texts) / np.array([holding[word] for word in known]))
        vectors = _unit(counts.multiply(idf).tocsr() @ self._of_words)
        super().__init__(list(texts), vectors, self._vectors_of, COSINE)

    def _vectors_of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of words; 0 for unknown words."""
        vectors = np.zeros((len(texts), self._of_words.shape[1]))
        for row, word in enumerate(texts):
            if word in self._numbers:
                vectors[row] = self._of_words[self._numbers[word]]
        return vectors

    def is_common(self, word: str) -> bool:
        return word in self._common

    def unknown(self, words: Iterable[str]) -> list[str]:
        """The words that have no vector."""
        return [word for word in words if word not in self._numbers]

    def of(self, words: Collection[str], other_than: Collection[str] = ()) -> list[str]:
        """See :meth:`WordNeighbours.of`; uses the cosines of this space."""
        near, far = (self.encode(list(side)) for side in (words, other_than))
        cosines = (self._of_words @ near.T).max(axis=1, initial=-1.0)
        nearer = cosines > np.maximum((self._of_words @ far.T).max(axis=1, initial=-1.0), _ROUNDING)
        return [word for word, _ in self._nearest(cosines, nearer, {*words, *other_than}, _NEIGHBOURS)]

    def around(self, basis: Vectors) -> dict[str, float]:
        """The words nearest to the first vector of a basis, if it has one, with cosines, as in Widdows' Table 1."""
        cosines = self._of_words @ basis[0] if len(basis) else np.zeros(len(self._known))
        return dict(self._nearest(cosines, cosines > _ROUNDING, (), _SHOWN_WORDS))

    def holding(self, word: str) -> set[str]:
        rows = self._by_word[self._numbers[word]].indices if word in self._numbers else ()
        return {self._docids[row] for row in rows}

    def _nearest(
        self, cosines: Vectors, kept: NDArray[np.bool_], left_out: Collection[str], count: int
    ) -> list[tuple[str, float]]:
        """The words with the highest cosines. Equal cosines are in alphabetical order."""
        there = np.flatnonzero(self._eligible & kept)
        ranked = there[np.lexsort((self._alphabetical[there], -cosines[there]))][: count + len(left_out)]
        words = [(self._known[number], float(cosines[number])) for number in ranked]
        return [one for one in words if one[0] not in left_out][:count]


def _counted(rows: _Numbers, columns: _Numbers, shape: tuple[int, int]) -> Any:
    """The number of occurrences of each pair of numbers, as a sparse matrix. Negative numbers are ignored."""
    there = (rows >= 0) & (columns >= 0)
    return csr_matrix((np.ones(int(there.sum())), (rows[there], columns[there])), shape=shape)


def _contexts(numbers: _Numbers, rows: _Numbers, content: Sequence[int], words: int) -> Any:
    """How often each content word occurs near each word, in the same document."""
    columns = np.full(words + 1, -1)  # the last entry, index -1, is for words without a number
    columns[list(content)] = np.arange(len(content))
    counts = csr_matrix((words, len(content)))
    for distance in range(1, min(_REACH, len(numbers) - 1) + 1):
        left, right = slice(None, -distance), slice(distance, None)
        together = rows[left] == rows[right]
        for one, other in ((left, right), (right, left)):
            near = np.where(together, columns[numbers[other]], -1)
            counts = counts + _counted(numbers[one], near, counts.shape)
    return counts


def _reduced(counts: Any) -> Vectors:
    """Rows in the space of the largest singular values: U Σ, by the eigenvectors of the small square matrix."""
    _, directions = np.linalg.eigh((counts.T @ counts).toarray())
    return np.asarray(counts @ directions[:, ::-1][:, :_DIMENSIONS])


def _unit(vectors: Vectors) -> Vectors:
    """The rows scaled to length 1. Zero rows stay 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def word_queries(space: WordSpace) -> list[Topic]:
    """Queries for a word without its nearest neighbour, and without its two nearest neighbours.

    The words have the ranks 1 to 100, 1,001 to 1,100, and 5,001 to 5,100 by frequency, as far as the collection has
    them. For the first 100 there are also the queries with the word and its nearest neighbour exchanged.

    Source: Widdows 2003, Section 4.1.
    """
    return list(chain.from_iterable(_word_queries(space)))


def _word_queries(space: WordSpace) -> Iterator[list[Topic]]:
    for band, (first, end) in _BANDS.items():
        for number, word in enumerate(space.words[first:end]):
            neighbours = space.of([word])[:2]
            yield _without(f"{band}-{number}", word, neighbours)
            if first == 0 and neighbours:
                others = [other for other in space.of(neighbours[:1]) if other != word]
                yield _without(f"reversed-{number}", neighbours[0], [word, *others[:1]])


def _without(qid: str, word: str, negated: Sequence[str]) -> list[Topic]:
    """A query that excludes the first negated word, and one that excludes the first two, if there are so many."""
    topics = []
    for template, count in ((ONE_NEGATED, 1), (TWO_NEGATED, 2)):
        if len(negated) >= count:
            right: Expression = Atom(negated[0]) if count == 1 else Union(tuple(map(Atom, negated[:2])))
            text = f"{word} NOT {' OR '.join(negated[:count])}"
            topics.append(Topic(f"{qid}-{count}", text, Difference(Atom(word), right), group=template))
    return topics


@dataclass(frozen=True, slots=True)
class WordSpaceMethod:
    """Negation in a word space, for queries that are a word without other words.

    ``filtering`` ranks as ``ignore`` does, and leaves out documents that contain a negated word.

    Source: Widdows 2003, Section 4.1.
    """

    difference: str = "orthogonal"

    def __post_init__(self) -> None:
        if self.difference not in (known := ("orthogonal", "constant", "subtraction", "ignore", "filtering")):
            listed = ", ".join(known)
            raise QueryError(f"difference in a word space must be one of {listed}, got {self.difference!r}")

    @property
    def _algebra(self) -> DenseMethod:
        return DenseMethod(difference="ignore" if self.difference == "filtering" else self.difference)

    def search(self, space: Callable[[], WordSpace], topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """See :meth:`DenseMethod.search`."""
        if self.difference != "filtering":
            return self._algebra.search(space, topics, k)
        rankings = {}
        for topic in topics:
            dropped = set().union(*map(space().holding, _negated(topic)))
            found = self._algebra.search(space, [topic], k + len(dropped))[topic.qid]
            rankings[topic.qid] = [hit for hit in found if hit.docid not in dropped][:k]
        return rankings

    def compose(self, space: Callable[[], WordSpace], topic: Topic) -> Linear:
        """The words nearest to the query, with their cosines on the scale of query weights, for reports."""
        (basis,) = self._algebra.composed([_difference(topic)], space().encode)
        cosines = space().around(basis)
        return Linear({word: WEIGHT_SCALE * cosine for word, cosine in cosines.items()})


def _difference(topic: Topic) -> Difference:
    if not isinstance(topic.expression, Difference):
        raise InputError(f"query {topic.qid!r} must be WORD NOT WORD, or WORD NOT (WORD OR WORD), got {topic.text!r}")
    return topic.expression


def _negated(topic: Topic) -> list[str]:
    return atoms(_difference(topic).right)
