"""Where a text says that something is excluded: the wordings, and the conditions that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyserini_compneg.reading.language import CueGroup, Language
from pyserini_compneg.reading.phrases import Found, Wording
from pyserini_compneg.reading.sentences import Sentence
from pyserini_compneg.reading.tokens import Tokens

_HEAD_WORDS = 4
_NEAR = 50
"""Tokens within which a condition looks, so that a text of nothing but cues is read in linear time."""

_LOOK_AHEAD = frozenset({"name", "noun", "word", "free"})
"""What needs a token after the cue."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue at its place.

    Attributes:
        start: Its first token.
        end: The token after its last; what it excludes begins there, unless it stands before it.
        group: What it means.
        sentence: Where it stands.
        backwards: Whether it excludes what stands before it.
    """

    start: int
    end: int
    group: CueGroup
    sentence: Sentence
    backwards: bool = False


def holds(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """Whether something is excluded, and all that the cue's group needs is there."""
    excludes = cue.start > cue.sentence.start if cue.backwards else cue.end < cue.sentence.end
    if cue.end == cue.sentence.end and not _LOOK_AHEAD.isdisjoint(cue.group.needs):
        return False
    return excludes and all(_CONDITIONS[need](tokens, cue, language) for need in cue.group.needs)


def _name(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """A name or title follows: "outside the Vatican"."""
    following = cue.end
    while following < cue.sentence.end - 1 and tokens.words[following] in language.words["article"]:
        following += 1
    return tokens.is_name(following)


def _noun(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """A noun follows and no adjective: after an article, a name, or words that end like a plural."""
    end = cue.end
    if tokens.words[end] in language.words["article"] or tokens.is_name(end):
        return True
    limit = min(cue.sentence.end, cue.end + _NEAR)
    while end < limit and tokens.is_word(end):
        end += 1
    return end > cue.end and language.is_plural(tokens.words[end - 1])


def _other(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """The sentence asks for others, or begins with the cue: "In addition to X, who ..."."""
    opens = not any(tokens.is_word(token) for token in range(cue.sentence.start, cue.start))
    near = tokens.words[max(cue.sentence.start, cue.start - _NEAR) : min(cue.sentence.end, cue.end + _NEAR)]
    return opens or not language.words["other"].isdisjoint(near)


def _class(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """It is about a class and no single one, which a negation would describe: not "the man who wasn't there"."""
    if language.is_plural(tokens.words[cue.start - 1]):
        return True
    head = tokens.words[max(cue.sentence.start, cue.start - _HEAD_WORDS) : cue.start]
    return language.words["definite"].isdisjoint(head)


def _plural(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """A plural stands before it."""
    return cue.start > cue.sentence.start and language.is_plural(tokens.words[cue.start - 1])


def _every(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """All of something are spoken of before: "every day bar Sunday"."""
    return not language.words["every"].isdisjoint(tokens.words[max(cue.sentence.start, cue.start - _NEAR) : cue.start])


def _word(tokens: Tokens, cue: Cue, _: Language) -> bool:
    """A word follows and no number: not "vol. 3, no 4"."""
    return tokens.words[cue.end][0].isalpha()


def _out(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """It is completed at the end of its clause: "leave X out"."""
    for token in range(cue.end + 1, min(cue.sentence.end, cue.end + _NEAR)):
        if not tokens.is_word(token):
            return False
        if tokens.words[token] in language.words["out"]:
            return token + 1 == cue.sentence.end or not tokens.is_word(token + 1)
    return False


def _later(tokens: Tokens, cue: Cue, _: Language) -> bool:
    """Something has been said before its sentence."""
    return cue.sentence.start > 0


def _free(tokens: Tokens, cue: Cue, language: Language) -> bool:
    """It is no verb or noun that belongs to the word before or after it: "how to save for", "cost of ignoring"."""
    lists = language.words
    before = tokens.words[cue.start - 1] if cue.start > cue.sentence.start else ""
    bound = any(before in lists[name] for name in ("preposition", "purpose", "auxiliary", "asker", "every", "article"))
    return not bound and tokens.words[cue.end] not in lists["preposition"]


def _end(tokens: Tokens, cue: Cue, _: Language) -> bool:
    """Nothing more follows in its clause."""
    return cue.end == cue.sentence.end or not (tokens.is_word(cue.end) or tokens.words[cue.end] in ('"', "'"))


_CONDITIONS: Mapping[str, Callable[[Tokens, Cue, Language], bool]] = {
    "name": _name,
    "noun": _noun,
    "other": _other,
    "class": _class,
    "plural": _plural,
    "every": _every,
    "word": _word,
    "end": _end,
    "free": _free,
    "later": _later,
    "out": _out,
}


def find_cues(
    tokens: Tokens,
    found: Sequence[Found[CueGroup]],
    protected: bytearray,
    sentences: Sequence[Sentence],
    language: Language,
) -> list[Cue]:
    """The cues of exclusion that hold where they stand, from left to right.

    Of several cues that begin at one token the longest counts. A cue that begins within another one and ends after it
    replaces it: in ", not counting" that is "not counting".
    """
    cues: list[Cue] = []
    following = iter(sentences)
    sentence = next(following)
    for token, wordings in found:
        if protected[token] or (not tokens.is_word(token) and protected[token + 1 : token + 2] == b"\1"):
            continue
        while token >= sentence.end:
            sentence = next(following)
        cue = _cue_at(tokens, token, wordings, sentence, language)
        if cue is None:
            continue
        if not cues or token >= cues[-1].end:
            cues.append(cue)
        elif cue.end > cues[-1].end and not cue.backwards:
            cues[-1] = cue
    return cues


def _cue_at(
    tokens: Tokens, token: int, wordings: Sequence[tuple[Wording, CueGroup]], sentence: Sentence, language: Language
) -> Cue | None:
    for wording, group in wordings:
        if sentence.kind not in group.kinds or (wording.at_start and token != sentence.start):
            continue
        cue = Cue(token, token + wording.length, group, sentence, wording.backwards)
        if cue.end <= sentence.end and holds(tokens, cue, language):
            return cue
    return None
