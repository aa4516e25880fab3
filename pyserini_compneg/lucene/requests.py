"""What a reader of an index is asked, and what each reader offers to the code above."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene.manifest import Manifest
from pyserini_compneg.lucene.rankings import MatchCount, Ranking
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.terminal import shown

EMPTY: Mapping[str, int] = MappingProxyType({})

After: TypeAlias = tuple[str, float] | None
"""The docid and the score of the hit behind which a ranking begins; None for a ranking from its first hit."""


@dataclass(frozen=True, slots=True)
class ComposedSearch:
    """Composed queries that are searched or counted together; :meth:`Searching.search` describes the fields.

    The lists are checked and filled: each query has a filter, a threshold and a hit to begin behind, or their None.
    """

    queries: Sequence[ScoringNode]
    hits: int = 0
    threads: int = 1
    filters: Sequence[Filter | None] = ()
    thresholds: Sequence[float] = ()
    after: Sequence[After] = ()
    facets: Mapping[str, int] = field(default_factory=dict)
    passages_of: str | None = None  # a field whose values documents share that are counted once

    def __post_init__(self) -> None:
        queries = checked_nodes(self.queries)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "facets", dict(self.facets))  # EMPTY cannot be sent to another process
        for name, default in (("filters", None), ("thresholds", -math.inf), ("after", None)):
            given = checked_list(name, getattr(self, name)) or [default] * len(queries)
            if len(given) != len(queries):
                what = f"{name} must have one entry for each of {len(queries)} queries, got {len(given)}"
                raise ArgumentError(what)
            object.__setattr__(self, name, given)
        for hit in self.after:
            if hit is not None and not _is_hit(hit):
                raise ArgumentError(f"after must be a hit, a docid and its score, got {shown(hit)}")

    def of_query(self, place: int) -> Self:
        """The search of one of the queries."""
        lists = "queries", "filters", "thresholds", "after"
        one: dict[str, Any] = {name: [getattr(self, name)[place]] for name in lists}
        return replace(self, **one)


def checked_nodes(queries: Sequence[ScoringNode]) -> Sequence[ScoringNode]:
    """Refuses anything but a list of composed queries."""
    for query in checked_list("queries", queries):
        if not isinstance(query, ScoringNode):
            raise ArgumentError(f"a reader takes composed queries, got {shown(query)}", remedy="compose it")
    return queries


def _is_hit(value: object) -> bool:
    match value:
        case (str(), Real() as score):
            return math.isfinite(score)
    return False


class WorkDone(NamedTuple):
    """The work of all searches since the index was opened."""

    postings_read: int
    documents_scored: int


class Filtered(NamedTuple):
    """The documents that a filter allows in an index.

    If a filter asks for a range of a field without numbers, or for a text such as ``1990..x`` that no document has, a
    shard does not refuse it, because another shard may have the numbers or the text. ``faults`` has a message for each
    of these values. A value is refused if all shards have it there, and one of the messages is not empty.
    """

    allowed: int  # documents that are not deleted
    unknown: int  # ids of the filter that the index does not have
    first: str | None  # the first of these ids
    java: Any  # the filter, for the companion
    faults: Mapping[str, str]
    values: Mapping[str, Sequence[str]]  # if it allows none: those of its fields that have few


class Searching(Protocol):
    """What every reader offers users: searches by arguments. Each kind of reader answers them as one request."""

    def find(self, request: ComposedSearch) -> Sequence[Ranking]:
        """The ranking of each query; see :meth:`search`."""
        ...

    def count(self, request: ComposedSearch) -> list[MatchCount]:
        """The matches of each query, and its facets; see :meth:`matches`."""
        ...

    def close(self) -> None:
        """Closes the index; may be called twice."""
        ...

    def search(
        self,
        queries: Sequence[ScoringNode],
        hits: int,
        threads: int = 1,
        filters: Sequence[Filter | None] = (),
        thresholds: Sequence[float] = (),
        after: Sequence[After] = (),
    ) -> list[Ranking]:
        """Searches composed queries.

        Args:
            queries: Scoring trees.
            hits: The most documents to return for each query.
            threads: How many queries are searched at once. With fewer queries, the threads search parts of a large
                index; the rankings are identical to the last bit.
            filters: For each query, a filter of the documents that it may find, or None. Empty means no filters.
            thresholds: For each query, a score; documents below it may be left out. Empty means no thresholds.
            after: For each query, the hit behind which its ranking begins, or None. Empty means from the first hit.

        Returns:
            A ranking for each query, in the order of the queries: higher scores first, equal scores by ascending docid.

        Raises:
            ArgumentError: The number of filters, thresholds or hits in ``after`` is not the number of queries.
            QueryFailure: The index cannot answer a query.
            SearchCancelled: The :class:`~pyserini_compneg.lucene.cancellation.Cancellation` of this thread ends the
                search.
            IndexFormatError: The index does not have a field of a filter.
        """
        return list(self.find(ComposedSearch(queries, hits, threads, filters, thresholds, after)))

    def matches(
        self,
        queries: Sequence[ScoringNode],
        filters: Sequence[Filter | None] = (),
        facets: Mapping[str, int] = EMPTY,
        threads: int = 1,
    ) -> list[MatchCount]:
        """Counts the documents that composed queries match: those that a search for all hits would find.

        Args:
            queries: As for :meth:`search`.
            filters: As for :meth:`search`.
            facets: Filter fields, each with the number of values to give: those that most of the matching documents
                have, equal counts by ascending value.
            threads: As for :meth:`search`.

        Raises:
            IndexFormatError: As :meth:`search`; also, a facet is no filter field.
        """
        return self.count(ComposedSearch(queries, threads=threads, filters=filters, facets=facets))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reader(Searching, Protocol):
    """An open index, as searches need it: whole, in shards or of passages. :class:`ImpactReader` describes members."""

    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Manifest | None: ...
    @property
    def lost(self) -> Sequence[str]: ...
    @property
    def is_partial(self) -> bool: ...
    @property
    def update(self) -> Mapping[str, Any]: ...
    @property
    def updates(self) -> int: ...
    @property
    def document_count(self) -> int: ...
    @property
    def counted_documents(self) -> int: ...
    @property
    def field_document_count(self) -> int: ...
    @property
    def content_id(self) -> str: ...
    @property
    def filtered(self) -> Callable[[Filter], Filtered]: ...
    def is_replaced(self) -> bool: ...
    def reopen(self) -> bool: ...
    def stored(self) -> tuple[bool, bool]: ...
    def document_frequencies(self, terms: Sequence[str], /) -> list[int]: ...
    def score(
        self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1
    ) -> list[list[float | None]]: ...
    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None: ...
    def unknown_document(self, docid: str, /) -> InputError: ...
    def has(self, docid: str) -> bool: ...
    def raw(self, docid: str) -> str | None: ...
    def raws(self, docids: Sequence[str]) -> list[str | None]: ...
    def vector(self, docid: str) -> dict[str, int] | None: ...
    def work_done(self) -> WorkDone: ...
