"""What is joined by "and" and "or".

How the ambiguous cases are decided:

- "A that are also B", "A that are also both B and C" are intersections.
- "A or B" is a union in a phrase or a request, where both are alike: both plural, or with a word of their own in common
  at the start or the end, or two words for one head. A question such as "Which is older, A or B?" stays whole.
- "French or Italian comedies" has one head for two, which goes to both; "films set in France or Italy" likewise.
- "films by A and B" stays one atom: together or each alone, nobody can tell, and one atom finds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyserini_compneg.decompose.language import CueGroup, Language, match_patterns
from pyserini_compneg.decompose.tokens import Tokens

_MOST_OPERANDS = 20
_MOST_MODIFIERS = 2
_MOST_ALTERNATIVE_WORDS = 5

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


def join(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> Joined | tuple[Run, ...]:
    """How a run of tokens is joined; the run itself if it is not.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens = tokenise("French or Italian comedies")
    >>> join(tokens, (0, 4), bytearray(4), "phrase", load_language()).operands
    (((0, 1), (3, 4)), ((2, 4),))
    """
    cues = [] if kind == "statement" else _also(tokens, run, protected, kind, language)
    if not cues or len(cues) >= _MOST_OPERANDS:
        return _union(tokens, run, protected, kind) or (run,)
    operands: list[Joined | tuple[Run, ...]] = []
    edges = [(run[0], run[0]), *(cue for cue, _ in cues), (run[1], run[1])]
    for (_, start), (end, _) in zip(edges, edges[1:], strict=False):
        operands += _operands(tokens, (start, end), protected, kind)
    confidence = min(group.confidence for _, group in cues)
    return Joined("intersection", tuple(operands), cues[0][0], confidence)


def _also(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> list[tuple[Run, CueGroup]]:
    """What says that several things have to hold, with words before and after each."""
    found: list[tuple[Run, CueGroup]] = []
    token = run[0] + 1
    while token < run[1]:
        end = token
        for pattern, match in () if protected[token] else match_patterns(language.also, tokens, token):
            if kind in pattern.group.kinds:
                place = match.end("end") if "end" in pattern.expression.groupindex else match.end()
                while end < run[1] and tokens.starts[end] < place:
                    end += 1
                if end < run[1]:
                    found.append(((token, end), pattern.group))
                break
        token = max(end, token) + 1
    return found


def _operands(tokens: Tokens, run: Run, protected: bytearray, kind: str) -> list[Joined | tuple[Run, ...]]:
    """What stands between two such cues: "both A and B" is two operands."""
    if tokens.words[run[0]] == "both" and run[1] - run[0] > 1:
        run = (run[0] + 1, run[1])
        split = _and(tokens, run, protected)
        if split is not None:
            return [((run[0], split),), ((split + 1, run[1]),)]
    return [_union(tokens, run, protected, kind) or (run,)]


def _and(tokens: Tokens, run: Run, protected: bytearray) -> int | None:
    """The "and" between two that are alike; the first where none are."""
    places = [token for token in _words(tokens, run, protected, "and") if run[0] < token < run[1] - 1]
    for token in places:
        if tokens.words[token - 1] == tokens.words[run[1] - 1]:
            return token
    return places[0] if places else None


def _union(tokens: Tokens, run: Run, protected: bytearray, kind: str) -> Joined | None:
    if kind not in ("request", "phrase"):
        return None
    places = list(_words(tokens, run, protected, "or"))
    if not places or len(places) >= _MOST_OPERANDS:
        return None
    start = run[0]
    segments: list[Run] = []
    for place in [*places, run[1]]:
        segments.append((start, place))
        start = place + 1
    segments = _with_commas(tokens, segments, protected)
    if segments and tokens.words[segments[0][0]] == "either" and segments[0][1] - segments[0][0] > 1:
        segments[0] = (segments[0][0] + 1, segments[0][1])
    if any(
        start >= end or not tokens.is_word(end - 1) and tokens.words[end - 1] not in "\"')." for start, end in segments
    ):
        return None
    cue = (places[0], places[0] + 1)
    if _are_alike(tokens, segments):
        return Joined("union", tuple((segment,) for segment in segments), cue, 0.9)
    return _with_head_after(tokens, segments, cue) or _with_head_before(tokens, segments, cue)


def _words(tokens: Tokens, run: Run, protected: bytearray, word: str) -> Iterator[int]:
    return (token for token in range(*run) if tokens.words[token] == word and not protected[token])


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


def _are_alike(tokens: Tokens, segments: Sequence[Run]) -> bool:
    words = tokens.words
    if len({words[start] for start, _ in segments}) == 1 and all(end - start > 1 for start, end in segments):
        return True
    if len({words[end - 1] for _, end in segments}) == 1:
        return all(end - start > 1 for start, end in segments)
    return all(_is_plural(words[end - 1]) for _, end in segments)


def _with_head_after(tokens: Tokens, segments: Sequence[Run], cue: Run) -> Joined | None:
    """Two modifiers of one plural head: "French or Italian comedies"."""
    *others, last = segments
    length = last[1] - last[0]
    modifiers = min(max(end - start for start, end in others), length - 1)
    if modifiers < 1 or not _is_plural(tokens.words[last[1] - 1]) or length - modifiers > 3:
        return None
    if any(end - start > _MOST_MODIFIERS or _is_plural(tokens.words[end - 1]) for start, end in others):
        return None
    if any(tokens.words[token] in ("of", "in", "by", "with", "the", "to") for run in segments for token in range(*run)):
        return None
    head = (last[0] + modifiers, last[1])
    return Joined("union", (*((other, head) for other in others), (last,)), cue, 0.8)


def _with_head_before(tokens: Tokens, segments: Sequence[Run], cue: Run) -> Joined | None:
    """Two names after one preposition or participle: "films set in France or Italy"."""
    first, *others = segments
    if any(end - start > _MOST_ALTERNATIVE_WORDS or not tokens.is_name(start) for start, end in others):
        return None
    name = first[1]
    while name > first[0] and (tokens.is_name(name - 1) or tokens.words[name - 1] in ("the", "of", "'")):
        name -= 1
    if tokens.words[name : name + 1] == ["of"]:
        name += 1
    if not first[0] < name < first[1]:
        return None
    head = (first[0], name)
    return Joined("union", ((first,), *((head, other) for other in others)), cue, 0.8)


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
