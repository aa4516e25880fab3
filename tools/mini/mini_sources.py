"""What mini learns from: texts and queries with the scores of a teacher, and judged queries about films."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bm25_scores import Bm25Scores
from numpy.typing import NDArray

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.expression import Atom
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.examples import read_examples
from pyserini_compneg.support.errors import InputError, in_one_line
from pyserini_compneg.support.files import iter_jsonl

SPLIT = "train"
UNSEEN = "books"
"""The domain of QUEST that nothing is learned from."""

NEAR = 30
"""How many of the best documents of a query its batches are drawn from."""

_DRAWN = 7
_BEST = 3
_FILMS = 8000
_TEACHER_TOKENS = 80
_ROWS = 256
_MARKED = re.compile(r"<mark>(.*?)</mark>")


class MiniBatch(NamedTuple):
    """Texts of queries and documents; the arrays are (queries, documents)."""

    queries: list[str]
    documents: list[str]
    bm25: NDArray[np.float32]
    teacher: NDArray[np.float32] | None
    """What shall be added to BM25's scores; None where there are judgements."""

    chosen: NDArray[np.bool_]
    """The documents near a query, or relevant to it where there are judgements."""


class Teacher:
    """The vectors of a bi-encoder, of length 1, and what a cosine is multiplied by, to be added to a score of BM25."""

    def __init__(self, name: str, weight: float) -> None:
        from sentence_transformers import SentenceTransformer

        folder = str(model_folder(name))
        with in_one_line(InputError, "cannot be loaded as a teacher", where=name):
            self._model: Any = SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)
        self._model.max_seq_length = min(_TEACHER_TOKENS, self._model.max_seq_length or _TEACHER_TOKENS)
        self.weight = weight

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, (texts, width)."""
        options = {"batch_size": 32, "show_progress_bar": False, "normalize_embeddings": True}
        vectors: NDArray[np.float32] = self._model.encode(list(texts), **options)
        return vectors


class Taught:
    """Batches of queries and documents that a teacher compares.

    A query's score is its cosine minus the mean over all documents, so that most documents have none. ``size`` queries
    choose a batch's documents. Each document adds a query that it is among the best for.
    """

    def __init__(self, texts: Iterable[str], queries: Iterable[str], teacher: Teacher, size: int) -> None:
        self._texts, self._queries, self._size = list(dict.fromkeys(texts)), list(dict.fromkeys(queries)), size
        if len(self._texts) <= NEAR:
            raise InputError(f"the texts are {len(self._texts)}; give more than {NEAR}")
        self._bm25, self._weight = Bm25Scores(self._texts), teacher.weight
        self._asked, self._known = teacher(self._queries), teacher(self._texts)
        self._means = self._asked @ self._known.mean(0)
        self._near = list[list[int]]()
        self._asking = defaultdict[int, list[int]](list)
        for start in range(0, len(self._queries), _ROWS):
            rows = range(start, min(start + _ROWS, len(self._queries)))
            scores = self._bm25(self._queries[start : rows.stop]) + self._taught(rows, range(len(self._texts)))
            for row, best in zip(rows, np.argsort(-scores, axis=1, kind="stable")[:, :NEAR].tolist(), strict=True):
                self._near.append(best)
                for document in best[:_BEST]:
                    self._asking[document].append(row)

    def batch(self, draw: random.Random) -> MiniBatch:
        rows = dict.fromkeys(draw.sample(range(len(self._queries)), min(self._size, len(self._queries))))
        documents = list(dict.fromkeys(document for row in rows for document in draw.sample(self._near[row], _DRAWN)))
        rows |= dict.fromkeys(draw.choice(self._asking[document]) for document in documents if self._asking[document])
        asked, texts = [self._queries[row] for row in rows], [self._texts[document] for document in documents]
        near = np.array([[document in self._near[row] for document in documents] for row in rows])
        return MiniBatch(asked, texts, self._bm25(asked, documents), self._taught(list(rows), documents), near)

    def _taught(self, rows: Sequence[int], documents: Sequence[int]) -> NDArray[np.float32]:
        cosines = self._asked[rows] @ self._known[documents].T - self._means[rows, None]
        scores: NDArray[np.float32] = np.maximum(self._weight * cosines, 0)
        return scores


class Judged:
    """Batches of ``size`` queries with relevant documents, and documents that BM25 ranks high without reason."""

    def __init__(self, texts: Sequence[str], queries: Sequence[tuple[str, set[int]]], size: int) -> None:
        self._texts, self._queries, self._size = texts, queries, size
        self._bm25 = Bm25Scores(texts)

    def batch(self, draw: random.Random) -> MiniBatch:
        asked = draw.sample(self._queries, min(self._size, len(self._queries)))
        queries, documents = [text for text, _ in asked], dict[int, None]()
        for (_, relevant), scores in zip(asked, self._bm25(queries), strict=True):
            best = np.argsort(-scores, kind="stable")[: len(relevant) + NEAR].tolist()
            wrong = [number for number in best if number not in relevant][:NEAR]
            documents |= dict.fromkeys((draw.choice(sorted(relevant)), draw.choice(wrong)))
        numbers = list(documents)
        flags = np.array([[number in relevant for number in numbers] for _, relevant in asked])
        return MiniBatch(queries, [self._texts[one] for one in numbers], self._bm25(queries, numbers), None, flags)


def summaries(path: Path) -> tuple[list[str], list[str]]:
    """Summaries of Wikipedia's articles, and their short descriptions, which serve as queries.

    The file has a JSON object of objects with ``title``, ``extract`` and perhaps ``description``.
    """
    with in_one_line(InputError, "is no file of summaries", where=path):
        entries = list(json.loads(path.read_text(encoding="utf-8")).values())
        texts = [f"{one['title']} {one['extract']}" for one in entries]
        return texts, [one["description"] for one in entries if one.get("description")]


def quest(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Of QUEST, without a judgement: passages of films, atoms that ask for films, and those of plants and animals."""
    texts = {one["title"]: f"{one['title']} {one['text']}" for one in _records(folder, "documents")}
    books = {title for one in _records(folder, SPLIT) if _domain(one) == UNSEEN for title in one["docs"]}
    atoms = defaultdict[bool, list[str]](list)
    for one in _records(folder, f"wordings.{SPLIT}"):
        if _domain(one) != UNSEEN:
            atoms[_domain(one) == "films"] += _MARKED.findall(one["original_query"])
    return [text for title, text in texts.items() if title not in books], atoms[True], atoms[False]


def _domain(record: dict[str, Any]) -> str:
    domain: str = record["metadata"]["domain"]
    return domain


def _records(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    path = next(folder.glob(f"{name}.jsonl*"), None)
    if path is None:
        remedy = "name the folder of QUEST's evidence passages"
        raise InputError(f"has no {name}.jsonl", where=folder, remedy=remedy)
    return (record for _, record in iter_jsonl(path))


def pairs(path: str) -> tuple[list[str], list[str]]:
    """Passages, and questions about them, of JSON Lines of ``query``, ``positive`` and perhaps ``negative``."""
    examples = read_examples(SourceConfig(dataset=path), 0)
    return [text for one in examples for text in (one.positive, *one.negatives)], [one.query for one in examples]


def films(folder: str, seed: int) -> tuple[list[str], list[tuple[str, set[int]]]]:
    """Some leads of FilmSets, and the atomic queries of its training split with their relevant documents among them."""
    dataset = open_dataset(folder)
    texts = {document.docid: document.text or "" for document in dataset.documents(SPLIT)}
    kept = random.Random(seed).sample(sorted(texts), min(_FILMS, len(texts)))
    number = {docid: place for place, docid in enumerate(kept)}
    qrels, queries = dataset.qrels(SPLIT), list[tuple[str, set[int]]]()
    for topic in dataset.topics(SPLIT):
        grades = qrels.get(topic.qid, {}).items()
        relevant = {number[docid] for docid, grade in grades if grade > 0 and docid in number}
        if isinstance(topic.expression, Atom) and relevant:
            queries.append((topic.expression.text, relevant))
    if not queries:
        raise InputError("no atomic query with a relevant document", where=folder, remedy="name FilmSets")
    return [texts[docid] for docid in kept], queries
