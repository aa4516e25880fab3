"""Turns the tags of words into an expression, and finds signs that a text may be misread."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union
from pyserini_compneg.reading.decomposition import Decomposition, Part, Span, undivided
from pyserini_compneg.reading.words import AND, EXCLUDED, NONE, OR, SHARED, TAGS, WANTED, trimmed, words_of
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown

_CUE = re.compile(
    r"(?<![\w'’])(?:(?:apart|aside|away)\s+from|other\s+than|rather\s+than|instead\s+of|save\s+for|but|not|no|non|nor|"
    r"(?:ca|do|does|did|wo|would|should|could|have|has|had|is|are|was|were|ai|must|need|might)n['’]?t|can['’]?t|cannot|"
    r"neither|never|none|nothing|without|w/o|sans|minus|except(?:ing|ed)?|exclud(?:e[sd]?|ing)|excl|besides|barring|"
    r"omit(?:s|ting|ted)?|avoid(?:s|ing)?|skip(?:s|ping)?|unlike|or|either)(?![\w'’])|(?<!\w)non(?=-)",
    re.IGNORECASE,
)
"""English words that often introduce an exclusion or alternatives."""

_STRICT = re.compile(r"\b(AND|NOT)!")
_NAME = re.compile(r"(?<=[\w,] )(?!I['’])[^\W\d_a-z]\w*[a-z](?!\w)")
"""A capitalised word that does not begin a sentence."""


@dataclass
class _Alternative:
    """One atom and the parts excluded from this atom alone, as places of words."""

    own: list[int] = field(default_factory=list)
    excluded: list[range] = field(default_factory=list)


@dataclass
class _Request:
    """The wanted and excluded parts of a text, as places of words."""

    conditions: list[list[_Alternative]] = field(default_factory=lambda: [[_Alternative()]])
    """The wanted parts. All must hold. Each has alternatives, of which one must hold."""

    shared: list[int] = field(default_factory=list)
    """The words that belong to all atoms."""

    excluded: list[range] = field(default_factory=list)
    """The parts that are excluded from all atoms."""


def assembled(text: str, words: Sequence[Span], tags: Sequence[int], confidence: float) -> Decomposition:
    """The decomposition of a text by the tags of its words.

    The text stays one atom if no part is excluded or joined. If the same text is wanted and excluded, it is not
    understood.

    An atom consists of its own words and the shared words. An exclusion in brackets after an alternative applies to
    this alternative only: "jazz (not smooth jazz) or blues" may find smooth blues.
    """
    request = _collected(text, words, tags)
    parts: dict[tuple[str, bool], Part] = {}

    def part(places: Sequence[int], excluded: bool) -> Atom:
        spans: list[Span] = []
        for number, place in enumerate(places):
            follows = number > 0 and place == places[number - 1] + 1
            start = spans.pop()[0] if follows else words[place][0]
            spans.append((start, words[place][1]))
        made = Part.of(text, spans, excluded=excluded)
        parts.setdefault((made.text, excluded), made)
        return Atom(made.text)

    def without(expression: Expression, excluded: Sequence[range]) -> Expression:
        atoms = tuple(dict.fromkeys(part(places, True) for places in excluded))
        return Difference(expression, _joined(Union, atoms)) if atoms else expression

    conditions: list[Expression] = []
    for alternatives in request.conditions:
        atoms = [
            without(part(_with_shared(text, words, one.own, request.shared), False), one.excluded)
            for one in alternatives
            if one.own
        ]
        if atoms:
            conditions.append(_joined(Union, tuple(dict.fromkeys(atoms))))
    if not conditions:
        return undivided(text, confidence, *(["it only excludes"] if request.excluded else []))
    expression = without(_joined(Intersection, tuple(dict.fromkeys(conditions))), request.excluded)
    if isinstance(expression, Atom):
        return undivided(text, confidence)
    kept, gone = ({part.text.casefold() for part in parts.values() if part.excluded == side} for side in (False, True))
    if kept & gone:
        return undivided(text, confidence, "it would exclude what it asks for")
    return Decomposition(text, expression, tuple(parts.values()), confidence)


def tagged_reading(text: str, tags: Sequence[str]) -> Decomposition:
    """The decomposition of a text with given tags.

    Args:
        text: The text.
        tags: A tag, one of ``TAGS``, for each of the text's ``words_of``.

    Raises:
        ArgumentError: The numbers of tags and words differ.

    >>> tagged_reading("spy films, no comedies", ["W", "W", "O", "O", "X"]).expression
    Difference(left=Atom(text='spy films'), right=Atom(text='comedies'))
    """
    words, tags = words_of(text), checked_list("tags", tags)
    if len(tags) != len(words):
        raise ArgumentError(f"tags: the text has {len(words)} words and signs, got {len(tags)} tags")
    return assembled(text, words, [TAGS.index(tag) for tag in tags], 1.0)


def _collected(text: str, words: Sequence[Span], tags: Sequence[int]) -> _Request:
    request = _Request()
    joined = None
    for tag, first, end in _segments(tags):
        places = trimmed(text, words, first, end)
        if tag in (OR, AND):
            joined = tag
        elif tag == SHARED:
            request.shared.extend(places)
        elif tag == WANTED and places:
            current = request.conditions[-1]
            if current[-1].own and joined == OR:
                current.append(_Alternative())
            elif current[-1].own and joined == AND:
                request.conditions.append([_Alternative()])
            request.conditions[-1][-1].own.extend(places)
            joined = None
        elif tag == EXCLUDED and places:
            places = _without_links(text, words, places)
            last = request.conditions[-1][-1]
            is_local = bool(last.own) and _ends_an_alternative(text, words, tags, first)
            (last.excluded if is_local else request.excluded).append(places)
            joined = None
    return request


def _without_links(text: str, words: Sequence[Span], places: range) -> range:
    """The places without linking words at the edges, such as "from" in "nothing from Italy"."""
    said = [text[slice(*words[place])] for place in places]
    left = 1 if len(said) > 1 and said[0] in ("from", "about") else 0
    right = 1 if len(said) > left + 1 and said[-1] == "ones" else 0
    return range(places.start + left, places.stop - right)


def _with_shared(text: str, words: Sequence[Span], own: Sequence[int], shared: Sequence[int]) -> list[int]:
    """The places of an atom's words: its own words, and the shared words that are not among them."""
    said = {text[slice(*words[place])].casefold() for place in own}
    return sorted([*own, *(place for place in shared if text[slice(*words[place])].casefold() not in said)])


def _ends_an_alternative(text: str, words: Sequence[Span], tags: Sequence[int], place: int) -> bool:
    """Whether a word is in brackets that are followed by another alternative."""
    signs = [text[start:end] for start, end in words]
    if signs[:place].count("(") <= signs[:place].count(")"):
        return False
    closing = next((later for later in range(place, len(signs)) if signs[later] == ")"), len(signs))
    return next((tag for tag in tags[closing:] if tag not in (NONE, EXCLUDED)), NONE) == OR


def _segments(tags: Sequence[int]) -> list[tuple[int, int, int]]:
    """The runs of equal tags: the tag, the first place, and the place after the last."""
    starts = [place for place in range(len(tags)) if place == 0 or tags[place] != tags[place - 1]]
    return [(tags[start], start, end) for start, end in zip(starts, [*starts[1:], len(tags)], strict=True)]


def _joined(kind: type[Union | Intersection], operands: tuple[Expression, ...]) -> Expression:
    return kind(operands) if len(operands) > 1 else operands[0]


def lost_words(
    text: str, words: Sequence[Span], tags: Sequence[int], parts: Sequence[Part], unasked: Collection[str]
) -> list[int]:
    """The places of content words that are in no part. ``unasked`` are words that mostly are in none.

    >>> words = [(0, 6), (7, 14), (15, 21), (22, 24), (25, 32)]
    >>> part = Part.of("deploy without Docker in October", [(0, 21)], excluded=False)
    >>> lost_words("deploy without Docker in October", words, [1, 1, 1, 0, 0], [part], {"in"})
    [4]
    """
    used = {place for part in parts for span in part.spans for place in range(*span)}
    names = {match.start() for match in _NAME.finditer(text)}
    lost = []
    for place, ((start, end), tag) in enumerate(zip(words, tags, strict=True)):
        word = text[start:end]
        is_asked = start in names or word.lower().replace("’", "'") not in unasked
        if tag == NONE and is_asked and word[0].isalnum() and start not in used:
            lost.append(place)
    return lost


def doubts(parts: Sequence[Part], lost: Sequence[str]) -> tuple[str, ...]:
    """What may be wrong in a reading with little confidence, whose parts lack the ``lost`` words.

    >>> part = Part.of("deploy without Docker in October", [(0, 21)], excluded=False)
    >>> doubts([part], ["October"])
    ("'without' is searched as a word", "'October' is in no part")
    """
    cues = [match[0] for part in parts if not part.excluded and (match := _CUE.search(part.text))]
    said = [f"{shown(cue)} is searched as a word" for cue in dict.fromkeys(cues)]
    return (*said, *(f"{shown(word)} is in no part" for word in dict.fromkeys(lost)))


def strict_signs(text: str) -> tuple[str, ...]:
    """What is said of each AND! and NOT! in a text. No reading of a plain text is strict.

    >>> strict_signs("tea NOT! milk")
    ('NOT! is not strict here; read=expression keeps it',)
    """
    return tuple(
        dict.fromkeys(f"{sign}! is not strict here; read=expression keeps it" for sign in _STRICT.findall(text))
    )
