"""Where a text says that something is excluded."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_compneg.decompose.conditions import Cue, holds
from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens


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
                token = cue.end
            else:
                token += 1
    return cues


def _cue_at(tokens: Tokens, token: int, sentence: Sentence, language: Language) -> Cue | None:
    for wording, group in language.cues.at(tokens.words, token):
        if sentence.kind not in group.kinds or (wording.at_start and token != sentence.start):
            continue
        cue = Cue(token, token + wording.length, group, sentence, wording.backwards)
        if cue.end <= sentence.end and holds(tokens, cue, language):
            return cue
    return None
