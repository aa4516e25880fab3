"""Topics: queries with ids, from TSV or JSON Lines, as expressions or as queries that are composed already."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.errors import CollectionError, DecompositionError, QuerySyntaxError
from pyserini_compneg.expression import Atom, Expression, format_expression, from_json, from_marks, parse
from pyserini_compneg.expression.decomposition import Decomposition
from pyserini_compneg.files import iter_lines, source_name
from pyserini_compneg.json_objects import parse_json_object
from pyserini_compneg.records import checked_id, query_id

_MARK = re.compile(r"</?mark>")
_FIELDS = "vector, score, expression, original_query with <mark>, query, text"
_PLAIN_FIELDS = ("query", "text", "expression")


@dataclass(frozen=True, slots=True)
class Topic:
    """One query.

    Attributes:
        qid: The query id, without white space.
        text: The query for people to read; the encoder never sees it unless it is the expression's own text.
        expression: The tree to compose, or ``None`` for a composed query.
        composed: The scoring tree of a composed query, ``{"vector": {...}}`` or ``{"product": [...]}`` and its kin,
            as it stands in the file, or ``None``.
        group: The query's class, QUEST's ``metadata.template``, where the file gives one.
        source: ``path:line``, for messages, where the topic comes from a file.
        metadata: The other metadata of the file that are texts, such as QUEST's ``domain``.
        plain: Whether the text is plain, so that nothing in it was read as an operator.
        decomposition: How a plain text became the expression, if it was decomposed.
    """

    qid: str
    text: str
    expression: Expression | None = None
    composed: dict[str, Any] | None = None
    group: str | None = None
    source: str | None = dataclass_field(default=None, compare=False)
    metadata: Mapping[str, str] = dataclass_field(default_factory=dict, hash=False)
    plain: bool = dataclass_field(default=False, compare=False)
    decomposition: Decomposition | None = dataclass_field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Makes sure that there is exactly one way to answer the topic.

        Raises:
            ValueError: Both or neither of ``expression`` and ``composed``.
        """
        if (self.expression is None) == (self.composed is None):
            raise ValueError(f"topic {self.qid!r} needs either an expression or a composed query")


def read_topics(path: str | Path, plain: bool = False) -> list[Topic]:
    """Reads a file of topics, whose format is recognised by its content.

    A TSV line is ``qid<TAB>expression``. A JSON line has an id (``id``, ``qid`` or ``_id``; QUEST's lines have none)
    and a query. The query is the first of these fields that the line has: ``vector`` or ``score``, a composed query;
    ``expression``, a text in the syntax or a JSON tree; ``original_query`` with QUEST's ``<mark>``; ``query`` or
    ``text``, one atom that is never parsed.

    Args:
        path: The file, plain or gzip, or ``-`` for standard input.
        plain: Nothing is parsed: each query is one atom, whatever brackets or capitals its text holds.

    Raises:
        CollectionError: A file without topics, or a line that is no topic; the message starts with ``path:line``.
        QuerySyntaxError: An expression that cannot be parsed; the message starts with ``path:line``.
    """
    topics: list[Topic] = []
    first_line: dict[str, int] = {}
    for line, topic in _iter_topics(path, plain):
        if topic.qid in first_line:
            first = first_line[topic.qid]
            raise CollectionError(
                f"{source_name(path)}:{line}: query id {topic.qid!r} was given on line {first} already"
            )
        first_line[topic.qid] = line
        topics.append(topic)
    if not topics:
        raise CollectionError(f"{source_name(path)}: no topics; expected lines of qid<TAB>expression, or JSON objects")
    return topics


def decompose_topics(topics: Sequence[Topic], decompose: Callable[[str], Decomposition]) -> list[Topic]:
    """Replaces the atom of every plain topic by what its text means; expressions stay as they are.

    Args:
        topics: The topics.
        decompose: Reads a text, as ``pyserini_compneg.reading.decompose`` does.

    Raises:
        DecompositionError: A text that says only what it does not ask for; the message starts with ``path:line``.
    """

    def read(topic: Topic) -> Topic:
        try:
            decomposition = decompose(topic.text)
        except DecompositionError as error:
            raise DecompositionError(f"{topic.source or f'topic {topic.qid}'}: {error}") from None
        return replace(topic, expression=decomposition.expression, decomposition=decomposition)

    return [read(topic) if topic.plain else topic for topic in topics]


def _iter_topics(path: str | Path, plain: bool) -> Iterator[tuple[int, Topic]]:
    is_json: bool | None = None
    for line, content in iter_lines(path):
        source = f"{source_name(path)}:{line}"
        if is_json is None:
            is_json = content.lstrip().startswith("{")
        try:
            if is_json:
                yield line, _from_record(parse_json_object(content, source), line, source, plain)
            else:
                yield line, _from_tsv(content, source, plain)
        except QuerySyntaxError as error:
            raise QuerySyntaxError(f"{source}: {error}") from None


def _from_tsv(content: str, source: str, plain: bool) -> Topic:
    columns = content.split("\t")
    if len(columns) != 2:
        raise CollectionError(f"{source}: expected qid<TAB>expression, found {len(columns) - 1 or 'no'} tabs")
    qid = checked_id(columns[0], "query id", source, CollectionError)
    text = _text(columns[1], "expression", source)
    return Topic(qid, text, Atom(text) if plain else parse(text), source=source, plain=plain)


def _from_record(record: Mapping[str, Any], line: int, source: str, plain: bool) -> Topic:
    metadata = _metadata(record)
    group = metadata.pop("template", None)
    qid = query_id(record, line, source, CollectionError)
    topic = partial(Topic, qid, group=group, source=source, metadata=metadata)
    if plain:
        text = _plain_text(record, source)
        return topic(text, Atom(text), plain=True)
    if (composed := _composed(record, source)) is not None:
        return topic(_display_text(record), composed=composed)
    expression, text, is_plain = _expression(record, source)
    return topic(text, expression, plain=is_plain)


def _expression(record: Mapping[str, Any], source: str) -> tuple[Expression, str, bool]:
    """The tree of a JSON line, the text to display, and whether the text is plain."""
    if "expression" in record:
        value = record["expression"]
        if isinstance(value, str):
            text = _text(value, "expression", source)
            return parse(text), text, False
        tree = from_json(value, "`expression`")
        return tree, _display_text(record) or format_expression(tree), False
    marked = record.get("original_query")
    if isinstance(marked, str) and "<mark>" in marked:
        return from_marks(marked), _display_text(record) or _MARK.sub("", marked), False
    for field in ("query", "text"):
        if field in record:
            text = _text(record[field], field, source)
            return Atom(text), text, True
    raise CollectionError(f"{source}: no query; expected one of the fields {_FIELDS}")


def _plain_text(record: Mapping[str, Any], source: str) -> str:
    for field in _PLAIN_FIELDS:
        if isinstance(record.get(field), str):
            return _text(record[field], field, source)
    raise CollectionError(f"{source}: no plain text; expected one of the fields {', '.join(_PLAIN_FIELDS)}")


def _composed(record: Mapping[str, Any], source: str) -> dict[str, Any] | None:
    for field in ("vector", "score"):
        if field in record:
            value = record[field]
            if not isinstance(value, dict):
                raise CollectionError(f"{source}: `{field}` must be a JSON object, got {type(value).__name__}")
            return {"vector": value} if field == "vector" else value
    return None


def _text(value: object, field: str, source: str) -> str:
    if not isinstance(value, str):
        raise CollectionError(f"{source}: `{field}` must be a text, got {type(value).__name__}")
    if not value.strip():
        raise CollectionError(f"{source}: the {field} is blank")
    return value.strip()


def _display_text(record: Mapping[str, Any]) -> str:
    texts = (record.get(field) for field in ("query", "text", "contents"))
    return next((text for text in texts if isinstance(text, str)), "")


def _metadata(record: Mapping[str, Any]) -> dict[str, str]:
    metadata = record.get("metadata")
    entries = metadata.items() if isinstance(metadata, dict) else ()
    return {name: value for name, value in entries if isinstance(value, str)}
