"""An index that many threads search, and that may be replaced during searches."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias, TypeVar

from pyserini_compneg.encode.hybrid import places
from pyserini_compneg.encode.query_encoders import same_model
from pyserini_compneg.index import UpdateReport, update_index
from pyserini_compneg.index.copied_files import IndexFile, index_files, index_paths
from pyserini_compneg.index.copying import GENERATION
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.serve.settings import Follows, ServedIndexSettings, checked_name
from pyserini_compneg.support.errors import BusyError, CompNegError, IndexFormatError, IndexReadError, InputError

OpenIndex: TypeAlias = Callable[..., SignedImpactSearcher]
"""Opens an index, by its folder or prebuilt name, with an encoder, None for its own, and perhaps settings."""


_COMPARED_SECONDS = 5.0
"""How long a copy counts as equal after a comparison. The next one may have to wait for the writer."""

_MOST_SECONDS_BEHIND = 60.0

_TRIES = 3

Found = TypeVar("Found")


@dataclass
class _Opened:
    """A searcher and the number of threads that use it."""

    searcher: SignedImpactSearcher
    users: int = 0
    closing: bool = False


def generation(searcher: SignedImpactSearcher) -> str:
    """Identifies the content of an open index. Each update and each build has another one."""
    return searcher.reader.content_id[-GENERATION:]


class ServedIndex:
    """An open index. If it is updated or replaced in the folder, :meth:`reload` opens the new index.

    :meth:`switch` opens another folder, and :meth:`update` changes the documents.

    The encoder is loaded immediately. A search continues with the index in which it started. The last search of a
    replaced index closes it.
    """

    def __init__(self, name: str, settings: ServedIndexSettings, open_index: OpenIndex = SignedImpactSearcher) -> None:
        self.name = name
        self._settings, self._open_index = settings, open_index
        path = settings.path
        self._path = os.path.abspath(path) if os.path.isdir(path) else path  # absolute, so messages can replace it
        self._paths = {self._path}  # all so far: a search may still be in an index of before
        self._first = os.path.split(self._path)
        self._lock, self._replacing, self._changing = threading.Lock(), threading.Lock(), threading.Lock()
        self._search_failed = self._reload_failed = self._is_equal = False
        self._equal_at = time.monotonic()
        self._listed = "", frozenset[str]()  # a generation, and the paths of its files
        self._current = self._open(self._path)

    def _open(self, path: str) -> _Opened:
        named = self._settings.model_dump(include={"language", "model_weight", "latent_weight"}, exclude_none=True)
        searcher = self._open_index(path, self._settings.encoder, **named)
        try:
            searcher.encoder  # noqa: B018  # load it now, so that no request waits for it
        except BaseException:
            searcher.close()
            raise
        return _Opened(searcher)

    @contextmanager
    def searcher(self) -> Iterator[SignedImpactSearcher]:
        """The current searcher of the index. It stays open until the context ends."""
        with self._used() as searcher:
            try:
                yield searcher
            except IndexReadError:
                self._search_failed = True
                raise
            self._search_failed = False

    @contextmanager
    def _used(self) -> Iterator[SignedImpactSearcher]:
        with self._lock:
            opened = self._current
            opened.users += 1
        try:
            yield opened.searcher
        finally:
            self._leave(opened, 1)

    @property
    def folders(self) -> set[str]:
        """The paths that are hidden from clients."""
        models = places(self._settings.encoder or "")
        with self._used() as searcher:
            known = {*self._paths, str(searcher.reader.folder), *filter(os.path.exists, models)}
        return {path for path in known if os.sep in path}

    @property
    def degraded(self) -> str | None:
        """The fault of the index, in words for a client, or None."""
        with self._used() as searcher:
            lost = getattr(searcher.reader, "lost", ())
        if lost:
            return f"{len(lost)} of its shards are left out, so results are partial"
        if self._search_failed:
            return "its last search failed; the log says why"
        if self._reload_failed:
            return "what replaced it cannot be opened, so the older index is searched"
        if self.follows and self.behind_seconds > _MOST_SECONDS_BEHIND:
            return (
                f"it has not been equal to the index that it follows for {_MOST_SECONDS_BEHIND:.0f} s; the log says why"
            )
        return None

    @property
    def path(self) -> str:
        """The folder that is searched, or the name of a prebuilt index."""
        return self._path

    @property
    def follows(self) -> Follows | None:
        """The index of another server of which this one is a copy."""
        return self._settings.follows

    @property
    def behind_seconds(self) -> float:
        """The time since the copy was last known to be equal to what it follows, or since the start; 0 while equal."""
        seconds = time.monotonic() - self._equal_at
        return 0.0 if self._is_equal and seconds < _COMPARED_SECONDS else seconds

    def compared(self, is_equal: bool) -> None:
        """Notes whether the index is known to be equal to what it follows."""
        self._is_equal = is_equal
        if is_equal:
            self._equal_at = time.monotonic()

    def files(self) -> tuple[str, list[IndexFile]]:
        """The generation and the files of the index that is open."""
        return self._of_files(index_files)

    def file(self, path: str) -> Path | None:
        """The place of a file of the index that is open, if it has one of this path."""
        listed = self._listed
        if listed[0] != self.generation or path not in listed[1]:
            now, paths = self._of_files(index_paths)
            self._listed = listed = now, frozenset(paths)
        with self._used() as searcher:
            return searcher.reader.folder / path if path in listed[1] else None

    def _of_files(self, read: Callable[[Path, str], list[Found] | None]) -> tuple[str, list[Found]]:
        """Reads something of the commit that is open. If the folder has another by now, opens it and tries again."""
        for tries in range(_TRIES):
            with self._used() as searcher:
                try:
                    if found := read(searcher.reader.folder, searcher.reader.content_id):
                        return generation(searcher), found
                except (OSError, IndexReadError):
                    if tries == _TRIES - 1 and not searcher.reader.is_replaced():
                        raise
            self.reload()
        raise BusyError("is being changed", where=self.name, remedy="ask again")

    @property
    def documents(self) -> int:
        with self._used() as searcher:
            return searcher.num_docs

    @property
    def generation(self) -> str:
        with self._used() as searcher:
            return generation(searcher)

    @property
    def language(self) -> str:
        with self._used() as searcher:
            return searcher.language

    @property
    def version(self) -> str | None:
        """The name of the folder that is searched, if a request may switch it."""
        return os.path.basename(self._path) if self._settings.versions else None

    @property
    def filter_fields(self) -> tuple[str, ...]:
        with self._used() as searcher:
            manifest = searcher.reader.manifest
            return manifest.filter_fields if manifest else ()

    def reload(self) -> bool:
        """If the open index was replaced, opens the index that is now in the folder and returns True.

        If the new index cannot be opened, the old index stays open.
        """
        with self._replacing:
            if not self._current.searcher.reader.is_replaced():
                self._reload_failed = False
                return False
            try:
                if not self._is_allowed(self._path):
                    raise InputError(f"{self.name} has no version {os.path.basename(self._path)!r} any more")
                fresh = self._open(self._path)
            except BaseException:
                self._reload_failed = True
                raise
            self._replace(fresh)
            return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuses a change of the index during another one."""
        if not self._changing.acquire(blocking=False):
            raise BusyError("another request is changing it", where=self.name, remedy="ask again when it is done")
        try:
            yield
        finally:
            self._changing.release()

    def update(self, documents: bytes | None, delete: Sequence[str] | None) -> UpdateReport:
        """Changes the documents as :func:`update_index` does, unless something else changes the index meanwhile.

        :meth:`reload` then opens the index as it is. A link that no longer leads to an allowed folder is not followed.
        """
        with self._alone():
            if not self._is_allowed(self._path):
                what = f"has no version {os.path.basename(self._path)!r} any more"
                raise BusyError(what, where=self.name, remedy="switch it to another one")
            return update_index(self._path, documents, delete, encoder=self._place_of_model())

    def _place_of_model(self) -> str | None:
        """The encoder of the settings if it is the model of the index in another place, and no file of vectors."""
        named = self._settings.encoder
        with self._used() as searcher:
            manifest = searcher.reader.manifest
        same = named and manifest and same_model(manifest.encoder, manifest.settings, named)
        return named if same else None

    def switch(self, folder: str) -> None:
        """Opens another folder beside the one of the settings, or the latter again, if the settings allow its name.

        If it cannot be opened, the old index stays open. A link is allowed if what it leads to is.
        Refuses if another thread is changing the index.
        """
        with self._alone():
            self._switch(folder)

    def _switch(self, folder: str) -> None:
        path = os.path.join(self._first[0], checked_name(folder))
        if not self._settings.versions:
            raise InputError(f"{self.name} has no versions: the settings name none for it")
        if not self._first[0] or not self._is_allowed(path) or not os.path.isdir(path):
            raise InputError(f"{self.name} has no version {folder!r}")
        with self._replacing:
            self._paths.add(path)  # before it is opened, for messages
            try:
                fresh = self._open(path)
            except CompNegError as error:  # a damaged folder is a fault of this request, not of the server
                raise error.recast(IndexFormatError).at(f"version {folder}") from None
            self._replace(fresh)
            self._path = path

    def _is_allowed(self, path: str) -> bool:
        """Whether a path is the folder of the settings, or leads to a folder beside it that they allow."""
        beside, _ = self._first
        place, name = os.path.split(os.path.realpath(path))
        allowed = place == os.path.realpath(beside) and fnmatchcase(name, self._settings.versions or "")
        return allowed or path == os.path.join(*self._first)

    def _replace(self, fresh: _Opened) -> None:
        self._search_failed = self._reload_failed = False
        with self._lock:
            before, self._current = self._current, fresh
        self._leave(before, 0)

    def _leave(self, opened: _Opened, users: int) -> None:
        """Closes a searcher that was replaced and has no users any more. Only one thread does this."""
        with self._lock:
            opened.users -= users
            unused = opened is not self._current and not opened.users and not opened.closing
            opened.closing |= unused
        if unused:
            opened.searcher.close()

    def close(self) -> None:
        """Closes the index. No thread may be searching it."""
        self._current.searcher.close()
