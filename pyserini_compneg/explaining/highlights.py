"""The words of a stored document that count for or against it."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyserini_compneg.compose import Operators, Query
from pyserini_compneg.encode.hybrid import PREFIX
from pyserini_compneg.lucene import analyze
from pyserini_compneg.search import Contribution, SignedImpactSearcher
from pyserini_compneg.support.vectors import PAIR_SIGN

NO_TEXTS = ("id", "_id", "docid", "vector")
"""Fields of a stored document that are no text of it."""

_MARKS = "".join(mark for mark in map(chr, range(0x300, 0xFE30)) if unicodedata.category(mark).startswith("M"))
_WORD = re.compile(rf"\w[\w{_MARKS}]*")
"""Letters and digits with their marks, such as the vowels of Hindi. The page has the same pattern."""


class Highlight(NamedTuple):
    """A word of a stored document that counts for or against it.

    Attributes:
        field: Where the text is in the stored document, as a JSON Pointer, such as ``/text``; empty for a document that
            is one text.
        start: The first character of the word in this text, from 0. Characters are Unicode code points, as in Python.
        end: The character behind the word.
        terms: The terms of the query that the word stands for.
        amount: What these terms add to the score; below 0 if they lower it. A pair counts for each of its terms.
    """

    field: str
    start: int
    end: int
    terms: tuple[str, ...]
    amount: float


def highlights(
    searcher: SignedImpactSearcher, query: Query, docid: str, *, operators: Operators | None = None
) -> list[Highlight]:
    """The words of a stored document that count for or against it, in the order of the document.

    Args:
        searcher: The searcher of the index.
        query: See :meth:`SignedImpactSearcher.search`.
        docid: The document's id.
        operators: The operators of the query; None for the searcher's own.

    Raises:
        InputError: The index has no such document.
    """
    contributions = searcher.explain(query, docid, operators=operators).contributions
    return marked_words(stored_source(searcher.reader.raw(docid)), contributions, searcher.language)


def stored_source(raw: str | None) -> Any:
    """The JSON value that was stored for a document, or its text if it is no JSON."""
    try:  # other programs may have stored NaN
        return raw and json.loads(raw, parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError):
        return raw


def marked_words(source: Any, contributions: Sequence[Contribution], language: str) -> list[Highlight]:
    """The words of a source that stand for terms whose contributions do not cancel out."""
    amounts: dict[str, float] = defaultdict(float)
    for term, amount in contributions:
        for single in term.split(PAIR_SIGN):
            amounts[single] += amount
    if isinstance(source, dict):
        source = {name: value for name, value in source.items() if name not in NO_TEXTS}
    found = [(field, word) for field, text in _texts_of(source) for word in _WORD.finditer(text)]
    terms = words_of_terms(" ".join(word[0] for _, word in found), amounts, language)
    marked = [
        Highlight(field, *word.span(), tuple(named), math.fsum(amounts[term] for term in named))
        for field, word in found
        if (named := terms.get(word[0].lower()))
    ]
    return [one for one in marked if one.amount]


def words_of_terms(text: str, terms: Iterable[str], language: str) -> dict[str, list[str]]:
    """The words of a text, in lower case, that stand for some single terms, each with these terms."""
    distinct, known = sorted(set(_WORD.findall(text))), set(terms)
    found: dict[str, set[str]] = defaultdict(set)
    for word, analysed in zip(distinct, analyze(distinct, language), strict=True):  # of Turkish, case matters
        lower = word.lower()
        found[lower] |= known.intersection((*analysed, lower, f"{PREFIX}{lower}"))
    return {word: sorted(matched) for word, matched in found.items() if matched}


def _texts_of(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, each with its JSON Pointer."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, (dict, list)):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_of(part, f"{field}/{str(name).replace('~', '~0').replace('/', '~1')}")


def _number(text: str) -> float | str:
    """A JSON number. A number above the largest float stays a text, because JSON has no infinity."""
    return number if math.isfinite(number := float(text)) else text
