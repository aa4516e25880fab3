"""Topics, and how JSON objects hold them: expressions, composed queries, and plain texts in various fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from pyserini_compneg.expression import Atom, Expression, Filter, format_expression, from_json, from_marks, parse
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.json_objects import ID_FIELDS, json_kind, query_id

_MARK = re.compile(r"</?mark>")
_TEXT_FIELDS = ("query", "text", "title", "question", "query_txt")
PLAIN_FIELDS = (*_TEXT_FIELDS, "expression")
_FIELDS = f"vector, score, expression, original_query with <mark>, {', '.join(_TEXT_FIELDS)}"


@dataclass(frozen=True, slots=True)
class Topic:
    """One query.

    Attributes:
        qid: The query id, without white space.
        text: The query as text for people. The encoder gets it only if it is the expression's own text.
        expression: The tree to compose, or ``None`` for a composed query.
        composed: The scoring tree of a composed query as in the file, such as ``{"vector": {...}}`` or ``{"product":
            [...]}``, or ``None``.
        group: The query's class, QUEST's ``metadata.template``, if the file has it.
        source: ``path:line``, for messages, if the topic comes from a file.
        metadata: Other metadata in the file whose values are texts, such as QUEST's ``domain``.
        plain: Whether the text is plain, without operators.
        parsed: Whether the text was parsed into the expression. Trees and marks are neither plain nor parsed.
        decomposition: The decomposition of a plain text into the expression, if there is one.
        filter: The filter, or None.
    """

    qid: str
    text: str
    expression: Expression | None = None
    composed: dict[str, Any] | None = None
    group: str | None = None
    source: str | None = dataclass_field(default=None, compare=False)
    metadata: Mapping[str, str] = dataclass_field(default_factory=dict, hash=False)
    plain: bool = dataclass_field(default=False, compare=False)
    parsed: bool = dataclass_field(default=False, compare=False)
    decomposition: Decomposition | None = dataclass_field(default=None, compare=False)
    filter: Filter | None = None

    def __post_init__(self) -> None:
        if (self.expression is None) == (self.composed is None):
            raise ValueError(f"topic {self.qid!r} needs either an expression or a composed query")


def read_text(qid: str, text: str, read: str, **details: Any) -> Topic:
    parsed = read == "expression"
    expression = parse(text) if parsed else Atom(text)
    return Topic(qid, text, expression, plain=not parsed, parsed=parsed, **details)


def record_topic(record: Mapping[str, Any], line: int, read: str | None, field: str | None) -> Topic:
    metadata = _metadata(record)
    details: dict[str, Any] = {"group": metadata.pop("template", None), "metadata": metadata}
    if "filters" in record:
        raise InputError("`filters` is not a field", remedy="the key for filters is `filter`")
    if "filter" in record:
        try:
            details["filter"] = Filter(record["filter"])
        except ArgumentError as error:
            raise error.recast(InputError) from None
    qid = _record_id(record, line)
    if field is not None:
        return read_text(qid, _named_text(record, field), read or "plain", **details)
    if (composed := _composed(record)) is not None:
        return Topic(qid, _display_text(record), composed=composed, **details)
    if read == "plain":
        return read_text(qid, _plain_text(record), read, **details)
    if (tree := _tree(record)) is not None:
        marked = _MARK.sub("", record.get("original_query", "") if "expression" not in record else "")
        return Topic(qid, _display_text(record) or marked or format_expression(tree), tree, **details)
    for name in ("expression", *_TEXT_FIELDS):
        if name in record:
            how = read or ("expression" if name == "expression" else "plain")
            return read_text(qid, checked_text(record[name], name), how, **details)
    raise InputError("no query", remedy=f"expected one of the fields {_FIELDS}")


def _record_id(record: Mapping[str, Any], line: int) -> str:
    """The id of a record. DPR's questions have none and are counted from 0, as in Anserini."""
    has_id = any(name in record for name in ID_FIELDS)
    return str(line - 1) if not has_id and {"question", "answer"} <= set(record) else query_id(record, line, "")


def _named_text(record: Mapping[str, Any], field: str) -> str:
    if field in record:
        return checked_text(record[field], field)
    others = ", ".join(name for name, value in record.items() if isinstance(value, str) and name not in ID_FIELDS)
    remedy = f"name one of its fields as --topic-field: {others}" if others else ""
    raise InputError(f"the topic has no {field}", remedy=remedy)


def _tree(record: Mapping[str, Any]) -> Expression | None:
    """The expression of a JSON line with a JSON tree or QUEST's marks."""
    if "expression" in record:
        value = record["expression"]
        return None if isinstance(value, str) else from_json(value, "`expression`")
    marked = record.get("original_query")
    if marked is None or (isinstance(marked, str) and "<mark>" not in marked):
        return None
    return from_marks(checked_text(marked, "original_query"))


def _plain_text(record: Mapping[str, Any]) -> str:
    for field in PLAIN_FIELDS:
        if isinstance(record.get(field), str):
            return checked_text(record[field], field)
    raise InputError("no plain text", remedy=f"expected one of the fields {', '.join(PLAIN_FIELDS)}")


def _composed(record: Mapping[str, Any]) -> dict[str, Any] | None:
    given = [field for field in ("vector", "score") if field in record]
    if len(given) == 2:
        raise InputError("`vector` and `score` are two composed queries", remedy="leave out one")
    for field in given:
        value = record[field]
        if not isinstance(value, dict):
            raise InputError(f"`{field}` must be a JSON object, got {json_kind(value)}")
        return {"vector": value} if field == "vector" else value
    return None


def checked_text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"`{field}` must be a text, got {json_kind(value)}")
    if not value.strip():
        raise InputError(f"the {field} is blank")
    return value.strip()


def _display_text(record: Mapping[str, Any]) -> str:
    texts = (record.get(field) for field in ("query", "text", "contents"))
    return next((text for text in texts if isinstance(text, str)), "")


def _metadata(record: Mapping[str, Any]) -> dict[str, str]:
    metadata = record.get("metadata")
    entries = metadata.items() if isinstance(metadata, dict) else ()
    return {name: value for name, value in entries if isinstance(value, str)}
