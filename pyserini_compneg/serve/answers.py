"""Makes answers, JSON values, from checked parameters. This work of a request runs in a thread of the pool."""

from __future__ import annotations

import logging
from typing import Any, cast

from fastapi import HTTPException

from pyserini_compneg.compose import Operators, ScoringNode
from pyserini_compneg.compose.queries import ParsedQuery
from pyserini_compneg.display.concepts import names_of
from pyserini_compneg.display.highlights import (
    SpanFinder,
    excluded_terms,
    excluded_words,
    marked_words,
    shown_fields,
    span_finder,
    stored_source,
    texts_of,
    words_of_terms,
)
from pyserini_compneg.display.query_explanation import explain_query, to_object
from pyserini_compneg.expression import Atom, Filter, to_json
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.reading import warn_of_doubts
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.reading.decomposition import to_object as decomposition_object
from pyserini_compneg.reading.model_reader import packaged_reader
from pyserini_compneg.reading.words import words_of
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.matches import Counting
from pyserini_compneg.search.request import SearchRequest, query_name
from pyserini_compneg.search.run_writer import PassageHit
from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.cursors import Ranking
from pyserini_compneg.serve.parameters import (
    DocumentParameters,
    ExplainParameters,
    ReadingParameters,
    SearchBody,
    SearchParameters,
)
from pyserini_compneg.serve.queries import read_query, read_words
from pyserini_compneg.serve.replies import (
    API,
    AskedQuery,
    Candidate,
    Contribution,
    DocumentReply,
    ExplainReply,
    HighlightReply,
    PassageReply,
    PlaceReply,
    Reading,
    ReadingReply,
    SearchReply,
)
from pyserini_compneg.serve.served_index import ServedIndex, generation
from pyserini_compneg.support.progress import stage
from pyserini_compneg.support.vectors import PAIR_SIGN
from pyserini_compneg.topics.topics import Topic
from pyserini_compneg.topics.unread import notes_on

_MOST_CONTRIBUTIONS = 100
"""The number of largest contributions of a hit. ``explain`` of one document gives all."""

_TEXTS = ("body", "content", "contents", "text")

_logger = logging.getLogger(__name__)


def search_answer(backend: Backend, name: str | None, asked: SearchParameters | SearchBody) -> SearchReply:
    """The answer to a search, in the form of Pyserini's answer, with more fields about the query."""
    index = backend.index(name)
    with index.searcher() as searcher:
        with stage("read"):
            query, operators, allowed = _read(asked, backend, searcher.language)
        ranking = Ranking.of(searcher, query, operators, allowed, asked.sort)
        before, after = (asked.offset, None) if asked.cursor is None else ranking.place(asked.cursor)
        request = SearchRequest(
            queries=[query],
            qids=[query_name(query)],
            k=asked.hits + 1,  # one more says whether there are more
            operators=operators,
            filter=allowed,
            offset=before,
            after=[after],
            lacks=True,
            counting=Counting(asked.total, asked.facets or {}),
            sort=asked.sort,
        )
        (answer,) = searcher.answers(request)
        assert answer.node is not None and answer.matches is not None
        hits, more = answer.hits[: asked.hits], len(answer.hits) > asked.hits
        candidates: list[Candidate] = []
        find = span_finder(searcher) if asked.explain or asked.highlight else None
        excluded = excluded_terms(searcher, query) if asked.highlight else set()
        for rank, (hit, lacks) in enumerate(zip(hits, answer.lacks, strict=False), before + 1):
            check_cancelled()  # reading a thousand documents takes time, too
            with stage("documents"):
                raw = searcher.reader.raw(hit.docid)
                source = stored_source(raw)
            candidate = Candidate(docid=hit.docid, score=hit.score, rank=rank, doc=_document(raw, source, asked))
            if isinstance(hit, PassageHit):
                found_by = searcher.passage(hit, source)
                candidate["passage"] = cast("PassageReply", found_by._asdict() if found_by else {"number": hit.passage})
            if lacks:
                candidate["lacks"] = list(lacks)
            if excluded and (places := excluded_words(searcher, source, excluded)):
                candidate["excluded"] = [cast("PlaceReply", one._asdict()) for one in places]
            if find:
                with stage("explain"):
                    _explain(candidate, source, searcher, answer.node, asked, find)
            candidates.append(candidate)
        about = _about(query, asked, operators, searcher.unit(query))
        reply = {**_named(index, searcher), "query": about, **answer.matches.to_object(), "candidates": candidates}
        terms = (part["term"] for one in candidates for part in one.get("contributions", []))
        if concepts := names_of(terms, searcher.reader.concepts if asked.explain else ()):
            reply["concepts"] = concepts
        reply["hasMore"] = more
        if more and hits:
            reply["cursor"] = ranking.cursor(before + len(hits), hits[-1])
        return cast("SearchReply", reply)


def _named(index: ServedIndex, searcher: SignedImpactSearcher) -> dict[str, Any]:
    """The fields with which every answer of an index begins."""
    return {"api": API, "index": index.name, "generation": generation(searcher)}


def _read(
    asked: SearchParameters | ExplainParameters | SearchBody, backend: Backend, language: str
) -> tuple[ParsedQuery, Operators, Filter | None]:
    """The query as in ``read_query``. Like the commands, warns of texts that may be misread, or refuses them."""
    query, operators, allowed = read_query(asked, backend.limits, language)
    decomposition = query.reading
    if decomposition and asked.unsure == "refuse" and not decomposition.understood:
        said = f"query: may be misread: {'; '.join(decomposition.doubts)}; write an expression, or give tags"
        raise HTTPException(422, {"error": said, "decomposition": _reading(decomposition)})
    text = asked.query or (asked.expression if isinstance(asked, SearchBody) else None)
    if isinstance(text, str):
        parsed = asked.read == "expression"
        topic = Topic("query", text, Atom(text), plain=not parsed, parsed=parsed, decomposition=decomposition)
        warn_of_doubts({"query": decomposition} if decomposition else {}, "decompose")
        for note in notes_on([topic]):
            _logger.warning("%s", note)
    return query, operators, allowed


def document_answer(backend: Backend, name: str | None, docid: str, asked: DocumentParameters) -> DocumentReply:
    """The stored source of a document, in the form of Pyserini's answer."""
    index = backend.index(name)
    with index.searcher() as searcher, stage("documents"):
        _require(searcher, docid)
        raw = searcher.reader.raw(docid)
        shown = {"docid": docid, "doc": _document(raw, stored_source(raw), asked)}
        return cast("DocumentReply", _named(index, searcher) | shown)


def explain_answer(
    backend: Backend, name: str | None, asked: ExplainParameters, docid: str | None = None
) -> ExplainReply:
    """The composed query and, if a document is named, the contribution of each term to its score."""
    index = backend.index(name)
    with index.searcher() as searcher:
        if docid is not None:
            _require(searcher, docid)
        with stage("read"):
            query, operators, allowed = _read(asked, backend, searcher.language)
        with stage("explain"):
            docids = [] if docid is None else [docid]
            explained = to_object(explain_query(searcher, query, docids, asked.query, allowed, operators))
        if allowed is not None:
            explained["composed"]["filter"] = allowed.to_json()
        answer = {**_named(index, searcher), "unit": searcher.unit(query), **explained}
        if query.reading:
            answer["decomposition"] = _reading(query.reading)
        return cast("ExplainReply", answer)


def reading_answer(asked: ReadingParameters) -> ReadingReply:
    """The decomposition of a text, and the tag of each word."""
    reading = read_words(asked.query, asked.tags)
    tags = asked.tags.split(",") if asked.tags else packaged_reader().tags(asked.query)
    words = [] if tags is None else zip(words_of(asked.query), tags, strict=True)
    return {"api": API, **_reading(reading), "words": [{"span": span, "tag": tag} for span, tag in words]}


def _reading(reading: Decomposition) -> Reading:
    return cast("Reading", {**decomposition_object(reading), "tree": to_json(reading.expression)})


def _about(query: ParsedQuery, asked: SearchParameters | SearchBody, operators: Operators, unit: float) -> AskedQuery:
    typed = asked.query or (asked.contents if isinstance(asked, SearchBody) else None)
    if query.expression is None:
        return {"unit": unit, "text": typed or ""}
    chosen: dict[str, Any] = operators.names
    if operators.default_strength is not None:
        chosen["difference_weight"] = operators.strength
    about: AskedQuery = {
        "unit": unit,
        "text": typed or query.text,
        "expression": query.text,
        "operators": {**chosen, "exclusion": operators.exclusion},
    }
    if query.reading:
        about["decomposition"] = _reading(query.reading)
    return about


def _require(searcher: SignedImpactSearcher, docid: str) -> None:
    if not searcher.reader.has(docid):
        raise HTTPException(404, f"Document not found: {docid:.200}")


def _document(raw: str | None, source: Any, asked: DocumentParameters) -> Any:
    """A stored source, as in Pyserini: without the id, a single field as its value. Values keep their types.

    A vector from another encoder is not part of the document's text, and is also left out.
    """
    if raw is None or not asked.parse:
        return raw
    if source is raw:  # no JSON
        return raw[: asked.max_doc_length]
    if not isinstance(source, dict):
        return source
    fields = {name: _cut(name, value, asked.max_doc_length) for name, value in shown_fields(source).items()}
    return next(iter(fields.values())) if len(fields) == 1 else fields


def _cut(name: str, value: Any, length: int | None) -> Any:
    return value[:length] if isinstance(value, str) and name.lower() in _TEXTS else value


def _explain(
    candidate: Candidate,
    source: Any,
    searcher: SignedImpactSearcher,
    node: ScoringNode,
    asked: SearchParameters | SearchBody,
    find: SpanFinder,
) -> None:
    """Adds the contributions to the score, largest magnitude first, and the words of the document behind them."""
    explanation = searcher.explain(node, candidate["docid"])
    contributions = explanation.contributions
    if asked.highlight:
        marked = marked_words(searcher, source, explanation, find)
        candidate["highlights"] = [cast("HighlightReply", one._asdict()) for one in marked]
    if asked.explain:
        largest = sorted(contributions, key=lambda part: -abs(part.amount))[:_MOST_CONTRIBUTIONS]
        candidate["contributions"] = [Contribution(term=part.term, amount=part.amount) for part in largest]
        singles = {single for part in largest for single in part.term.split(PAIR_SIGN)}
        text = "\n".join(text for _, text in texts_of(candidate["doc"]))
        candidate["words"] = words_of_terms(text, singles, find)
