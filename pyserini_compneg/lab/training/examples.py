"""Examples: queries, each with a relevant document and hard negatives, read from datasets and files.

Source of the hard negatives: Krasakis et al., Appendix A.
"""

from __future__ import annotations

import json
import logging
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import read_qrels
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Intersection, Union, leaves, verbalise
from pyserini_compneg.lab.experiments.datasets import Dataset, open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.staging import atomic_writer, keep_inputs
from pyserini_compneg.topics import Topic, read_topics

BM25_RANKS = (50, 100)
"""The first and the last rank of negatives. Higher documents are often relevant but not judged."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """The texts of a query, of a relevant document, and of hard negatives, none of them relevant."""

    query: str
    positive: str
    negatives: tuple[str, ...] = ()


def read_examples(source: SourceConfig, seed: int) -> list[TrainingExample]:
    """The examples of a source, in the order of its queries. Positives and negatives are drawn with the seed."""
    path = Path(source.dataset)
    if not path.exists():
        raise InputError("no such folder or file of training data", where=path)
    if path.is_dir():
        return _examples_of_dataset(source, seed)
    if source.split is not None or source.negatives not in (None, "judged", "none"):
        raise InputError(
            "a file has no split, and no negatives but its own",
            where=path,
            remedy="leave out split, and set negatives to judged or none",
        )
    examples = _examples_of_file(path)
    return [replace(one, negatives=()) for one in examples] if source.negatives == "none" else examples


def query_texts(topics: Iterable[Topic]) -> dict[str, str]:
    """The text of each query, by its id: expressions in the words of QUEST's templates, without paraphrases."""
    return {topic.qid: verbalise(_expression(topic)) for topic in topics}


def _expression(topic: Topic) -> Expression:
    if topic.expression is None:
        fault = f"query {topic.qid!r} is composed already, so it has no text to encode"
        raise InputError(fault, where=topic.source)
    return topic.expression


def _examples_of_dataset(source: SourceConfig, seed: int) -> list[TrainingExample]:
    dataset, split = open_dataset(source.dataset), source.split
    if split is None:
        raise InputError(f"name the split; there are: {', '.join(dataset.splits)}", where=source.dataset)
    topics, qrels = dataset.topics(split), dataset.qrels(split)
    texts = query_texts(topics)
    relevant = {qid: [docid for docid, grade in qrels.get(qid, {}).items() if grade > 0] for qid in texts}
    if lacking := next((qid for qid, docids in relevant.items() if not docids), None):
        fault = f"query {lacking!r} of {split} has no relevant document"
        raise InputError(fault, where=source.dataset, remedy="leave it out")
    pools = _negative_pools(source, dataset, split, topics, relevant)
    draw = random.Random(seed)
    chosen = []
    for qid in texts:
        for docid in draw.sample(relevant[qid], min(source.positives, len(relevant[qid]))):
            chosen.append((qid, docid, [draw.choice(pool[qid]) for pool in pools if pool.get(qid)]))
    documents = _document_texts(dataset, split, {docid for _, positive, rest in chosen for docid in (positive, *rest)})
    return [
        TrainingExample(texts[qid], documents[docid], tuple(documents[other] for other in dict.fromkeys(others)))
        for qid, docid, others in chosen
    ]


def _negative_pools(
    source: SourceConfig, dataset: Dataset, split: str, topics: Sequence[Topic], relevant: Mapping[str, list[str]]
) -> list[Mapping[str, list[str]]]:
    """For each query, pools of docids; one negative is drawn from each. A query may be missing in a pool."""
    pools: list[Mapping[str, list[str]]] = []
    kind = source.negatives
    if kind == "judged":
        qrels = dataset.qrels(split)
        pools.append({qid: [docid for docid, grade in qrels[qid].items() if grade <= 0] for qid in relevant})
    if kind in ("bm25", "mixed"):
        pools.append(bm25_negatives(dataset.documents(split), query_texts(topics), relevant))
    if kind in ("compositional", "mixed"):
        atoms = _checked_atoms(source.atoms, dataset, split, topics) if source.atoms else {}
        pools.append(compositional_negatives(topics, relevant, atoms))
        counted = by_template(topics, pools[-1])
        _logger.info("%s: queries of %s with compositional negatives: %s", dataset.folder, split, counted)
    if pools and not any(pool.get(qid) for pool in pools for qid in relevant):
        fault = f"{split} has no negatives of the kind {kind!r}"
        raise InputError(fault, where=dataset.folder, remedy="choose another kind")
    return pools


def bm25_negatives(
    documents: Iterable[SourceDocument], texts: Mapping[str, str], relevant: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """For each query, the documents at BM25's ranks 50 to 100, without the relevant documents."""
    from pyserini_compneg.index import build_index
    from pyserini_compneg.search import SignedImpactSearcher

    with tempfile.TemporaryDirectory(prefix="compneg-") as folder:
        collection = Path(folder, "documents.jsonl")
        with atomic_writer(collection) as lines:
            for document in documents:
                lines.write(json.dumps({"id": document.docid, "contents": document.text or ""}) + "\n")
        build_index(collection, Path(folder, "index"))
        with SignedImpactSearcher(Path(folder, "index")) as searcher:
            hits = searcher.batch_search([Atom(text) for text in texts.values()], list(texts), BM25_RANKS[1])
    return {
        qid: [hit.docid for hit in ranked[BM25_RANKS[0] - 1 :] if hit.docid not in set(relevant[qid])]
        for qid, ranked in hits.items()
    }


def _checked_atoms(path: str, dataset: Dataset, split: str, topics: Sequence[Topic]) -> dict[Atom, set[str]]:
    """The documents of atoms in a file. Refuses unknown documents, and a file without an atom of the queries."""
    atoms = documents_of_atoms(path)
    if not atoms.keys() & {atom for topic in topics for atom in leaves(_expression(topic))}:
        raise InputError(
            f"no atom here is in a query of {split}", where=path, remedy="give atoms as the queries have them"
        )
    unknown = set().union(*atoms.values()) - {document.docid for document in dataset.documents(split)}
    if unknown:
        fault = f"document {min(unknown)!r} is not in {dataset.folder}"
        raise InputError(fault, where=path, remedy="correct or delete it")
    return atoms


def documents_of_atoms(path: str | Path) -> dict[Atom, set[str]]:
    """Reads the documents of atoms, lines ``{"atom": text, "docs": [docid, …]}``. An atom may have several lines."""
    atoms: dict[Atom, set[str]] = {}
    for line, record in iter_jsonl(path):
        place = f"{path}:{line}"
        text, docids = _text(record, "atom", place), record.get("docs")
        if not isinstance(docids, list) or not all(isinstance(docid, str) for docid in docids):
            raise InputError(f"`docs` must be a list of document ids, got {docids!r:.60}", where=place)
        atoms.setdefault(Atom(text), set()).update(docids)
    return atoms


def compositional_negatives(
    topics: Sequence[Topic],
    relevant: Mapping[str, Sequence[str]],
    known: Mapping[Atom, set[str]] = MappingProxyType({}),
) -> dict[str, list[str]]:
    r"""For each query, documents of its atoms that do not match it: for A \ B those of B, for A ∩ B those of one alone.

    The documents of an atom are the relevant documents of the queries all of whose documents have it, such as those of
    A, A ∩ B and A \ B for A, and those in ``known``. A query has no negatives if its atoms have no documents, or if it
    is an atom or a union of atoms.
    """
    atoms = defaultdict[Atom, set[str]](set, {atom: set(docids) for atom, docids in known.items()})
    for atom, docids in shared_documents(topics, relevant).items():
        atoms[atom] |= docids
    negatives = {}
    for topic in topics:
        misleading = [atoms[atom] for atom in _misleading(_expression(topic))]
        negatives[topic.qid] = sorted(set().union(*misleading) - set(relevant[topic.qid]))
    return negatives


def shared_documents(topics: Iterable[Topic], relevant: Mapping[str, Iterable[str]]) -> dict[Atom, set[str]]:
    """For each atom, the relevant documents of the queries all of whose documents have it."""
    atoms = defaultdict[Atom, set[str]](set)
    for topic in topics:
        for atom in _shared(_expression(topic)):
            atoms[atom].update(relevant[topic.qid])
    return dict(atoms)


def by_template(topics: Iterable[Topic], negatives: Mapping[str, Sequence[str]]) -> str:
    """How many queries of each template have negatives, in words."""
    groups = Counter(topic.group for topic in topics if negatives[topic.qid])
    return ", ".join(f"{count} of {group}" for group, count in groups.items()) or "none"


def write_atoms(queries: Path, output: Path) -> str:
    """Writes the documents of the atoms of a file in QUEST's form, for ``atoms`` of a source. Returns what is in it."""
    keep_inputs(output, queries)
    topics, qrels = read_topics(queries), read_qrels(queries)
    relevant = {one.qid: [docid for docid, grade in qrels.get(one.qid, {}).items() if grade > 0] for one in topics}
    atoms = shared_documents(topics, relevant)
    with atomic_writer(output) as lines:
        for atom, docids in atoms.items():
            lines.write(json.dumps({"atom": atom.text, "docs": sorted(docids)}, ensure_ascii=False) + "\n")
    counted = by_template(topics, compositional_negatives(topics, relevant))
    return f"{len(atoms)} atoms of {len(topics)} queries; queries with compositional negatives: {counted}"


def _shared(expression: Expression) -> Iterator[Atom]:
    """Atoms that each document of an expression has."""
    match expression:
        case Atom():
            yield expression
        case Difference() | Exclusion():
            yield from _shared(expression.children[0])
        case Intersection(operands):
            for operand in operands:
                yield from _shared(operand)


def _misleading(expression: Expression) -> Iterator[Atom]:
    """The atoms whose documents may be mistaken for the query's documents: all but those of a union, which match."""
    match expression:
        case Union(operands):
            for operand in operands:
                yield from _misleading(operand)
        case Difference() | Exclusion() | Intersection():
            yield from leaves(expression)


def _document_texts(dataset: Dataset, split: str, docids: set[str]) -> dict[str, str]:
    texts = {document.docid: document.text or "" for document in dataset.documents(split) if document.docid in docids}
    if missing := sorted(docid for docid in docids if not texts.get(docid, "").strip()):
        raise InputError(f"document {missing[0]!r} of {split} is judged, but has no text", where=dataset.folder)
    return texts


def _examples_of_file(path: Path) -> list[TrainingExample]:
    examples = []
    for line, record in iter_jsonl(path):
        place = f"{path}:{line}"
        query, positive = (_text(record, field, place) for field in ("query", "positive"))
        negatives = _negatives(record.get("negative"), place)
        if positive in negatives:
            raise InputError(f"the text of `positive` is also in `negative`: {positive!r:.60}", where=place)
        examples.append(TrainingExample(query, positive, negatives))
    if not examples:
        raise InputError("is empty; expected lines of `query`, `positive` and perhaps `negative`", where=path)
    return examples


def _text(record: Mapping[str, Any], field: str, place: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"`{field}` must be a text that is not blank, got {value!r:.60}", where=place)
    return value


def _negatives(value: Any, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        fault = f"`negative` must be a text or a list of texts that are not blank, got {value!r:.60}"
        raise InputError(fault, where=place)
    return tuple(texts)
