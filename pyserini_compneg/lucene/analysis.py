"""Anserini's default English text analysis: Lucene's tokenizer and stop words, Porter stems."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_compneg.lucene.gate import java_class


def analyze(texts: Sequence[str]) -> list[list[str]]:
    """The terms of each text, in order and with repetitions, as ``IndexCollection`` would index them.

    But for one thing: Lucene's tokenizer keeps words together that a narrow no-break space joins, as in Mongolian. No
    term here holds white space, so these are terms of their own.

    Args:
        texts: Any texts, empty ones included; a NUL character counts as a blank.

    Returns:
        One list of terms a text.
    """
    if not texts:
        return []
    joined = "\0".join(text.replace("\0", " ") for text in texts)
    # half of a surrogate pair is no text and has no term
    packed = java_class("io.compneg.EnglishAnalysis").analyze(joined.encode("utf-8", "replace"))
    return [terms.split() for terms in bytes(packed.tostring()).decode().split("\0")[:-1]]
