"""What a text asks for: what no exclusion holds, without the frame of the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyserini_compneg.reading.exclusions import Exclusion
from pyserini_compneg.reading.language import Language
from pyserini_compneg.reading.sentences import Sentence, ends_word
from pyserini_compneg.reading.tokens import Tokens

_MOST_COURTEOUS = 12
"""Tokens of a sentence that asks for nothing."""


def find_wanted(
    tokens: Tokens,
    protected: bytearray,
    sentences: Sequence[Sentence],
    exclusions: Sequence[Exclusion],
    language: Language,
) -> list[tuple[int, int]]:
    """The runs of tokens that say what is wanted; none if nothing does. A text without exclusions stays whole."""
    if not exclusions:
        return [(0, len(tokens))]
    gaps = [gap for gap in _gaps(tokens, sentences, exclusions) if not _is_courtesy(tokens, gap, language)]
    trimmed = [trim_wanted(tokens, *gap, protected, language) for gap in gaps]
    runs = [(start, end) for start, end in trimmed if start < end]
    if runs:
        return runs
    empty = language.words["connector"]
    return [
        (start, end)
        for start, end, _ in gaps
        if any(tokens.is_word(token) and tokens.words[token] not in empty for token in range(start, end))
    ]


def _gaps(
    tokens: Tokens, sentences: Sequence[Sentence], exclusions: Sequence[Exclusion]
) -> Iterator[tuple[int, int, bool]]:
    """What stands beside the exclusions of each sentence, and whether the sentence begins with it."""
    pending = list(reversed(exclusions))
    for sentence in sentences:
        start, opens = sentence.start, True
        while pending and pending[-1].start < sentence.end:
            exclusion = pending.pop()
            if start < exclusion.start:
                yield start, exclusion.start, opens
                opens = opens and not any(tokens.is_word(token) for token in range(start, exclusion.start))
            start = max(start, exclusion.end)
        if start < sentence.end:
            yield start, sentence.end, opens


def _is_courtesy(tokens: Tokens, gap: tuple[int, int, bool], language: Language) -> bool:
    if gap[1] - gap[0] > _MOST_COURTEOUS:
        return False
    words = (tokens.words[token] for token in range(gap[0], gap[1]) if tokens.is_word(token))
    return " ".join(words) in language.courtesies


def trim_wanted(
    tokens: Tokens, start: int, end: int, opens: bool, protected: bytearray, language: Language
) -> tuple[int, int]:
    """Drops the frame of a question, "Can you tell me", what led to a cue, ", but please", and signs.

    A part of nothing else becomes empty. One that opens no sentence has no frame.
    """
    first, connectors = language.words["frame" if opens else "conjunction"], language.words["connector"]
    while start < end and not protected[start] and (tokens.words[start] in first or not tokens.is_word(start)):
        start += 1
    while end > start and not protected[end - 1]:
        if tokens.words[end - 1] not in connectors and ends_word(tokens, end - 1, language):
            break
        end -= 1
    return start, end
