"""A file of vectors that grows while a collection is encoded, and that a killed run leaves to be gone on with."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from filelock import FileLock, Timeout

from pyserini_compneg.errors import OutputError
from pyserini_compneg.files import atomic_writer

_LEVEL = 6
_logger = logging.getLogger(__name__)


class ShardFile:
    """A gzip file that grows block by block, each a member of its own, so that it can be cut back to any of them.

    Beside it lies a file of how far it has come. Both are hidden, and the first takes its name when the context is left
    without an exception. Use it as a context manager.

    Args:
        place: The file.
        plan: What is written, of what; to go on, it must be what it was. JSON.
        overwrite: Replace a file that is there already, and throw away unfinished work.
        resume: Go on with unfinished work, if there is any.
        remedy: What messages advise where the file cannot be written.
        way_on: What they advise after an exception, so that unfinished work is gone on with.

    Attributes:
        position: Where to go on, as :meth:`add` was told.
        documents: How many lines there are.

    Raises:
        OutputError: On entry, that the file exists, another process writes it, or unfinished work was not mentioned or
            is of another plan; anywhere, that it cannot be written.
    """

    def __init__(
        self,
        place: Path,
        plan: Mapping[str, Any],
        overwrite: bool,
        resume: bool,
        remedy: str = "make room, or give another --output",
        way_on: str = "give --resume",
    ) -> None:
        self._place = place
        self._plan = plan
        self._overwrite, self._resume = overwrite, resume
        self._remedy, self._way_on = remedy, way_on
        self._partial = place.with_name(f".{place.name}.partial")
        self._state = place.with_name(f".{place.name}.state")
        self._lock = FileLock(place.with_name(f".{place.name}.lock"), timeout=0)
        self.position = (0, 1)
        self.documents = 0

    def __enter__(self) -> Self:
        """Makes the file, or takes up unfinished work."""
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise OutputError(f"{self._place}: another process is writing it; wait for it") from None
        except OSError as cause:
            raise self._unwritable(cause) from None
        try:
            self._open()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Gives the file its name; on an exception, keeps what is there to be gone on with."""
        try:
            with suppress(OSError):  # all that counts is on disk; what did not fit there is in the buffer still
                self._data.close()
            if error is None:
                os.replace(self._partial, self._place)
                self._state.unlink(missing_ok=True)
            elif self.documents and self._state.exists():
                _logger.warning("%s: what was encoded is kept; %s to go on with it", self._place, self._way_on)
            else:
                self._partial.unlink(missing_ok=True)
                self._state.unlink(missing_ok=True)
            if isinstance(error, OSError) and not isinstance(error, OutputError):
                raise self._unwritable(error) from None
        finally:
            self._unlock()

    def add(self, position: tuple[int, int], lines: Sequence[str]) -> None:
        """Writes the lines of a block, to disk, and where to go on after it."""
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=_LEVEL, mtime=0) as member:
            member.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        if lines:
            self._data.write(packed.getvalue())
            self._data.flush()
            os.fsync(self._data.fileno())
        self.documents += len(lines)
        self.position = position
        state = {"plan": self._plan, "bytes": self._data.tell(), "position": position, "documents": self.documents}
        with atomic_writer(self._state, self._remedy) as handle:
            json.dump(state, handle)

    def _open(self) -> None:
        check_place(self._place, self._overwrite)
        for halves in self._place.parent.glob(f".{self._state.name}.*.tmp"):  # of states, which a kill left
            halves.unlink(missing_ok=True)
        state = self._unfinished()
        if state is not None and not self._resume and not self._overwrite:
            raise OutputError(
                f"{self._place}: unfinished work on it is there; give --resume to go on with it, or --overwrite to "
                "throw it away"
            )
        if state is None or not self._resume:
            self._state.unlink(missing_ok=True)
            self._data: BinaryIO = self._partial.open("wb")
            return
        if changed := [name for name in self._plan if state["plan"].get(name) != self._plan[name]]:
            raise OutputError(
                f"{self._place}: cannot go on, because {', '.join(changed)} changed since; give --overwrite without "
                "--resume to start anew"
            )
        self._data = self._partial.open("r+b")
        self._data.truncate(state["bytes"])
        self._data.seek(state["bytes"])
        self.position, self.documents = tuple(state["position"]), state["documents"]

    def _unfinished(self) -> dict[str, Any] | None:
        """The state of unfinished work, if its data are all there."""
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            state: dict[str, Any] = json.loads(self._state.read_text(encoding="utf-8"))
            position, counts = state["position"], (state["bytes"], state["documents"], *state["position"])
            if (
                all(type(number) is int and number >= 0 for number in counts)
                and len(position) == 2
                and position[1] >= 1
                and isinstance(state["plan"], dict)
                and self._partial.stat().st_size >= state["bytes"]
            ):
                return state
        return None

    def _unwritable(self, cause: OSError) -> OutputError:
        reason = (cause.strerror or str(cause)).lower()
        return OutputError(f"{self._place}: cannot be written: {reason}; {self._remedy}")

    def _unlock(self) -> None:
        with suppress(OSError):  # gone while the lock is held, so that nobody is waiting for another file of the name
            os.unlink(self._lock.lock_file)
        self._lock.release()


def check_place(place: Path, overwrite: bool) -> None:
    """Makes sure that a file may be written; what needs no model is said before one is loaded.

    Raises:
        OutputError: It is there already.
    """
    if place.is_dir():
        raise OutputError(f"{place}: a folder; move it, or give another --output")
    if place.exists() and not overwrite:
        raise OutputError(f"{place}: exists already; give --overwrite to replace it, or another --output")
