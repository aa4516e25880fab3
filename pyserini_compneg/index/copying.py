"""Copies the index of another server, the writer, file by file, and keeps the copy equal.

The writer lists the files of one commit, each with a checksum. Files that the present copy has become hard links, all
others are downloaded into a hidden folder beside the copy. A file gets its name when its bytes have the checksum, the
segments files last of all. When the folder is complete, it takes the place of the copy in one step. So whatever is
killed, at any byte, the copy is an index that the writer had, and what was downloaded is used by the next try.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pyserini_compneg.index.copied_files import BLOCK_BYTES, IndexFile, checksum
from pyserini_compneg.index.index_folder import (
    BLOCK_MAXIMA,
    COPY_RECORD,
    NEXT_MAXIMA,
    check_target,
    is_copied,
    is_shard,
)
from pyserini_compneg.lucene import SHARDS_NAME, is_index, open_reader
from pyserini_compneg.support.errors import CompNegError, DownloadError, InputError, OutputError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.schema import decoded
from pyserini_compneg.support.staging import end_or_undo_exchange, locked, output_errors, parent_folders, replace_folder
from pyserini_compneg.support.terminal import shown

_PART = re.compile(r"\.[0-9a-f]{8}\.\d+\.part$")
_KEY = "X-API-Key"
_TIMEOUT_S = 20
"""How long the writer may send nothing."""

_MOST_BYTES_OF_LIST = 1 << 23
"""The largest list that is read: of 80,000 files."""

_LIST_SECONDS = 60.0
"""The most time in which a list must arrive."""

_TRIES = 3
"""How often the same list is tried, if its files are gone or have other bytes."""

_MOST_TRIES = 10
"""How often a list is tried in all, if the writer has a later one each time."""

GENERATION = 12
"""The length of a generation, the end of the id of an index's content: Lucene counts its ids up from a random one."""

Listed: TypeAlias = "tuple[str, list[IndexFile]]"
"""The generation of a writer's commit, and its files."""


class _Unlike(Exception):
    """A file of the list is gone at the writer, or has other bytes."""


class _Redirects(HTTPRedirectHandler):
    """Follows redirections, and sends the key to no other host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            return None
        again = super().redirect_request(req, fp, code, msg, headers, newurl)
        if again and urlsplit(newurl)[:2] == urlsplit(req.full_url)[:2]:
            again.unredirected_hdrs.update(req.unredirected_hdrs)
        return again


_web = build_opener(_Redirects)


class IndexCopy:
    """A copy of the index at the ``url`` of a writer, in the folder ``target``.

    ``key`` is one of the writer's ``copy_keys``. ``stop`` ends a download. ``received`` counts bytes.
    """

    def __init__(self, url: str, key: str, target: str | Path, stop: threading.Event | None = None) -> None:
        self.url, self._key = url.rstrip("/"), key
        self.target = Path(os.path.realpath(target))
        self._staging = self.target.with_name(f".{self.target.name}.copying")
        self._stop = stop or threading.Event()
        self.received = 0

    def ask(self, generation: str | None = None) -> Listed | None:
        """What the writer serves now; None if it is still the generation.

        Raises InputError if the writer refuses the key or knows no such index, and DownloadError if it is not reached.
        """
        headers = {"If-None-Match": f'"{generation}"'} if generation else {}
        where = f"{self.url}/files"
        answer = self._open("", headers)
        if answer is None and generation:
            return None
        content = b"" if answer is None else _content(answer, where)
        listed = parse_json_object(content.decode("utf-8", "replace"), where, DownloadError)
        given, files = listed.get("generation"), listed.get("files")
        if not isinstance(given, str) or not given or not isinstance(files, list) or not files:
            raise DownloadError("is no list of files", where=where)
        decode = (decoded(IndexFile, one, where, DownloadError, "") for one in files if isinstance(one, Mapping))
        named = {one.path: one for one in decode}
        if len(named) != len(files):
            raise DownloadError("lists a file twice, or something else", where=where)
        return given, [*named.values()]

    def check(self) -> None:
        """Refuses to replace anything but a copy of the same index, and to fill a folder that holds something else."""
        check_target(self.target, may_overwrite=True, url=self.url)
        if self._staging.is_symlink() or (self._staging.exists() and not self._staging.is_dir()):
            raise OutputError("is not a folder, and a copy is made there", where=self._staging, remedy="move it away")
        for path in self._staging.rglob("*"):
            named = path.relative_to(self._staging).as_posix()
            if path.is_symlink() or not (is_shard(named) if path.is_dir() else _is_staged(named)):
                said = f"holds {shown(named)}, which is no part of a copy, and a copy is made there"
                raise OutputError(said, where=self._staging, remedy="move it away")

    def take(self, listed: Listed, shows: bool = False) -> str:
        """Makes the copy equal to the list, or to a later one of the writer, and returns its generation.

        ``shows`` shows a bar. Until the end, the present copy stays as it is.
        """
        with ExitStack() as stack:
            with output_errors(self.target, "give another folder"):
                stack.enter_context(parent_folders(self.target))
                stack.enter_context(locked(self.target, "another process is changing it"))
                end_or_undo_exchange(self.target, is_index)
                self.check()
            tries = same = 0
            while True:
                try:
                    return self._take(*listed, shows)
                except _Unlike as cause:
                    tries += 1
                    before, listed = listed[0], self.ask() or listed
                    same = same + 1 if listed[0] == before else 0
                    if same == _TRIES or tries == _MOST_TRIES or self._stop.is_set():
                        raise DownloadError(str(cause), where=self.url) from None

    def _take(self, generation: str, files: Sequence[IndexFile], shows: bool) -> str:
        with output_errors(self.target, "make room, or give another folder"):
            self._stage(files, shows)
            try:
                with open_reader(self._staging) as reader:
                    content_id = reader.content_id
            except CompNegError as error:
                said, remedy = f"its index cannot be opened: {error.what}", "check it there with compneg index --verify"
                raise DownloadError(said, where=self.url, remedy=remedy) from None
            if content_id[-GENERATION:] != generation:
                raise _Unlike(f"its files are not those of generation {shown(generation)}")
            record = self._staging / COPY_RECORD  # what a kill leaves of it is removed by the next try
            record.write_text(json.dumps({"url": self.url}) + "\n", encoding="utf-8")
            _sync(record)
            replace_folder(self._staging, self.target)
            _sync(self.target.parent)
        return generation

    def _stage(self, files: Sequence[IndexFile], shows: bool) -> None:
        """Fills the hidden folder. Small files are downloaded first, as the writer merges and deletes these soonest."""
        self._staging.mkdir(exist_ok=True)
        self._clean(files)
        missing = sorted((one for one in files if not (self._staging / one.path).exists()), key=lambda one: one.bytes)
        links = {one: same for one in missing if (same := self._same(one))}
        fetched = [one for one in missing if one not in links]
        total = sum(one.bytes for one in fetched)
        wanted = total - sum(path.stat().st_size for path in map(self._part, fetched) if path.exists())
        if (free := shutil.disk_usage(self._staging).free) < wanted:
            said = f"{wanted:,} bytes are to be copied, and {free:,} are free"
            raise OutputError(said, where=self.target, remedy="make room")
        with progress(None, total, "B", f"copying {self.url}") if shows else nullcontext() as bar:
            for one in fetched:
                self._fetch(one, bar)
        for one in sorted(missing, key=lambda one: _rank(one.path)):
            place = self._staging / one.path
            place.parent.mkdir(exist_ok=True)
            if one in links:
                _link(links[one], place)
            else:
                os.replace(self._part(one), place)
        for folder in {(self._staging / one.path).parent for one in files} | {self._staging}:
            _sync(folder)

    def _clean(self, files: Sequence[IndexFile]) -> None:
        """Removes what is neither a file of the list nor a part of one."""
        kept = {self._part(one) for one in files}
        kept |= {path for one in files if _is(path := self._staging / one.path, one)}
        for path in sorted(self._staging.rglob("*"), reverse=True):
            if path.is_dir():
                with suppress(OSError):  # it holds something
                    path.rmdir()
            elif path not in kept:
                path.unlink()

    def _part(self, file: IndexFile) -> Path:
        """The place of a file until it is complete. Its name has the checksum, so it is continued by the same bytes."""
        return self._staging / f"{file.path}.{file.checksum}.{file.bytes}.part"

    def _same(self, file: IndexFile) -> Path | None:
        """The file of the present copy that has the same bytes. Block maxima get another name after an update."""
        folder, _, name = file.path.rpartition("/")
        names = (NEXT_MAXIMA, BLOCK_MAXIMA) if name in (NEXT_MAXIMA, BLOCK_MAXIMA) else (name,)
        return next((path for name in names if _is(path := self.target / folder / name, file)), None)

    def _fetch(self, file: IndexFile, bar: Any) -> None:
        """Downloads a file, or the rest of it, and checks it. A broken connection is opened again if data arrived."""
        part = self._part(file)
        part.parent.mkdir(exist_ok=True)
        part.touch()
        while (begun := part.stat().st_size) < file.bytes:
            fault = self._receive(file, part, begun, bar)
            if part.stat().st_size <= begun or self._stop.is_set():
                raise DownloadError(fault or "sends nothing", where=f"{self.url}/files/{file.path}")
        if begun != file.bytes or checksum(part, reads_all=True) != file.checksum:
            part.unlink()
            raise _Unlike(f"{file.path} has not the listed bytes")

    def _receive(self, file: IndexFile, part: Path, begun: int, bar: Any) -> str:
        """Receives a file from a byte on. Returns why it ended early."""
        answer = self._open(f"/{quote(file.path)}", {"Range": f"bytes={begun}-"} if begun else {})
        if answer is None:
            return "status 304"
        with answer:
            continues = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {begun}-")
            with part.open("ab" if continues and begun else "wb") as out:
                while out.tell() < file.bytes and not self._stop.is_set():
                    try:
                        block = answer.read1(BLOCK_BYTES)
                    except (OSError, HTTPException) as cause:
                        return _reason(cause)
                    if not block:
                        return f"ends after {out.tell()} of {file.bytes} bytes"
                    out.write(block)
                    out.flush()  # a kill loses no block that has arrived
                    self.received += len(block)
                    if bar is not None:
                        bar.update(len(block))
                os.fsync(out.fileno())
        return ""

    def _open(self, path: str, headers: Mapping[str, str]) -> Any:
        """The answer of the writer; None for 304."""
        request = Request(f"{self.url}/files{path}", headers={"Accept-Encoding": "identity", **headers})
        request.add_unredirected_header(_KEY, self._key)
        try:
            return _web.open(request, timeout=_TIMEOUT_S)
        except HTTPError as error:
            with error:
                return self._refused(error, path)
        except (OSError, HTTPException, ValueError) as cause:
            raise DownloadError(f"cannot be reached: {_reason(cause)}", where=self.url) from None

    def _refused(self, error: HTTPError, path: str) -> None:
        if error.code == 304:
            return
        if path and error.code in (404, 416):
            raise _Unlike(f"{path[1:]} is gone")
        kind: type[CompNegError] = DownloadError
        said, remedy = f"status {error.code}{_told(error)}", ""
        if error.code in (401, 403):
            kind, remedy = InputError, "give one of the writer's copy_keys"
        elif error.code in (400, 404):
            kind, remedy = InputError, "give the address of an index, http://HOST/v1/NAME, of a server with copy_keys"
        raise kind(f"refuses: {said}", where=self.url, remedy=remedy)


def _content(answer: Any, where: str) -> bytes:
    """The list that a writer sends. Refuses one that is too long, or too slow."""
    content, until = bytearray(), time.monotonic() + _LIST_SECONDS
    with answer:
        try:
            while block := answer.read1(BLOCK_BYTES):
                content += block
                if len(content) > _MOST_BYTES_OF_LIST:
                    raise DownloadError(f"the list of files has more than {_MOST_BYTES_OF_LIST:,} bytes", where=where)
                if time.monotonic() > until:
                    raise DownloadError(f"the list of files did not come in {_LIST_SECONDS:g} s", where=where)
        except CompNegError:
            raise
        except (OSError, HTTPException) as cause:
            raise DownloadError(_reason(cause), where=where) from None
    return bytes(content)


def _is_staged(name: str) -> bool:
    """Whether a file in the hidden folder may be that of a copy, or a part of one."""
    return name == COPY_RECORD or is_copied(_PART.sub("", name))


def _told(error: HTTPError) -> str:
    """The sentence with which a server of this package refuses."""
    with suppress(OSError, HTTPException, CompNegError):
        said = parse_json_object(error.read(10_000).decode("utf-8", "replace"), "", DownloadError).get("error")
        return f", {shown(said)}" if isinstance(said, str) else ""
    return ""


def _reason(cause: Exception) -> str:
    inner = getattr(cause, "reason", None)
    return reason_of(inner if isinstance(inner, Exception) else cause) or type(cause).__name__


def _is(path: Path, file: IndexFile) -> bool:
    """Whether a file that was verified before is the listed one."""
    try:
        return path.stat().st_size == file.bytes and checksum(path) == file.checksum
    except OSError:
        return False


def _rank(path: str) -> int:
    """Lists of files come after the files, and the list of shards after all others."""
    return 2 if path == SHARDS_NAME else int(path.rpartition("/")[2].startswith("segments_"))


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)
        _sync(place)


def _sync(path: Path) -> None:
    """Has the system write a file or the names in a folder to disk."""
    if os.name == "posix":  # Windows opens no folders
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
