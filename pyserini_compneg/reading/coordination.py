"""What is joined: "that are also" and "both ... and" make intersections, "or" may make unions.

"films by A and B" stays one atom, because nobody can tell whether together or each alone is meant, and one atom finds
both. "A or B" is a union in a phrase or a request if both are alike: both are plural, or begin or end with the same
word, or have the same prepositions. In "French or Italian comedies" and "films set in France or Italy" both operands
get the head that they share. A question such as "Which is older, A or B?" stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyserini_compneg.reading.language import CueGroup, Language
from pyserini_compneg.reading.tokens import Tokens

MOST_OPERANDS = 20
_MOST_MODIFIERS = 2
_MOST_ALTERNATIVE_WORDS = 5
_MOST_BARE_WORDS = 3

Run = tuple[int, int]
"""Tokens from one up to another."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Operands that are joined.

    Attributes:
        kind: ``intersection`` or ``union``.
        operands: For each the runs of tokens that it is made of, or what is joined in turn.
        cue: Where the text says so.
        confidence: How sure this is.
    """

    kind: str
    operands: tuple[Joined | tuple[Run, ...], ...]
    cue: Run
    confidence: float


def find_union(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> Joined | None:
    """The union that "or" makes of a run of tokens, in a sentence of a kind; None if it makes none."""
    if kind not in ("request", "phrase"):
        return None
    places = list(find_words(tokens, run, protected, language.words["or"]))
    if not places or len(places) >= MOST_OPERANDS:
        return None
    start = run[0]
    segments: list[Run] = []
    for place in [*places, run[1]]:
        segments.append((start, place))
        start = place + 1
    segments = _with_commas(tokens, segments, protected)
    if segments and tokens.words[segments[0][0]] in language.words["either"] and segments[0][1] - segments[0][0] > 1:
        segments[0] = (segments[0][0] + 1, segments[0][1])
    if any(
        start >= end or not tokens.is_word(end - 1) and tokens.words[end - 1] not in "\"')." for start, end in segments
    ):
        return None
    cue = (places[0], places[0] + 1)
    if not _share_a_word(tokens, segments) and not _are_parallel(tokens, segments, language):
        with_head = _with_head_before(tokens, segments, cue, language) or _with_head_after(
            tokens, segments, cue, language
        )
        if with_head or not all(language.is_plural(tokens.words[end - 1]) for _, end in segments):
            return with_head
    return Joined("union", tuple((segment,) for segment in segments), cue, 0.9)


def find_words(tokens: Tokens, run: Run, protected: bytearray, words: frozenset[str]) -> Iterator[int]:
    """Where any of some words stands in a run."""
    return (token for token in range(*run) if tokens.words[token] in words and not protected[token])


def _with_commas(tokens: Tokens, segments: Sequence[Run], protected: bytearray) -> list[Run]:
    """Cuts "A, B or C" at its comma too, and drops a comma before "or"."""
    pieces: list[Run] = []
    for position, (start, end) in enumerate(segments):
        if end > start and tokens.words[end - 1] == ",":
            end -= 1
        if position == 0:
            for token in range(start, end):
                if tokens.words[token] == "," and not protected[token]:
                    pieces.append((start, token))
                    start = token + 1
        pieces.append((start, end))
    return pieces


def _share_a_word(tokens: Tokens, segments: Sequence[Run]) -> bool:
    """Whether all begin, or all end, with the same word and have others."""
    return all(end - start > 1 for start, end in segments) and (
        len({tokens.words[start] for start, _ in segments}) == 1
        or len({tokens.words[end - 1] for _, end in segments}) == 1
    )


def _are_parallel(tokens: Tokens, segments: Sequence[Run], language: Language) -> bool:
    """Whether each says its own with the same preposition: "castles in Wales or palaces in Scotland"."""
    inner = [tokens.words[start + 1 : end] for start, end in segments]
    shapes = {tuple(word for word in words if word in language.words["preposition"]) for words in inner}
    return len(shapes) == 1 and shapes != {()}


def _with_head_after(tokens: Tokens, segments: Sequence[Run], cue: Run, language: Language) -> Joined | None:
    """Two modifiers of one plural head: "French or Italian comedies"."""
    *others, last = segments
    length = last[1] - last[0]
    modifiers = min(max(end - start for start, end in others), length - 1)
    if modifiers < 1 or not language.is_plural(tokens.words[last[1] - 1]) or length - modifiers > 3:
        return None
    if any(end - start > _MOST_MODIFIERS or language.is_plural(tokens.words[end - 1]) for start, end in others):
        return None
    if any(tokens.words[token] in language.words["structure"] for run in segments for token in range(*run)):
        return None
    head = (last[0] + modifiers, last[1])
    return Joined("union", (*((other, head) for other in others), (last,)), cue, 0.8)


def _with_head_before(tokens: Tokens, segments: Sequence[Run], cue: Run, language: Language) -> Joined | None:
    """What comes after one preposition or participle: "films set in France or Italy", "books about cats or dogs"."""
    first, *others = segments
    prepositions = {tokens.words[start] for start, _ in others}
    if len(prepositions) == 1 and prepositions <= language.words["preposition"]:  # "films set in France or in Italy"
        places = [token for token in range(first[0] + 1, first[1]) if tokens.words[token] in prepositions]
        own = places[-1] if places else None
    else:
        own = _last_name(tokens, first, language) if tokens.is_name(others[0][0]) else None
        own = _after_preposition(tokens, first, language) if own is None else own
        if own is not None and not _fit(tokens, (own, first[1]), others, language):
            return None
    if own is None or not first[0] < own < first[1]:
        return None
    head = (first[0], own)
    return Joined("union", ((first,), *((head, other) for other in others)), cue, 0.8)


def _last_name(tokens: Tokens, run: Run, language: Language) -> int | None:
    """Where the name at the end of a run begins; None if there is none."""
    name, inside = run[1], language.words["in_name"]
    while name > run[0] and (tokens.is_name(name - 1) or tokens.words[name - 1] in inside):
        name -= 1
    while name < run[1] and tokens.words[name] in language.words["preposition"]:
        name += 1
    return name if name < run[1] else None


def _after_preposition(tokens: Tokens, run: Run, language: Language) -> int | None:
    """Where the few words after a preposition at the end of a run begin; None if it does not end so."""
    for token in range(run[1] - 2, max(run[0], run[1] - 2 - _MOST_BARE_WORDS), -1):
        if tokens.words[token] in language.words["preposition"]:
            return token + 1
    return None


def _fit(tokens: Tokens, last: Run, others: Sequence[Run], language: Language) -> bool:
    """Whether alternatives are of one kind: all of them names, or each a few words without structure of their own."""
    if all(tokens.is_name(start) for start, _ in others):
        return any(map(tokens.is_name, range(*last))) and all(
            end - start <= _MOST_ALTERNATIVE_WORDS for start, end in others
        )
    return not any(
        tokens.is_name(start)
        or end - start > _MOST_BARE_WORDS
        or not language.words["structure"].isdisjoint(tokens.words[start:end])
        for start, end in (last, *others)
    )


def join(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> Joined | tuple[Run, ...]:
    """How a run of tokens is joined; the run itself if it is not."""
    cues = [] if kind == "statement" else _also(tokens, run, protected, kind, language)
    if not cues or len(cues) >= MOST_OPERANDS:
        return find_union(tokens, run, protected, kind, language) or (run,)
    operands: list[Joined | tuple[Run, ...]] = []
    edges = [(run[0], run[0]), *(cue for cue, _ in cues), (run[1], run[1])]
    for (_, start), (end, _) in zip(edges, edges[1:], strict=False):
        operands += _operands(tokens, (start, end), protected, kind, language)
    confidence = min(group.confidence for _, group in cues)
    return Joined("intersection", tuple(operands), cues[0][0], confidence)


def _also(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> list[tuple[Run, CueGroup]]:
    """What says that several things have to hold, with words before and after each."""
    found: list[tuple[Run, CueGroup]] = []
    free = run[0] + 1  # something has to stand before each of them
    for place, wordings in language.also.find(tokens.words[slice(*run)]):
        token = run[0] + place
        fitting = [(wording, group) for wording, group in wordings if kind in group.kinds]
        if token < free or protected[token] or not fitting:
            continue
        wording, group = fitting[0]
        end = token + wording.length
        if end < run[1]:
            found.append(((token, end), group))
        free = end + 1
    return found


def _operands(
    tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language
) -> list[Joined | tuple[Run, ...]]:
    """What stands between two such cues: "both A and B" is two operands."""
    if tokens.words[run[0]] in language.words["both"] and run[1] - run[0] > 1:
        run = (run[0] + 1, run[1])
        split = _and(tokens, run, protected, language)
        if split is not None:
            return [((run[0], split),), ((split + 1, run[1]),)]
    return [find_union(tokens, run, protected, kind, language) or (run,)]


def _and(tokens: Tokens, run: Run, protected: bytearray, language: Language) -> int | None:
    """The "and" between two that are alike; the first where none are."""
    places = [
        token for token in find_words(tokens, run, protected, language.words["and"]) if run[0] < token < run[1] - 1
    ]
    for token in places:
        if tokens.words[token - 1] == tokens.words[run[1] - 1]:
            return token
    return places[0] if places else None
