"""Folders in BEIR's layout: a corpus, queries and judgements by split."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyserini_compneg.eval import Qrels, read_qrels
from pyserini_compneg.lab.experiments.datasets.dataset import (
    Dataset,
    Split,
    check_queries,
    collection_documents,
    find_file,
    require_file,
)
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics import Topic, read_topics

_PROVENANCE = {
    "scifact": "SciFact, allenai/scifact (claims and judgements CC BY-NC 2.0), in BEIR's layout",
    "negconstraint": "NegConstraint, of NS-IR (no licence stated), in BEIR's layout",
}
_UNKNOWN = "in BEIR's layout; the licence of its author applies"


def is_beir(folder: Path) -> bool:
    """Whether a folder has a ``corpus.jsonl`` or judgements of a split."""
    return find_file(folder, "corpus.jsonl") is not None or (folder / "qrels").is_dir() or bool(_qrels_files(folder))


def open_beir(folder: Path) -> Dataset:
    """A split for each ``qrels/SPLIT.tsv`` or ``qrels.SPLIT.tsv``.

    A split has the queries of ``queries.SPLIT.jsonl``; without that file, the judged queries of ``queries.jsonl``.
    """
    collection = require_file(folder, "corpus.jsonl", "beir")
    qrels_files = _qrels_files(folder)
    if not qrels_files:
        raise InputError("no judgements; the kind beir needs qrels/SPLIT.tsv or qrels.SPLIT.tsv", where=folder)
    parts = {}
    for name, qrels in qrels_files.items():
        own = find_file(folder, f"queries.{name}.jsonl")
        queries = own or find_file(folder, "queries.jsonl")
        if queries is None:
            missing = f"queries.{name}.jsonl or queries.jsonl is missing, plain or gzip, which the kind beir needs"
            raise InputError(missing, where=folder)
        parts[name] = Split(
            partial(collection_documents, collection),
            partial(_topics, queries, qrels, only_judged=own is None),
            partial(_qrels, queries, qrels),
        )
    provenance = _PROVENANCE.get(folder.resolve().name, _UNKNOWN)
    return Dataset("beir", provenance, folder, collection, parts)


def _qrels_files(folder: Path) -> dict[str, Path]:
    """The judgements by split, plain or gzip."""
    files = {}
    for pattern, start in (("qrels/*.tsv", ""), ("qrels.*.tsv", "qrels.")):
        for path in (*folder.glob(f"{pattern}.gz"), *folder.glob(pattern)):  # a plain file replaces a packed one
            files[path.name.removesuffix(".gz").removesuffix(".tsv").removeprefix(start)] = path
    return dict(sorted(files.items()))


def _topics(queries: Path, qrels_file: Path, only_judged: bool) -> list[Topic]:
    topics = read_topics(queries)
    if not only_judged:
        return topics
    judged = _qrels(queries, qrels_file)
    return [topic for topic in topics if topic.qid in judged]


def _qrels(queries: Path, qrels_file: Path) -> Qrels:
    qrels = read_qrels(qrels_file)
    check_queries(read_topics(queries), qrels, queries, qrels_file)
    return qrels
