"""Topics: queries with ids, from TSV, JSON Lines or TREC's form, as expressions or as composed queries."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.expression import Atom, Expression, Filter, format_expression, from_json, from_marks, parse
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import ArgumentError, InputError, QueryError
from pyserini_compneg.support.files import iter_lines, source_name
from pyserini_compneg.support.json_objects import ID_FIELDS, checked_id, json_kind, parse_json_object, query_id
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.topics.trec import is_trec, trec_text, trec_topics

_logger = logging.getLogger(__name__)
_NAMED = re.compile(r"(?!.*\.(?:tsv|txt|jsonl?|csv|xml|gz)$)[A-Za-z][\w.-]*", re.IGNORECASE)
"""What may be the name of Pyserini's topics rather than of a file."""

_MARK = re.compile(r"</?mark>")
_FIELDS = "vector, score, expression, original_query with <mark>, query, text"
_PLAIN_FIELDS = ("query", "text", "expression")


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


def read_topics(
    path: str | Path, read: str | None = None, *, skip: bool = False, field: str | None = None
) -> list[Topic]:
    """Reads a file of topics. The format is recognised by the content.

    A TSV line is ``qid<TAB>expression``. A JSON line has an id (``id``, ``qid`` or ``_id``; QUEST's lines have none)
    and a query. The query is the first of these fields that is present: ``vector`` or ``score``, a composed query;
    ``expression``, a text in the query language or a JSON tree; ``original_query`` with QUEST's ``<mark>``; ``query``
    or ``text``, one atom that is not parsed. A ``filter`` {field: value or [values]} restricts the documents. The texts
    of TREC's topics are not parsed.

    Args:
        path: The file, plain or gzip, or ``-`` for standard input; or the name of topics that Pyserini knows, which are
            downloaded on first use.
        read: How to read texts that are not composed queries. ``expression``: ``query`` and ``text`` are parsed, too.
            ``plain``: nothing is parsed, and the text is the first of ``query``, ``text`` and ``expression``. None: as
            described above for each field.
        skip: Leave out lines that are not topics, and expressions that cannot be parsed, with a warning for each.
        field: The field of TREC's or Pyserini's topics that is the text; None for ``title``.

    Raises:
        InputError: The file has no topics, an id is given twice, or a line is not a topic. The message starts with
            ``path:line``.
        QueryError: An expression cannot be parsed. The message starts with ``path:line``.
        DownloadError: Topics that Pyserini knows cannot be downloaded.
    """
    topics: list[Topic] = []
    first_line: dict[str, int] = {}
    for line, topic in _iter_topics(path, read, skip, field):
        if topic.qid in first_line:
            what = f"query id {shown(topic.qid)} was given on line {first_line[topic.qid]} already"
            raise InputError(what, where=f"{source_name(path)}:{line}")
        first_line[topic.qid] = line
        topics.append(topic)
    if not topics:
        remedy = "expected lines of qid<TAB>expression, JSON objects, or TREC's <top>"
        raise InputError("no topics", where=source_name(path), remedy=remedy)
    return topics


def decompose_topics(topics: Sequence[Topic], read: Callable[[Sequence[str]], Sequence[Decomposition]]) -> list[Topic]:
    """Replaces the atom of every plain topic by the decomposition of its text. Expressions are unchanged."""
    plain = [place for place, topic in enumerate(topics) if topic.plain]
    decomposed = list(topics)
    for place, decomposition in zip(plain, read([topics[place].text for place in plain]), strict=True):
        decomposed[place] = replace(topics[place], expression=decomposition.expression, decomposition=decomposition)
    return decomposed


def _iter_topics(path: str | Path, read: str | None, skip: bool, field: str | None) -> Iterator[tuple[int, Topic]]:
    for line, source, make in _sources(path, read, field):
        try:
            topic = make()
        except (InputError, QueryError) as error:
            if not skip:
                raise error.at(source) from None
            _logger.warning("%s; left out", error.at(source).message)
        else:
            yield line, replace(topic, source=source)


def _sources(path: str | Path, read: str | None, field: str | None) -> Iterator[tuple[int, str, Callable[[], Topic]]]:
    """The line of each topic, its source for messages, and what makes the topic of it."""
    name = source_name(path)
    if isinstance(path, str) and _NAMED.fullmatch(path) and not Path(path).exists():
        from pyserini_compneg.lucene.named_topics import named_topics

        for number, (qid, fields) in enumerate(named_topics(path), 1):
            yield number, f"{name}: topic {qid}", partial(_from_fields, {**fields, "num": qid}, read, field)
        return
    lines = iter_lines(path)
    first = next(lines, (1, ""))
    lines = itertools.chain([first] if first[1] else [], lines)
    if is_trec(first[1]):
        for line, fields in trec_topics(lines, name):
            yield line, f"{name}:{line}", partial(_from_fields, fields, read, field)
        return
    if field is not None:
        raise InputError("has no topics of TREC, so --topic-field has no use", where=name)
    is_json = first[1].lstrip().startswith("{")
    for line, content in lines:
        source = f"{name}:{line}"
        make = partial(_from_json, content, line, read) if is_json else partial(_from_tsv, content, source, read)
        yield line, source, make


def _from_fields(fields: Mapping[str, str], read: str | None, field: str | None) -> Topic:
    return read_text(*trec_text(fields, field or "title"), read or "plain")


def _from_json(content: str, line: int, read: str | None) -> Topic:
    return _from_record(parse_json_object(content, ""), line, read)


def _from_tsv(content: str, source: str, read: str | None) -> Topic:
    columns = content.split("\t")
    if len(columns) != 2:
        found = "a JSON list" if content.lstrip().startswith("[") else f"{len(columns) - 1 or 'no'} tabs"
        raise InputError(f"expected qid<TAB>expression, or a JSON object a line; found {found}")
    qid = checked_id(columns[0], "query id", "", InputError)
    if qid.lower() in ID_FIELDS and columns[1].strip().lower() in _PLAIN_FIELDS:
        _logger.warning("%s: looks like a header, and is searched as a query; remove the line if it is one", source)
    return read_text(qid, _text(columns[1], "expression"), read or "expression")


def _from_record(record: Mapping[str, Any], line: int, read: str | None) -> Topic:
    metadata = _metadata(record)
    details: dict[str, Any] = {"group": metadata.pop("template", None), "metadata": metadata}
    if "filters" in record:
        raise InputError("`filters` is not a field", remedy="the key for filters is `filter`")
    if "filter" in record:
        try:
            details["filter"] = Filter(record["filter"])
        except ArgumentError as error:
            raise InputError(error.what, remedy=error.remedy) from None
    qid = query_id(record, line, "", InputError)
    if (composed := _composed(record)) is not None:
        return Topic(qid, _display_text(record), composed=composed, **details)
    if read == "plain":
        return read_text(qid, _plain_text(record), read, **details)
    if (tree := _tree(record)) is not None:
        marked = _MARK.sub("", record.get("original_query", "") if "expression" not in record else "")
        return Topic(qid, _display_text(record) or marked or format_expression(tree), tree, **details)
    for field in ("expression", "query", "text"):
        if field in record:
            how = read or ("expression" if field == "expression" else "plain")
            return read_text(qid, _text(record[field], field), how, **details)
    raise InputError("no query", remedy=f"expected one of the fields {_FIELDS}")


def _tree(record: Mapping[str, Any]) -> Expression | None:
    """The expression of a JSON line with a JSON tree or QUEST's marks."""
    if "expression" in record:
        value = record["expression"]
        return None if isinstance(value, str) else from_json(value, "`expression`")
    marked = record.get("original_query")
    return from_marks(marked) if isinstance(marked, str) and "<mark>" in marked else None


def _plain_text(record: Mapping[str, Any]) -> str:
    for field in _PLAIN_FIELDS:
        if isinstance(record.get(field), str):
            return _text(record[field], field)
    raise InputError("no plain text", remedy=f"expected one of the fields {', '.join(_PLAIN_FIELDS)}")


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


def _text(value: object, field: str) -> str:
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
