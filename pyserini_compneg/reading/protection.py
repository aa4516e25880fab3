"""What is left alone: quoted strings, idioms, and titles that hold words like "not", "no", "without" and "or"."""

from __future__ import annotations

from pyserini_compneg.reading.language import Language
from pyserini_compneg.reading.tokens import Tokens

_LONGEST_SINGLE_QUOTE = 60


def protect(tokens: Tokens, language: Language) -> bytearray:
    """Marks the tokens that are no cues and end nothing, with a 1 for each."""
    marks = bytearray(len(tokens))
    _mark_quotes(tokens, marks)
    _mark_idioms(tokens, language, marks)
    _mark_titles(tokens, marks)
    return marks


def _mark_quotes(tokens: Tokens, marks: bytearray) -> None:
    """A quote without a partner is only a sign."""
    opened: int | None = None
    for token, word in enumerate(tokens.words):
        if word != '"':
            continue
        if opened is None:
            opened = token
        else:
            marks[opened : token + 1] = b"\1" * (token + 1 - opened)
            opened = None
    opened = None
    for token, word in enumerate(tokens.words):
        if word != "'":
            continue
        if opened is not None and tokens.starts[token] - tokens.starts[opened] > _LONGEST_SINGLE_QUOTE:
            opened = None
        if opened is not None and not _joins(tokens, token, after=True):
            marks[opened : token + 1] = b"\1" * (token + 1 - opened)
            opened = None
        elif not _joins(tokens, token, after=False) and _joins(tokens, token, after=True):
            opened = token


def _joins(tokens: Tokens, token: int, *, after: bool) -> bool:
    """Whether a word touches a sign, after or before it."""
    place = tokens.ends[token] if after else tokens.starts[token] - 1
    return 0 <= place < len(tokens.text) and tokens.text[place].isalnum()


def _mark_idioms(tokens: Tokens, language: Language, marks: bytearray) -> None:
    for token, idioms in language.idioms.find(tokens.words):
        longest, _ = idioms[0]
        marks[token : token + longest.length] = b"\1" * longest.length


def _mark_titles(tokens: Tokens, marks: bytearray) -> None:
    """Words with a capital next to others with one; the first of a sentence has its own for being the first."""
    if not tokens.cased:
        return
    capital = [tokens.text[start].isupper() for start in tokens.starts]
    for token in range(1, len(tokens)):
        if capital[token] and tokens.words[token - 1] not in ("?", "!", ".", '"', "("):
            follows = token + 1 < len(tokens) and capital[token + 1]
            if follows or capital[token - 1]:
                marks[token] = 1
