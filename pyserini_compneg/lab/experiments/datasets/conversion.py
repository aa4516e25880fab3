"""Converts a split of a dataset to files for both stock Anserini and this package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.expression import Atom, Expression, format_expression, verbalise
from pyserini_compneg.lab.experiments.datasets.dataset import Dataset
from pyserini_compneg.support.errors import InputError, OutputError
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.staging import keep_inputs, output_errors, staged_folder
from pyserini_compneg.topics import Topic

DOCUMENTS = "collection/documents.jsonl"
EXPRESSIONS, TEXTS, PLAIN = "topics.tsv", "topics.jsonl", "topics.plain.tsv"
QRELS = "qrels.txt"
_REMEDY = "choose another place with --output"


def convert(dataset: Dataset, split: str, output: str | Path) -> tuple[int, int, int]:
    """Writes a split into a new folder, atomically. Returns the numbers of documents, queries and judgements.

    ``collection/documents.jsonl`` has ``{"id", "contents"}``. ``topics.tsv`` has the expressions. If every expression
    is only the text as one atom, ``topics.jsonl`` with ``{"id", "text"}`` is written instead. ``topics.plain.tsv`` has
    the texts for Anserini's ``TsvString``. ``qrels.txt`` has the judgements in TREC's format, including judgements of
    0.
    """
    target = Path(output)
    keep_inputs(target, dataset.folder)
    topics, qrels = dataset.topics(split), dataset.qrels(split)
    with new_folder(target) as folder:
        docids: set[str] = set()
        write_lines(folder / DOCUMENTS, document_lines(dataset.documents(split), docids))
        unknown = next((docid for judged in qrels.values() for docid in judged if docid not in docids), None)
        if unknown is not None:
            what = f"document {unknown!r} is judged, but there is no such document"
            raise InputError(what, where=f"{dataset.folder}: split {split}")
        queries = [(topic.qid, _expression(topic), _text(topic)) for topic in topics]
        if all(expression == Atom(text) for _, expression, text in queries):
            write_lines(folder / TEXTS, (_json_line(id=qid, text=text) for qid, _, text in queries))
        else:
            write_lines(folder / EXPRESSIONS, (_tsv_line(qid, format_expression(tree)) for qid, tree, _ in queries))
        write_lines(folder / PLAIN, (_tsv_line(qid, text) for qid, _, text in queries))
        judgements = [f"{qid} 0 {docid} {value}" for qid, judged in qrels.items() for docid, value in judged.items()]
        write_lines(folder / QRELS, judgements)
    return len(docids), len(queries), len(judgements)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that becomes ``target`` at the end, atomically."""
    if target.exists():
        raise OutputError("exists already", where=target, remedy=_REMEDY)
    if not target.parent.is_dir():
        missing = f"cannot be written: there is no folder {target.parent}"
        raise OutputError(missing, where=target, remedy="create it first")
    with output_errors(target, _REMEDY), staged_folder(target) as folder:
        yield folder


def document_lines(documents: Iterable[SourceDocument], docids: set[str]) -> Iterator[str]:
    """The lines of the documents. Adds their ids to ``docids``."""
    for document in progress(documents, None, " docs", "converting"):
        if document.docid in docids:
            raise InputError(f"the document id {document.docid!r} was given already", where=document.source)
        if document.text is None:
            raise InputError("only a `vector`; only texts can be converted", where=document.source)
        docids.add(document.docid)
        yield _json_line(id=document.docid, contents=document.text)


def _expression(topic: Topic) -> Expression:
    if topic.expression is None:
        raise InputError(f"query {topic.qid!r} is composed already; only texts can be converted", where=topic.source)
    return topic.expression


def _text(topic: Topic) -> str:
    """The query as text, for an engine without expressions."""
    return topic.text.strip() or verbalise(_expression(topic))


def _json_line(**fields: str) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _tsv_line(qid: str, text: str) -> str:
    return f"{qid}\t{' '.join(text.split())}"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="\n") as handle:
        handle.writelines(f"{line}\n" for line in lines)
        handle.flush()
        os.fsync(handle.fileno())
