"""Where a text says that something is excluded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.decompose.language import CueGroup, Language, match_patterns
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue at its place.

    Attributes:
        start: Its first token.
        end: The first token of what it excludes.
        group: What it means.
        sentence: Where it stands.
    """

    start: int
    end: int
    group: CueGroup
    sentence: Sentence


def find_cues(tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], language: Language) -> list[Cue]:
    """The cues of exclusion that hold where they stand, from left to right; the longest of those at one place.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens, request = tokenise("list films without mentioning art"), Sentence(0, 5, "request")
    >>> [(cue.start, cue.end) for cue in find_cues(tokens, bytearray(5), [request], load_language())]
    [(2, 4)]
    """
    cues: list[Cue] = []
    for sentence in sentences:
        token = sentence.start
        while token < sentence.end:
            cue = None if protected[token] else _cue_at(tokens, token, sentence, language)
            if cue is not None:
                cues.append(cue)
                token = max(cue.end, token + 1)
            else:
                token += 1
    return cues


def _cue_at(tokens: Tokens, token: int, sentence: Sentence, language: Language) -> Cue | None:
    best: Cue | None = None
    reach = -1
    for pattern, found in match_patterns(language.cues, tokens, token):
        if found.end() <= reach or sentence.kind not in pattern.group.kinds:
            continue
        if pattern.at_start and token != sentence.start:
            continue
        place = found.start("end") if "end" in pattern.expression.groupindex else found.end()
        end = token
        while end < sentence.end and tokens.starts[end] < place:
            end += 1
        cue = Cue(token, end, pattern.group, sentence)
        if _holds(tokens, cue, language):
            best, reach = cue, found.end()
    return best


def _holds(tokens: Tokens, cue: Cue, language: Language) -> bool:
    lists = language.words
    if cue.end >= cue.sentence.end:
        return False
    following = cue.end
    while following < cue.sentence.end - 1 and tokens.words[following] in lists["article"]:
        following += 1
    match cue.group.needs:
        case "name":
            return tokens.is_name(following)
        case "noun":
            return following > cue.end or tokens.is_name(following) or _ends_plural(tokens, following, cue.sentence)
        case "other":
            opens = all(not tokens.is_word(token) for token in range(cue.sentence.start, cue.start))
            words = tokens.words[cue.sentence.start : cue.sentence.end]
            return opens or not lists["other"].isdisjoint(words)
    return True


def _ends_plural(tokens: Tokens, start: int, sentence: Sentence) -> bool:
    """Whether the words up to the next sign end like a plural."""
    end = start
    while end < sentence.end and tokens.is_word(end):
        end += 1
    last = tokens.words[end - 1] if end > start else ""
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))
