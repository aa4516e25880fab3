"""Examples: queries, each with a relevant document and hard negatives, read from datasets and files."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_compneg.expression import verbalise
from pyserini_compneg.lab.experiments.datasets import Dataset, open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.negatives import bm25_negatives, compositional_negatives
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.topics.topics import Topic


@dataclass(frozen=True, slots=True)
class Example:
    """A query with documents.

    Attributes:
        query: Its text; a set expression in the words of QUEST's templates.
        positive: A relevant document.
        negatives: Hard negatives, none of them relevant.
    """

    query: str
    positive: str
    negatives: tuple[str, ...] = ()


def read_examples(source: SourceConfig, seed: int) -> list[Example]:
    """Reads the examples of a source, in the order of its queries.

    Args:
        source: The dataset or the file.
        seed: The seed of the draw of positives and negatives.

    Raises:
        CompNegError: A file that is empty or broken, a query without a relevant document, or a judged document that is
            not in the collection.
    """
    if not Path(source.dataset).exists():
        raise InputError(f"{source.dataset}: no such folder or file of training data")
    if not Path(source.dataset).is_dir():
        if source.split is not None or source.negatives not in (None, "judged", "none"):
            raise InputError(
                f"{source.dataset}: a file has no split, and no negatives but its own; leave out split, and set "
                "negatives to judged or none"
            )
        examples = _examples_of_file(source.dataset)
        return [replace(one, negatives=()) for one in examples] if source.negatives == "none" else examples
    dataset = open_dataset(source.dataset)
    split = source.split
    if split is None:
        raise InputError(f"{source.dataset}: name the split; there are: {', '.join(dataset.splits)}")
    topics, qrels = dataset.topics(split), dataset.qrels(split)
    texts = query_texts(topics)
    relevant = {qid: [docid for docid, grade in qrels.get(qid, {}).items() if grade > 0] for qid in texts}
    if lacking := next((qid for qid, docids in relevant.items() if not docids), None):
        raise InputError(f"{source.dataset}: query {lacking!r} of {split} has no relevant document; leave it out")
    pools = _negative_pools(source.negatives, dataset, split, topics, relevant)
    draw = random.Random(seed)
    chosen = []
    for qid in texts:
        for docid in draw.sample(relevant[qid], min(source.positives, len(relevant[qid]))):
            chosen.append((qid, docid, [draw.choice(pool[qid]) for pool in pools if pool.get(qid)]))
    documents = _document_texts(dataset, split, {docid for _, docid, others in chosen for docid in [docid, *others]})
    return [
        Example(texts[qid], documents[docid], tuple(documents[other] for other in dict.fromkeys(others)))
        for qid, docid, others in chosen
    ]


def query_texts(topics: Iterable[Topic]) -> dict[str, str]:
    """The text of each query, by its id: expressions in the words of QUEST's templates, without paraphrases.

    Raises:
        InputError: A query that is composed already.
    """
    texts = {}
    for topic in topics:
        if topic.expression is None:
            raise InputError(f"{topic.source}: query {topic.qid!r} is composed already, so it has no text to encode")
        texts[topic.qid] = verbalise(topic.expression)
    return texts


def _negative_pools(
    kind: str | None, dataset: Dataset, split: str, topics: Sequence[Topic], relevant: Mapping[str, list[str]]
) -> list[Mapping[str, list[str]]]:
    """The docids that negatives are drawn from, one of each pool, by queries; a query may be missing in a pool."""
    pools: list[Mapping[str, list[str]]] = []
    if kind == "judged":
        qrels = dataset.qrels(split)
        pools.append({qid: [docid for docid, grade in qrels[qid].items() if grade <= 0] for qid in relevant})
    if kind in ("bm25", "mixed"):
        pools.append(bm25_negatives(dataset.documents(split), query_texts(topics), relevant))
    if kind in ("compositional", "mixed"):
        pools.append(compositional_negatives(topics, relevant))
    if pools and not any(pool.get(qid) for pool in pools for qid in relevant):
        raise InputError(f"{dataset.folder}: {split} has no negatives of the kind {kind!r}; choose another kind")
    return pools


def _document_texts(dataset: Dataset, split: str, docids: set[str]) -> dict[str, str]:
    texts = {document.docid: document.text or "" for document in dataset.documents(split) if document.docid in docids}
    if missing := sorted(docid for docid in docids if not texts.get(docid, "").strip()):
        raise InputError(f"{dataset.folder}: document {missing[0]!r} of {split} is judged, but has no text")
    return texts


def _examples_of_file(path: str) -> list[Example]:
    examples = []
    for line, record in iter_jsonl(path, InputError):
        source = f"{path}:{line}"
        query, positive = (_text(record, field, source) for field in ("query", "positive"))
        negatives = _negatives(record.get("negative"), source)
        if positive in negatives:
            raise InputError(f"{source}: the text of `positive` is also in `negative`: {positive!r:.60}")
        examples.append(Example(query, positive, negatives))
    if not examples:
        raise InputError(f"{path}: is empty; expected lines of `query`, `positive` and perhaps `negative`")
    return examples


def _text(record: Mapping[str, Any], field: str, source: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{source}: `{field}` must be a text that is not blank, got {value!r:.60}")
    return value


def _negatives(value: Any, source: str) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(
            f"{source}: `negative` must be a text or a list of texts that are not blank, got {value!r:.60}"
        )
    return tuple(texts)
