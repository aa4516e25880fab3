"""Where a text says that something is excluded."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_compneg.decompose.conditions import Cue, holds
from pyserini_compneg.decompose.language import CueGroup, Language
from pyserini_compneg.decompose.phrases import Found, Wording
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens


def find_cues(
    tokens: Tokens,
    found: Sequence[Found[CueGroup]],
    protected: bytearray,
    sentences: Sequence[Sentence],
    language: Language,
) -> list[Cue]:
    """The cues of exclusion that hold where they stand, from left to right.

    Of those at one place the longest counts; one that begins within another and goes further takes its place: in ", not
    counting" that is "not counting".

    Args:
        tokens: The text.
        found: Where the cues of the language stand in it.
        protected: What holds none.
        sentences: Its sentences.
        language: Its words.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> english, tokens = load_language(), tokenise("list films without mentioning art")
    >>> found = english.cues.find(tokens.words)
    >>> [(cue.start, cue.end) for cue in find_cues(tokens, found, bytearray(5), [Sentence(0, 5, "request")], english)]
    [(2, 4)]
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
