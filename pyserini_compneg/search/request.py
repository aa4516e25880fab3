"""The request of a search: what is asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.compose import Operators, Query, ScoringNode
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.compose.queries import ParsedQuery, checked_queries, parsed_queries, parsed_query
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import Sort, Values, as_filter, as_sort
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.reading import READINGS
from pyserini_compneg.search.matches import Counting
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.support.arguments import checked_count, checked_list
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown

FilterLike: TypeAlias = Filter | Mapping[str, Values] | None
"""A filter, or its fields; None means no filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """Queries that are answered together, and what is asked for each.

    Attributes:
        queries: The queries: expressions as text or as trees, readings of plain texts, or composed queries. A method
            gets them as :class:`~pyserini_compneg.compose.ParsedQuery`.
        qids: The id of each query; ``()`` for 1, 2, and so on. Messages name a query by its id.
        k: The number of hits for each query.
        threads: How many queries are searched at once. With fewer queries, the threads search parts of a large index.
        operators: The operators for union, intersection and difference; None for the searcher's own.
        filter: The documents that may be found, such as ``{"genre": ["Comedy", "War"], "year": "1990..1999"}`` or
            ``{"id": [...]}``: one filter for all queries, or a sequence with one for each. Filters change no scores.
        offset: The number of hits that come before the k hits, as on earlier pages.
        after: For each query, the hit behind which the k hits begin, the last one of the page before, or None; empty
            for none. An ``offset`` then only says how many hits came before, for counts.
        remove_query: Whether to leave out the document that has the id of the query. There are still k hits.
        read: How texts are read: ``expression``, ``plain`` (as one atom), ``model``, ``llm``, or the folder of a
            reader, as with ``--read``.
        lacks: Whether to find the operands of AND that hits lack; see :meth:`SignedImpactSearcher.lacking`.
        counting: What to count of the documents that match; None counts nothing.
        sort: An order of hits by a filter field, such as ``year`` or ``year:desc``, in place of their scores; see
            :class:`~pyserini_compneg.expression.filters.Sort`. Hits keep their scores. None for the order of scores.
        filters: The filter of each query, or None, made of ``filter``.

    Raises:
        ArgumentError: An argument has a wrong type, k or threads is below 1, or there are too many or too few ids,
            filters or hits in ``after``.
    """

    queries: Sequence[Query]
    qids: Sequence[str] = ()
    k: int = 10
    threads: int = 1
    operators: Operators | None = None
    filter: FilterLike | Sequence[FilterLike] = None
    offset: int = 0
    after: Sequence[Hit | None] = ()
    remove_query: bool = False
    read: str | Path = READINGS[0]
    lacks: bool = False
    counting: Counting | None = None
    sort: Sort | str | None = None
    filters: Sequence[Filter | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        queries = checked_queries(self.queries)
        is_numbered = isinstance(self.qids, tuple) and not self.qids
        qids = list(map(str, range(1, len(queries) + 1))) if is_numbered else checked_list("qids", self.qids)
        if other := [qid for qid in qids if not isinstance(qid, (str, Integral))]:
            raise ArgumentError(f"qids must be texts, got {shown(other[0])}")
        distinct = set(map(str, qids))  # as in a run
        if len(qids) != len(queries) or len(distinct) != len(qids):
            raise ArgumentError(f"{len(queries)} queries need as many distinct qids, got {len(distinct)}")
        if isinstance(self.offset, bool) or not isinstance(self.offset, Integral) or self.offset < 0:
            raise ArgumentError(f"offset must be a whole number from 0, got {shown(self.offset)}")
        offset, after = int(self.offset), _after(self.after, len(queries))
        if offset and any(after) and not all(after):
            raise ArgumentError("with offset, either all queries have a hit in after, or none")
        if self.counting is not None and not isinstance(self.counting, Counting):
            raise ArgumentError(f"counting must be a Counting or None, got {shown(self.counting)}")
        checked = {
            "queries": queries,
            "qids": qids,
            "k": checked_count("k", self.k),
            "threads": checked_count("threads", self.threads),
            "operators": self.operators and chosen_operators(self.operators),
            "offset": offset,
            "after": after,
            "remove_query": bool(self.remove_query),
            "filters": _filters(self.filter, len(queries)),
            "sort": as_sort(self.sort),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def depth(self) -> int:
        """How many documents are searched for."""
        return self.k + self.remove_query + self.skipped

    @property
    def skipped(self) -> int:
        """How many of the hits that are searched for come before the k hits."""
        return 0 if any(self.after) else self.offset

    def without_query(self, qid: str, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The first hits of a query, those before the offset included, without the document that is left out."""
        if self.remove_query:
            hits = [hit for hit in hits if hit.docid != str(qid)]
        return hits[: self.skipped + self.k]

    def parsed(self, language: str) -> list[ParsedQuery]:
        """The queries as they are understood, for an index of texts in a language."""
        if self.read == "model" and language != ENGLISH:
            what = f"the model reads English, and the language of the index is {language}"
            raise ArgumentError(what, where="read", remedy="write an expression")
        return parsed_queries(self.queries, self.read)


def _after(given: Sequence[Hit | None], count: int) -> list[Hit | None]:
    hits = checked_list("after", given)
    if hits and len(hits) != count:
        raise ArgumentError(f"after must have one entry for each of {count} queries, got {len(hits)}")
    return hits


def _filters(given: FilterLike | Sequence[FilterLike], count: int) -> list[Filter | None]:
    """The filter of each of ``count`` queries, given as one filter for all or one for each."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    filters = list(map(as_filter, given)) if several else [as_filter(given)] * count  # type: ignore[arg-type]
    if len(filters) != count:
        raise ArgumentError(f"{count} queries need one filter, or as many, got {len(filters)}")
    return filters


def check_method(method: object, request: SearchRequest) -> None:
    """Refuses what is no method, and what a method cannot have beside it."""
    if not callable(getattr(method, "answer", None)):
        raise ArgumentError(f"method must be an object such as ScoreFusion(), got {shown(method)}")
    if request.operators is not None:
        raise ArgumentError("a method brings its own operators; leave out operators, or method")
    if any(request.after):
        raise ArgumentError("a method has no pages; leave out after, or method")
    if request.sort is not None:
        raise ArgumentError("a method brings its own order; leave out sort, or method")


def query_name(query: Query) -> str:
    """The name of a query in messages: at most 60 characters of its text. A composed query is not written out.

    >>> query_name("spy films")
    'spy films'
    """
    if isinstance(query, str):
        text = query
    else:
        parsed = None if isinstance(query, ScoringNode) else parsed_query(query)
        text = "of composed weights" if parsed is None or parsed.composed is not None else parsed.text
    return text if len(text) <= 60 else f"{text[:57]}..."
