"""An open impact index: exact search of composed queries, term statistics, explanations, stored documents."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import Sort
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.lucene.index_settings import PASSAGE_OF
from pyserini_compneg.lucene.manifest import MANIFEST_NAME, Manifest, resolve_index
from pyserini_compneg.lucene.rankings import (
    INT_BYTES,
    MOST_VALUES,
    MatchCount,
    Ranking,
    Scores,
    each_once,
    packed_ids,
    packed_queries,
    unpack_matches,
    unpack_rankings,
    unpack_scores,
)
from pyserini_compneg.lucene.requests import (
    EMPTY,
    Commit,
    ComposedSearch,
    Filtered,
    Opened,
    Reader,
    WorkDone,
    checked_nodes,
)
from pyserini_compneg.lucene.versions import line_errors
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError
from pyserini_compneg.support.processors import processors

_logger = logging.getLogger(__name__)

CONTENTS = "contents"
"""The field in which Anserini and this package keep impacts."""

_SLICE_MS = 100
"""How long Java searches before Python can hear a signal."""

_MOST_THREADS = 4 * processors()
"""The most threads of a search. More threads do not help, and each takes memory."""

_SMALLEST_PART = 1 << 16
"""The fewest documents of a part. Each part looks up the terms of the query, which takes time."""


_OF_TEXTS = (
    "has frequencies of terms, as texts have (many are 1 in every document), not impacts",
    "build an index of its documents with index, which has BM25, too",
)


Index = TypeVar("Index", bound=Opened)


class QueryFailure(IndexFormatError):
    """A query that an index cannot answer; ``position`` is the query's position in the list of queries, from 0."""

    def __init__(self, what: str, *, position: int = 0, **fields: Any) -> None:
        super().__init__(what, **fields)
        self.position = position


class FolderReader(Reader, Generic[Index]):
    """A reader that opens the index in its folder itself. ``files`` are those whose change makes it another index."""

    def __init__(self, folder: Path, files: str) -> None:
        super().__init__(folder)
        self._files = files
        self._index: Index

    @property
    def _opened(self) -> Index:
        return self._index

    @abstractmethod
    def _open(self) -> Index:
        """Opens the index that is now in the folder."""

    def _open_first(self) -> None:
        """Opens the index, again if another one takes its place meanwhile."""
        before = self._commit()
        try:
            self._index = self._open()
        except IndexFormatError:
            if self._commit() == before:
                raise
            self._index = self._open()

    def _commit(self) -> Commit:
        """The commit that is now in the folder."""
        found = []
        for path in sorted(self.folder.glob(self._files)):
            with suppress(FileNotFoundError):  # an update deletes the former commit
                status = path.stat()
                found.append((path.name, status.st_ino, status.st_mtime_ns))
        return found

    def is_replaced(self) -> bool:
        return self._commit() != self._index.commit

    def reopen(self) -> bool:
        if not self.is_replaced():
            return False
        before, self._index = self._index, self._open()
        self._kept_filters.cache_clear()  # so that nothing of the former index stays in memory
        before.close()
        return True


@dataclass(kw_only=True, eq=False)
class _Index(Opened):
    """One index of Lucene, with its searcher in Java."""

    folder: Path
    java: Any
    may_repeat: bool
    said_repeated: bool = False

    def close(self) -> None:
        if not self.closed:
            with java_errors(IndexReadError, "cannot be searched", self.folder):
                self.java.close()
        self.closed = True


class ImpactReader(FolderReader[_Index]):
    """Reads an impact index of this package or of stock Anserini. Close the reader, or use it as a context manager.

    Args:
        index: The folder, or the name of a prebuilt index, which is downloaded on first use.
        commit: The segments file of the commit to open; None for the last commit.

    Raises:
        IndexFormatError: There is no such folder, it holds no Lucene index with impacts, or its manifest is bad.
        DownloadError: A prebuilt index cannot be downloaded.
    """

    def __init__(self, index: str | Path, commit: str | None = None) -> None:
        super().__init__(resolve_index(index), "segments_*")
        self._named = commit
        self._open_first()

    def _open(self) -> _Index:
        commit, manifest = self._commit(), Manifest.read(self.folder)
        if not commit:
            raise IndexFormatError("not a Lucene index (it has no segments file)", where=self.folder)
        java = java_class("io.compneg.search.SignedSearcher")
        with (
            line_errors(self.folder / (self._named or commit[-1][0])),
            java_errors(IndexReadError, "cannot be opened", self.folder),
        ):
            searcher = java(os.path.abspath(self.folder / (self._named or "")), CONTENTS, manifest is not None)
            of_texts = manifest is None and searcher.holdsTexts()
            documents, with_terms = int(searcher.documentCount()), int(searcher.fieldDocumentCount())
        update = json.loads(searcher.update() or "{}")
        fault = remedy = ""
        if of_texts:
            fault, remedy = _OF_TEXTS
        elif Manifest.read(self.folder) != manifest:
            fault, remedy = "was replaced while it was opened", "try again"
        elif manifest and not update and manifest.documents != documents:
            fault = f"has {documents} documents, and its {MANIFEST_NAME} counts {manifest.documents}"
            remedy = "rebuild the index"
        if fault:
            searcher.close()
            raise (IndexFormatError if of_texts else IndexReadError)(fault, where=self.folder, remedy=remedy)
        if manifest and update:  # the file has the counts of the build
            manifest = replace(manifest, documents=documents, empty_documents=documents - with_terms)
        return _Index(
            folder=self.folder,
            commit=commit,
            manifest=manifest,
            documents=documents,
            field_documents=with_terms,
            content_id=str(searcher.commitId()),
            update=update,
            java=searcher,
            may_repeat=bool(searcher.mayRepeatIds()),
        )

    def _call(self, call: Callable[[Any], Any], *sent: bytes) -> Any:
        """Calls a method of the Java searcher, whose heap must have room for the bytes that are sent."""
        self._check_open()
        if sent:
            check_heap(sum(map(len, sent)))
        with java_errors(IndexReadError, "cannot be searched", self.folder):
            return call(self._opened.java)

    def stored(self) -> tuple[bool, bool]:
        raw, vectors = self._call(lambda java: java.stored())
        return raw, vectors

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        terms = checked_list("terms", terms)
        if not terms:
            return []
        lines = "\n".join(terms).encode()
        return list(self._call(lambda java: java.documentFrequencies(lines), lines))

    def _filtered(self, filter: Filter) -> Filtered:
        asked = json.dumps(filter.to_json(), ensure_ascii=False).encode()
        self._check_open()
        check_heap(len(asked))
        with java_errors(IndexFormatError, "cannot be filtered", self.folder):
            searcher = self._opened.java
            found = searcher.filter(asked)
            packed = searcher.describe(found)
        said = json.loads(bytes(packed.tostring()))
        return Filtered(
            said["allowed"], said["unknown"], said.get("first"), found, said["faults"], said.get("values", EMPTY)
        )

    def _looked_up(self, filter: Filter) -> Any:
        """Java's form of a filter. A filter of single documents is not kept, as it would push out one that is used."""
        return (self._filtered if PASSAGE_OF in filter.fields else self.filtered)(filter).java

    def find(self, request: ComposedSearch) -> list[Ranking]:
        rankings = self._ranked(request)
        if request.sort or not self._opened.may_repeat or not (repeated := self._repeated(rankings)):
            return rankings
        return [
            self._each_once(request.of_query(place), ranking) if repeated.intersection(ranking.docids) else ranking
            for place, ranking in enumerate(rankings)
        ]

    def _repeated(self, rankings: Sequence[Ranking]) -> set[str]:
        """The ids in rankings that several documents have. The first time that there are some, a warning says so."""
        repeated = self.repeated(docid for one in rankings for docid in one.docids)
        if repeated and not self._opened.said_repeated:
            self._opened.said_repeated = True
            said = "%s: several documents have the same id, such as %r: a ranking has the best of them alone"
            _logger.warning(said, self.folder, min(repeated))
        return repeated

    def repeated(self, docids: Iterable[str]) -> set[str]:
        """The ids that several documents have, among these. An index of stock Anserini may hold such ids."""
        ids = sorted(set(docids))  # found faster in order
        packed = packed_ids([ids])
        return set(itertools.compress(ids, self._call(lambda java: java.repeated(packed), packed)))

    def _each_once(self, request: ComposedSearch, ranking: Ranking) -> Ranking:
        """The ranking of one query, in which each id stands once, with the score of the best of its documents."""
        kept: list[tuple[str, float]] = []
        most = asked = min(request.hits, self.document_count)
        while True:
            ids = sorted(self._repeated([ranking]))
            (scores,) = self._scores(request.queries, [ids], 1, request.filters[0])
            kept += each_once(ranking, dict(zip(ids, scores, strict=True)))
            if len(kept) >= most or len(ranking.docids) < asked:
                return Ranking([docid for docid, _ in kept[:most]], array("f", [score for _, score in kept[:most]]))
            last, asked = (ranking.docids[-1], ranking.scores[-1]), min(2 * asked, self.document_count)
            (ranking,) = self._ranked(replace(request, hits=asked, after=[last]))

    def _ranked(self, request: ComposedSearch) -> list[Ranking]:
        """The ranking of each query. Documents with the same id are ranked separately."""
        if not request.queries:
            return []
        hits = min(request.hits, self.document_count)
        scores = [math.nan if one is None else one[1] for one in request.after]
        ids = packed_ids([["" if one is None else one[0] for one in request.after]])
        sort, (ranks, count) = request.sort, request.places or (None, 0)
        places = None if ranks is None else list(ranks)  # pyjnius takes no array
        packed = self._batch(
            request,
            lambda java, *asked: (
                java.search(*asked[:-1], request.thresholds, scores, ids, hits, *asked[-1])
                if sort is None
                else java.sorted(*asked[:-1], *sort, places, count, scores, ids, hits, *asked[-1])
            ),
        )
        try:
            return unpack_rankings(packed, len(request.queries))
        except ValueError:
            raise self._damaged("ids") from None

    def sort_values(self, sort: Sort) -> list[float | str]:
        """The values by which documents are sorted, numbers before texts, each in ascending order."""
        check_cancelled()  # each shard of an index takes some time
        with java_errors(IndexFormatError, "cannot be sorted", self.folder):
            packed = self._opened.java.sortValues(*sort)
        values: list[float | str] = json.loads(bytes(packed.tostring()))
        return values

    def count(self, request: ComposedSearch) -> list[MatchCount]:
        if not request.queries:
            return []
        names, most = "\n".join(request.facets).encode(), [min(count, MOST_VALUES) for count in request.facets.values()]
        packed = self._batch(
            request, lambda java, *asked: java.matches(*asked[:-1], names, most, request.passages_of, *asked[-1])
        )
        return unpack_matches(packed)

    def _batch(self, request: ComposedSearch, prepare: Callable[..., Any]) -> bytes:
        """Runs what ``prepare`` makes of the searcher, the queries and their filters, and returns what it packs."""
        filters, threads = request.filters, min(request.threads, _MOST_THREADS)
        places = {one: place for place, one in enumerate(dict.fromkeys(one for one in filters if one is not None))}
        filter_of = [-1 if one is None else places[one] for one in filters]
        lines, looked_up = packed_queries(request.queries), [self._looked_up(one) for one in places]
        self._check_open()
        check_heap(len(lines))
        with java_errors(IndexFormatError, "cannot be searched", self.folder):
            batch = prepare(self._opened.java, lines, looked_up, filter_of, (threads, _SMALLEST_PART))
        answer = None
        while answer is None:
            check_cancelled()  # Python also handles signals here, so Ctrl-C ends a long search
            answer = self._call(lambda _: batch.proceed(_SLICE_MS))
        packed = bytes(answer.tostring())
        if (failed := array("i", packed[:INT_BYTES])[0]) < 0:
            said = f"cannot be searched: {packed[INT_BYTES:].decode()}"
            raise QueryFailure(said, where=self.folder, position=-1 - failed)
        return packed

    def score(self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1) -> Scores:
        return self._scores(queries, docids, threads, None)

    def _scores(
        self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int, filter: Filter | None
    ) -> Scores:
        """As :meth:`score`. If several documents have an id, those that the filter allows count."""
        queries, docids = checked_nodes(queries), [checked_list("docids", one) for one in docids]
        if not queries:
            return []
        lines, ids, threads = packed_queries(queries), packed_ids(docids), min(threads, _MOST_THREADS)
        allowed = None if filter is None else self._looked_up(filter)
        packed = self._call(lambda java: java.score(lines, ids, allowed, threads), lines, ids)
        return unpack_scores(bytes(packed.tostring()), docids)

    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None:
        looked_up = None if filter is None else self.filtered(filter).java
        line, external_id = packed_queries(checked_nodes([query])), docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.explain(line, external_id, looked_up), line, external_id)
        return None if packed is None else json.loads(bytes(packed.tostring()))

    def has(self, docid: str) -> bool:
        external_id = docid.encode(errors="surrogatepass")
        return bool(self._call(lambda java: java.has(external_id)))

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        return list(map(self._raw, checked_list("docids", docids)))

    def _raw(self, docid: str) -> str | None:
        external_id = docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.raw(external_id))
        try:
            return None if packed is None else bytes(packed.tostring()).decode()
        except UnicodeDecodeError:
            raise self._damaged("sources") from None

    def vector(self, docid: str) -> dict[str, int] | None:
        external_id = docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.vector(external_id))
        return None if packed is None else json.loads(bytes(packed.tostring()))

    def _damaged(self, what: str) -> IndexReadError:
        remedy = "index --verify finds all damage"
        return IndexReadError(f"the documents' {what} are damaged: rebuild the index", where=self.folder, remedy=remedy)

    def work_done(self) -> WorkDone:
        """Totals since the index was opened, for benchmarks."""
        return WorkDone(*self._call(lambda java: java.workDone()))
