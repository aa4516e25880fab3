"""An open impact index: exact search of composed queries, term statistics, explanations, stored documents."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene.cancellation import check_cancelled
from pyserini_compneg.lucene.gate import check_heap, java_class, java_errors
from pyserini_compneg.lucene.index_settings import PASSAGE_OF
from pyserini_compneg.lucene.manifest import MANIFEST_NAME, Manifest, resolve_index
from pyserini_compneg.lucene.rankings import (
    INT_BYTES,
    MOST_VALUES,
    MatchCount,
    Ranking,
    each_once,
    packed_ids,
    packed_queries,
    unpack_matches,
    unpack_rankings,
    unpack_scores,
)
from pyserini_compneg.lucene.requests import EMPTY, ComposedSearch, Filtered, Searching, WorkDone, checked_nodes
from pyserini_compneg.lucene.versions import line_errors
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, IndexReadError, InputError
from pyserini_compneg.support.processors import processors

_logger = logging.getLogger(__name__)

CONTENTS = "contents"
"""The field in which Anserini and this package keep impacts."""

KEPT_FILTERS = 64
"""The number of filters in the cache. Each takes one bit for each document."""

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


class QueryFailure(IndexFormatError):
    """A query that an index cannot answer; ``position`` is the query's position in the list of queries, from 0."""

    def __init__(self, what: str, *, position: int = 0, **fields: Any) -> None:
        super().__init__(what, **fields)
        self.position = position


class ImpactReader(Searching):
    """Reads an impact index of this package or of stock Anserini. Close the reader, or use it as a context manager.

    Args:
        index: The folder, or the name of a prebuilt index, which is downloaded on first use.
        commit: The segments file of the commit to open; None for the last commit.

    Attributes:
        folder: The folder of the index.
        manifest: How the index was made, and how many documents it has now; None for an index of stock Anserini.
        update: What the last update has noted, for the next; empty if there was none.
        lost: The paths of the shards that cannot be searched; see :class:`ShardedReader`.

    Raises:
        IndexFormatError: There is no such folder, it holds no Lucene index with impacts, or its manifest is bad.
        DownloadError: A prebuilt index cannot be downloaded.
    """

    lost: Sequence[str] = ()
    update: Mapping[str, Any]
    _commit_files = "segments_*"

    def __init__(self, index: str | Path, commit: str | None = None) -> None:
        self.folder, self._named = resolve_index(index), commit
        try:
            self._open()
        except IndexFormatError:  # the index may just have been replaced
            self._open()

    def reopen(self) -> bool:
        """Opens the index that is now in the folder, if it is not the one that is open.

        Until then, an open reader continues with the index that it opened, even if another index replaces it. No other
        thread may use the reader during this call.

        Returns:
            Whether another index was opened.

        Raises:
            IndexFormatError: The folder no longer holds an index. The reader keeps the index that is open.
        """
        if not self.is_replaced():
            return False
        before = None if self._closed else self._searcher
        self._open()
        if before is not None:
            self._call(lambda _: before.close())
        return True

    def is_replaced(self) -> bool:
        """Whether the folder now holds another index than the open one."""
        return self._commit() != self._opened

    def _commit(self) -> list[tuple[str, int, int]]:
        """Identifies a commit of an index by its segments files and their times."""
        found = []
        for path in sorted(self.folder.glob(self._commit_files)):
            with suppress(FileNotFoundError):  # an update deletes the former commit
                status = path.stat()
                found.append((path.name, status.st_ino, status.st_mtime_ns))
        return found

    def _open(self) -> None:
        opened, manifest = self._commit(), Manifest.read(self.folder)
        if not opened:
            raise IndexFormatError("not a Lucene index (it has no segments file)", where=self.folder)
        java = java_class("io.compneg.search.SignedSearcher")
        with (
            line_errors(self.folder / (self._named or opened[-1][0])),
            java_errors(IndexReadError, "cannot be opened", self.folder),
        ):
            searcher = java(os.path.abspath(self.folder / (self._named or "")), CONTENTS, manifest is not None)
            of_texts = manifest is None and searcher.holdsTexts()
        documents = int(searcher.documentCount())
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
            empty = documents - int(searcher.fieldDocumentCount())
            manifest = replace(manifest, documents=documents, empty_documents=empty)
        self._searcher, self.manifest, self._opened, self._closed = searcher, manifest, opened, False
        self._may_repeat, self._said_repeated = bool(searcher.mayRepeatIds()), False
        self._document_count, self.update = documents, update
        self.filtered = lru_cache(KEPT_FILTERS)(self._filtered)

    @property
    def updates(self) -> int:
        """The number of updates since the index was built."""
        return int(self.update.get("updates", 0))

    @property
    def is_partial(self) -> bool:
        """Whether a shard of the index cannot be searched."""
        return bool(self.lost)

    def close(self) -> None:
        if not self._closed:
            self._call(lambda java: java.close())
        self._closed = True

    def _call(self, call: Callable[[Any], Any], *sent: bytes) -> Any:
        """Calls a method of the Java searcher, whose heap must have room for the bytes that are sent."""
        self._check_open()
        check_heap(sum(map(len, sent)))
        with java_errors(IndexReadError, "cannot be searched", self.folder):
            return call(self._searcher)

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the searcher is closed", where=self.folder, remedy="open another one")

    @property
    def document_count(self) -> int:
        """The number of documents that are not deleted."""
        self._check_open()
        return self._document_count

    @property
    def counted_documents(self) -> int:
        """The number of which document frequencies are a part: as :attr:`document_count`, but it counts passages."""
        return self.document_count

    @property
    def field_document_count(self) -> int:
        """The number of documents with a term."""
        return int(self._call(lambda java: java.fieldDocumentCount()))

    @property
    def content_id(self) -> str:
        """Identifies the content of the open index: copies of an index have the same id, another commit has another."""
        return str(self._call(lambda java: java.commitId()))

    def stored(self) -> tuple[bool, bool]:
        """Whether the sources of documents are stored, and whether their vectors are."""
        raw, vectors = self._call(lambda java: java.stored())
        return raw, vectors

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """The number of documents that hold each term."""
        terms = checked_list("terms", terms)
        if not terms:
            return []
        lines = "\n".join(terms).encode()
        return list(self._call(lambda java: java.documentFrequencies(lines), lines))

    def _filtered(self, filter: Filter) -> Filtered:
        """Resolves a filter; ``filtered`` caches the last filters. Unknown fields are refused."""
        asked = json.dumps(filter.to_json(), ensure_ascii=False).encode()
        self._check_open()
        check_heap(len(asked))
        with java_errors(IndexFormatError, "cannot be filtered", self.folder):
            searcher = self._searcher
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
        if not self._may_repeat or not (repeated := self._repeated(rankings)):
            return rankings
        return [
            self._each_once(request.of_query(place), ranking) if repeated.intersection(ranking.docids) else ranking
            for place, ranking in enumerate(rankings)
        ]

    def _repeated(self, rankings: Sequence[Ranking]) -> set[str]:
        """The ids in rankings that several documents have. The first time that there are some, a warning says so."""
        if (repeated := self.repeated(docid for one in rankings for docid in one.docids)) and not self._said_repeated:
            self._said_repeated = True
            said = "%s: several documents have the same id, such as %r: a ranking has the best of them alone"
            _logger.warning(said, self.folder, min(repeated))
        return repeated

    def repeated(self, docids: Iterable[str]) -> set[str]:
        """Which of these ids several documents have, as an index of stock Anserini may hold them."""
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
        packed = self._batch(
            request,
            lambda java, *asked: java.search(*asked[:-1], request.thresholds, scores, ids, hits, *asked[-1]),
        )
        try:
            return unpack_rankings(packed, len(request.queries))
        except ValueError:
            raise self._damaged("ids") from None

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
            batch = prepare(self._searcher, lines, looked_up, filter_of, (threads, _SMALLEST_PART))
        answer = None
        while answer is None:
            check_cancelled()  # Python also handles signals here, so Ctrl-C ends a long search
            answer = self._call(lambda _: batch.proceed(_SLICE_MS))
        packed = bytes(answer.tostring())
        if (failed := array("i", packed[:INT_BYTES])[0]) < 0:
            said = f"cannot be searched: {packed[INT_BYTES:].decode()}"
            raise QueryFailure(said, where=self.folder, position=-1 - failed)
        return packed

    def score(
        self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1
    ) -> list[list[float | None]]:
        """Scores given documents. The scores equal the scores of :meth:`search` to the last bit.

        Args:
            queries: As for :meth:`search`.
            docids: The documents of each query, in any order.
            threads: How many queries are scored at once.

        Returns:
            The scores of each query's documents, in the order of the docids. None if the query does not match the
            document, infinity if the index does not have it. If several documents have an id, the best score.
        """
        return self._scores(queries, docids, threads, None)

    def _scores(
        self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int, filter: Filter | None
    ) -> list[list[float | None]]:
        """As :meth:`score`. If several documents have an id, those that the filter allows count."""
        queries, docids = checked_nodes(queries), [checked_list("docids", one) for one in docids]
        if not queries:
            return []
        lines, ids, threads = packed_queries(queries), packed_ids(docids), min(threads, _MOST_THREADS)
        allowed = None if filter is None else self._looked_up(filter)
        packed = self._call(lambda java: java.score(lines, ids, allowed, threads), lines, ids)
        return unpack_scores(bytes(packed.tostring()), docids)

    def unknown_document(self, docid: str) -> InputError:
        """The error to raise if the index has no document with this id."""
        return InputError(f"{self.folder} has no document {docid!r}")

    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None:
        """The parts of a document's score, as Java's ``Explainer`` gives them; None for an unknown document."""
        looked_up = None if filter is None else self.filtered(filter).java
        line, external_id = packed_queries(checked_nodes([query])), docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.explain(line, external_id, looked_up), line, external_id)
        return None if packed is None else json.loads(bytes(packed.tostring()))

    def has(self, docid: str) -> bool:
        """Whether the index has a document with this id."""
        external_id = docid.encode(errors="surrogatepass")
        return bool(self._call(lambda java: java.has(external_id)))

    def raw(self, docid: str) -> str | None:
        """The stored source of a document; None if there is no such document or its source was not stored."""
        external_id = docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.raw(external_id))
        try:
            return None if packed is None else bytes(packed.tostring()).decode()
        except UnicodeDecodeError:
            raise self._damaged("sources") from None

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """The stored sources of several documents, in the order of the ids; see :meth:`raw`."""
        return [self.raw(docid) for docid in checked_list("docids", docids)]

    def vector(self, docid: str) -> dict[str, int] | None:
        """The terms of a document and their impacts, as indexed; None if there is no such document.

        Without stored vectors, the term vectors of Anserini, every term of the document's segment is looked up.
        """
        external_id = docid.encode(errors="surrogatepass")
        packed = self._call(lambda java: java.vector(external_id))
        return None if packed is None else json.loads(bytes(packed.tostring()))

    def _damaged(self, what: str) -> IndexReadError:
        remedy = "index --verify finds all damage"
        return IndexReadError(f"the documents' {what} are damaged: rebuild the index", where=self.folder, remedy=remedy)

    def work_done(self) -> WorkDone:
        """Totals since the index was opened, for benchmarks."""
        return WorkDone(*self._call(lambda java: java.workDone()))
