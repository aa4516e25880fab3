"""Archives from the network: downloaded with a progress bar, gone on with after an interruption, verified, unpacked."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from pyserini_compneg.errors import DownloadError
from pyserini_compneg.progress import progress

_AGENT = "Mozilla/5.0 (pyserini_compneg)"  # some mirrors turn Python's own away
_TIMEOUT_S = 60
_BLOCK_BYTES = 1 << 18
_ATTEMPTS = 10


def fetch(urls: Sequence[str], archive: Path, size: int | None, md5: str, name: str) -> None:
    """Downloads a file from the first place that has it, whole and unharmed.

    What an earlier call left in the file is gone on with where the server can, else thrown away. A broken connection
    is taken up again as long as something arrives.

    Args:
        urls: Where it is.
        archive: Where it goes.
        size: Its bytes, if they are known.
        md5: Its checksum, in hexadecimal.
        name: What to call it in the progress bar.

    Raises:
        DownloadError: No place has it; the message says why not, for each.
    """
    faults = {}
    for url in urls:
        for _ in range(_ATTEMPTS):
            before = _bytes(archive)
            fault = _attempt(url, archive, size, md5, name)
            if fault is None:
                return
            faults[url] = fault
            if _is_whole(archive, size):
                archive.unlink()
                if before == 0:
                    break  # not the fault of an earlier part
            elif _bytes(archive) <= before:
                break
    raise DownloadError("; ".join(f"{url}: {fault}" for url, fault in faults.items()) or "no place is known")


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks a tar file, whatever its compression, and returns the folder in it that holds a Lucene index.

    Nothing outside the folder is touched, whatever names and links the file holds; no device, owner or mode is taken.

    Args:
        archive: The file.
        folder: Where to; what was there before goes.

    Raises:
        DownloadError: No tar file, a broken or a hostile one, or not one index in it.
        OSError: The folder cannot be written.
    """
    if not hasattr(tarfile, "data_filter"):
        raise DownloadError("Python 3.11.4 or later is needed to unpack archives safely")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as members:
            members.extractall(folder, progress(members, None, " files", "unpacking"), filter="data")
    except (tarfile.TarError, EOFError, zlib.error) as cause:
        raise DownloadError(f"the archive cannot be unpacked: {str(cause).splitlines()[0]}") from None
    indexes = {path.parent for path in folder.glob("**/segments_*")}
    if len(indexes) != 1:
        raise DownloadError(f"the archive must hold one Lucene index, it holds {len(indexes)}")
    return indexes.pop()


def _attempt(url: str, archive: Path, size: int | None, md5: str, name: str) -> str | None:
    """What is wrong with the file after one more attempt; None when it is all there."""
    try:
        if size is None or _bytes(archive) != size:
            _receive(url, archive, size, name)
    except (OSError, HTTPException, ValueError) as cause:
        return f"{getattr(cause, 'reason', None) or cause}"
    if not _is_whole(archive, size):
        return f"expected {size} bytes, got {_bytes(archive)}"
    with archive.open("rb") as data:
        found = hashlib.file_digest(data, "md5").hexdigest()
    return None if found == md5 else f"expected the MD5 {md5}, got {found}"


def _receive(url: str, archive: Path, size: int | None, name: str) -> None:
    start = _bytes(archive)
    headers = {"User-Agent": _AGENT} | ({"Range": f"bytes={start}-"} if start else {})
    with urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
        start = start if answer.status == 206 else 0
        with archive.open("ab" if start else "wb") as out, progress(None, size, "B", name) as bar:
            bar.update(start)
            while (size is None or out.tell() <= size) and (block := answer.read(_BLOCK_BYTES)):
                out.write(block)
                bar.update(len(block))


def _is_whole(archive: Path, size: int | None) -> bool:
    return size is None or _bytes(archive) >= size


def _bytes(archive: Path) -> int:
    return archive.stat().st_size if archive.exists() else 0
