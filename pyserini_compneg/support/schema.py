"""Dataclasses as schemas: checks objects of JSON files against the types of the fields."""

from __future__ import annotations

import collections.abc
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.json_objects import parse_json_object

Schema = TypeVar("Schema")


def entry(fits: Callable[[Any], bool], default: Any = MISSING, *, optional: bool = False) -> Any:
    """A field with a further check of its values. A file may lack an optional entry, even without a default."""
    return field(default=default, metadata={"fits": fits, "optional": optional})


def read_schema(kind: type[Schema], path: Path, version: int, error: type[CompNegError], remedy: str) -> Schema:
    """Reads a file with one JSON object. Its ``format_version`` must be ``version``."""
    try:
        values = parse_json_object(path.read_text(encoding="utf-8"), str(path), error)
    except (FileNotFoundError, CompNegError):
        raise
    except (OSError, ValueError) as cause:
        raise error(f"cannot be read: {reason_of(cause)}", where=path, remedy=remedy) from None
    found = values.get("format_version")
    if found != version or isinstance(found, bool):
        if isinstance(found, int) and found > version:
            remedy = "upgrade pyserini_compneg"
        raise error(f"format version {found!r}, but this release reads {version}", where=path, remedy=remedy)
    return decoded(kind, values, path, error, remedy)


def decoded(
    kind: type[Schema], values: Mapping[str, Any], where: object, error: type[CompNegError], remedy: str
) -> Schema:
    """Decodes a JSON object of a file into a dataclass. Lists become tuples."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(values.keys() - known):
        raise error(f"unknown key {unknown[0]!r}", where=where, remedy="it was written by another release")
    if missing := sorted(name for name in known.keys() - values if not known[name].metadata.get("optional")):
        raise error(f"the key {missing[0]!r} is missing", where=where, remedy=remedy)
    if (name := misfit(kind, values)) is not None:
        raise error(f"bad value for {name!r}: {reprlib.repr(values[name])}", where=where, remedy=remedy)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def misfit(kind: type, values: Mapping[str, Any]) -> str | None:
    """The first field whose value does not fit its type or check, or None."""
    types = get_type_hints(kind)
    for one in fields(kind):
        if one.name in values:
            value, fits = values[one.name], one.metadata.get("fits")
            if not _is_of(types[one.name], value) or (fits and not fits(value)):
                return one.name
    return None


def _is_of(kind: Any, value: object) -> bool:
    """Whether a JSON value has a type. Whole numbers are also floats, and lists are tuples."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(part, value) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_is_of(parts[0], one) for one in value)
    if origin is collections.abc.Mapping:
        return isinstance(value, dict) and all(_is_of(parts[1], one) for one in value.values())
    return kind is Any or type(value) in ((int, float) if kind is float else (kind,))
