"""Finds and reads the files of a dataset in its folder; each may be packed with gzip, and then ends in ``.gz``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pyserini_compneg.errors import CollectionError
from pyserini_compneg.files import decoded_line, iter_blocks, iter_jsonl


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name, plain or gzip, if it is there."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def require_file(folder: Path, name: str, kind: str) -> Path:
    """The file of that name, plain or gzip.

    Raises:
        CollectionError: It is not there.
    """
    path = find_file(folder, name)
    if path is None:
        raise CollectionError(f"{folder}: {name} is missing, plain or gzip, which the kind {kind} needs")
    return path


def find_splits(folder: Path, names: Iterable[str], suffix: str) -> dict[str, Path]:
    """The files ``name + suffix`` that are there, by name."""
    paths = {name: find_file(folder, name + suffix) for name in names}
    return {name: path for name, path in paths.items() if path}


def first_fields(path: Path) -> set[str]:
    """The fields of the first object of a JSON Lines file; none in an empty file.

    Raises:
        CollectionError: The first line is no JSON object.
    """
    return set(next((record for _, record in iter_jsonl(path)), {}))


def all_lines(path: Path) -> Iterator[str]:
    """The lines of a file, blank ones too, so that parsers count them as an editor does.

    Raises:
        CollectionError: The file cannot be read, or is no UTF-8 text; the message starts with ``path:line``.
    """
    for first, block in iter_blocks(path):
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            yield decoded_line(line, f"{path}:{number}")
