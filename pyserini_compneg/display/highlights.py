"""The words of a stored document that count for or against it."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from pyserini_compneg.compose import Operators, Query
from pyserini_compneg.compose.queries import ParsedQuery
from pyserini_compneg.compose.rewrite import without_differences
from pyserini_compneg.documents.collection import VECTOR, VECTORS
from pyserini_compneg.documents.passages import stored_passage
from pyserini_compneg.documents.source_documents import text_fields
from pyserini_compneg.encode.hybrid import BM25, PREFIX, TokenEncoder
from pyserini_compneg.encode.query_encoders import RareTermEncoder
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.lucene import analyze_spans
from pyserini_compneg.search import Explanation, SignedImpactSearcher
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.json_objects import DOCUMENT_ID_FIELDS
from pyserini_compneg.support.vectors import PAIR_SIGN, TermSpan

SpanFinder: TypeAlias = Callable[[Sequence[str]], list[list[TermSpan]]]
"""Finds the terms in texts, and their places."""

_MARKS = "".join(mark for mark in map(chr, range(0x300, 0xFE30)) if unicodedata.category(mark).startswith("M"))
_WORD = re.compile(rf"\w[\w{_MARKS}]*")
"""Letters and digits with their marks, such as the vowels of Hindi."""


class Highlight(NamedTuple):
    """A word, or a part of one, in a stored document that counts for or against it: the text of one token of the index.

    Tokens may overlap: a Chinese text is indexed by overlapping pairs of characters.

    Attributes:
        field: Where the text is in the stored document, as a JSON Pointer, such as ``/text``; empty for a document that
            is one text.
        start: The first character of the word in this text, from 0. Characters are Unicode code points, as in Python.
        end: The character behind the word.
        terms: The terms of the query that the word stands for.
        amount: What these terms add to the score; below 0 if they lower it. A pair counts for each of its terms.
    """

    field: str
    start: int
    end: int
    terms: tuple[str, ...]
    amount: float


def highlights(
    searcher: SignedImpactSearcher, query: Query, docid: str, *, operators: Operators | None = None
) -> list[Highlight]:
    """The words of a stored document that count for or against it, in the order of the document.

    Args:
        searcher: The searcher of the index.
        query: See :meth:`SignedImpactSearcher.search`.
        docid: The document's id.
        operators: The operators of the query; None for the searcher's own.

    Raises:
        InputError: The index has no such document.
    """
    explanation = searcher.explain(query, docid, operators=operators)
    source = stored_source(searcher.reader.raw(docid))
    return marked_words(searcher, source, explanation, span_finder(searcher))


def stored_source(raw: str | None) -> Any:
    """The JSON value that was stored for a document, or its text if it is no JSON."""
    try:  # other programs may have stored NaN
        return raw and json.loads(raw, parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError):
        return raw


def span_finder(searcher: SignedImpactSearcher) -> SpanFinder:
    """What finds the terms of an index in texts: the analysis or the tokenizer that made the terms.

    If the encoder does not tell its tokens, both words in lower case and the terms of the analysis are looked for.
    """
    manifest, language = searcher.reader.manifest, searcher.language
    if manifest is not None and manifest.encoder == BM25:
        return partial(analyze_spans, language=language)
    encoder: object = None
    with suppress(CompNegError):  # a composed query needs no encoder
        encoder = searcher.encoder
    encoder = encoder.encoder if isinstance(encoder, RareTermEncoder) else encoder
    return encoder.term_spans if isinstance(encoder, TokenEncoder) else partial(_words_and_stems, language=language)


def _words_and_stems(texts: Sequence[str], language: str) -> list[list[TermSpan]]:
    spans = analyze_spans(texts, language)
    for text, found in zip(texts, spans, strict=True):
        words = [(word[0].lower(), *word.span()) for word in _WORD.finditer(text)]
        found += [TermSpan(prefix + word, start, end) for word, start, end in words for prefix in ("", PREFIX)]
    return spans


def marked_words(
    searcher: SignedImpactSearcher, source: Any, explanation: Explanation, find: SpanFinder
) -> list[Highlight]:
    """The words of a source that stand for terms whose contributions do not cancel out.

    Only texts that were indexed have such words, so no value of a filter field has any. If the index has passages, only
    words of the explained passage and of the title count, which belongs to each passage.
    """
    amounts: dict[str, float] = defaultdict(float)
    for term, amount in explanation.contributions:
        for single in term.split(PAIR_SIGN):
            amounts[single] += amount
    manifest = searcher.reader.manifest
    texts = _indexed_texts(searcher, source)
    marked = [
        Highlight(field, *place, tuple(terms), math.fsum(amounts[term] for term in terms))
        for field, spans in zip(texts, find(list(texts.values())), strict=True)
        for place, terms in sorted(_terms_by_place(spans, amounts).items())
    ]
    if manifest and explanation.passage is not None and isinstance(source, dict):
        body = "/contents" if "contents" in source else "/text"
        passage = stored_passage(source, explanation.passage, manifest.passages)
        start, end = (0, 0) if passage is None else (passage.start, passage.end)
        marked = [one for one in marked if one.field != body or (start <= one.start and one.end <= end)]
    return [one for one in marked if one.amount]


class Place(NamedTuple):
    """A word in a stored document; see :class:`Highlight`."""

    field: str
    start: int
    end: int


def excluded_terms(searcher: SignedImpactSearcher, query: ParsedQuery) -> set[str]:
    """The stems of the words that a query excludes, without those that it also wants. A composed query has no words."""
    expression = query.expression
    if expression is None:
        return set()

    def stems(parts: Iterable[Expression]) -> set[str]:
        texts = [text for part in parts for text in atoms(without_differences(part))]
        return {found.term for spans in analyze_spans(texts, searcher.language) for found in spans}

    return stems(_excluded_parts(expression)) - stems([expression])


def _excluded_parts(expression: Expression) -> Iterator[Expression]:
    for part in expression.wanted:
        yield from _excluded_parts(part)
    yield from expression.children[len(expression.wanted) :]


def excluded_words(searcher: SignedImpactSearcher, source: Any, terms: Container[str]) -> list[Place]:
    """The places of words with these stems in the indexed texts of a source, whatever the terms of the index are."""
    texts = _indexed_texts(searcher, source)
    found = zip(texts, analyze_spans(list(texts.values()), searcher.language), strict=True)
    return [Place(field, start, end) for field, spans in found for term, start, end in spans if term in terms]


def _indexed_texts(searcher: SignedImpactSearcher, source: Any) -> dict[str, str]:
    if isinstance(source, dict):
        manifest = searcher.reader.manifest
        source = _indexed_fields(source, manifest.filter_fields if manifest else ())
    return dict(texts_of(source))


def shown_fields(source: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a stored document without its id, and without a vector and the name of its encoder."""
    hidden = {*DOCUMENT_ID_FIELDS, VECTOR, VECTORS} | ({"encoder"} if {VECTOR, VECTORS} & source.keys() else set())
    return {name: value for name, value in source.items() if name not in hidden}


def _indexed_fields(source: Mapping[str, Any], filter_fields: Container[str]) -> dict[str, Any]:
    """The fields of a stored document that make its text; for a vector of other fields, all that are no filter's."""
    made = {name: source[name] for name in text_fields(source) if isinstance(source.get(name), str)}
    return made or {name: value for name, value in shown_fields(source).items() if name not in filter_fields}


def _terms_by_place(spans: Iterable[TermSpan], known: Container[str]) -> dict[tuple[int, int], list[str]]:
    """The known terms at each place of a text, sorted."""
    found: dict[tuple[int, int], set[str]] = defaultdict(set)
    for term, start, end in spans:
        if term in known and start < end:
            found[start, end].add(term)
    return {place: sorted(terms) for place, terms in found.items()}


def words_of_terms(text: str, terms: Container[str], find: SpanFinder) -> dict[str, list[str]]:
    """The words of a text, in lower case, that stand for some single terms, each with these terms."""
    found: dict[str, set[str]] = defaultdict(set)
    for (start, end), named in _terms_by_place(find([text])[0], terms).items():
        found[text[start:end].lower()].update(named)
    return {word: sorted(named) for word, named in found.items()}


def texts_of(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, each with its JSON Pointer."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, (dict, list)):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_of(part, f"{field}/{str(name).replace('~', '~0').replace('/', '~1')}")


def _number(text: str) -> float | str:
    """A JSON number. A number above the largest float stays a text, because JSON has no infinity."""
    return number if math.isfinite(number := float(text)) else text
