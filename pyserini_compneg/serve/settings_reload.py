"""Keys and allowed origins change while the server runs: the settings file is read again when it changes."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

from pyserini_compneg.serve.gate import Gate
from pyserini_compneg.serve.settings import ServerSettings, read_server_settings
from pyserini_compneg.support.errors import InputError

_SECONDS = 0.25

_logger = logging.getLogger(__name__)


async def follow(path: str | Path, gate: Gate, asked: asyncio.Event) -> None:
    """Admits the keys and origins of the file, now, after each change, and when ``asked``.

    A file that cannot be read changes nothing. The first reading finds what changed while the indexes were opened.
    """
    seen, last = None, None
    while True:
        stamp, is_asked = await asyncio.to_thread(_stamp, path), asked.is_set()
        if is_asked or (stamp is not None and stamp != seen):  # an editor may remove the file before it writes
            asked.clear()
            seen = stamp
            try:
                fresh = await asyncio.to_thread(read_server_settings, path)
            except Exception as error:  # whatever it is, later changes of the file must be followed
                said = error if isinstance(error, InputError) else f"{path}: {error!r}"
                _logger.warning("%s; the keys and origins stay as they were", said)
            else:
                gate.admit(fresh)
                if last is not None and (is_asked or fresh != last):
                    _tell(path, fresh, last)
                last = fresh
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), _SECONDS)


def _stamp(path: str | Path) -> tuple[int, ...] | None:
    """Differs after each change of a file, also if a link leads to another file then."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _tell(path: str | Path, fresh: ServerSettings, last: ServerSettings) -> None:
    counts = {name: getattr(fresh, name) for name in ("api_keys", "write_keys", "copy_keys", "allowed_origins")}
    _logger.info("%s: read again, %s", path, ", ".join(f"{name}: {len(one)}" for name, one in counts.items()))
    if last.needs_key and not fresh.needs_key:
        _logger.warning("%s: api_keys is gone, but searches need a key until the server starts again", path)
    if (fresh.indexes, fresh.limits) != (last.indexes, last.limits):
        _logger.warning("%s: start the server again, so that its indexes and limits are those of the file", path)
