"""The words of atoms. NOT! removes documents that have all words of an atom; AND! keeps documents with a word of each.

A word is a term of an atom's vector that a token of the atom's own text stands for, so a model's expansions are none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Protocol, runtime_checkable

from pyserini_compneg.compose.atom_vectors import QueryEncoder, atom_vectors
from pyserini_compneg.compose.intersection import distinguishing_terms
from pyserini_compneg.compose.rewrite import without_differences
from pyserini_compneg.expression import (
    Atom,
    Exclusion,
    Expression,
    Filter,
    Intersection,
    Union,
    atoms,
    format_expression,
)
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import SparseVector, positive_part, top_terms

MOST_CLAUSES = 10_000
"""The most clauses of an excluded part. An AND of ORs has as many as its alternatives, multiplied."""

_WORD = re.compile(r"\w+")


@runtime_checkable
class WordEncoder(QueryEncoder, Protocol):
    """An encoder of queries that knows which terms the words of a text stand for."""

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """The terms of each text's own words, without expansions; None if they are unknown.

        A word is in the vector of its text, or no document has it.
        """


def told_words(texts: Sequence[str], encoder: QueryEncoder) -> Sequence[Collection[str] | None]:
    """See :class:`WordEncoder`. Without texts the encoder is not asked, for it may have to load a model first."""
    return encoder.words(texts) if texts and isinstance(encoder, WordEncoder) else [None] * len(texts)


class EncodedOnce:
    """An encoder that encodes each text once, for several uses of a query's atoms in one thread."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, dict[str, float]] = {}

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text. Texts of earlier batches are not encoded again."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= atom_vectors(unknown, self._encoder)
        return [self._vectors[text] for text in texts]

    def words(self, texts: Sequence[str]) -> Sequence[Collection[str] | None]:
        """See :class:`WordEncoder`."""
        return told_words(texts, self._encoder)


def atom_words(
    texts: Sequence[str], encoder: QueryEncoder, vectors: Mapping[str, SparseVector]
) -> dict[str, SparseVector]:
    """The words of each atom, with their weights; 0 for a word that no document has.

    If the encoder does not know the words of a text, the heaviest terms are taken for them, as many as the text has
    words.
    """
    words: dict[str, SparseVector] = {}
    for text, told in zip(texts, told_words(texts, encoder), strict=True):
        vector = vectors[text]
        if told is None:
            words[text] = top_terms(positive_part(vector), len(_WORD.findall(text)) or 1)
        else:
            words[text] = {term: vector.get(term, 0.0) for term in told if vector.get(term, 0.0) >= 0}
    return words


def worded_atoms(expression: Expression) -> Iterator[str]:
    """The atoms whose words matter: those that NOT! excludes, and those of AND!.

    >>> from pyserini_compneg.expression import parse
    >>> list(worded_atoms(parse("(a NOT b) AND! c OR d NOT! (e OR f) NOT! year=1990")))
    ['a', 'c', 'e', 'f']
    """
    if isinstance(expression, Intersection) and expression.strict:
        yield from atoms(without_differences(expression))
    for part in expression.wanted:
        yield from worded_atoms(part)
    if isinstance(expression, Exclusion) and not isinstance(expression.right, Filter):
        yield from atoms(expression.right)


def required_words(
    operands: Sequence[Expression], words: Mapping[str, SparseVector], top: int
) -> list[dict[str, float]]:
    """The words of each operand of an AND or AND! of which a document has at least one, unless it lacks the operand.

    They are the ``top`` heaviest that no other operand has; if there are none, of all its words. A word weighs as much
    as in the atom where it weighs most; one of weight 0 is in no document. What an operand excludes is left out.

    >>> words = {"Swiss cheese": {"swiss": 2.0, "chees": 1.0}, "goat cheese": {"goat": 2.0, "chees": 1.0}}
    >>> required_words([Atom("Swiss cheese"), Atom("goat cheese")], words, 5)
    [{'swiss': 2.0}, {'goat': 2.0}]
    """
    texts = [atoms(without_differences(operand)) for operand in operands]
    return distinguishing_terms([_heaviest(words[text] for text in each) for each in texts], top)


def _heaviest(vectors: Iterable[SparseVector]) -> dict[str, float]:
    """The largest weight of each word. Unlike in ``max_pool``, words of weight 0 stay."""
    pooled: dict[str, float] = {}
    for term, weight in chain.from_iterable(vector.items() for vector in vectors):
        pooled[term] = max(weight, pooled.get(term, 0.0))
    return pooled


def clauses(parts: Iterable[Expression], words: Mapping[str, SparseVector]) -> list[frozenset[str]]:
    """The disjunctive normal form of some parts: a document has one of them if it has all words of a clause.

    A document has an atom if it has all its words, an OR if it has an alternative, and an AND if it has all operands.
    An atom without words gives no clause. Clauses that change nothing are left out, which keeps the query small: those
    with a word of weight 0, which no document has, and longer ones that hold a clause of one word.

    >>> words = {"spy films": {"spy": 2.0, "film": 1.0}, "war": {"war": 1.0}, "spies": {"spi": 1.0}}
    >>> words["zebra films"] = {"zebra": 0.0, "film": 1.0}
    >>> parts = [Intersection((Atom("spy films"), Atom("war"))), Atom("zebra films")]
    >>> [sorted(clause) for clause in clauses(parts, words)]
    [['film', 'spy', 'war']]
    >>> [sorted(clause) for clause in clauses([Union((Atom("spy films"), Atom("spies")))], words)]
    [['film', 'spy'], ['spi']]
    """
    found = list(dict.fromkeys(chain.from_iterable(_clauses(part, words) for part in parts)))
    single = {word for clause in found if len(clause) == 1 for word in clause}
    return [clause for clause in found if len(clause) == 1 or single.isdisjoint(clause)]


def _clauses(part: Expression, words: Mapping[str, SparseVector]) -> list[frozenset[str]]:
    match part:
        case Atom(text):
            return [frozenset(words[text])] if words[text] and all(words[text].values()) else []
        case Union(operands):
            return clauses(operands, words)
        case Intersection(operands):
            each = [clauses([operand], words) for operand in operands]
            if math.prod(map(len, each)) > MOST_CLAUSES:
                name = shown(format_expression(part))
                what = f"NOT! takes up to {MOST_CLAUSES:,} combinations of alternatives, and {name} has more"
                raise QueryError(what, remedy="exclude fewer alternatives")
            return list(dict.fromkeys(frozenset().union(*choice) for choice in product(*each)))
    raise AssertionError(part)  # check_exclusions refuses NOT in what NOT! excludes
