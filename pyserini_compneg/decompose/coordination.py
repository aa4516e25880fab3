"""What is joined: "A that are also B" and "A that are also both B and C" are intersections, "or" may make unions.

"films by A and B" stays one atom: together or each alone, nobody can tell, and one atom finds both.
"""

from __future__ import annotations

from pyserini_compneg.decompose.language import CueGroup, Language
from pyserini_compneg.decompose.tokens import Tokens
from pyserini_compneg.decompose.unions import MOST_OPERANDS, Joined, Run, find_union, find_words


def join(tokens: Tokens, run: Run, protected: bytearray, kind: str, language: Language) -> Joined | tuple[Run, ...]:
    """How a run of tokens is joined; the run itself if it is not.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens = tokenise("French or Italian comedies")
    >>> join(tokens, (0, 4), bytearray(4), "phrase", load_language()).operands
    (((0, 1), (3, 4)), ((2, 4),))
    """
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
