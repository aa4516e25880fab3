"""The words of a text, and the tags that each of them can have."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pyserini_compneg.reading.decomposition import Span

TAGS = ("O", "W", "S", "X", "OR", "AND")
"""No part, wanted, shared by all wanted atoms, excluded, and words that join alternatives or conditions."""

NONE, WANTED, SHARED, EXCLUDED, OR, AND = range(len(TAGS))

LONGEST_GAP = 2
"""The longest gap, in words. Of 10,000 tagged requests, 3 have such a gap between wanted words on purpose."""

_LETTER = r"(?:\w[\u0300-\u036f]*)"
"""A letter, digit or underscore, with the accents that follow it as separate characters."""

_WORD = re.compile(rf"\d+(?:[.,:/]\d+)+\w*|[Nn]on(?=-[A-Z])|{_LETTER}+(?:[-.'’@]{_LETTER}+)*|[^\w\s]")
"""Numbers, units and names stay whole: 1,000, 3.5mm, post-2021, U.S, O'Neill. A name after "non-" is a separate word.
"""

_QUOTED = re.compile(r'(?<!\w)"[^"\n]{1,200}"(?!\w)|“[^”\n]{1,200}”|«[^»\n]{1,200}»')
"""The lengths are bounded, so that the time is linear in the text. A sign after a number means inches."""

_EDGE_SIGNS = frozenset(",;:.!?…-–—/|&~*\"'“”‘’«»()[]{}<>")
"""Signs that an atom neither begins nor ends with. Other signs may belong to a word: C++, #5."""

_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "“": "”", "«": "»", "‘": "’"}


def words_of(text: str) -> list[Span]:
    """The spans of the words and signs of a text.

    >>> text = "3.5 mm-jack, (C++)"
    >>> [text[start:end] for start, end in words_of(text)]
    ['3.5', 'mm-jack', ',', '(', 'C', '+', '+', ')']
    """
    return [match.span() for match in _WORD.finditer(text)]


def is_tied(text: str, words: Sequence[Span]) -> list[bool]:
    """Whether each word must have the tag of the word before it, because both are in the same quotes.

    >>> is_tied('a "b c" d', words_of('a "b c" d'))
    [False, False, False, True, False, False]
    """
    quotes = [match.span() for match in _QUOTED.finditer(text)]
    tied = [False] * len(words)
    place = 0
    for start, end in quotes:
        while words[place][0] <= start:
            place += 1
        first = place
        while words[place][1] < end:
            place += 1
            tied[place - 1] = place - 1 > first
    return tied


def trimmed(text: str, words: Sequence[Span], first: int, end: int) -> range:
    """The places of some words without the signs at both edges; empty if no letter or digit is among them.

    A bracket or a quote stays if its partner is among the words and not at the other edge: "(500) Days of Summer".

    >>> text = "(the US)."
    >>> trimmed(text, words_of(text), 0, 5)
    range(1, 3)
    """
    signs = [text[start:end] for start, end in words[first:end]]
    left, right = 0, len(signs)
    while left < right:
        if not signs[left].isprintable():
            left += 1
        elif not signs[right - 1].isprintable():
            right -= 1
        elif _PAIRS.get(signs[left]) == signs[right - 1] and right - left > 1:
            left, right = left + 1, right - 1
        elif signs[left] in _EDGE_SIGNS and _PAIRS.get(signs[left]) not in signs[left + 1 : right]:
            left += 1
        elif signs[right - 1] in _EDGE_SIGNS and not _closes(signs[left : right - 1], signs[right - 1]):
            right -= 1
        else:
            break
    spoken = any(sign[0].isalnum() for sign in signs[left:right])
    return range(first + left, first + (right if spoken else left))


def _closes(before: Sequence[str], sign: str) -> bool:
    """Whether a sign closes a bracket or a quote that is open among the signs before it."""
    opening = next((one for one, other in _PAIRS.items() if other == sign), None)
    if opening == sign:
        return before.count(sign) % 2 == 1
    return opening is not None and before.count(opening) > before.count(sign)


def closed(tags: Sequence[int], words: Sequence[str], separators: Collection[str]) -> list[int]:
    """Closes short gaps in segments: one or two untagged words between two words of the same tag get this tag.

    A gap with a sign stays open, and so does a gap with a word that separates exclusions ("no fish and no eggs").
    "Non-" belongs to a name that is not excluded, but not to an excluded name.

    >>> closed([3, 0, 3, 0, 3], ["back", "to", "oslo", "and", "rome"], {"and"})
    [3, 3, 3, 0, 3]
    >>> closed([1, 0, 3, 0], ["non", "-", "apple", "phones"], ()), closed([0, 0, 1, 1], ["non", "-", "eu", "fees"], ())
    ([0, 0, 3, 0], [1, 1, 1, 1])
    """
    result = list(tags)
    last = 0
    for place in range(1, len(tags)):
        if tags[place] == NONE:
            continue
        gap = range(last + 1, place)
        inside = tags[last] == tags[place] and tags[place] in (WANTED, SHARED, EXCLUDED) and len(gap) <= LONGEST_GAP
        parts = tags[place] == EXCLUDED and any(words[one] in separators for one in gap)
        if inside and not parts and all(words[one][0].isalnum() for one in gap):
            result[last + 1 : place] = [tags[place]] * len(gap)
        last = place
    for place in range(len(words) - 2):
        if words[place : place + 2] == ["non", "-"]:
            wanted = [tag for tag in reversed(result[place : place + 3]) if tag in (WANTED, SHARED)]
            is_excluded = result[place + 2] == EXCLUDED
            result[place : place + 3] = [NONE, NONE, EXCLUDED] if is_excluded else [*wanted, NONE][:1] * 3
    return result
