"""Anserini's default English text analysis: Lucene's tokenizer and stop words, Porter stemming."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import JvmError


def analyze(texts: Sequence[str]) -> list[list[str]]:
    """The terms of each text, in order and with repetitions, as ``IndexCollection`` would index them.

    There is one difference: if a narrow no-break space joins words, as in Mongolian, Lucene's tokenizer makes one term
    of them. Here terms contain no white space, so each word is a separate term.

    Args:
        texts: Any texts; a NUL character counts as a blank.

    Returns:
        One list of terms for each text.

    Raises:
        ArgumentError: A single text is given instead of a list.
        JvmError: Java's heap is full.
    """
    texts = checked_list("texts", texts)
    if not texts:
        return []
    joined = "\0".join(text.replace("\0", " ") for text in texts)
    # half of a surrogate pair becomes a question mark, which is not a term
    encoded, java = joined.encode("utf-8", "replace"), java_class("io.compneg.EnglishAnalysis")
    check_heap(len(encoded))
    with java_errors(JvmError, "texts cannot be analysed"):
        packed = java.analyze(encoded)
    return [terms.split() for terms in bytes(packed.tostring()).decode().split("\0")[:-1]]
