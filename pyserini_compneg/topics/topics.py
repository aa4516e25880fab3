"""Topics: queries with ids, from TSV, JSON, markup or other forms, as expressions or as composed queries."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.support.files import decoded_line, iter_blocks, source_name
from pyserini_compneg.support.json_objects import ID_FIELDS, checked_id, json_kind, parse_json_list, parse_json_object
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.topics.line_forms import LineForm, is_web, line_form
from pyserini_compneg.topics.records import PLAIN_FIELDS, Topic, checked_text, read_text, record_topic
from pyserini_compneg.topics.trec import is_trec, trec_text, trec_topics

__all__ = ["Topic", "decompose_topics", "read_text", "read_topics"]

_logger = logging.getLogger(__name__)
_NAMED = re.compile(r"(?!.*\.(?:tsv|txt|jsonl?|csv|xml|gz)$)[A-Za-z][\w.-]*", re.IGNORECASE)
"""What may be the name of Pyserini's topics rather than of a file."""


_Sources: TypeAlias = Iterator[tuple[str, str, Callable[[], Topic]]]
"""The place of each topic in its file, its source for messages, and what makes the topic."""


def read_topics(
    path: str | Path, read: str | None = None, *, skip: bool = False, field: str | None = None
) -> list[Topic]:
    """Reads a file of topics. The format is recognised by the content.

    A TSV line is ``qid<TAB>expression``; further columns are ignored with a warning. A JSON line has an id (``id``,
    ``qid``, ``_id``, ``query_id`` or ``question_id``; QUEST's and DPR's lines have none) and a query. The query is the
    first of these fields that is present: ``vector`` or ``score``, a composed query; ``expression``, a text in the
    query language or a JSON tree; ``original_query`` with QUEST's ``<mark>``; ``query``, ``text``, ``title``,
    ``question`` or ``query_txt``, one atom that is not parsed. A ``filter`` {field: value or [values]} restricts the
    documents. A JSON list of such objects, markup of TREC, NTCIR and CACM, the lines ``id:text`` of the Web tracks, and
    the lines of TREC CAR and DPR are read, too. Their texts are not parsed.

    Ids are those of the file, but numbers in markup lose zeros before them, as in TREC's judgements.

    Args:
        path: The file, plain, gzip or xz, or ``-`` for standard input; or the name of topics that Pyserini knows, whose
            file is downloaded on first use.
        read: How to read texts that are not composed queries. ``expression``: all texts are parsed. ``plain``: nothing
            is parsed, and the text is the first of the fields above that is a text, ``expression`` being the last.
            None: as described above for each field, but texts of a name are plain.
        skip: Leave out lines that are not topics, expressions that cannot be parsed, and topics whose id was given
            already, with a warning for each.
        field: The field of JSON or markup that is the text; None for the title, or what stands in its place.

    Raises:
        InputError: The file has no topics, an id is given twice, or a line is not a topic. The message starts with
            ``path:line``.
        QueryError: An expression cannot be parsed. The message starts with ``path:line``.
        DownloadError: Topics that Pyserini knows cannot be downloaded.
    """
    if isinstance(path, str) and _NAMED.fullmatch(path) and not Path(path).exists():
        from pyserini_compneg.lucene.named_topics import topics_file

        path, read = topics_file(path), read or "plain"
    topics: list[Topic] = []
    first_place: dict[str, str] = {}
    for place, topic in _iter_topics(path, read, skip, field):
        if topic.qid in first_place:
            what = f"query id {shown(topic.qid)} was given {first_place[topic.qid]} already"
            remedy = "rename it" if skip else "rename it; --on-error skip leaves out the later one"
            _refuse_or_warn(InputError(what, where=topic.source or "", remedy=remedy), skip)
            continue
        first_place[topic.qid] = place
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


def _iter_topics(path: str | Path, read: str | None, skip: bool, field: str | None) -> Iterator[tuple[str, Topic]]:
    for place, source, make in _sources(path, read, field):
        try:
            topic = make()
        except (InputError, QueryError) as error:
            _refuse_or_warn(error.at(source), skip)
        else:
            yield place, replace(topic, source=source)


def _refuse_or_warn(error: InputError | QueryError, skip: bool) -> None:
    if not skip:
        raise error from None
    _logger.warning("%s; left out", error.message)


def _sources(path: str | Path, read: str | None, field: str | None) -> _Sources:
    name = source_name(path)
    lines = _lines(path, name)
    first = next(lines, (1, ""))
    lines = itertools.chain([first] if first[1] else [], lines)
    if is_trec(first[1]):
        for line, fields in trec_topics(lines, name):
            yield f"on line {line}", f"{name}:{line}", partial(_from_fields, fields, read, field)
        return
    if first[1].lstrip().startswith("["):
        for number, value in enumerate(parse_json_list("".join(f"{line}\n" for _, line in lines), name), 1):
            yield f"in topic {number}", f"{name}: topic {number}", partial(_from_value, value, number, read, field)
        return
    is_json, form = first[1].lstrip().startswith("{"), line_form(first[1])
    if field is not None and not is_json:
        raise InputError("has no fields, so --topic-field has no use", where=name)
    wide: list[int] = []
    for number, (line, content) in enumerate(lines):
        make = partial(_from_tsv, content, f"{name}:{line}", read, wide)
        if is_json:
            make = partial(_from_json, content, line, read, field)
        elif form:
            make = partial(_from_line, form, number, content, read)
        yield f"on line {line}", f"{name}:{line}", make
    if wide:
        what = f"{len(wide)} lines have more than two columns, and only the first two are read, as in Anserini"
        _logger.warning("%s:%d: %s", name, wide[0], what)


def _lines(path: str | Path, name: str) -> Iterator[tuple[int, str]]:
    """As ``iter_lines``, but lines of the Web tracks may be Windows-1252, as some of TREC's Million Query track are."""
    web: bool | None = None
    others: list[int] = []
    for first, block in iter_blocks(path):
        for number, line in enumerate(block.split(b"\n"), first):
            if web and line.decode("utf-8", "replace").encode() != line:
                others.append(number)
                line = line.decode("cp1252", "replace").encode()
            text = decoded_line(line, f"{name}:{number}")
            if text and not text.isspace():
                web = is_web(text) if web is None else web
                yield number, text
    if others:
        what = f"{len(others)} lines are not UTF-8 text, and are read as Windows-1252"
        _logger.warning("%s:%d: %s", name, others[0], what)


def _from_fields(fields: Mapping[str, str], read: str | None, field: str | None) -> Topic:
    return read_text(*trec_text(fields, field), read or "plain")


def _from_line(form: LineForm, number: int, content: str, read: str | None) -> Topic:
    return _from_fields(form(number, content), read, None)


def _from_json(content: str, line: int, read: str | None, field: str | None) -> Topic:
    return record_topic(parse_json_object(content, ""), line, read, field)


def _from_value(value: object, number: int, read: str | None, field: str | None) -> Topic:
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, got {json_kind(value)}")
    return record_topic(value, number, read, field)


def _from_tsv(content: str, source: str, read: str | None, wide: list[int]) -> Topic:
    columns = content.split("\t")
    if len(columns) == 1:
        raise InputError("expected qid<TAB>expression, or a JSON object a line; found no tabs")
    if any(column.strip() for column in columns[2:]):
        wide.append(int(source.rpartition(":")[2]))
    qid = checked_id(columns[0], "query id", "")
    if qid.lower() in ID_FIELDS and columns[1].strip().lower() in PLAIN_FIELDS:
        _logger.warning("%s: looks like a header, and is searched as a query; remove the line if it is one", source)
    return read_text(qid, checked_text(columns[1], "expression"), read or "expression")
