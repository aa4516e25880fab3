"""Words at the edges of a part that say nothing of what it is about."""

from __future__ import annotations

from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.sentences import is_abbreviation
from pyserini_compneg.decompose.tokens import Tokens


def trim_excluded(tokens: Tokens, start: int, end: int, protected: bytearray, language: Language) -> tuple[int, int]:
    """Drops what leads in, "any information about", and signs; a part of nothing else stays as it is.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens = tokenise("any information about the Beatles.")
    >>> trim_excluded(tokens, 0, 6, bytearray(6), load_language())
    (4, 5)
    """
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


def trim_wanted(
    tokens: Tokens, start: int, end: int, opens: bool, protected: bytearray, language: Language
) -> tuple[int, int]:
    """Drops the frame of a question, "Can you tell me", what led to a cue, ", but please", and signs.

    A part of nothing else becomes empty. One that opens no sentence has no frame.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens = tokenise("What other films has Jodie Foster made, but please")
    >>> trim_wanted(tokens, 0, 10, True, bytearray(10), load_language())
    (2, 7)
    """
    first, connectors = language.words["frame" if opens else "conjunction"], language.words["connector"]
    while start < end and not protected[start] and (tokens.words[start] in first or not tokens.is_word(start)):
        start += 1
    while end > start and not protected[end - 1]:
        if tokens.words[end - 1] not in connectors and _belongs_to_word(tokens, end - 1, language):
            break
        end -= 1
    return start, end


def _without_signs(tokens: Tokens, start: int, end: int, language: Language) -> tuple[int, int]:
    while start < end and not tokens.is_word(start) and tokens.words[start] not in ('"', "'", "("):
        start += 1
    while end > start and not _belongs_to_word(tokens, end - 1, language):
        end -= 1
    return start, end


def _belongs_to_word(tokens: Tokens, token: int, language: Language) -> bool:
    """Whether a token is no sign of its own: a word, the end of a quote, or the full stop of an abbreviation."""
    if tokens.is_word(token) or tokens.words[token] in ('"', "'", ")"):
        return True
    return tokens.words[token] == "." and token > 0 and is_abbreviation(tokens.words[token - 1], language)
