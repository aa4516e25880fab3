"""Requests in plain words with tags, for training a reader.

``data/requests/README.md`` explains the tags and their rules. A line of tags:

    [W French] [OR or] [W Italian] [S comedies], but not [X musicals]
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.reading import EXCLUDED, LONGEST_GAP, NONE, SHARED, TAGS, WANTED, Span, words_of
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines
from pyserini_compneg.support.terminal import shown

_TAG = re.compile(rf"\[({'|'.join(TAGS[1:])}) ([^\[\]]+)\]")
_WORDS = """
    a about after all also am an and any anything are as at be been before being between both but by can could d did
    do does doing done dont during each either every find for from get give had has have he hello help her here hi his
    how i id if im in into is it its just let like ll looking m may me might must my need needs no nor not of on one
    ones only onto or our over please pls re s shall she should show so some something stuff t tell than thank thanks
    that the their them then there these they thing things this those to too under us ve want wants was we were what
    when where which who whom whose why will with would you your
"""
FUNCTION_WORDS = frozenset(_WORDS.split())

_SMALL = r"(?:of|the|to|an?|and|or|not?|but|without|for|in|on|with|from|at|by|is|are|&|vs|as) "
_CAPITAL = r"\b[A-Z][\w'’]*"
_NAME = re.compile(rf"{_CAPITAL}(?: (?:{_SMALL})*{_CAPITAL})+")
"""A name of several words, such as "Live and Let Die"."""


@dataclass(frozen=True)
class TaggedRequest:
    """The original text of a request, and its tags."""

    text: str
    segments: tuple[tuple[Span, int], ...]
    """The spans of tagged words, in order, each with the position of its tag in ``TAGS``."""

    def tags(self, words: Sequence[Span]) -> list[int]:
        """The position in ``TAGS`` of each word's tag. A word in several segments has the tag of its longest part.

        >>> request = parse_request("[W spy films] but not [X comedies]", "line 1")
        >>> [TAGS[tag] for tag in request.tags(words_of(request.text))]
        ['W', 'W', 'O', 'O', 'X']
        """
        tags = [NONE] * len(words)
        for number, (start, end) in enumerate(words):
            common = [(min(end, last) - max(start, first), tag) for (first, last), tag in self.segments]
            most, tag = max(common, default=(0, NONE))
            tags[number] = tag if most > 0 else NONE
        return tags


def parse_request(line: str, place: str) -> TaggedRequest:
    """Parses a line of tags. ``place`` is ``path:line``."""
    pieces: list[str] = []
    segments: list[tuple[Span, int]] = []
    length = done = 0
    for match in _TAG.finditer(line):
        tag, words = match.groups()
        if words != words.strip():
            raise InputError(f"a blank at the edge of {shown(match[0])}", where=place)
        before = line[done : match.start()]
        start = length + len(before)
        length = start + len(words)
        pieces += [before, words]
        segments.append(((start, length), TAGS.index(tag)))
        done = match.end()
    text = "".join([*pieces, line[done:]])
    counts = [sum(tag == number for _, tag in segments) for number in range(len(TAGS))]
    if "[" in text or "]" in text:
        remedy = f"write [TAG words], where TAG is one of {', '.join(TAGS[1:])}"
        raise InputError("a bracket that is not part of a complete tag", where=place, remedy=remedy)
    if not counts[WANTED]:
        raise InputError("nothing is wanted", where=place, remedy="give at least one [W ...]")
    if counts[SHARED] and counts[WANTED] < 2:
        raise InputError("S is shared by several W, and there is one", where=place)
    return TaggedRequest(text, tuple(segments))


def read_requests(path: str | Path) -> list[TaggedRequest]:
    requests = [parse_request(content, f"{path}:{line}") for line, content in iter_lines(path)]
    if not requests:
        raise InputError("no request in it", where=path)
    return requests


def read_names(path: str | Path) -> list[str]:
    names = [content for _, content in iter_lines(path)]
    if not names:
        raise InputError("no name in it", where=path)
    return names


def augmented(
    request: TaggedRequest, excluded: Sequence[str], names: Sequence[str], draw: random.Random
) -> tuple[str, list[Span], list[int]]:
    """A variant of a request, as another person might have typed it: its text, its words, and their tags.

    Some names of several words are exchanged for ``names``, and some exclusions for exclusions of other requests, so
    that the words around them are learnt rather than their subjects. Some alternatives repeat their shared words. Some
    texts are in lower or upper case, have a typing error, or lack the last sign.
    """
    if names and draw.random() < 0.15:
        request = _renamed(request, names, draw)
    if draw.random() < 0.2:
        request = _exchanged(request, excluded, draw)
    if draw.random() < 0.3:
        request = distributed(request)
    words = words_of(request.text)
    tags = request.tags(words)
    text = request.text
    chance = draw.random()
    if chance < 0.25:
        text = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    elif chance < 0.29:
        text = "".join(sign.upper() if len(sign.upper()) == 1 else sign for sign in text)
    if draw.random() < 0.15:
        start, end = draw.choice(words)
        if end - start > 4:
            place = draw.randrange(start + 1, end - 1)
            text = text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :]
    if draw.random() < 0.15 and len(words) > 1 and text[slice(*words[-1])] in ".?!":
        text, words, tags = text[: words[-1][0]], words[:-1], tags[:-1]
    return text, words, tags


def exclusions(requests: Sequence[TaggedRequest]) -> list[str]:
    return [one.text[slice(*span)] for one in requests for span, tag in one.segments if tag == EXCLUDED]


def separators(requests: Sequence[TaggedRequest]) -> list[str]:
    """The words that separate two exclusions, alone or beside another word, in at least two requests."""
    seen: Counter[str] = Counter()
    for request in requests:
        words = words_of(request.text)
        tags = request.tags(words)
        lower = [request.text[start:end].lower() for start, end in words]
        excluded = [place for place, tag in enumerate(tags) if tag == EXCLUDED]
        gaps = [range(one + 1, other) for one, other in zip(excluded, excluded[1:], strict=False)]
        seen.update({lower[place] for gap in gaps if len(gap) <= LONGEST_GAP for place in gap if tags[place] == NONE})
    return sorted(word for word, count in seen.items() if count > 1 and word[0].isalnum())


def unasked(requests: Sequence[TaggedRequest]) -> list[str]:
    """Function words, and words without a tag in a third of their requests and in at least five.

    Numbers are excluded.
    """
    seen, free = Counter[str](), Counter[str]()
    for request in requests:
        words = words_of(request.text)
        lower = [request.text[start:end].lower().replace("’", "'") for start, end in words]
        seen.update(lower)
        free.update(word for word, tag in zip(lower, request.tags(words), strict=True) if tag == NONE)
    return sorted(
        FUNCTION_WORDS.union(
            word for word, count in free.items() if count >= 5 and 3 * count >= seen[word] and word[0].isalpha()
        )
    )


def _exchanged(request: TaggedRequest, excluded: Sequence[str], draw: random.Random) -> TaggedRequest:
    places = [place for place, (_, tag) in enumerate(request.segments) if tag == EXCLUDED]
    if not places:
        return request
    place = draw.choice(places)
    span, _ = request.segments[place]
    other = draw.choice(excluded)
    return _replaced(request, span, other.lower() if request.text[slice(*span)].islower() else other)


def _renamed(request: TaggedRequest, names: Sequence[str], draw: random.Random) -> TaggedRequest:
    """The request with another name in the place of one that is in a part and does not begin the text."""
    parts = [span for span, tag in request.segments if tag in (WANTED, SHARED, EXCLUDED)]
    found = [match.span() for start, end in parts for match in _NAME.finditer(request.text, start, end)]
    found = [span for span in found if span[0] > 0]
    return _replaced(request, draw.choice(found), draw.choice(names)) if found else request


def _replaced(request: TaggedRequest, place: Span, words: str) -> TaggedRequest:
    """The request with other words in a place that is inside a segment."""
    start, end = place
    longer = len(words) - (end - start)
    segments = tuple(
        ((first + longer * (first >= end), last + longer * (last >= end)), tag)
        for (first, last), tag in request.segments
    )
    return TaggedRequest(request.text[:start] + words + request.text[end:], segments)


def distributed(request: TaggedRequest) -> TaggedRequest:
    """The request with shared words repeated in each alternative, if all are side by side.

    >>> request = parse_request("[S songs by] [W Drake] [OR or] [W Denny], no [X covers]", "line 1")
    >>> again = distributed(request)
    >>> again.text, [again.text[slice(*span)] for span, _ in again.segments]
    ('songs by Drake or songs by Denny, no covers', ['songs by Drake', 'or', 'songs by Denny', 'covers'])
    """
    text, segments = request.text, request.segments
    wanted = [number for number, (_, tag) in enumerate(segments) if tag in (WANTED, SHARED)]
    first, end = wanted[0], wanted[-1] + 1
    group = segments[first:end]
    between = {text[one[1] : other[0]] for (one, _), (other, _) in itertools.pairwise(group)}
    kinds = "".join(TAGS[tag][0] for _, tag in group)
    if "S" not in kinds or not re.fullmatch("S?(WO)+WS?", kinds) or between - {" ", ""}:
        return request
    head, *_, tail = (text[slice(*span)] if tag == SHARED else "" for span, tag in group)
    made, spans = text[: group[0][0][0]], list(segments[:first])
    for span, tag in group:
        words = text[slice(*span)]
        if tag != SHARED:
            made += " " if len(spans) > first and words != "," else ""
            start = len(made)
            made += " ".join(filter(None, (head, words, tail))) if tag == WANTED else words
            spans.append(((start, len(made)), tag))
    moved = len(made) - group[-1][0][1]
    spans += [((start + moved, last + moved), tag) for (start, last), tag in segments[end:]]
    return TaggedRequest(made + text[group[-1][0][1] :], tuple(spans))
