"""Updates an index in place: inserts, replaces and deletes documents.

Lucene's commit is the step that makes an update visible, all at once. It also records how many updates there were;
``compneg.json`` stays as the build wrote it. Only an index of stock Anserini that is adopted gets one. In an index of
shards each shard commits first, and keeps its former commit. Then the list of shards, which names their commits, is
replaced. Work of a killed update is never seen, and the next update removes it.
"""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyserini_compneg.index.adoption import check_adopted, known_manifest, stored_lines
from pyserini_compneg.index.index_folder import BLOCK_MAXIMA, refuse_copy
from pyserini_compneg.index.indexer import (
    NOT_REORDERED,
    VectorLines,
    refuse_vectors_of_passages,
    warn_of_unranged_texts,
)
from pyserini_compneg.lucene import (
    LEAST_REORDERED,
    SHARDS_NAME,
    ImpactWriter,
    IndexSettings,
    Manifest,
    Reader,
    open_reader,
    resolve_index,
)
from pyserini_compneg.lucene.index_settings import PASSAGE_OF, RECORDED
from pyserini_compneg.lucene.manifest import commits
from pyserini_compneg.lucene.passage_reader import all_passages, document_of, passage_id
from pyserini_compneg.lucene.shards import ShardEntry, read_shards, shard_checksum, shard_commit, write_shards
from pyserini_compneg.lucene.versions import check_upgrade
from pyserini_compneg.lucene.writer import Found
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, InputError
from pyserini_compneg.support.json_objects import id_text
from pyserini_compneg.support.processors import bounded_threads
from pyserini_compneg.support.staging import index_disk_errors, locked, output_errors
from pyserini_compneg.support.terminal import shown

_logger = logging.getLogger(__name__)

NOWHERE = -1
"""In place of a shard, for a line that need not be written."""


@dataclass(slots=True)
class UpdateCounts:
    """What an update did.

    Attributes:
        inserted: Documents whose id was new.
        replaced: Documents whose id was in the index, with other content.
        unchanged: Documents that were in the index as they are. They were skipped.
        deleted: Documents that were deleted.
        not_found: Ids to delete that the index did not have.
    """

    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    not_found: int = 0

    @property
    def changes(self) -> int:
        return self.inserted + self.replaced + self.deleted


@dataclass(slots=True)
class _Shard:
    """A shard that is updated, or the whole index."""

    folder: Path
    entry: ShardEntry | None
    writer: ImpactWriter
    documents: int  # at the end
    changed: bool = False


class ImpactUpdater(VectorLines):
    """Updates an impact index. Use it as a context manager.

    The update becomes visible when the context ends without an exception. Until then, and after an exception or a kill,
    searches find the old index. All settings, such as the impact scale, the filter fields and the pairs, are those with
    which the index was built. An id may be given once in an update, to add or to delete.

    Args:
        index: The folder of the index.
        threads: Threads that parse and index; None for the number of processors.
        adopt: The manifest for an impact index that stock Anserini built: a model as the ``encoder``, and perhaps the
            ``impact_scale`` for weights of later documents, and ``filter_fields``. The update writes it into the index.
        upgrade: Also update an index that an earlier line of Lucene wrote. That line cannot read it any more then.

    Attributes:
        manifest: The manifest of the index. After the update it counts the documents that are there then.
        counts: What the update has done so far, as :class:`UpdateCounts`.
        state: What the last update has noted; this update notes it, too.

    Raises:
        ArgumentError: ``adopt`` says more than an encoder and a scale, or these have wrong values (on entry).
        IndexFormatError: There is no such index, stock Anserini built it and it is not adopted or cannot be, it is a
            shard of an index, or an earlier line of Lucene wrote it (on entry).
        InputError: A document is bad, an id is given twice, or the index would have no document with a term.
        OutputError: Another process updates or builds the index (BusyError), or the index cannot be written.

    Example:
        >>> with ImpactUpdater("indexes/mine") as updater:  # doctest: +SKIP
        ...     updater.add("d1", {"bird": 1.5, "fly": 0.25})
        ...     updater.delete(["d2"])
    """

    manifest: Manifest

    def __init__(
        self, index: str | Path, threads: int | None = None, adopt: Manifest | None = None, upgrade: bool = False
    ) -> None:
        self.folder = Path(os.path.realpath(resolve_index(Path(index))))
        super().__init__(str(index))
        self._threads = bounded_threads(threads)
        self.counts = UpdateCounts()
        self.state: dict[str, Any] = {}
        self._adopt, self._adopts, self._upgrade, self._optimizes = adopt, False, upgrade, False

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(index_disk_errors(self._place))
            with output_errors(self.folder):
                stack.enter_context(locked(self.folder, "another process is updating or building it"))
            refuse_copy(self.folder)
            with open_reader(self.folder) as reader:
                settings = self._checked(reader)
            self._open(settings, stack)
            if self._adopts:
                check_adopted(self._shards[0].writer, self._place)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            with self._stack:
                self._finish()
        else:
            self._stack.__exit__(kind, error, traceback)

    def _checked(self, reader: Reader) -> IndexSettings:
        """The settings of the index. Refuses an index that cannot be updated."""
        self.manifest = known_manifest(reader, self._adopt, self._place)
        self._adopts = reader.manifest is None
        above = self.folder.parent
        if (above / SHARDS_NAME).is_file() and self.folder.name in {entry.path for entry in read_shards(above)}:
            raise IndexFormatError("is a shard", where=self._place, remedy=f"update the whole index, {above}")
        raw, vectors = reader.stored()
        self.state = {"updates": 0, **reader.update}
        made = {name: getattr(self.manifest, name) for name in RECORDED}
        sharded = (self.folder / SHARDS_NAME).is_file()
        return IndexSettings(store_raw=raw, store_docvectors=vectors, shard=sharded, **made)

    def _open(self, settings: IndexSettings, stack: ExitStack) -> None:
        entries: list[ShardEntry | None] = [*read_shards(self.folder)] if settings.shard else [None]
        settings = replace(settings, threads=max(1, self._threads // len(entries)))
        self._shards: list[_Shard] = []
        for entry in entries:
            folder = self.folder / entry.path if entry else self.folder
            commit = shard_commit(folder, entry).name if entry else None
            check_upgrade(folder / commit if commit else commits(folder)[0], self._place, self._upgrade)
            writer = ImpactWriter(folder, settings, name=self._place, update=True, commit=commit, writers=len(entries))
            stack.enter_context(writer)
            self._shards.append(_Shard(folder, entry, writer, writer.counts[0]))

    def add(self, docid: str, vector: Mapping[str, float], raw: Mapping[str, Any] | None = None) -> None:
        """Inserts a document, or replaces the document with its id; see :meth:`ImpactIndexer.add`.

        Raises:
            InputError: A document is bad, or its id was given before: this one, or one of an earlier call.
            ArgumentError: The index has passages or texts by BM25; :func:`update_index` updates it.
        """
        refuse_vectors_of_passages(self.manifest.passages)
        if "average_length" in self.manifest.settings:
            said = f"{self.folder} has texts, encoded by {self.manifest.encoder!r}, not vectors of programs"
            raise ArgumentError(said, remedy="give the texts to update_index")
        self._collect(docid, vector, raw)

    def add_lines(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> None:
        """Adds a block of JSON lines; see :meth:`ImpactWriter.add_lines`, and :meth:`add` for errors."""
        refuse_vectors_of_passages(self.manifest.passages)
        self.write(lines, self.compare(lines, file, first_line, sources), file, first_line, sources)

    def compare(self, lines: bytes, file: str, first_line: int = 1, sources: bytes | None = None) -> list[int]:
        """Compares the documents of a block with the index, by their ids and sources, and counts them.

        In an index of passages, each line is a document's first passage. Changed documents lose all their passages.

        Returns:
            For each line, the number of the shard that takes it, or ``NOWHERE`` for an unchanged document.

        Raises:
            InputError: An id was given before.
        """
        found = [
            shard.writer.compare(lines, sources or b"", remembers=not number)
            for number, shard in enumerate(self._shards)
        ]
        separate = lines.split(b"\n")
        places = [
            self._place_of(states, f"{file}:{number}", separate[number - first_line])
            for number, states in enumerate(zip(*found, strict=True), first_line)
        ]
        if self.manifest.passages:
            for shard, states in zip(self._shards, found, strict=True):
                changed = [line for line, state in zip(separate, states, strict=False) if state == Found.CHANGED]
                self._drop_passages(shard, (document_of(json.loads(line)["id"])[0] for line in changed))
        return places

    def _drop_passages(self, shard: _Shard, docids: Iterable[str]) -> None:
        """Deletes all passages of documents: a new version may have fewer. Lucene keeps the order of the calls."""
        if of_documents := list(map(all_passages, docids)):
            shard.writer.delete(of_documents, merge=False, field=PASSAGE_OF)

    def _place_of(self, states: Sequence[int], place: str, line: bytes) -> int:
        if Found.REPEATED in states:
            docid = json.loads(line)["id"]
            docid = document_of(docid)[0] if self.manifest.passages else docid
            what = f"the id {shown(docid)} was given before in this update, or is one to delete"
            raise InputError(what, where=place, remedy="give each id once")
        if Found.UNCHANGED in states:
            self.counts.unchanged += 1
            return NOWHERE
        if Found.CHANGED in states:
            self.counts.replaced += 1
            return states.index(Found.CHANGED)
        if Found.NEW not in states:
            return 0  # a blank line, or a bad one, which is reported when it is written
        self.counts.inserted += 1
        shard = min(self._shards, key=lambda one: one.documents)
        shard.documents += 1
        return self._shards.index(shard)

    def write(
        self, lines: bytes, places: Sequence[int], file: str, first_line: int = 1, sources: bytes | None = None
    ) -> None:
        """Writes a block of JSON lines. ``places`` is what :meth:`compare` returned for the same other arguments."""
        separate = lines.split(b"\n")
        for number in sorted(set(places) - {NOWHERE}):
            ours = [line if place == number else b"" for line, place in zip(separate, places, strict=False)]
            if any(map(bytes.strip, ours)):
                shard = self._shards[number]
                shard.changed = True
                self._report(
                    shard.writer.add_lines(b"\n".join(ours), file, first_line, lines if sources is None else sources)
                )

    def delete(self, ids: Iterable[object]) -> None:
        """Deletes documents, by texts, whole numbers or UUIDs. Ids that the index does not have are counted.

        Raises:
            ArgumentError: An id has another type.
            InputError: An id was given before.
        """
        self._flush()
        given = list(dict.fromkeys(map(id_text, checked_list("ids", ids))))
        known = [docid for docid in given if docid and "\n" not in docid]
        self.counts.not_found += len(given) - len(known)
        if not known:
            return
        stored = [passage_id(docid, 0) for docid in known] if self.manifest.passages else known
        dropped: dict[int, list[str]] = defaultdict(list)
        for docid, *states in zip(known, *(shard.writer.remove(stored) for shard in self._shards), strict=True):
            if Found.REPEATED in states:
                raise InputError(f"document id {docid!r} was given before in this update", where=self._place)
            if Found.CHANGED not in states:
                self.counts.not_found += 1
                continue
            self.counts.deleted += 1
            dropped[states.index(Found.CHANGED)].append(docid)
        for number, docids in dropped.items():
            shard = self._shards[number]
            shard.documents, shard.changed = shard.documents - len(docids), True
            if self.manifest.passages:
                self._drop_passages(shard, docids)

    def delete_missing(self) -> None:
        """Deletes all documents that no call of this update has named.

        Raises:
            InputError: The update has named no document to insert, to replace or to keep.
        """
        self._flush()
        if not (self.counts.inserted or self.counts.replaced or self.counts.unchanged):
            raise InputError("no documents, so all of the index would be deleted", where=self._place)
        ending = passage_id("", 0) if self.manifest.passages else ""
        for shard in self._shards:
            while ids := shard.writer.missing(ending):
                self.delete([document_of(one)[0] for one in ids] if ending else ids)

    def add_stored(self) -> None:
        """Replaces all documents that no call of this update has named by their stored sources, with filter fields.

        Only where the update adopts an index with filter fields.
        """
        self._flush()
        if not (self._adopts and self.manifest.filter_fields):
            return
        (shard,) = self._shards
        with open_reader(self.folder) as reader:
            while ids := shard.writer.missing(""):
                read = [stored_lines(docid, raw, self._place) for docid, raw in zip(ids, reader.raws(ids), strict=True)]
                lines, sources = (b"\n".join(one) for one in zip(*read, strict=True))
                self.add_lines(lines, f"{self._place}: stored sources", 1, sources)

    def optimize(self) -> None:
        """At the end, merges the index into one segment, without deleted documents.

        Its documents are put into a new order, with block maxima, if the index has such an order, or if it has
        ``LEAST_REORDERED`` documents and no pairs.
        """
        self._optimizes = True
        for shard in self._shards:
            shard.changed = True

    def _optimize(self, shard: _Shard) -> None:
        large = shard.writer.counts[0] >= LEAST_REORDERED and not (self.manifest.pair_terms or self.manifest.pairs)
        reorders = large or (shard.folder / BLOCK_MAXIMA).exists()
        if shard.writer.optimize(reorders, required=False) != reorders:
            _logger.warning(NOT_REORDERED, self._place)

    def _report(self, problems: Sequence[str]) -> None:
        if problems:
            raise InputError(problems[0])

    def _finish(self) -> None:
        self._flush()
        for shard in self._shards:
            self._report(shard.writer.drain())
            if self._adopts and (field := shard.writer.missing_field()) is not None:
                raise InputError(
                    f"no document has the filter field {field!r}", where=self._place, remedy="leave it out"
                )
        warn_of_unranged_texts(self._place, self.manifest.filter_fields, *(shard.writer for shard in self._shards))
        changed = [shard for shard in self._shards if shard.changed]
        if not changed:
            self._write_adopted()
            return
        for shard in changed:
            if self._optimizes:
                self._optimize(shard)
            else:
                shard.writer.settle()
        documents, empty = (
            sum(counts) for counts in zip(*(shard.writer.counts for shard in self._shards), strict=True)
        )
        if documents == empty:
            raise InputError("the update would leave no document with a term", where=self._place)
        # Before the commit, because an update of an index without it would be of no use; but filter fields are in the
        # index from the commit on, and until it has a manifest, the same update can run again.
        if not self.manifest.filter_fields:
            self._write_adopted()
        self.state["updates"] += 1
        for shard in changed:
            shard.writer.commit(json.dumps(self.state))
        if self.manifest.filter_fields:
            self._write_adopted()
        if self._shards[0].entry:
            write_shards(self.folder, [self._entry(shard) for shard in self._shards])
        for shard in changed:
            shard.writer.release()
        self.manifest = replace(self.manifest, documents=documents, empty_documents=empty)

    def _write_adopted(self) -> None:
        if self._adopts:
            self.manifest.write(self.folder)

    def _entry(self, shard: _Shard) -> ShardEntry:
        assert shard.entry
        if not shard.changed:
            return shard.entry
        checksum = shard_checksum(shard.folder, commits(shard.folder)[0])
        return ShardEntry(shard.entry.path, shard.writer.counts[0], checksum)
