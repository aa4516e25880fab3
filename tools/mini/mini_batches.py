"""Batches for the training of mini: films with judgements, and passages with a teacher."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bm25_scores import Bm25Scores
from lead_queries import LeadQueries, hard_documents
from numpy.typing import NDArray

from pyserini_compneg.encode.models import model_folder
from pyserini_compneg.errors import TrainingError, in_one_line
from pyserini_compneg.experiments.datasets import open_dataset
from pyserini_compneg.expression import Expression
from pyserini_compneg.training.config import SourceConfig
from pyserini_compneg.training.examples import Example, read_examples

SPLIT = "train"
"""Of FilmSets."""

BEST = 30
"""The depth to which BM25's ranking, or that of the teachers, gives hard negatives."""

_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n")
_SENTENCE_LENGTHS = range(40, 221)
_LEFT_OUT = -1e4
"""The score of BM25 for a passage that no model shall find: what is left over of its share of the softmax is 0."""

_ASKING_BEST = 4
_SENTENCES = 4
"""Of a passage, as queries."""

_TEACHER_TOKENS = 160
_TEACHER_BATCH = 32


class TrainingTexts(NamedTuple):
    """What a training reads.

    Attributes:
        films: The documents.
        judged: Queries about them, with the numbers of their relevant documents.
        examples: Questions with passages.
    """

    films: list[str]
    judged: list[tuple[Expression, list[int]]]
    examples: list[Example]


def read_texts(films: str, passages: Sequence[str]) -> TrainingTexts:
    """Reads the texts of a training.

    Args:
        films: The folder of FilmSets; its split ``train`` is read.
        passages: Files of ``query``, ``positive`` and perhaps ``negative``.

    Raises:
        CompNegError: A dataset or a file that cannot be read.
    """
    dataset = open_dataset(films)
    documents = {document.docid: document.text or "" for document in dataset.documents(SPLIT)}
    number = {docid: place for place, docid in enumerate(documents)}
    judgements = dataset.qrels(SPLIT).items()
    if missing := next((docid for _, grades in judgements for docid in grades if docid not in number), None):
        raise TrainingError(f"{films}: document {missing!r} is judged, but not in the collection")
    relevant = {qid: [number[docid] for docid, grade in grades.items() if grade > 0] for qid, grades in judgements}
    topics = [topic for topic in dataset.topics(SPLIT) if topic.qid in relevant]
    judged = [(topic.expression, relevant[topic.qid]) for topic in topics if topic.expression is not None]
    examples = [one for path in passages for one in read_examples(SourceConfig(dataset=path), 0)]
    return TrainingTexts(list(documents.values()), judged, examples)


class Batch(NamedTuple):
    """Queries, and documents for all of them.

    Attributes:
        queries: The texts of the queries.
        documents: The numbers of the documents.
        bm25: BM25's scores, (queries, documents).
        target: Which documents are relevant, as 0 and 1, or the teacher's cosines, (queries, documents).
        drawn: The number of queries, the first ones, that the documents were chosen for.
    """

    queries: list[str]
    documents: list[int]
    bm25: NDArray[np.float32]
    target: NDArray[np.float32]
    drawn: int


class Films:
    """Batches of queries about films.

    Args:
        texts: The documents.
        queries: The source of queries.
        shares: The numbers of queries in a batch that choose its documents: judged with a decade, judged with a name,
            made of leads. Each document adds a query that is made of its own lead.
    """

    def __init__(self, texts: Sequence[str], queries: LeadQueries, shares: tuple[int, int, int]) -> None:
        self.texts = texts
        self._queries = queries
        self._shares = shares
        self._bm25 = Bm25Scores(texts)

    def batch(self, draw: random.Random) -> Batch:
        """A batch."""
        classes, names, made = self._shares
        asked = draw.sample(self._queries.classes, min(classes, len(self._queries.classes)))
        asked += draw.sample(self._queries.names, min(names, len(self._queries.names)))
        asked += [self._queries.made(draw) for _ in range(made)]
        scores = self._bm25([one.text for one in asked])
        documents = dict[int, None]()
        for one, row in zip(asked, scores, strict=True):
            relevant = sorted(one.relevant)
            best = np.argpartition(-row, min(BEST, len(row) - 1))[:BEST].tolist()
            documents |= dict.fromkeys(draw.sample(relevant, min(2, len(relevant))))
            documents |= dict.fromkeys(hard_documents(one, best, draw))
        chosen, own = scores[:, list(documents)], [self._queries.made_of(number, draw) for number in documents]
        more = [one for one in own if one]
        drawn = len(asked)
        asked += more
        target = np.array([[number in one.relevant for number in documents] for one in asked], np.float32)
        known = np.concatenate([chosen, self._bm25([one.text for one in more], list(documents))])
        return Batch([one.text for one in asked], list(documents), known, target, drawn)


class Passages:
    """Batches of questions and sentences, with a teacher's cosines. A sentence's own passage is left out.

    Args:
        examples: Questions with passages.
        teacher: A bi-encoder that sentence-transformers loads.
        scale: What the cosines are multiplied by, to be added to BM25's scores.
        size: The number of queries that choose a batch's passages; half of them are questions. Each passage adds a
            query that it is good for.
        seed: The seed of the draw of sentences.

    Raises:
        TrainingError: The teacher cannot be loaded, or there are too few passages.
    """

    def __init__(self, examples: Sequence[Example], teacher: str, scale: float, size: int, seed: int) -> None:
        self.texts = sorted({text for one in examples for text in (one.positive, *one.negatives)})
        if len(self.texts) <= BEST:
            raise TrainingError(f"the passages are {len(self.texts)}; give more than {BEST}")
        questions = list(dict.fromkeys(one.query for one in examples))
        sentences = _sentences(self.texts, random.Random(seed))
        self._queries = [*questions, *sentences]
        self._halves = range(len(questions)), range(len(questions) if sentences else 0, len(self._queries))
        self._size = size
        self._bm25 = Bm25Scores(self.texts)(self._queries)
        for row, passage in enumerate(sentences.values(), len(questions)):
            self._bm25[row, passage] = _LEFT_OUT
        vectors = _teacher_vectors(teacher, [self._queries, self.texts])
        self._cosines: NDArray[np.float32] = vectors[0] @ vectors[1].T
        whole = self._bm25 + scale * self._cosines
        self._best = np.argsort(-whole, axis=1, kind="stable")[:, :BEST].tolist()
        self._asking = defaultdict[int, list[int]](list)
        for row, best in enumerate(self._best):
            for passage in best[:_ASKING_BEST]:
                self._asking[passage].append(row)

    def batch(self, draw: random.Random) -> Batch:
        """A batch."""
        rows = dict.fromkeys(draw.choice(self._halves[number % 2]) for number in range(self._size))
        documents = dict[int, None]()
        for row in rows:
            best = self._best[row]
            documents |= dict.fromkeys((best[0], draw.choice(best[1:4]), *draw.sample(best[4:], 2)))
        drawn = len(rows)
        rows |= dict.fromkeys(draw.choice(self._asking[number]) for number in documents if self._asking[number])
        places = np.ix_(list(rows), list(documents))
        queries = [self._queries[row] for row in rows]
        return Batch(queries, list(documents), self._bm25[places], self._cosines[places], drawn)


def _sentences(texts: Sequence[str], draw: random.Random) -> dict[str, int]:
    """Some sentences of each text, with the number of the text; the last one, of several with the same sentence."""
    drawn = dict[str, int]()
    for number, text in enumerate(texts):
        sentences = [part.strip() for part in _SENTENCE.split(text) if len(part.strip()) in _SENTENCE_LENGTHS]
        drawn |= dict.fromkeys(draw.sample(sentences, min(len(sentences), _SENTENCES)), number)
    return drawn


def _teacher_vectors(name: str, parts: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
    from sentence_transformers import SentenceTransformer

    folder = str(model_folder(name))
    with in_one_line(TrainingError, f"{name}: cannot be loaded as a teacher"):
        teacher: Any = SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)
    teacher.max_seq_length = min(_TEACHER_TOKENS, teacher.max_seq_length or _TEACHER_TOKENS)
    options = {"batch_size": _TEACHER_BATCH, "show_progress_bar": False, "normalize_embeddings": True}
    return [teacher.encode(list(texts), **options) for texts in parts]
