"""What the server answers: from checked parameters to JSON values. The work of a request is done here, in a thread."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException

from pyserini_compneg.compose import Operators, Query, ScoringNode, query_text
from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.encode.hybrid import PREFIX
from pyserini_compneg.explaining.query_explanation import explain_query, to_object
from pyserini_compneg.expression import Atom, format_expression, parse, to_json
from pyserini_compneg.lucene import analyze
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.reading.decomposition import to_object as decomposition_object
from pyserini_compneg.reading.model_reader import packaged_reader
from pyserini_compneg.reading.words import words_of
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.ranked_hits import query_name
from pyserini_compneg.serve.limits import Limits
from pyserini_compneg.serve.parameters import (
    MOST_CONTRIBUTIONS,
    DocumentParameters,
    ExplainParameters,
    ReadingParameters,
    SearchBody,
    SearchParameters,
)
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.stages import Stages
from pyserini_compneg.support.vectors import PAIR_SIGN
from pyserini_compneg.topics.topics import Topic
from pyserini_compneg.topics.unread import notes_on

API = "v1"

Answer: TypeAlias = dict[str, Any]

_NO_TEXTS = ("id", "_id", "docid", "vector")
_TEXTS = ("body", "content", "contents", "text")
_WORD = re.compile(r"\w+")

_logger = logging.getLogger(__name__)


def search_answer(index: ServedIndex, asked: SearchParameters | SearchBody, limits: Limits, stages: Stages) -> Answer:
    """The answer to a search, in the form of Pyserini's, with more about the query.

    Raises:
        CompNegError: A query that costs too much, or that cannot be read, composed or searched.
    """
    with index.searcher() as searcher:
        with stages.measured("read"):
            query, allowed = asked.asked(), asked.allowed()
            operators = asked.operators()
            limits.check(query, operators)
            _note_unread_operators(query, asked)
        with stages.measured("compose"):
            (node,) = searcher.compose([query], operators)
        with stages.measured("search"):
            name = query_name(query)
            hits = searcher.batch_search([node], [name], asked.offset + asked.hits, filter=allowed)[name]
            hits = hits[asked.offset :]
            lacking = searcher.lacking(query, [hit.docid for hit in hits], operators=operators)
        candidates: list[Answer] = []
        for rank, (hit, lacks) in enumerate(zip(hits, lacking, strict=True), asked.offset + 1):
            check_cancelled()  # a thousand documents take their time, too
            with stages.measured("documents"):
                document = _document(searcher, hit.docid, asked)
            candidates.append({"docid": hit.docid, "score": hit.score, "rank": rank, "doc": document})
            if lacks:
                candidates[-1]["lacks"] = list(lacks)
            if asked.explain:
                with stages.measured("explain"):
                    candidates[-1] |= _explained(searcher, node, hit.docid, document)
        about = {
            "unit": searcher.unit(query),
            **_about(query, asked.text, chosen_operators(operators, searcher.operators)),
        }
        return {"api": API, "index": index.name, "query": about, "candidates": candidates}


def _note_unread_operators(query: Query, asked: SearchParameters | SearchBody) -> None:
    """Warns of words in a text that look like operators, as the commands do."""
    if asked.query is None:
        return
    decomposition = query if isinstance(query, Decomposition) else None
    parsed = asked.read == "expression"
    topic = Topic("query", asked.query, Atom(asked.query), plain=not parsed, parsed=parsed, decomposition=decomposition)
    for note in notes_on([topic]):
        _logger.warning("%s", note)


def document_answer(index: ServedIndex, docid: str, asked: DocumentParameters, stages: Stages) -> Answer:
    """The stored source of a document, in the form of Pyserini's answer.

    Raises:
        HTTPException: There is no such document.
    """
    with index.searcher() as searcher, stages.measured("documents"):
        _require(searcher, docid)
        return {"api": API, "index": index.name, "docid": docid, "doc": _document(searcher, docid, asked)}


def explain_answer(
    index: ServedIndex, asked: ExplainParameters, limits: Limits, stages: Stages, docid: str | None = None
) -> Answer:
    """What a query became, and what each term adds to the score of a document, if one is named.

    Raises:
        HTTPException: There is no such document.
        CompNegError: A query that costs too much, or that cannot be read or composed.
    """
    with index.searcher() as searcher:
        if docid is not None:
            _require(searcher, docid)
        with stages.measured("read"):
            query, allowed = asked.asked(), asked.allowed()
            operators = asked.operators()
            limits.check(query, operators)
        with stages.measured("explain"):
            docids = [] if docid is None else [docid]
            explained = to_object(explain_query(searcher, query, docids, asked.query, allowed, operators))
        if allowed is not None:
            explained["composed"]["filter"] = allowed.to_json()
        read = {"decomposition": _decomposition(query)} if isinstance(query, Decomposition) else {}
        return {"api": API, "index": index.name, "unit": searcher.unit(query), **explained, **read}


def reading_answer(asked: ReadingParameters) -> Answer:
    """How a text is read, and the tag of each word.

    Raises:
        ArgumentError: Another number of tags than words.
    """
    reading = asked.reading()
    tags = asked.tags.split(",") if asked.tags else packaged_reader().tags(asked.query)
    words = [] if tags is None else zip(words_of(asked.query), tags, strict=True)
    return {"api": API, **_decomposition(reading), "words": [{"span": span, "tag": tag} for span, tag in words]}


def _decomposition(reading: Decomposition) -> Answer:
    return {**decomposition_object(reading), "tree": to_json(reading.expression)}


def _about(query: Query, text: str | None, operators: Operators) -> Answer:
    """The query in an answer. One that was composed elsewhere has no expression, and no operators."""
    if isinstance(query, ScoringNode):
        return {"text": text or ""}
    if isinstance(query, Decomposition):
        expression = query.expression
        read = {"decomposition": _decomposition(query)}
    else:
        expression = parse(query) if isinstance(query, str) else query
        read = {}
    names = {kind: getattr(operators, kind) for kind in ("union", "intersection", "difference")}
    strength = {"difference_weight": operators.strength} if operators.difference in DIFFERENCE_WEIGHTS else {}
    return {
        "text": text or query_text(expression),
        "expression": format_expression(expression),
        "operators": {**names, **strength, "exclusion": operators.exclusion},
        **read,
    }


def _require(searcher: SignedImpactSearcher, docid: str) -> None:
    if not searcher.reader.has(docid):
        raise HTTPException(404, f"Document not found: {docid:.200}")


def _document(searcher: SignedImpactSearcher, docid: str, asked: DocumentParameters) -> Any:
    """The stored source, as Pyserini gives it: without the id, and a single field by itself. Values keep their types.

    The vector of a document that an encoder made elsewhere is no part of its text, and is left out, too.
    """
    raw = searcher.reader.raw(docid)
    if raw is None or not asked.parse:
        return raw
    try:  # others than this package may have stored NaN
        source = json.loads(raw, parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError):
        return raw[: asked.max_doc_length]
    if not isinstance(source, dict):
        return source
    fields = {name: _cut(name, value, asked.max_doc_length) for name, value in source.items() if name not in _NO_TEXTS}
    return next(iter(fields.values())) if len(fields) == 1 else fields


def _number(text: str) -> float | str:
    """A number of JSON; as a text where it is above the largest float, which JSON could not say."""
    return number if math.isfinite(number := float(text)) else text


def _cut(name: str, value: Any, length: int | None) -> Any:
    return value[:length] if isinstance(value, str) and name.lower() in _TEXTS else value


def _explained(searcher: SignedImpactSearcher, node: ScoringNode, docid: str, document: Any) -> Answer:
    """The contributions to a score, largest magnitude first, and the words of the document that they stand for."""
    contributions = searcher.explain(node, docid).contributions
    largest = sorted(contributions, key=lambda part: -abs(part.amount))[:MOST_CONTRIBUTIONS]
    return {
        "contributions": [part._asdict() for part in largest],
        "words": matched_words(" ".join(_texts_of(document)), {part.term for part in largest}),
    }


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_of(part)


def matched_words(text: str, terms: Iterable[str]) -> Mapping[str, list[str]]:
    """The words of a text that terms of a query stand for.

    Args:
        text: The text of a document.
        terms: The terms, pairs included; those of a model may have their prefix.

    Returns:
        For each such word in lower case the terms, single ones only.
    """
    singles = {single for term in terms for single in term.split(PAIR_SIGN)}
    words = sorted({word.lower() for word in _WORD.findall(text)})
    found = {
        word: sorted(singles.intersection((*analysed, word, f"{PREFIX}{word}")))
        for word, analysed in zip(words, analyze(words), strict=True)
    }
    return {word: matched for word, matched in found.items() if matched}
