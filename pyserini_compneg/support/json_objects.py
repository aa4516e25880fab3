"""Parses JSON more strictly than Python does, with one-line errors. Writes the documents of programs as JSON.

Reads the ids of JSON Lines records.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

from pyserini_compneg.support.errors import ArgumentError, CompNegError, InputError
from pyserini_compneg.support.surrogates import has_half
from pyserini_compneg.support.terminal import shown

ID_FIELDS = ("id", "qid", "_id", "query_id", "question_id")
DOCUMENT_ID_FIELDS = ("id", "_id", "docid")

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "nothing",
}


_VECTORS = ("vector", "vectors")
_LARGEST_WHOLE = 1 << 63
_MISSING = object()


def parse_json_object(
    text: str, source: str, error: type[CompNegError] = InputError, repeated_keys: bool = False
) -> dict[str, Any]:
    """Parses one JSON object. Refuses NaN, infinities and halves of surrogate pairs, which are not JSON.

    >>> parse_json_object('{"id": "7"}', "topics.jsonl:1")
    {'id': '7'}
    >>> parse_json_object('["7"]', "topics.jsonl:1")
    Traceback (most recent call last):
    ...
    pyserini_compneg.support.errors.InputError: topics.jsonl:1: expected a JSON object, got a list
    """
    value = _parse(text, source, error, repeated_keys)
    if not isinstance(value, dict):
        raise error(f"expected a JSON object, got {json_kind(value)}", where=source)
    return value


def parse_json_list(text: str, source: str) -> list[Any]:
    """Parses a file with one JSON list, as strictly as :func:`parse_json_object` parses an object.

    >>> parse_json_list('["a bird", "a bat"]', "corpus.json")
    ['a bird', 'a bat']
    """
    value = _parse(text, source, InputError, many_lines=True)
    if not isinstance(value, list):
        raise InputError(f"expected a JSON list, got {json_kind(value)}", where=source)
    return value


def json_kind(value: object) -> str:
    """The name of a JSON value's kind, for a message.

    >>> json_kind(7), json_kind(None), json_kind({})
    ('a whole number', 'nothing', 'an object')
    """
    return _KINDS.get(type(value), type(value).__name__)


def _parse(
    text: str, source: str, error: type[CompNegError], repeated_keys: bool = False, many_lines: bool = False
) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=None if repeated_keys else _unique)
    except json.JSONDecodeError as cause:
        place = f"{source}:{cause.lineno}" if many_lines else source
        raise error(f"{syntax_fault(cause)} at column {cause.colno}", where=place) from None
    except RecursionError:
        raise error("not valid JSON: too many brackets within brackets", where=source) from None
    except InputError as cause:
        raise cause.recast(error).at(source) from None
    except ValueError as cause:
        raise error(syntax_fault(cause), where=source) from None
    if ("\\ud" in text or "\\uD" in text) and has_half(json.dumps(value, ensure_ascii=False)):
        raise error("not valid JSON text: half of a surrogate pair", where=source)
    return value


def syntax_fault(cause: ValueError) -> str:
    """The message for an error of ``json``: of syntax, or a number that Python refuses to read."""
    what = cause.msg if isinstance(cause, json.JSONDecodeError) else "a number of thousands of digits"
    return f"not valid JSON: {what.removesuffix(' at')}"


def _refuse_constant(constant: str) -> None:
    raise InputError(f"not valid JSON: {constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise InputError(f"the key {key!r} is given twice")
    return value


def stored_object(text: str | None) -> dict[str, Any] | None:
    """The object in a stored source; None if there is none. An index of stock Anserini may hold any text."""
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_line(record: Mapping[str, Any], source: str) -> str:
    """The document of a program as a line of JSON, without its end.

    Numbers of numpy are numbers, dates and times are texts of ISO 8601, durations are seconds, decimals are numbers,
    UUIDs are texts, and arrays are lists. Empty cells of pandas (NaN, NaT, NA) are left out, in lists they are null. A
    weight of a vector must be a number. :func:`source_documents.source_document` refuses halves of surrogate pairs.

    >>> json_line({"id": UUID(int=7), "seen": date(1999, 5, 1), "price": Decimal("2.50"), "year": math.nan}, "d:1")
    '{"id": "00000000-0000-0000-0000-000000000007", "seen": "1999-05-01", "price": 2.5}'
    """
    plain: Mapping[str, Any] = (
        record if all(isinstance(name, str) for name in record) else _plain_record(record, source)
    )
    try:
        line = _dumped(plain)
    except (TypeError, ValueError, OverflowError, RecursionError):  # an empty cell, or a value that is refused
        plain = _plain_record(record, source)
        line = _dumped(plain)
    if not line.isascii():
        try:
            line.encode()
        except UnicodeEncodeError:
            return json.dumps(plain, default=_converted)
    return line


def _dumped(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=_converted)


def _plain_record(record: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The record in the types of JSON. This takes longer than :func:`_dumped`, and names the field of a fault."""
    plain = {}
    for name, value in record.items():
        try:
            plain[_key(name)] = _plain(value, "" if name in _VECTORS else None)
        except (TypeError, ValueError, OverflowError) as cause:
            raise InputError(f"`{name}` cannot be written as JSON: {cause}", where=source) from None
        except RecursionError:
            raise InputError(f"`{name}` cannot be written as JSON: too deep, or in itself", where=source) from None
    return {name: value for name, value in plain.items() if value is not _MISSING}


def _plain(value: Any, weight_of: str | None = None) -> Any:
    """A value in the types of JSON; ``_MISSING`` for an empty cell, unless it is the weight of a term."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Mapping):
        pairs = ((_key(name), one) for name, one in value.items())
        plain = {name: _plain(one, weight_of if weight_of is None else name) for name, one in pairs}
        return {name: one for name, one in plain.items() if one is not _MISSING}
    if isinstance(value, (list, tuple)):
        return [None if (plain := _plain(one, weight_of)) is _MISSING else plain for one in value]
    if not isinstance(value, float):
        return _plain(_converted(value), weight_of)
    if math.isinf(value) or (weight_of is not None and math.isnan(value)):
        raise ValueError(f"the weight of {weight_of!r} is {value}" if weight_of else f"{value} is not a finite number")
    return _MISSING if math.isnan(value) else float(value)


def _key(name: object) -> str:
    """The name of a field or a term. Whole numbers become texts, as Python's own JSON has them."""
    if isinstance(name, str):
        return name
    if isinstance(name, Integral) and not isinstance(name, bool):
        return str(int(name))
    raise TypeError(f"the name {name!r} must be a text")


def _converted(value: Any) -> Any:
    """A value that is not of JSON's types, one step nearer to them; NaN for an empty cell."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind and kind in "mMO" and value.ndim:
        return list(value)
    if kind == "M":  # tolist gives whole numbers for nanoseconds
        return str(value) if value == value else math.nan
    if kind == "m":  # numpy counts it among the whole numbers
        return float(value / type(value)(1, "s"))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Decimal):
        if value.is_nan():
            return math.nan  # float() refuses a signalling NaN
        whole = value.is_finite() and abs(value) < _LARGEST_WHOLE and value == value.to_integral_value()
        return int(value) if whole else float(value)
    if isinstance(value, (date, time)):
        return value.isoformat() if value == value else math.nan  # pandas' NaT is a date
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if value is getattr(sys.modules.get("pandas"), "NA", _MISSING):
        return math.nan
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of the type {type(value).__name__}")


def id_text(value: object, what: str = "an id", where: str = "", error: type[CompNegError] = ArgumentError) -> str:
    """The text of an id in a program: a text, a whole number, numpy's too, or a UUID.

    >>> id_text("d1"), id_text(7)
    ('d1', '7')
    """
    if isinstance(value, (str, UUID)):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise error(f"{what} must be a text or a whole number, got {shown(value)}", where=where)


def query_id(record: Mapping[str, Any], line: int, source: str) -> str:
    """The query id of a JSON Lines record.

    QUEST's files have no ids. For them, the line number is the id, both of topics and of judgements.

    >>> query_id({"_id": "q7", "text": "birds"}, 1, "topics.jsonl:1")
    'q7'
    >>> query_id({"original_query": "<mark>birds</mark>"}, 3, "val.jsonl:3")
    '3'
    """
    for field in ID_FIELDS:
        if field in record:
            return checked_id(record[field], "query id", source)
    if "original_query" in record or "docs" in record:
        return str(line)
    raise InputError("no query id", where=source, remedy=f"expected one of the fields {', '.join(ID_FIELDS)}")


def checked_id(value: object, what: str, source: str) -> str:
    """The id as a text without white space, because white space separates the columns of TREC runs and judgements.

    >>> checked_id(7, "query id", "topics.jsonl:1")
    '7'
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InputError(f"the {what} must be a text or a whole number, got {shown(value)}", where=source)
    text = str(value)
    if not text.strip():
        raise InputError(f"the {what} is blank", where=source)
    if "\0" in text:
        raise InputError(f"the {what} {text!r} has a NUL character", where=source)
    if any(character.isspace() for character in text):
        raise InputError(f"the {what} {text!r} has white space, which a TREC run cannot hold", where=source)
    return text


def titles_are_ids(fields: Collection[str]) -> bool:
    """Whether documents with these fields have no ids, as in QUEST. Any other field may be a misspelt id.

    >>> titles_are_ids(["title", "text"]), titles_are_ids(["Id", "title", "text"])
    (True, False)
    """
    return "title" in fields and {"title", "text"}.issuperset(fields)


def docid_from_title(title: str) -> str:
    """The document id for a QUEST title: each run of white space, which TREC files cannot hold, becomes ``_``.

    >>> docid_from_title("Drive (2007 film)")
    'Drive_(2007_film)'
    """
    return "_".join(title.split())
