"""Prebuilt indexes, which are opened by name: Pyserini's list of impact indexes, downloaded into Pyserini's cache.

This module is imported only if the name of a prebuilt index is given.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.download import fetch, unpack
from pyserini_compneg.lucene.gate import java_class, message_of
from pyserini_compneg.support.errors import DownloadError, IndexFormatError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.staging import locked


@dataclass(frozen=True, slots=True)
class _PrebuiltIndex:
    """An index that can be downloaded. ``md5`` and ``size`` describe the archive."""

    name: str
    urls: tuple[str, ...]
    folder_name: str
    md5: str
    size: int | None


def prebuilt_folder(name: str) -> Path:
    """The folder of a prebuilt index, such as ``beir-v1.0.0-scifact.splade-v3``, downloaded on first use."""
    cache = pyserini_cache() / "indexes"
    try:
        index = _look_up(name)
    except IndexFormatError:
        raise
    except Exception as cause:  # without a network, Pyserini raises various errors
        if len(cached := _in_cache(name, cache)) == 1:
            return cached[0]
        raise IndexFormatError(
            f"{name}: no such index folder, and Pyserini's list of prebuilt indexes needs a network: "
            f"{message_of(cause)}; give the folder of an index"
        ) from None
    try:
        return _installed(index, cache)
    except DownloadError as cause:
        raise DownloadError(
            f"{name}: cannot be downloaded: {cause}; unpack the archive by hand and give its folder as the index"
        ) from None
    except OSError as cause:
        raise DownloadError(
            f"{name}: cannot be stored in {cache}: {reason_of(cause)}; set PYSERINI_CACHE to another folder"
        ) from None


def pyserini_cache() -> Path:
    """Pyserini's cache, in the folder that the installed version of Pyserini uses."""
    if home := os.environ.get("PYSERINI_CACHE"):
        return Path(home)
    local = Path(".cache")
    with suppress(PackageNotFoundError):  # ANSERINI_CLASSPATH names the jar of another Pyserini
        if local.is_dir() and not version("pyserini").startswith(("0.", "1.")):
            return local.absolute() / "pyserini"
    return Path.home() / ".cache" / "pyserini"


def registry() -> Mapping[str, Mapping[str, Any]]:
    """Pyserini's list of prebuilt impact indexes. Pyserini 2 reads it from the network."""
    java_class("io.anserini.search.SimpleImpactSearcher")  # otherwise Pyserini 1 would start another Java
    from pyserini.prebuilt_index_info import IMPACT_INDEX_INFO

    return IMPACT_INDEX_INFO


def _look_up(name: str) -> _PrebuiltIndex:
    known = registry()
    if name not in known:
        nearest = ", ".join(difflib.get_close_matches(name, known, cutoff=0.4)) or "none"
        raise IndexFormatError(
            f"{name}: no such index folder, and no prebuilt impact index of that name (nearest: {nearest}); build one "
            "with compneg index"
        )
    info = known[name]
    size = info.get("size", info.get("size compressed (bytes)"))
    stem = re.sub(r"\.tar(\.\w+)?$", "", Path(info["filename"]).name)
    folder_name = f"{stem}.{info['md5']}"
    return _PrebuiltIndex(name, tuple(info["urls"]), folder_name, info["md5"], size if size and size > 0 else None)


def _in_cache(name: str, cache: Path) -> list[Path]:
    """The folders in the cache whose names contain the name of the index."""
    return [
        folder
        for folder in cache.glob(f"*.{glob.escape(name)}.*")
        if re.search(r"\.[0-9a-f]{32}$", folder.name) and folder.is_dir()
    ]


def _installed(index: _PrebuiltIndex, cache: Path) -> Path:
    folder = cache / index.folder_name
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with locked(folder, "another process downloads it", waits=True):
        if not folder.is_dir():  # another process may have downloaded the index
            _install(index, folder)
    return folder


def _install(index: _PrebuiltIndex, folder: Path) -> None:
    archive, unpacking = (folder.with_name(f".{folder.name}.{suffix}") for suffix in ("part", "unpacking"))
    fetch(index.urls, archive, index.size, index.md5, index.name)
    try:
        unpack(archive, unpacking).rename(folder)
    except OSError:
        if not folder.is_dir():  # Pyserini may have downloaded the index
            raise
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)
    archive.unlink()
