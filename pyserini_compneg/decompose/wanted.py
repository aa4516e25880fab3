"""What a text asks for: what no exclusion holds, without the frame of the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyserini_compneg.decompose.exclusions import Exclusion
from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens
from pyserini_compneg.decompose.trimming import trim_wanted

_MOST_COURTEOUS = 12
"""Tokens of a sentence that asks for nothing."""


def find_wanted(
    tokens: Tokens,
    protected: bytearray,
    sentences: Sequence[Sentence],
    exclusions: Sequence[Exclusion],
    language: Language,
) -> list[tuple[int, int]]:
    """The runs of tokens that say what is wanted; none if nothing does. A text without exclusions stays whole.

    Args:
        tokens: The text.
        protected: What is left alone.
        sentences: Its sentences; words of courtesy are none.
        exclusions: What it excludes.
        language: Its words.
    """
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
