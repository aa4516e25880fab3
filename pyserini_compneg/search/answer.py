"""The answer to a query: what lists, runs, the page and the interfaces for programs show, each in its own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyserini_compneg.compose import Operators, QueryEncoder, ScoringNode
from pyserini_compneg.compose.queries import ParsedQuery, parsed_queries
from pyserini_compneg.compose.scoring import Excluding
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import ID, as_sort
from pyserini_compneg.lucene import Reader
from pyserini_compneg.search.lacking import lacking_operands
from pyserini_compneg.search.matches import Counting, Matches, count_matches
from pyserini_compneg.search.ranked_hits import ranked_hits, warn_of_no_result
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.progress import gathered_warnings, stage
from pyserini_compneg.support.terminal import shown


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search finds for one query.

    Attributes:
        qid: The id of the query.
        query: The query as it was understood.
        hits: The best documents, best first.
        node: The scoring tree that ranks them; None if a method found them.
        lacks: For each hit, the operands of AND that it lacks, as expressions.
        matches: How many documents match, and facets; None if nobody asked, and for methods.
    """

    qid: str
    query: ParsedQuery
    hits: Sequence[Hit]
    node: ScoringNode | None
    lacks: Sequence[tuple[str, ...]]
    matches: Matches | None = None


def found_answers(request: SearchRequest, found: Mapping[str, Sequence[Hit]]) -> list[Answer]:
    """The answers of a method that has found hits for each query. A method may be a user's own, so they are checked."""
    if not isinstance(found, Mapping) or not all(isinstance(found.get(qid, ()), Sequence) for qid in request.qids):
        what = "a method must give a list of hits for each qid, as {qid: [Hit(docid, score), ...]}"
        raise ArgumentError(f"{what}, got {shown(found)}")
    asked_for = set(request.qids)
    if unknown := [qid for qid in found if qid not in asked_for]:
        raise ArgumentError(f"the method has hits for the qid {shown(unknown[0])}, which the request does not have")
    hits = [hit for qid in request.qids for hit in found.get(qid, ())]
    if other := next((hit for hit in hits if not isinstance(hit, Hit)), None):
        raise ArgumentError(f"a method must give hits, such as Hit(docid, score), got {shown(other)}")
    kept = [request.without_query(qid, found.get(qid, ()))[request.skipped :] for qid in request.qids]
    asked = zip(request.qids, parsed_queries(request.queries), kept, strict=True)
    return [Answer(qid, query, hits, None, [()] * len(hits)) for qid, query, hits in asked]


def composed_answers(
    reader: Reader,
    request: SearchRequest,
    queries: Sequence[ParsedQuery],
    nodes: Sequence[ScoringNode],
    encoder: QueryEncoder | None,
    operators: Operators,
) -> list[Answer]:
    """The answers that composed queries find. ``nodes`` are the ``queries`` of the request, composed by the operators.

    The ``encoder`` gives the words of operands; composed queries, which have none, need no encoder.
    """
    qids, threads, filters = request.qids, request.threads, request.filters
    with stage("search"):
        with gathered_warnings():
            sort = as_sort(request.sort)
            rankings = ranked_hits(reader, nodes, qids, request.depth, threads, filters, request.after, sort)
        if not any(request.after):
            warn_of_no_result(reader, qids, rankings, queries, nodes, filters)
        first = list(map(request.without_query, qids, rankings))
        kept = [hits[request.skipped :] for hits in first]
        lacks: list[list[tuple[str, ...]]] = [[()] * len(hits) for hits in kept]
        if request.lacks and encoder is not None:
            docids = [[hit.docid for hit in hits] for hits in kept]
            lacks = lacking_operands(reader, encoder, operators, queries, docids, threads)
    answers = list(map(Answer, qids, queries, kept, nodes, lacks))
    counting = request.counting
    if counting is None:
        return answers
    with stage("count"):
        return [
            replace(one, matches=_counted(reader, request, one, len(hits), filter, counting))
            for one, hits, filter in zip(answers, first, filters, strict=True)
        ]


def _counted(
    reader: Reader, request: SearchRequest, answer: Answer, found: int, filter: Filter | None, counting: Counting
) -> Matches:
    node = answer.node
    assert node is not None
    if request.remove_query:
        node = Excluding(node, (Filter({ID: answer.qid}),), (0.0,))
    before = request.offset - request.skipped  # the hits of earlier pages
    known = None if any(request.after) and not before else before + found
    return count_matches(reader, node, filter, counting, request.threads, known, request.offset + request.k)
