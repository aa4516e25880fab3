"""Rows of parquet files as documents. The number of a row, from 1, is the number of its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyserini_compneg.support.errors import InputError, install_hint
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.json_objects import json_line

_MAGIC = b"PAR1\x15"
"""The second part is the first byte of a page."""
_ROWS = 256
"""Rows that are in memory as Python's objects at a time."""
_BUFFER_BYTES = 1 << 20
"""Without a buffer, or with ``pre_buffer``, the reader loads a row group at once, and files of one group are common."""


def is_parquet(path: Path) -> bool:
    """Whether a file begins as parquet does, whatever its name."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def parquet_fields(path: Path) -> list[str]:
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_rows(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """Of each row its number of lines (always 1), its JSON and its fault. Null cells are left out."""
    number = 1
    with _opened(path) as file:
        for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
            for row in _rows(batch):
                place = f"{path}:{number}"
                try:
                    if isinstance(row, Exception):
                        raise InputError(f"a cell that cannot be read: {reason_of(row)}", where=place)
                    yield 1, json_line(_without_nulls(row), place).encode(), None
                except InputError as fault:
                    yield 1, b"", str(fault)
                number += 1


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file. Faults of its content are errors of this package, with the path."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("parquet is read by pyarrow", where=path, remedy=install_hint("parquet")) from None
    try:
        with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            if twice := [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]:
                raise InputError(f"the column {twice[0]!r} is there twice", where=path, remedy="rename one")
            yield file
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except PermissionError as cause:
        raise InputError(f"cannot be read: {reason_of(cause)}", where=path) from None
    except (arrow.ArrowException, OSError) as cause:
        said = str(cause).partition("\n")[0]
        raise InputError(f"broken parquet data, or no plain parquet file: {said}", where=path) from None


def _rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """The rows as dictionaries, or their faults: a date that Python does not have, a key that a map repeats."""
    batch = _in_microseconds(batch)
    try:
        yield from batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, KeyError, OverflowError):
        for at in range(len(batch)):
            try:
                yield from batch.slice(at, 1).to_pylist(maps_as_pydicts="strict")
            except (ValueError, KeyError, OverflowError) as cause:
                yield cause


def _in_microseconds(batch: Any) -> Any:
    """The batch without nanoseconds: Python's times have none, and pyarrow would import pandas for them."""
    import pyarrow as arrow

    for at, field in enumerate(batch.schema):
        if arrow.types.is_timestamp(field.type) and field.type.unit == "ns":
            kind = arrow.timestamp("us", field.type.tz)
            batch = batch.set_column(at, field.name, batch.column(at).cast(kind, safe=False))
    return batch


def _without_nulls(value: Any) -> Any:
    """A cell without the null fields of its structs. All rows have the fields of all, as in sparse vectors."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return _text(value) if isinstance(value, bytes) else value


def _text(value: bytes) -> str | bytes:
    """Text that a writer marked as bytes. Other bytes stay, and are refused with the name of their field."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
