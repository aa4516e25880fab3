"""What a reader of an index is asked, and what each reader offers to the code above."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeAlias

from pyserini_compneg.compose import ScoringNode, query_line
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import Sort
from pyserini_compneg.lucene.manifest import Manifest, concept_names
from pyserini_compneg.lucene.rankings import MatchCount, Ranking, Scores
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.terminal import shown

EMPTY: Mapping[str, int] = MappingProxyType({})

KEPT_FILTERS = 64
"""The number of filters in the cache. Each takes one bit for each document."""

KEPT_SCORES = 1024
"""The number of queries whose best scores are kept, of all threads together."""

Commit: TypeAlias = list[tuple[str, int, int]]
"""The files that identify a commit of an index, each with its inode and its time in nanoseconds."""

After: TypeAlias = tuple[str, float] | None
"""The docid and the score of the hit behind which a ranking begins; None for a ranking from its first hit."""


@dataclass(frozen=True, slots=True)
class ComposedSearch:
    """Composed queries that are searched or counted together; :meth:`Reader.search` describes the fields.

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
    sort: Sort | None = None
    places: tuple[Sequence[int], int] | None = None  # of a shard: the ranks of its values in the whole index, and all

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


@dataclass(kw_only=True, eq=False)
class Opened(ABC):
    """An index as a reader has opened it. :class:`Reader` describes what users may read."""

    commit: Commit
    manifest: Manifest | None
    documents: int
    field_documents: int
    content_id: str
    update: Mapping[str, Any]
    lost: Sequence[str] = ()
    closed: bool = False

    @abstractmethod
    def close(self) -> None:
        """Closes the index; may be called twice."""


class Reader(ABC):
    """An open index: whole, in shards, or of passages. Close the reader, or use it as a context manager.

    Attributes:
        folder: The folder of the index.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept_filters = lru_cache(KEPT_FILTERS)(lambda filter, content_id: self._filtered(filter))
        self._kept_concepts = lru_cache(1)(lambda content_id: self._concepts())
        self._top_scores: OrderedDict[tuple[str, str, int], tuple[float, ...]] = OrderedDict()

    @property
    @abstractmethod
    def _opened(self) -> Opened:
        """The index, as it is open."""

    @abstractmethod
    def is_replaced(self) -> bool:
        """Whether the folder now holds another index than the open one."""

    @abstractmethod
    def reopen(self) -> bool:
        """Opens the index that is now in the folder, if it is not the one that is open.

        Until then, an open reader continues with the index that it opened, even if another index replaces it. No other
        thread may use the reader during this call.

        Returns:
            Whether another index was opened.

        Raises:
            IndexFormatError: The folder no longer holds an index. The reader keeps the index that is open.
        """

    @abstractmethod
    def _filtered(self, filter: Filter) -> Filtered:
        """Resolves a filter."""

    def filtered(self, filter: Filter) -> Filtered:
        """The documents that a filter allows; the last results are kept.

        Raises:
            IndexFormatError: The index does not have a field.
        """
        return self._kept_filters(filter, self.content_id)

    @abstractmethod
    def find(self, request: ComposedSearch) -> Sequence[Ranking]:
        """The ranking of each query; see :meth:`search`."""

    @abstractmethod
    def count(self, request: ComposedSearch) -> list[MatchCount]:
        """The matches of each query, and its facets; see :meth:`matches`."""

    @abstractmethod
    def score(self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1) -> Scores:
        """Scores given documents. The scores equal the scores of :meth:`search` to the last bit.

        Args:
            queries: As for :meth:`search`.
            docids: The documents of each query, in any order.
            threads: How many queries are scored at once.

        Returns:
            The scores of each query's documents, in the order of the docids. None if the query does not match the
            document, infinity if the index does not have it. If several documents have an id, the best score.
        """

    @abstractmethod
    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None:
        """The parts of a document's score, as Java's ``Explainer`` gives them; None for an unknown document."""

    @abstractmethod
    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """The number of documents that hold each term."""

    @abstractmethod
    def has(self, docid: str) -> bool:
        """Whether the index has a document with this id."""

    @abstractmethod
    def stored(self) -> tuple[bool, bool]:
        """Whether the sources of documents are stored, and whether their vectors are."""

    @abstractmethod
    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """The stored sources of several documents, in the order of the ids; see :meth:`raw`."""

    @abstractmethod
    def vector(self, docid: str) -> dict[str, int] | None:
        """The terms of a document and their impacts, as indexed; None if there is no such document.

        Without stored vectors, the term vectors of Anserini, every term of the document's segment is looked up.
        """

    @property
    def manifest(self) -> Manifest | None:
        """How the index was made, and how many documents it has now; None for an index of stock Anserini."""
        return self._opened.manifest

    @property
    def concepts(self) -> Sequence[str]:
        """The name of each latent, by its number; empty if the index has no latents, or does not name them."""
        return self._kept_concepts(self.content_id)

    def _concepts(self) -> Sequence[str]:
        """Reads the names of latents."""
        return concept_names(self.folder)

    @property
    def update(self) -> Mapping[str, Any]:
        """What the last update has noted, for the next; empty if there was none."""
        return self._opened.update

    @property
    def lost(self) -> Sequence[str]:
        """The paths of the shards that cannot be searched; see :class:`ShardedReader`."""
        return self._opened.lost

    @property
    def document_count(self) -> int:
        """The number of documents that are not deleted."""
        return self.counted_documents

    @property
    def counted_documents(self) -> int:
        """The number of which document frequencies are a part: as :attr:`document_count`, but it counts passages."""
        self._check_open()
        return self._opened.documents

    @property
    def field_document_count(self) -> int:
        """The number of documents with a term."""
        self._check_open()
        return self._opened.field_documents

    @property
    def content_id(self) -> str:
        """Identifies the content of the open index: copies of an index have the same id, another commit has another."""
        self._check_open()
        return self._opened.content_id

    def _check_open(self) -> None:
        if self._opened.closed:
            raise ArgumentError("the searcher is closed", where=self.folder, remedy="open another one")

    def close(self) -> None:
        """Closes the index; may be called twice."""
        self._opened.close()

    def search(
        self,
        queries: Sequence[ScoringNode],
        hits: int,
        threads: int = 1,
        filters: Sequence[Filter | None] = (),
        thresholds: Sequence[float] = (),
        after: Sequence[After] = (),
        sort: Sort | None = None,
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
            sort: An order by a field. The scores in rankings are then places in this order, larger for earlier ones.

        Returns:
            A ranking for each query, in the order of the queries: higher scores first, equal scores by ascending docid.

        Raises:
            ArgumentError: The number of filters, thresholds or hits in ``after`` is not the number of queries.
            QueryFailure: The index cannot answer a query.
            SearchCancelled: The :class:`~pyserini_compneg.lucene.cancellation.Cancellation` of this thread ends the
                search.
            IndexFormatError: The index does not have a field of a filter.
        """
        return list(self.find(ComposedSearch(queries, hits, threads, filters, thresholds, after, sort=sort)))

    def top_scores(self, queries: Sequence[ScoringNode], k: int) -> list[Sequence[float]]:
        """The k best scores of each query, best first. The last results are kept."""
        content = self.content_id
        asked = [(content, query_line(query), k) for query in queries]
        found = {one: scores for one in asked if (scores := self._top_scores.get(one)) is not None}
        unknown = {one: query for one, query in zip(asked, queries, strict=True) if one not in found}
        if unknown:
            rankings = self.search(list(unknown.values()), k)
            found |= {one: tuple(ranking.scores) for one, ranking in zip(unknown, rankings, strict=True)}
            if self.content_id == content:  # no shard was lost meanwhile
                self._top_scores.update((one, found[one]) for one in unknown)
            while len(self._top_scores) > KEPT_SCORES:
                self._top_scores.popitem(last=False)
        return [found[one] for one in asked]

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

    def raw(self, docid: str) -> str | None:
        """The stored source of a document; None if there is no such document or its source was not stored."""
        return self.raws([docid])[0]

    def unknown_document(self, docid: str) -> InputError:
        """The error to raise if the index has no document with this id."""
        return InputError(f"{self.folder} has no document {docid!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
