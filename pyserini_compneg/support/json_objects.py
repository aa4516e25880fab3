"""Parses JSON from files more strictly than Python does, with one-line errors."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pyserini_compneg.support.errors import CompNegError, InputError

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
    """A key that an object has twice."""


def parse_json_object(
    text: str, source: str, error: type[CompNegError] = InputError, repeated_keys: bool = False
) -> dict[str, Any]:
    """Parses one JSON object; refuses NaN, the infinities and halves of surrogate pairs, which are not JSON.

    Args:
        text: The JSON.
        source: Where it was read, for the message.
        error: What to raise.
        repeated_keys: Take an object that has a key twice, and the last of its values.

    Raises:
        CompNegError: Of the class ``error``; the message starts with ``source``.

    >>> parse_json_object('{"id": "7"}', "topics.jsonl:1")
    {'id': '7'}
    >>> parse_json_object('["7"]', "topics.jsonl:1")
    Traceback (most recent call last):
    ...
    pyserini_compneg.support.errors.InputError: topics.jsonl:1: expected a JSON object, got a list
    """
    value = _parse(text, source, error, repeated_keys)
    if not isinstance(value, dict):
        raise error(f"{source}: expected a JSON object, got {json_kind(value)}")
    return value


def parse_json_list(text: str, source: str) -> list[Any]:
    """Parses a file that is one JSON list, as strictly as :func:`parse_json_object` parses a line.

    Args:
        text: The JSON, of one line or many.
        source: The path, for the message.

    Raises:
        InputError: The message starts with ``source``, or with ``source:line``.

    >>> parse_json_list('["a bird", "a bat"]', "corpus.json")
    ['a bird', 'a bat']
    """
    value = _parse(text, source, InputError, many_lines=True)
    if not isinstance(value, list):
        raise InputError(f"{source}: expected a JSON list, got {json_kind(value)}")
    return value


def json_kind(value: object) -> str:
    """What a value of JSON is called in a message.

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
        line = f":{cause.lineno}" if many_lines else ""
        raise error(
            f"{source}{line}: not valid JSON: {cause.msg.removesuffix(' at')} at column {cause.colno}"
        ) from None
    except RecursionError:
        raise error(f"{source}: not valid JSON: too many brackets within brackets") from None
    except _RepeatedKey as cause:
        raise error(f"{source}: the key {cause} is given twice") from None
    except ValueError as cause:
        message = "a number of thousands of digits" if "set_int_max_str_digits" in str(cause) else cause
        raise error(f"{source}: not valid JSON: {message}") from None
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise error(f"{source}: not valid JSON text: half of a surrogate pair") from None
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _RepeatedKey(repr(key))
    return value
