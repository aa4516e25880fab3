"""Downloads archives with a progress bar, continues after an interruption, verifies and unpacks them."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from pyserini_compneg.support.errors import DownloadError
from pyserini_compneg.support.progress import progress

_AGENT = "Mozilla/5.0 (pyserini_compneg)"  # some servers refuse Python's user agent
_TIMEOUT_S = 60
_BLOCK_BYTES = 1 << 18
_ATTEMPTS = 10


def fetch(urls: Sequence[str], archive: Path, size: int | None, md5: str, name: str) -> None:
    """Downloads a file from the first URL that has it, and verifies it.

    If an earlier call left a part of the file, the download continues from there, if the server allows it. A broken
    connection is reopened as long as data arrives. The error gives the reason for each URL.
    """
    faults = {}
    for url in urls:
        for _ in range(_ATTEMPTS):
            before = _length(archive)
            fault = _attempt(url, archive, size, md5, name)
            if fault is None:
                return
            faults[url] = fault
            if size is None or _length(archive) >= size:
                archive.unlink(missing_ok=True)
                if before == 0:
                    break  # the fault is not in a part from an earlier call
            elif _length(archive) <= before:
                break
    raise DownloadError("; ".join(f"{url}: {fault}" for url, fault in faults.items()) or "no URL is known")


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks a tar file, compressed or not, and returns the folder inside it that holds a Lucene index.

    Deletes the former content of the folder. Never writes outside the folder, whatever names and links the file holds.
    Devices, owners and modes in the file are ignored.
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
    """Makes one more attempt. Returns the fault of the file, or None if the file is complete."""
    try:
        if size is None or _length(archive) != size:
            _receive(url, archive, size, name)
    except (OSError, HTTPException, ValueError) as cause:
        return f"{getattr(cause, 'reason', None) or cause}"
    if size is not None and _length(archive) < size:
        return f"expected {size} bytes, got {_length(archive)}"
    with archive.open("rb") as data:
        digest = hashlib.file_digest(data, "md5").hexdigest()
    return None if digest == md5 else f"expected the MD5 {md5}, got {digest}"


def _receive(url: str, archive: Path, size: int | None, name: str) -> None:
    start = _length(archive)
    headers = {"User-Agent": _AGENT} | ({"Range": f"bytes={start}-"} if start else {})
    with urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
        start = start if answer.status == 206 else 0
        with archive.open("ab" if start else "wb") as out, progress(None, size, "B", name) as bar:
            bar.update(start)
            while (size is None or out.tell() <= size) and (block := answer.read(_BLOCK_BYTES)):
                out.write(block)
                bar.update(len(block))


def _length(archive: Path) -> int:
    return archive.stat().st_size if archive.exists() else 0
