"""Relevance judgements from TREC, BEIR and QUEST files, and the classes of queries for breaking down results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyserini_compneg.eval.tables import checked_relevance
from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines, source_name
from pyserini_compneg.support.json_objects import checked_id, docid_from_title, parse_json_object, query_id

Qrels = dict[str, dict[str, int]]

RUN_AS_QRELS = "this looks like a run: are --qrels and --run exchanged?"
QRELS_AS_RUN = "these look like judgements: are --qrels and --run exchanged?"

_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_Judgement = tuple[str, str, int]


def read_qrels(path: str | Path) -> Qrels:
    """Reads judgements: ``{qid: {docid: relevance}}``, in the order of the file.

    The format is recognised by the first line: TREC (``qid 0 docid relevance``), BEIR (the header
    ``query-id<TAB>corpus-id<TAB>score``), or QUEST's JSON Lines, whose ``docs`` are all have relevance 1.

    Raises:
        InputError: The file has no judgements, a line is broken, or two lines contradict each other.
    """
    name = source_name(path)
    qrels: Qrels = {}
    read_line = None
    for number, line in iter_lines(path):
        source = f"{name}:{number}"
        if read_line is None:
            if line.split("\t") == _BEIR_HEADER:
                read_line = _beir_line
                continue
            read_line = _quest_line if line.lstrip().startswith("{") else _trec_line
        for qid, docid, relevance in read_line(line, number, source):
            known = qrels.setdefault(qid, {}).setdefault(docid, relevance)
            if known != relevance:
                what = f"document {docid!r} of query {qid!r} has relevance {relevance} here, {known} above"
                raise InputError(what, where=source)
    if not qrels:
        expected = "expected lines of `qid 0 docid relevance`, or QUEST's JSON Lines"
        raise InputError("no judgements", where=name, remedy=expected)
    return qrels


def read_groups(path: str | Path, key: str) -> dict[str, str]:
    """Reads ``{qid: metadata[key]}`` from QUEST's JSON Lines, of topics or of judgements."""
    groups: dict[str, str] = {}
    for number, line in iter_lines(path):
        source = f"{source_name(path)}:{number}"
        if not line.lstrip().startswith("{"):
            what = f"no JSON, so no `metadata.{key}` to group by"
            raise InputError(what, where=source, remedy="name one with --groups")
        record = parse_json_object(line, source)
        qid = query_id(record, number, source)
        if qid in groups:
            raise InputError(f"the query id {qid!r} is given twice", where=source)
        groups[qid] = _metadata(record, key, source)
    return groups


def _metadata(record: dict[str, Any], key: str, source: str) -> str:
    metadata = record.get("metadata")
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        known = [name for name, item in metadata.items() if isinstance(item, str)] if isinstance(metadata, dict) else []
        there = f"there are: {', '.join(known) or 'none'}"
        raise InputError(f"no text `metadata.{key}` to group by", where=source, remedy=there)
    return str(value)


def _trec_line(line: str, number: int, source: str) -> Iterator[_Judgement]:
    columns = line.split()
    if len(columns) != 4:
        hint = RUN_AS_QRELS if len(columns) == 6 else ""
        what = f"expected the 4 columns `qid 0 docid relevance`, found {len(columns)}"
        raise InputError(what, where=source, remedy=hint)
    yield columns[0], columns[2], _relevance(columns[3], source)


def _beir_line(line: str, number: int, source: str) -> Iterator[_Judgement]:
    columns = line.split("\t")
    if len(columns) != 3:
        raise InputError(f"expected the 3 columns `{' '.join(_BEIR_HEADER)}`, found {len(columns)}", where=source)
    qid, docid = (
        checked_id(column, f"{what} id", source) for column, what in zip(columns, ("query", "document"), strict=False)
    )
    yield qid, docid, _relevance(columns[2].strip(" "), source)


def _quest_line(line: str, number: int, source: str) -> Iterator[_Judgement]:
    record = parse_json_object(line, source)
    documents = record.get("docs")
    if not isinstance(documents, list) or not documents or not all(isinstance(name, str) for name in documents):
        hint = RUN_AS_QRELS if "hits" in record else ""
        wanted = "`docs` must be a list of the relevant documents' names"
        raise InputError(f"{wanted}, got {documents!r:.60}", where=source, remedy=hint)
    qid = query_id(record, number, source)
    for name in documents:
        yield qid, docid_from_title(name), 1


def _relevance(text: str, source: str) -> int:
    relevance = whole_number(text)
    return checked_relevance(text if relevance is None else relevance, source)
