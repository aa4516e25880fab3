"""The frequencies of a query's positive and negated terms in the texts of its results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pyserini_compneg.support.arguments import checked_list

_WORD = re.compile(r"\w+")


class TermFrequencies(NamedTuple):
    """The frequencies of some terms together in some texts."""

    texts: float
    """The share of the texts that contain at least one of the terms, from 0 to 1."""
    words: float
    """The number of occurrences of the terms, divided by the number of words in the texts."""


def term_frequencies(texts: Iterable[str], terms: Iterable[str]) -> TermFrequencies:
    """Counts terms in the texts of a query's first results: its positive terms, or its negated terms.

    Words are runs of letters, digits and underscores, compared without case and not stemmed. A term of several words
    occurs where they follow one another. Without texts, or without words in them, the frequencies are 0.

    Args:
        texts: The texts of the first documents; Widdows takes 20.
        terms: Words or phrases. Repeated terms count once.

    Raises:
        ValueError: There are no terms, or a term contains no word.

    Source: Widdows 2003, Section 4.1, defines ``words``, the relative frequency of positive and of negated terms.
    ``texts`` does not reward the repetition of a word in one document.

    >>> term_frequencies(["A rock band.", "Rock, rock, roll"], ["rock"])
    TermFrequencies(texts=1.0, words=0.5)
    """
    phrases = {tuple(words_of(term)): term for term in checked_list("terms", terms)}
    if not phrases or () in phrases:
        raise ValueError(f"terms must be words or phrases, at least one, got {phrases.get((), 'none')!r}")
    words = [words_of(text) for text in checked_list("texts", texts)]
    counts = [sum(_occurrences(own, phrase) for phrase in phrases) for own in words]
    holding = sum(count > 0 for count in counts)
    return TermFrequencies(holding / max(len(words), 1), sum(counts) / max(sum(map(len, words)), 1))


def words_of(text: str) -> list[str]:
    """The words of a text, without case."""
    return _WORD.findall(text.casefold())


def _occurrences(words: list[str], phrase: tuple[str, ...]) -> int:
    if len(phrase) == 1:
        return words.count(phrase[0])
    return sum(tuple(words[start : start + len(phrase)]) == phrase for start in range(len(words) - len(phrase) + 1))
