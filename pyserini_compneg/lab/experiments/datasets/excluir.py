"""ExcluIR: queries that exclude something, each with a relevant document and an excluded document.

The official files are JSON lists. The id of a document is its position in ``corpus.json``, from 0. The id of a query is
``excluir_`` and its position in ``test_manual_final.json``. A training file has the same records. Its name must begin
with ``train``; the authors' repository does not fix the name. Each record also has the question of HotpotQA from which
its query was made, and which both documents answer: the splits ``hotpotqa-``. Samples are JSON Lines that name both
documents.

Source: Zhang et al. 2024, ExcluIR: Exclusionary Neural Information Retrieval.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import Qrels
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    all_lines,
    collection_documents,
    find_file,
    first_fields,
    plain_topic,
    require_file,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.json_objects import checked_id, json_kind, parse_json_list, query_id
from pyserini_compneg.topics import Topic, read_topics

_CORPUS, _QUERIES = "corpus.json", "test_manual_final.json"
_QUERY_FIELDS = ("RQ_rewrite", "ExcluQ")
_HOTPOTQA_FIELDS = ("question0",)
_INDEX_FIELDS = ("corpus_sub_index", "index")
_PROVENANCE = "ExcluIR, zwh-sdu/ExcluIR (no licence stated)"


def is_excluir(folder: Path) -> bool:
    """Whether a folder has one of the official files, or queries that name a positive and a negative document."""
    return _has_official_files(folder) or any(
        {"positive", "negative"} <= first_fields(path) for path in _samples(folder).values()
    )


def open_excluir(folder: Path) -> Dataset:
    """The official files, ``test`` and perhaps ``train``, or a sample: a split for each ``queries.SPLIT.jsonl``.

    ``hotpotqa-test`` and ``hotpotqa-train`` have HotpotQA's questions of the same records.
    """
    samples = _samples(folder)
    if _has_official_files(folder) or not samples:
        corpus, queries = require_file(folder, _CORPUS, "excluir"), {"test": require_file(folder, _QUERIES, "excluir")}
        training = sorted(path for pattern in ("train*.json", "train*.json.gz") for path in folder.glob(pattern))
        if len(training) > 1:
            names = ", ".join(path.name for path in training)
            raise InputError(f"{names}: several files of training queries", where=folder, remedy="leave one")
        if training:
            queries["train"] = training[0]
        documents = partial(_documents, corpus)
        parts = {
            name: Split(documents, partial(_topics, path, _QUERY_FIELDS), partial(_qrels, path))
            for name, path in queries.items()
        }
        parts |= {
            f"hotpotqa-{name}": Split(documents, partial(_topics, path, _HOTPOTQA_FIELDS), partial(_supporting, path))
            for name, path in queries.items()
        }
        return Dataset("excluir", _PROVENANCE, folder, None, parts)
    collection = require_file(folder, "corpus.jsonl", "excluir")
    parts = {
        name: Split(partial(collection_documents, collection), partial(read_topics, path), partial(_sample_qrels, path))
        for name, path in samples.items()
    }
    return Dataset("excluir", _PROVENANCE, folder, collection, parts)


def _has_official_files(folder: Path) -> bool:
    return any(find_file(folder, name) for name in (_CORPUS, _QUERIES))


def _samples(folder: Path) -> dict[str, Path]:
    paths = sorted(path for pattern in ("queries.*.jsonl", "queries.*.jsonl.gz") for path in folder.glob(pattern))
    return {path.name.split(".")[1]: path for path in paths}


def _sample_qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    for number, record in iter_jsonl(path):
        source = f"{path}:{number}"
        positive, negative = (_named(record, field, source) for field in ("positive", "negative"))
        qrels[query_id(record, number, source)] = _judged(positive, negative, source)
    return qrels


def _named(record: dict[str, Any], field: str, source: str) -> str:
    if field not in record:
        raise InputError(f"no `{field}` document", where=source)
    return checked_id(record[field], f"{field} document id", source)


def _judged(positive: str, negative: str, source: str) -> dict[str, int]:
    if positive == negative:
        raise InputError(f"document {positive!r} is both the positive and the negative one", where=source)
    return {positive: 1, negative: 0}


def _documents(path: Path) -> Iterator[SourceDocument]:
    for number, text in enumerate(_read_list(path)):
        source = f"{path}: document {number}"
        if not isinstance(text, str):
            raise InputError(f"expected a text, got {json_kind(text)}", where=source)
        yield SourceDocument(str(number), text, source)


def _topics(path: Path, fields: tuple[str, ...]) -> list[Topic]:
    topics = []
    for qid, record, source in _queries(path):
        text = next((record[field] for field in fields if field in record), None)
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"no query; expected a text as {' or '.join(fields)}", where=source)
        topics.append(plain_topic(qid, text.strip(), source))
    return topics


def _qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    for qid, record, source in _queries(path):
        positions = next((record[field] for field in _INDEX_FIELDS if field in record), None)
        # type() and not isinstance(): True is not a position
        if not isinstance(positions, list) or [type(one) for one in positions] != [int, int] or min(positions) < 0:
            expected = f"[negative, positive], two positions in {_CORPUS} from 0, as {' or '.join(_INDEX_FIELDS)}"
            raise InputError(f"expected {expected}, got {positions!r:.60}", where=source)
        negative, positive = map(str, positions)
        qrels[qid] = _judged(positive, negative, source)
    return qrels


def _supporting(path: Path) -> Qrels:
    """Both documents of each record answer the question of HotpotQA."""
    return {qid: dict.fromkeys(judged, 1) for qid, judged in _qrels(path).items()}


def _queries(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    records = _read_list(path)
    if not records:
        raise InputError("no queries", where=path)
    for number, record in enumerate(records):
        source = f"{path}: query {number}"
        if not isinstance(record, dict):
            raise InputError(f"expected a JSON object, got {json_kind(record)}", where=source)
        yield f"excluir_{number}", record, source


def _read_list(path: Path) -> list[Any]:
    return parse_json_list("\n".join(all_lines(path)), str(path))
