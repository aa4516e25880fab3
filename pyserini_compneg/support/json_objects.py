"""Parses JSON more strictly than Python does, with one-line errors. Reads the ids of JSON Lines records."""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from pyserini_compneg.support.errors import CompNegError, InputError

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


class _RepeatedKey(ValueError):
    """An object has a key twice."""


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
        what = f"not valid JSON: {cause.msg.removesuffix(' at')} at column {cause.colno}"
        raise error(what, where=place) from None
    except RecursionError:
        raise error("not valid JSON: too many brackets within brackets", where=source) from None
    except _RepeatedKey as cause:
        raise error(f"the key {cause} is given twice", where=source) from None
    except ValueError as cause:
        message = "a number of thousands of digits" if "set_int_max_str_digits" in str(cause) else cause
        raise error(f"not valid JSON: {message}", where=source) from None
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise error("not valid JSON text: half of a surrogate pair", where=source) from None
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _RepeatedKey(repr(key))
    return value


def query_id(record: Mapping[str, Any], line: int, source: str, error: type[CompNegError]) -> str:
    """The query id of a JSON Lines record.

    QUEST's files have no ids. For them, the line number is the id, both of topics and of judgements.

    >>> query_id({"_id": "q7", "text": "birds"}, 1, "topics.jsonl:1", InputError)
    'q7'
    >>> query_id({"original_query": "<mark>birds</mark>"}, 3, "val.jsonl:3", InputError)
    '3'
    """
    for field in ID_FIELDS:
        if field in record:
            return checked_id(record[field], "query id", source, error)
    if "original_query" in record or "docs" in record:
        return str(line)
    raise error("no query id", where=source, remedy=f"expected one of the fields {', '.join(ID_FIELDS)}")


def checked_id(value: object, what: str, source: str, error: type[CompNegError]) -> str:
    """The id as a text without white space, because white space separates the columns of TREC runs and judgements.

    >>> checked_id(7, "query id", "topics.jsonl:1", InputError)
    '7'
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise error(f"the {what} must be a text or a whole number, got {reprlib.repr(value)}", where=source)
    text = str(value)
    if not text.strip():
        raise error(f"the {what} is blank", where=source)
    if "\0" in text:
        raise error(f"the {what} {text!r} has a NUL character", where=source)
    if any(character.isspace() for character in text):
        raise error(f"the {what} {text!r} has white space, which a TREC run cannot hold", where=source)
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
