"""The request of a search: what is asked for, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.compose import Operators, Query
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.compose.queries import ParsedQuery, checked_queries, parsed_queries, parsed_query
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import Values, as_filter
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.reading import READINGS
from pyserini_compneg.search.matches import Counting
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.support.arguments import checked_count, checked_list
from pyserini_compneg.support.errors import ArgumentError

FilterLike: TypeAlias = Filter | Mapping[str, Values] | None
"""A filter, or its fields; None means no filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """Queries that are answered together, and what is asked for each.

    Attributes:
        queries: The queries: expressions as text or as trees, readings of plain texts, or composed queries.
        qids: The id of each query; ``()`` for 1, 2, and so on. Messages name a query by its id.
        k: The number of hits for each query.
        threads: How many queries are searched at once. With fewer queries, the threads search parts of a large index.
        operators: The operators for union, intersection and difference; None for the searcher's own.
        filter: The documents that may be found, such as ``{"genre": ["Comedy", "War"], "year": "1990..1999"}`` or
            ``{"id": [...]}``: one filter for all queries, or a sequence with one for each. Filters change no scores.
        offset: The number of hits before the k hits; with ``after``, they are those up to its hit.
        after: For each query, the last hit of the page before, to get the page behind it, or None; empty for none.
        remove_query: Whether to leave out the document that has the id of the query. There are still k hits.
        read: How texts are read: ``expression``, ``plain`` (as one atom), ``model``, ``llm``, or the folder of a
            reader, as with ``--read``.
        lacks: Whether to find the operands of AND that hits lack; see :meth:`SignedImpactSearcher.lacking`.
        counting: What to count of the documents that match; None counts nothing.
        filters: The filter of each query, or None.

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
    filters: Sequence[Filter | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        queries = checked_queries(self.queries)
        numbers = list(map(str, range(1, len(queries) + 1)))
        qids = numbers if self.qids == () else checked_list("qids", self.qids)
        if len(qids) != len(queries) or len(set(qids)) != len(qids):
            raise ArgumentError(f"{len(queries)} queries need as many distinct qids, got {len(set(qids))}")
        offset = checked_count("offset", self.offset) if self.offset else 0
        if offset and any(self.after) and not all(self.after):
            raise ArgumentError("with offset, either all queries have a hit in after, or none")
        checked = {
            "queries": queries,
            "qids": qids,
            "k": checked_count("k", self.k),
            "threads": checked_count("threads", self.threads),
            "operators": self.operators and chosen_operators(self.operators),
            "offset": offset,
            "remove_query": bool(self.remove_query),
            "filters": _filters(self.filter, len(queries)),
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
        """The hits of a query without the document that is left out; one more than asked for is cut."""
        if self.remove_query:
            hits = [hit for hit in hits if hit.docid != str(qid)]
        return hits[: self.skipped + self.k]

    def parsed(self, language: str) -> list[ParsedQuery]:
        """The queries as they are understood, for an index of texts in a language."""
        if self.read == "model" and language != ENGLISH:
            what = f"the model reads English, and the language of the index is {language}"
            raise ArgumentError(what, where="read", remedy="write an expression")
        return parsed_queries(self.queries, self.read)


def _filters(given: FilterLike | Sequence[FilterLike], count: int) -> list[Filter | None]:
    """The filter of each of ``count`` queries, given as one filter for all or one for each."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    filters = list(map(as_filter, given)) if several else [as_filter(given)] * count  # type: ignore[arg-type]
    if len(filters) != count:
        raise ArgumentError(f"{count} queries need one filter, or as many, got {len(filters)}")
    return filters


def query_name(query: Query) -> str:
    """The name of a query in messages: at most 60 characters of its text. A composed query is not written out.

    >>> query_name("spy films")
    'spy films'
    """
    if isinstance(query, str):
        text = query
    else:
        parsed = parsed_query(query)
        text = parsed.text if parsed.composed is None else "of composed weights"
    return text if len(text) <= 60 else f"{text[:57]}..."
