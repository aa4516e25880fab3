"""Reads an index in shards as one index: each request goes to all shards, and their answers are merged.

Impacts need no statistics of a collection, so a document has the same score in a shard as in the whole index, to the
last bit. Rankings of shards are merged by score and docid. Document frequencies are added up.
"""

from __future__ import annotations

import logging
import math
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import ID, Sort
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.lucene.manifest import SHARDS_NAME, Manifest, concept_names, resolve_index
from pyserini_compneg.lucene.passage_reader import by_document
from pyserini_compneg.lucene.rankings import MOST_VALUES, MatchCount, Ranking, Scores
from pyserini_compneg.lucene.reader import FolderReader, ImpactReader
from pyserini_compneg.lucene.requests import Commit, ComposedSearch, Filtered, Opened, Reader
from pyserini_compneg.lucene.shards import (
    Answer,
    Asked,
    Question,
    Shard,
    ShardEntry,
    checked_shard,
    read_shards,
    shards_id,
    whole_manifest,
)
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError

_logger = logging.getLogger(__name__)

_Places: TypeAlias = Mapping[str, tuple[Sequence[int], int]]
"""For each shard the ranks of its values among those of all shards, and the number of the latter."""


class _Shards(Opened):
    """The shards of an index that are open, by their paths. Each request goes to all of them at once.

    A shard that cannot be opened or no longer answers is left out, with a warning, if partial results are allowed.
    """

    def __init__(
        self, folder: Path, commit: Commit, open_shard: Callable[[Path, ShardEntry], Shard], allow_partial: bool
    ) -> None:
        self.commit, self._folder, self._allow_partial = commit, folder, allow_partial
        self._lock = threading.Lock()
        self._entries = {entry.path: entry for entry in read_shards(folder)}
        self._manifests: dict[str, Manifest] = {}
        self.lost: list[str] = []
        self.shards: dict[str, Shard] = {}
        self.places: dict[Sort, _Places] = {}
        opened = self.shards  # this dictionary keeps all: _leave_out replaces self.shards by a smaller one
        try:
            for path, entry in self._entries.items():
                try:
                    manifest = checked_shard(folder / path, entry)
                    opened[path], self._manifests[path] = open_shard(folder / path, entry), manifest
                except IndexReadError as error:
                    self._lose(path, error)
            self._count()  # refuses shards that do not belong together before any shard is searched
            facts = self.answers(opened, _facts)  # checks that each shard answers
            for path, (with_terms, _) in facts.items():
                empty = self._manifests[path].documents - with_terms
                self._manifests[path] = replace(self._manifests[path], empty_documents=empty)
            self._count()
            # An update writes the numbers of the whole index into the shards that it changes.
            self.update = max((update for _, update in facts.values()), key=lambda one: int(one.get("updates", 0)))
        except BaseException:
            for shard in opened.values():  # also those that _leave_out dropped
                shard.close()
            raise

    def _count(self) -> None:
        """Counts the documents of the shards that are searched."""
        manifest = whole_manifest(self._folder, {path: self._manifests[path] for path in self.shards})
        self.manifest, self.documents = manifest, manifest.documents
        self.field_documents = manifest.documents - manifest.empty_documents
        self.content_id = shards_id([self._entries[path] for path in self.shards])

    def _lose(self, path: str, error: IndexReadError) -> None:
        """Drops a lost shard. Raises if partial results are not allowed, or if this was the last shard."""
        count = len(self._entries)
        if not self._allow_partial or len(self.lost) + 1 == count:
            raise error
        self.lost.append(path)
        said = "%s; results are partial: %d of %d shards are searched"
        _logger.warning(said, error, count - len(self.lost), count)

    def answers(
        self, paths: Iterable[str], question: Question[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> dict[str, Answer]:
        """The answers of some shards. All shards are asked before the first answer is awaited."""
        shards = {path: self.shards[path] for path in paths if path in self.shards}
        waiting = {path: shard.ask(question, *args, **kwargs) for path, shard in shards.items()}
        answers = {}
        for path, answer in waiting.items():
            try:
                answers[path] = answer()
            except IndexReadError as error:
                self._leave_out(path, error)
            except IndexFormatError as error:
                error.where = str(self._folder)  # the request is wrong for all shards
                raise
        return answers

    def _leave_out(self, path: str, error: IndexReadError) -> None:
        with self._lock:
            if path in self.shards:  # another thread may have dropped it
                self._lose(path, error)
                self.shards = {other: shard for other, shard in self.shards.items() if other != path}
                self._count()

    def close(self) -> None:
        for shard in self.shards.values():
            shard.close()
        self.closed = True


class ShardedReader(FolderReader[_Shards]):
    """Reads an index in shards. The answers are those of one index of all documents, to the last bit.

    Args:
        index: The folder that holds the list of the shards.
        open_shard: A function that opens the shard in a folder.
        at_once: How many shards search at the same time; None for all. Later shards get the score that a document must
            reach, so they have less work.
        allow_partial: Continue, with a warning, without shards that cannot be opened or no longer answer.

    Raises:
        IndexReadError: The list or a shard is damaged, shards do not belong together, or a shard cannot be opened.
    """

    def __init__(
        self,
        index: str | Path,
        open_shard: Callable[[Path, ShardEntry], Shard] = Shard,
        at_once: int | None = 1,
        allow_partial: bool = False,
    ) -> None:
        super().__init__(resolve_index(index), SHARDS_NAME)
        self._open_shard, self._at_once, self._allow_partial = open_shard, at_once, allow_partial
        self._open_first()

    def _open(self) -> _Shards:
        return _Shards(self.folder, self._commit(), self._open_shard, self._allow_partial)

    def _ask(self, question: Question[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> list[Answer]:
        self._check_open()
        return list(self._opened.answers(self._opened.shards, question, *args, **kwargs).values())

    def _concepts(self) -> Sequence[str]:
        """Those in the folder of the index, or in that of a shard."""
        folders = [self.folder, *(self.folder / path for path in self._opened.shards)]
        return next(filter(None, map(concept_names, folders)), [])

    def stored(self) -> tuple[bool, bool]:
        raw, vectors = map(any, zip(*self._ask(ImpactReader.stored), strict=True))
        return raw, vectors

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        return [sum(counts) for counts in zip(*self._ask(ImpactReader.document_frequencies, terms), strict=True)]

    def _filtered(self, filter: Filter) -> Filtered:
        found = self._ask(_found, filter)
        faults = [one.faults for one in found]
        for asked in sorted(set(faults[0]).intersection(*faults)):
            if fault := next((one[asked] for one in faults if one[asked]), None):
                raise IndexFormatError(f"cannot be filtered: {fault}", where=self.folder)
        ids = sorted(filter.fields.get(ID, ()), key=lambda one: one.encode("utf-16-be"))  # as Java sorts them
        known = sum(len(ids) - one.unknown for one in found)  # an id is in one shard at most
        unknown = len(ids) - known
        there = zip(ids, *self._ask(_has, ids), strict=True) if unknown else ()
        first = next((one for one, *has in there if not any(has)), None)
        allowed = sum(one.allowed for one in found)
        values = {
            name: sorted({value for one in found for value in one.values.get(name, ())}) for name in filter.fields
        }
        return Filtered(allowed, unknown, first, None, {}, {} if allowed else values)

    def find(self, request: ComposedSearch) -> list[Ranking]:
        hits, least = min(request.hits, self.document_count), request.thresholds
        places = {} if request.sort is None else self._places(request.sort)
        best: list[list[tuple[float, str]]] = [[] for _ in request.queries]
        paths = list(self._opened.shards)
        at_once = 1 if places else self._at_once or len(paths)
        for start in range(0, len(paths), at_once):
            some = paths[start : start + at_once]
            asked = replace(request, hits=hits, thresholds=least, places=places.get(some[0]))
            answers = self._opened.answers(some, ImpactReader.find, asked)
            for rankings in answers.values():
                for merged, ranking in zip(best, rankings, strict=True):
                    merged += ((-score, docid) for docid, score in zip(ranking.docids, ranking.scores, strict=True))
            for merged in best:
                merged.sort()  # equal scores by docid; fast, because the rankings are sorted
                del merged[hits:]
            if hits:
                full = ((-merged[-1][0] if len(merged) == hits else -math.inf) for merged in best)
                least = list(map(max, least, full))
        return [Ranking([docid for _, docid in merged], array("f", [-score for score, _ in merged])) for merged in best]

    def _places(self, sort: Sort) -> _Places:
        """The places of values in an order. They are kept while the commit is open, as a shard keeps its order."""
        opened = self._opened
        if (known := opened.places.get(sort)) is not None:
            return known
        values = opened.answers(opened.shards, ImpactReader.sort_values, sort)
        check_cancelled()
        every = sorted(set(chain.from_iterable(values.values())), key=lambda value: (isinstance(value, str), value))
        check_cancelled()
        ranks = {value: rank for rank, value in enumerate(every)}
        places = {path: (array("i", map(ranks.__getitem__, own)), len(every)) for path, own in values.items()}
        opened.places[sort] = places
        return places

    def count(self, request: ComposedSearch) -> list[MatchCount]:
        every = dict.fromkeys(request.facets, MOST_VALUES)  # a value may be frequent in the whole index alone
        counted = zip(*self._ask(ImpactReader.count, replace(request, facets=every)), strict=True)
        return [_together(parts, request.facets) for parts in counted]

    def score(self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1) -> Scores:
        answers = self._ask(ImpactReader.score, queries, docids, threads)
        return [
            [_first_known(scores) for scores in zip(*of_shards, strict=True)]
            for of_shards in zip(*answers, strict=True)
        ]

    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None:
        if filter is not None:
            self.filtered(filter)  # raises if the filter is refused
        answers = self._ask(ImpactReader.explain, query, docid, filter)
        return next((answer for answer in answers if answer is not None), None)

    def has(self, docid: str) -> bool:
        return any(self._ask(ImpactReader.has, docid))

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        answers = zip(*self._ask(ImpactReader.raws, docids), strict=True)
        return [next((source for source in sources if source is not None), None) for sources in answers]

    def vector(self, docid: str) -> dict[str, int] | None:
        return next((vector for vector in self._ask(ImpactReader.vector, docid) if vector is not None), None)


def open_reader(index: str | Path, allow_partial: bool = False) -> Reader:
    """Opens an index, whole or in shards. Shards are searched in this process, one after another.

    Args:
        index: The folder, or the name of a prebuilt index.
        allow_partial: See :class:`ShardedReader`.

    Raises:
        IndexFormatError: See :class:`ImpactReader` and :class:`ShardedReader`.
        DownloadError: A prebuilt index cannot be downloaded.
    """
    folder = resolve_index(index)
    if (folder / SHARDS_NAME).is_file():
        return by_document(ShardedReader(folder, allow_partial=allow_partial))
    return by_document(ImpactReader(folder))


def _first_known(scores: Iterable[float]) -> float:
    """A document's score, from the one shard that has the document; shards that lack it give ∞."""
    return next((score for score in scores if score != math.inf), math.inf)


def _facts(reader: ImpactReader) -> tuple[int, Mapping[str, Any]]:
    return reader.field_document_count, reader.update


def _most_frequent(counts: Iterable[Mapping[str, int]], most: int) -> dict[str, int]:
    """The sums of some counts: the largest, and equal ones by value."""
    total = sum(map(Counter, counts), Counter())
    return dict(sorted(total.items(), key=lambda one: (-one[1], one[0]))[:most])


def _together(parts: Sequence[MatchCount], facets: Mapping[str, int]) -> MatchCount:
    """The count of a query in all shards, with so many values of each facet."""
    merged = {name: _most_frequent([one.facets[name] for one in parts], most) for name, most in facets.items()}
    numbers = {name: set().union(*(one.numbers[name] for one in parts)) for name in facets}
    kept = {name: [value for value in values if value in numbers[name]] for name, values in merged.items()}
    return MatchCount(sum(one.documents for one in parts), merged, kept)


def _found(reader: ImpactReader, filter: Filter) -> Filtered:
    """The counts of a filter in a shard. The filter itself stays in the shard."""
    return reader.filtered(filter)._replace(java=None)


def _has(reader: ImpactReader, docids: Sequence[str]) -> list[bool]:
    return [reader.has(docid) for docid in docids]
