"""Anserini's text analysis, by language. The default is English: Lucene's tokenizer and stop words, Porter stemming."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, JvmError
from pyserini_compneg.support.surrogates import utf8
from pyserini_compneg.support.vectors import TermSpan, index_term

ENGLISH = "en"
LANGUAGES = (
    *("ar", "bn", "da", "de", "en", "es", "fa", "fi", "fr", "ha", "hi", "hu", "id", "it", "ja"),
    *("ko", "nl", "no", "pl", "pt", "ru", "so", "sv", "sw", "te", "th", "tr", "uk", "yo", "zh"),
)
"""The languages of Anserini's option ``-language``, by their ISO 639 codes."""

UNSPACED = ("ja", "th", "zh")
"""Languages without spaces between words."""

_WORD = re.compile(r"\S+")

_UNSTEMMED = ("ha", "so", "sw", "yo")
"""Languages whose texts are only split at white space."""

_CHANGED = ("fa", "ko")
"""Languages that Lucene 9 and 10 analyse differently."""


def analysis_settings(language: str) -> dict[str, str | int]:
    """The settings by which a manifest records the analysis of texts; none for English."""
    if language == ENGLISH:
        return {}
    if language not in _CHANGED:
        return {"language": language}
    return {"language": language, "lucene": int(java_class("org.apache.lucene.util.Version").LATEST.major)}


def checked_language(language: str) -> str:
    """Refuses a language that is not one of ``LANGUAGES``."""
    if language not in LANGUAGES:
        raise ArgumentError(f"no analysis for the language {language!r}", remedy=f"known are {', '.join(LANGUAGES)}")
    return language


def analyze(texts: Sequence[str], language: str = ENGLISH) -> list[list[str]]:
    """The terms of each text, in order and with repetitions, as ``IndexCollection`` would index them.

    There are two differences. If a narrow no-break space joins words, as in Mongolian, Lucene's tokenizer makes one
    term of them; here terms contain no white space, so each word is a separate term. If texts are only split at white
    space, the signs of pairs and complements are percent-encoded in words that would read as such.

    Args:
        texts: Any texts; a NUL character counts as a blank.
        language: One of ``LANGUAGES``.

    Returns:
        One list of terms for each text.

    Raises:
        ArgumentError: A single text is given instead of a list, or the language is unknown.
        JvmError: Java's heap is full, or this Java cannot split Thai.
    """
    packed = _analysed("analyze", texts, language)
    analysed = [terms.split() for terms in packed.split("\0")[:-1]]
    return [list(map(index_term, terms)) for terms in analysed] if language in _UNSTEMMED else analysed


def analyze_spans(texts: Sequence[str], language: str = ENGLISH) -> list[list[TermSpan]]:
    """The terms of each text as :func:`analyze` has them, each with the place of its token in the text."""
    spans: list[list[TermSpan]] = [[] for _ in texts]
    number = 0
    for token in _analysed("spans", texts, language).split("\0")[:-1]:
        if not token:
            number += 1
            continue
        joined, *place = token.rsplit(" ", 2)
        terms, start, end = joined.split(), int(place[0]), int(place[1])
        words = [word.span() for word in _WORD.finditer(texts[number], start, end)] if len(terms) > 1 else []
        places = words if len(words) == len(terms) else [(start, end)] * len(terms)
        for term, (first, last) in zip(terms, places, strict=True):
            spans[number].append(TermSpan(index_term(term) if language in _UNSTEMMED else term, first, last))
    return spans


def _analysed(way: str, texts: Sequence[str], language: str) -> str:
    texts = checked_list("texts", texts)
    checked_language(language)
    if not texts:
        return ""
    joined = "\0".join(text.replace("\0", " ") for text in texts)
    encoded, java = utf8(joined), java_class("io.compneg.index.TextAnalysis")
    if language == "th" and not java_class("org.apache.lucene.analysis.th.ThaiTokenizer").DBBI_AVAILABLE:
        remedy = "point JAVA_HOME at a Java with the module jdk.localedata, such as any JDK"
        raise JvmError("this Java does not know where Thai words end", remedy=remedy)
    check_heap(len(encoded))
    with java_errors(JvmError, "texts cannot be analysed"):
        packed = getattr(java, way)(language, encoded)
    return bytes(packed.tostring()).decode()
