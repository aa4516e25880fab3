"""What a text excludes: cues with their scopes, lists of several things, and adjectives with "non-"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.decompose.clauses import find_clauses
from pyserini_compneg.decompose.cues import Cue
from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.scope import find_scope
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens
from pyserini_compneg.decompose.trimming import trim_excluded

_ADJECTIVE = "negated adjective"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Something that is excluded, and the words that say so.

    Attributes:
        kind: The reason.
        start: The first token that is not part of what is wanted.
        end: The token after the last.
        cue: The characters of the cue.
        items: The characters of each thing that is excluded.
        confidence: How sure it is.
    """

    kind: str
    start: int
    end: int
    cue: tuple[int, int]
    items: tuple[tuple[int, int], ...]
    confidence: float


def find_exclusions(
    tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], cues: Sequence[Cue], language: Language
) -> list[Exclusion]:
    """The exclusions of a text, from left to right; they do not overlap."""
    found: list[Exclusion] = []
    clauses = find_clauses(tokens, protected, sentences, language)
    start: int | None = None  # of cues that exclude nothing themselves but lead to the next
    for position, cue in enumerate(cues):
        start = cue.start if start is None else start
        following = cues[position + 1].start if position + 1 < len(cues) else len(tokens)
        limit = min(cue.sentence.end, following)
        end = find_scope(tokens, protected, clauses, cue, limit, language) if limit > cue.end else limit
        first, last = trim_excluded(tokens, cue.end, end, protected, language)
        if first < last:
            marked = (tokens.starts[start], tokens.ends[max(start, _last_of_cue(cue))])
            items = _items(tokens, first, last, protected)
            if tokens.words[start] == "(" and end < len(tokens) and tokens.words[end] == ")":
                end += 1
            elif start and tokens.words[start - 1] == "(" and end < len(tokens) and tokens.words[end] == ")":
                start, end = start - 1, end + 1
            found.append(Exclusion(cue.group.name, start, end, marked, items, cue.group.confidence))
            start = None
        elif limit == cue.sentence.end:
            start = None
    return _with_adjectives(tokens, protected, sentences, found, language)


def _last_of_cue(cue: Cue) -> int:
    return max(cue.start, cue.end - 1)


def _items(tokens: Tokens, start: int, end: int, protected: bytearray) -> tuple[tuple[int, int], ...]:
    """The members of a list "X, Y and Z" or "X or Y"; commas alone make no list: "Austin, Texas" is one place."""
    joints = [t for t in range(start + 1, end - 1) if tokens.words[t] in ("and", "or", "nor") and not protected[t]]
    if len(joints) != 1:
        return ((tokens.starts[start], tokens.ends[end - 1]),)
    joint = joints[0]
    commas = [t for t in range(start + 1, joint) if tokens.words[t] == "," and not protected[t]]
    if not commas and tokens.words[joint] == "and":
        return ((tokens.starts[start], tokens.ends[end - 1]),)
    edges = [start - 1, *commas, joint, end]
    runs = [(a + 1, b) for a, b in zip(edges, edges[1:], strict=False) if b > a + 1]
    if any(not tokens.is_name(first) for first, _ in runs):
        return ((tokens.starts[start], tokens.ends[end - 1]),)
    return tuple((tokens.starts[first], tokens.ends[last - 1]) for first, last in runs)


def _with_adjectives(
    tokens: Tokens,
    protected: bytearray,
    sentences: Sequence[Sentence],
    exclusions: Sequence[Exclusion],
    language: Language,
) -> list[Exclusion]:
    """Adds "non-European": a name, or in a phrase any word that does not make one word with "non"."""
    found = list(exclusions)
    for sentence in sentences:
        if sentence.kind == "statement":
            continue
        for token in range(sentence.start, sentence.end - 1):
            if not tokens.words[token].startswith("non") or protected[token]:
                continue
            adjective = _negated_adjective(tokens, token, sentence, language)
            if adjective and all(token < other.start or token >= other.end for other in exclusions):
                start = tokens.starts[token]
                confidence = 0.8
                end = token + 1 if tokens.words[token] != "non" else token + 2
                item = ((adjective[0], adjective[1]),)
                found.append(Exclusion(_ADJECTIVE, token, end, (start, start + 3), item, confidence))
    return sorted(found, key=lambda exclusion: exclusion.start)


def _negated_adjective(tokens: Tokens, token: int, sentence: Sentence, language: Language) -> tuple[int, int] | None:
    if tokens.words[token] == "non":
        if token + 2 >= sentence.end or not tokens.is_word(token + 2):
            return None
        start, end = tokens.starts[token + 1], tokens.ends[token + 1]
    elif tokens.words[token].startswith("non-") and tokens.is_word(token + 1):
        start, end = tokens.starts[token] + 4, tokens.ends[token]
    else:
        return None
    word = tokens.folded[start:end]
    if word in language.words["non"] or not word.isalpha():
        return None
    is_name = tokens.cased and tokens.text[start].isupper() and not tokens.text[start:end].isupper()
    return (start, end) if is_name or sentence.kind == "phrase" else None
