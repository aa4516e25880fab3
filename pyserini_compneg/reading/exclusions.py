"""What a text excludes: cues with their scopes, lists of several things, and adjectives with "non-"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyserini_compneg.expression.decomposition import Span
from pyserini_compneg.reading.cues import Cue
from pyserini_compneg.reading.language import Language
from pyserini_compneg.reading.scope import find_beginning, find_clauses, find_scope
from pyserini_compneg.reading.sentences import Sentence, ends_word
from pyserini_compneg.reading.tokens import Tokens

_ADJECTIVE = "negated adjective"
_ADJECTIVE_CONFIDENCE = 0.8
_MOST_ITEM_WORDS = 3


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
    cue: Span
    items: tuple[Span, ...]
    confidence: float


def find_exclusions(
    tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], cues: Sequence[Cue], language: Language
) -> list[Exclusion]:
    """The exclusions of a text, from left to right; they do not overlap."""
    found = _by_cues(tokens, protected, sentences, cues, language) if cues else []
    taken = bytearray(len(tokens))
    for exclusion in found:
        taken[exclusion.start : exclusion.end] = b"\1" * (exclusion.end - exclusion.start)
    found += [one for one in _adjectives(tokens, protected, sentences, language) if not taken[one.start]]
    return sorted(found, key=lambda exclusion: exclusion.start)


def _by_cues(
    tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], cues: Sequence[Cue], language: Language
) -> list[Exclusion]:
    found: list[Exclusion] = []
    clauses = find_clauses(tokens, protected, sentences, language)
    placed = _placed(tokens, protected, cues, language)
    pending: int | None = None  # where cues begin that exclude nothing themselves but lead to the next
    for position, (start, cue) in enumerate(placed):
        following = placed[position + 1][0] if position + 1 < len(placed) else len(tokens)
        limit = min(cue.sentence.end, following)
        if cue.backwards:
            first, last, end, marked = start, cue.start, cue.end, cue.start
        else:
            start = marked = start if pending is None else pending
            end = find_scope(tokens, protected, clauses, cue, limit, language) if limit > cue.end else limit
            first, last = cue.end, end
        first, last = _trimmed(tokens, first, last, protected, language)
        if first < last:
            span = tokens.starts[marked], tokens.ends[cue.end - 1]
            items = _items(tokens, first, last, protected, language)
            start, end = _with_parentheses(tokens, start, end)
            found.append(Exclusion(cue.group.name, start, end, span, items, cue.group.confidence))
        pending = None if first < last or limit == cue.sentence.end else start
    return found


def _placed(tokens: Tokens, protected: bytearray, cues: Iterable[Cue], language: Language) -> list[tuple[int, Cue]]:
    """The cues, each with the token where its exclusion begins.

    Two cues that exclude an exclusion ("Documents that do not mention X are not relevant") both do not count.
    """
    placed: list[tuple[int, Cue]] = []
    before: Cue | None = None
    for cue in cues:
        start: int | None = cue.start
        if cue.backwards:
            floor = before.start if before and before.sentence is cue.sentence else cue.sentence.start
            start = find_beginning(tokens, protected, cue, floor, language)
            if before and start == before.start:
                placed = placed[:-1] if placed and placed[-1][1] is before else placed
                start = None
        before = cue
        if start is not None:
            placed.append((start, cue))
    return placed


def _with_parentheses(tokens: Tokens, start: int, end: int) -> tuple[int, int]:
    """Takes in the pair around an exclusion that has nothing else in it."""
    if end < len(tokens) and tokens.words[end] == ")":
        if tokens.words[start] == "(":
            return start, end + 1
        if start and tokens.words[start - 1] == "(":
            return start - 1, end + 1
    return start, end


def _items(tokens: Tokens, start: int, end: int, protected: bytearray, language: Language) -> tuple[Span, ...]:
    """The members of a list "X, Y and Z" or "X or Y"; commas alone make no list: "Austin, Texas" is one place."""
    words, lists = tokens.words, language.words
    joining = lists["and"] | lists["or"] | lists["nor"]
    whole = ((tokens.starts[start], tokens.ends[end - 1]),)
    joints = [token for token in range(start + 1, end - 1) if words[token] in joining and not protected[token]]
    if len(joints) != 1:
        return whole
    commas = [token for token in range(start + 1, joints[0]) if words[token] == "," and not protected[token]]
    if not commas and words[joints[0]] in lists["and"]:
        return whole
    edges = [start - 1, *commas, joints[0], end]
    runs = [(a + 1, b) for a, b in pairwise(edges) if b > a + 1]
    if not all(tokens.is_name(first) for first, _ in runs) and not all(_is_bare(tokens, run, language) for run in runs):
        return whole
    return tuple((tokens.starts[first], tokens.ends[last - 1]) for first, last in runs)


def _is_bare(tokens: Tokens, run: Span, language: Language) -> bool:
    """Whether there are a few words, no name among them, and nothing that ties them to others: "his", "of", "more"."""
    words, lists = tokens.words[slice(*run)], language.words
    return (
        len(words) <= _MOST_ITEM_WORDS
        and words[0] not in lists["lead_in"]
        and not any(map(tokens.is_name, range(*run)))
        and not any(word in lists["preposition"] or word in lists["other"] or "'" in word for word in words)
    )


def _trimmed(tokens: Tokens, start: int, end: int, protected: bytearray, language: Language) -> tuple[int, int]:
    """The part without what leads in, "any information about", and without signs; a part of nothing else stays."""
    start, end = _without_signs(tokens, start, end, language)
    lead_in, lead_out = language.words["lead_in"], language.words["lead_out"]
    while end - start > 1 and tokens.words[end - 1] in lead_out and not protected[end - 1]:
        start, end = _without_signs(tokens, start, end - 1, language)
    first, leads = start, lead_in
    while first < end and not protected[first] and (tokens.words[first] in leads or tokens.words[first] in (",", ":")):
        if tokens.cased and tokens.text[tokens.starts[first]].isupper() and not tokens.opens(first):
            break
        if tokens.words[first] in language.words["relative"]:  # "documents that mention"
            leads = lead_in | language.words["say"]
        first += 1
    return (first if first < end else start), end


def _without_signs(tokens: Tokens, start: int, end: int, language: Language) -> tuple[int, int]:
    while start < end and not tokens.is_word(start) and tokens.words[start] not in ('"', "'", "("):
        start += 1
    while end > start and not ends_word(tokens, end - 1, language):
        end -= 1
    return start, end


def _adjectives(
    tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], language: Language
) -> Iterator[Exclusion]:
    """The adjectives that exclude: a name, or in a phrase any word that does not make one word with the prefix."""
    following = iter(sentences)
    sentence = next(following)
    for token in language.negated(tokens.words):
        while token >= sentence.end:
            sentence = next(following)
        if sentence.kind != "statement" and not protected[token]:
            found = _adjective(tokens, token, sentence, language)
            if found is not None:
                yield found


def _adjective(tokens: Tokens, token: int, sentence: Sentence, language: Language) -> Exclusion | None:
    """With a noun after it, without which it would be one itself."""
    prefix, dash, word = tokens.words[token].partition("-")
    if prefix not in language.words["prefix"]:
        return None
    end = token + 1 if dash else token + 2
    if end >= sentence.end or not tokens.is_word(end):
        return None
    if not dash:
        word = tokens.words[token + 1]
    start, stop = tokens.ends[end - 1] - len(word), tokens.ends[end - 1]
    if word in language.words["non"] or not word.isalpha():
        return None
    written = tokens.text[start:stop]
    is_name = tokens.cased and written[0].isupper() and not written.isupper()
    if not is_name and sentence.kind != "phrase":
        return None
    cue = (tokens.starts[token], tokens.starts[token] + len(prefix))
    return Exclusion(_ADJECTIVE, token, end, cue, ((start, stop),), _ADJECTIVE_CONFIDENCE)
