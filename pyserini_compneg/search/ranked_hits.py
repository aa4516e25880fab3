"""The hits of composed queries, with messages that name a query that failed or found nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import repeat, zip_longest

from pyserini_compneg.compose import Query, ScoringNode, is_empty, query_text
from pyserini_compneg.compose.adapting import MATERIALISED
from pyserini_compneg.compose.queries import checked_queries, lacking_pairs, parsed_queries, why_empty
from pyserini_compneg.compose.scoring import Excluding
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.compose.trees import nodes as tree_nodes
from pyserini_compneg.expression import Expression, Filter
from pyserini_compneg.expression.filters import ID, Sort
from pyserini_compneg.lucene import Ranking, Reader
from pyserini_compneg.lucene.rankings import PassageRanking
from pyserini_compneg.lucene.reader import QueryFailure
from pyserini_compneg.search.run_writer import Hit, PassageHit
from pyserini_compneg.support.arguments import checked_count, checked_list
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, QueryError
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.terminal import shown

_UNMATCHED = "no document matches"
_MOST_COMPARED = 10


def ranked_hits(
    reader: Reader,
    nodes: Sequence[ScoringNode],
    names: Sequence[str],
    k: int,
    threads: int = 1,
    filters: Sequence[Filter | None] = (),
    after: Sequence[Hit | None] = (),
    sort: Sort | None = None,
) -> list[list[Hit]]:
    """The k best documents of each composed query. Messages use ``names``. Empty ``filters`` mean no filter.

    A ranking begins behind the hit of ``after``, if there is one. With ``sort``, it has this order.
    """
    k, threads = checked_count("k", k), checked_count("threads", threads)
    for name, node, asked in zip_longest(names, nodes, filters):
        try:
            _warn_of_unknown(reader, name, node, asked, names)
        except IndexFormatError as error:
            raise error.at(f"query {name:.60}") from None
    try:
        if sort is not None:
            after = [
                hit and _placed(reader, node, hit, sort)
                for node, hit in zip_longest(nodes, after or [None] * len(nodes))
            ]
        rankings = reader.search(nodes, k, threads, filters, after=after, sort=sort)
    except QueryFailure as failure:
        raise failure.at(f"query {names[failure.position]:.60}") from None
    hits = list(map(_hits, rankings))
    return hits if sort is None else [_scored(reader, *one, threads) for one in zip(nodes, hits, strict=True)]


def _placed(reader: Reader, node: ScoringNode, hit: Hit, sort: Sort) -> Hit:
    """The hit with its place in the order as its score."""
    (found,) = reader.search([node], 1, filters=[Filter({ID: hit.docid})], sort=sort)
    if not found.docids:
        raise ArgumentError(f"after must be a hit of this query, got the document {shown(hit.docid)}")
    return hit._replace(score=found.scores[0])


def _scored(reader: Reader, node: ScoringNode, hits: list[Hit], threads: int) -> list[Hit]:
    """Sorted hits with their scores, and with the best passage of each document."""
    docids = [hit.docid for hit in hits]
    if any(isinstance(hit, PassageHit) for hit in hits):
        (ranking,) = reader.search([node], len(docids), threads, [Filter({ID: docids})])
        best = {hit.docid: hit for hit in _hits(ranking)}
        return [best[docid] for docid in docids]
    (scores,) = reader.score([node], [docids], threads)
    return [hit._replace(score=score or 0.0) for hit, score in zip(hits, scores, strict=True)]


def _hits(ranking: Ranking) -> list[Hit]:
    if isinstance(ranking, PassageRanking):
        return list(map(PassageHit, ranking.docids, ranking.scores, ranking.passages))
    pairs = zip(ranking.docids, ranking.scores, strict=True)
    return list(map(tuple.__new__, repeat(Hit), pairs))  # Hit._make takes twice the time


def _warn_of_unknown(reader: Reader, name: str, node: ScoringNode, asked: Filter | None, names: Sequence[str]) -> None:
    """Warns of ids that are not in the index, and of conditions after NOT! that match no document."""
    if asked is not None:
        found = reader.filtered(asked)
        said = f"{found.unknown} of {len(asked.fields.get(ID, ()))} ids in the filter are not in the index, such as "
        warn_of("query", "queries", said + shown(found.first), {name: name} if found.unknown else {}, names)
    excluded = [part for inner in tree_nodes(node) if isinstance(inner, Excluding) for part in inner.excluded]
    for part in excluded:
        if isinstance(part, Filter):
            idle = {} if reader.filtered(part).allowed else {name: name}
            said = f"no document has {shown(str(part))}, so NOT! excludes none by it"
            warn_of("query", "queries", said, idle, names)


def as_expressions(queries: Sequence[Query]) -> list[Expression]:
    """The expression of each query. A composed query has no expression and is refused."""
    expressions = []
    for query in parsed_queries(queries):
        if query.expression is None:
            what = "a composed query has no atoms any more, so only operators run it"
            raise QueryError(what, remedy="leave out the method")
        expressions.append(query.expression)
    return expressions


def checked_docids(queries: Sequence[Query], docids: Sequence[Sequence[str]]) -> tuple[list[Query], list[list[str]]]:
    queries = checked_queries(queries)
    groups = [checked_list("docids", one) for one in checked_list("docids", docids)]
    if other := [docid for group in groups for docid in group if not isinstance(docid, str)]:
        raise ArgumentError(f"docids must be texts, got {shown(other[0])}")
    if len(groups) != len(queries):
        raise ArgumentError(f"{len(queries)} queries need as many lists of docids, got {len(groups)}")
    return queries, groups


def scored(
    reader: Reader, nodes: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int
) -> list[list[float | None]]:
    """The scores of each composed query's documents. Warns of documents that the index does not have."""
    scores = reader.score(nodes, docids, threads)
    found = [pair for pairs in zip(docids, scores, strict=True) for pair in zip(*pairs, strict=True)]
    unknown = {docid: shown(docid) for docid, score in found if score == math.inf}
    said = "not in the index, so there is no score"
    warn_of("document", "documents", said, unknown, [docid for docid, _ in found])
    return [[None if score == math.inf else score for score in group] for group in scores]


def check_pairs(reader: Reader, cpt: str) -> None:
    """Refuses ``materialised`` conjunctions on an index without pairs."""
    manifest = reader.manifest
    if cpt == MATERIALISED and not (manifest and (manifest.pair_terms or manifest.pairs)):
        remedy = (
            "build it with compneg index --pairs-from TOPICS or --pair-terms N, or use --cpt factored, which needs none"
        )
        raise IndexFormatError(f"{reader.folder} holds no pairs of terms", remedy=remedy)


def warn_of_lacking_pairs(reader: Reader, queries: Sequence[Query], nodes: Sequence[ScoringNode]) -> None:
    """Warns of queries with pairs that an index of chosen pairs was not given. It misses documents of such a pair."""
    if not (reader.manifest and reader.manifest.pairs):
        return
    texts, known = list(map(query_text, queries)), frozenset(reader.manifest.pairs)
    found = {}
    for text, node in zip(texts, nodes, strict=True):
        lacking, count = lacking_pairs(node, known)
        if lacking:
            found[text] = f"{shown(text)} ({len(lacking)} of {count} pairs, such as {lacking[0]})"
    said = "the index was built without pairs of it, so documents are missed; use --cpt factored, which misses none"
    warn_of("query", "queries", said, found, texts)


def ranked(hits: Iterable[Hit], k: int) -> list[Hit]:
    """The k best of some hits: higher scores first, equal scores by ascending docid.

    >>> ranked([Hit("b", 1.0), Hit("a", 1.0), Hit("c", 2.0)], 2)
    [Hit(docid='c', score=2.0), Hit(docid='a', score=1.0)]
    """
    return sorted(hits, key=lambda hit: (-hit.score, hit.docid))[:k]


def warn_of_no_result(
    reader: Reader,
    names: Sequence[str],
    rankings: Sequence[Sequence[Hit]],
    queries: Sequence[Query],
    nodes: Sequence[ScoringNode],
    filters: Sequence[Filter | None] = (),
) -> None:
    """Warns of queries that found nothing, with the reason; once for all if the index has no term of any of them."""
    if all(rankings):
        return
    terms = [term for node in nodes for vector in leaf_vectors(node) for term in vector]
    foreign = len(names) > 1 and not any(rankings) and bool(terms) and not any(reader.document_frequencies(terms))
    said = "no result, for the index has none of their terms; it was probably made with another encoder, so name that "
    said += "one as --encoder"
    warn_of("query", "queries", said, {name: f"{name} (term {shown(terms[0])})" for name in names if foreign}, names)
    if foreign:
        return
    reasons: dict[str, dict[str, str]] = {}
    for name, ranked, query, node, asked in zip_longest(names, rankings, queries, nodes, filters):
        if not ranked:
            why = why_empty(query) if is_empty(node) else _UNMATCHED
            if asked is not None and not is_empty(node):
                found = reader.filtered(asked)
                some = f"{why} among {found.allowed:,} that its filter allows ({asked})"
                why = some if found.allowed else f"its filter allows none ({asked}); {_remedy(asked, found.values)}"
            reasons.setdefault(why, {})[name] = name
    for why, affected in reasons.items():
        warn_of("no result for query", "queries have no result", why, affected, names)


def _remedy(asked: Filter, known: Mapping[str, Sequence[str]]) -> str:
    """What may be wrong with a filter that allows no document: a word that resembles one of the known values."""
    for field in sorted(asked.fields.keys() & known.keys()):
        by_lower = {value.lower(): value for value in known[field]}
        for name in sorted(set(asked.fields[field]).difference(known[field]))[:_MOST_COMPARED]:
            close = get_close_matches(name.lower(), by_lower, 1)
            if close and any(map(str.isalpha, name)):
                return f"did you mean {field}={by_lower[close[0]]}?"
    return "values are exact, and a range is 1990..1999"
