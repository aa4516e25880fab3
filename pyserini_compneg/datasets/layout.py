"""Finds the files of a dataset in its folder; each may be packed with gzip, and then ends in ``.gz``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pyserini_compneg.errors import CollectionError
from pyserini_compneg.files import iter_lines
from pyserini_compneg.json_objects import parse_json_object

_LINES_LOOKED_AT = 100


def found(folder: Path, name: str) -> Path | None:
    """The file of that name, plain or gzip, if it is there."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def required(folder: Path, name: str, kind: str) -> Path:
    """The file of that name, plain or gzip.

    Raises:
        CollectionError: It is not there.
    """
    path = found(folder, name)
    if path is None:
        raise CollectionError(f"{folder}: {name} is missing, plain or gzip, which the kind {kind} needs")
    return path


def found_splits(folder: Path, names: Iterable[str], suffix: str) -> dict[str, Path]:
    """The files ``name + suffix`` that are there, by name."""
    paths = {name: found(folder, name + suffix) for name in names}
    return {name: path for name, path in paths.items() if path}


def first_fields(path: Path | None) -> set[str]:
    """The fields of the first object of a JSON Lines file; none where there is no file, or no object.

    Broken lines are passed over: whoever reads the file says which they are.
    """
    if path is not None:
        with suppress(CollectionError):
            for _, line in islice(iter_lines(path), _LINES_LOOKED_AT):
                with suppress(CollectionError):
                    return set(parse_json_object(line, str(path)))
    return set()


def check_objects(path: Path) -> None:
    """Says why a JSON Lines file has no first object.

    Raises:
        CollectionError: It cannot be read, is empty, or starts with something else.
    """
    for number, line in iter_lines(path):
        parse_json_object(line, f"{path}:{number}")
        return
    raise CollectionError(f"{path}: no queries; it is empty")
