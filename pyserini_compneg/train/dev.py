"""Evaluation while training: exact scores of all dev documents, by the measures of ``eval``."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import Tensor

from pyserini_compneg.datasets import open_dataset
from pyserini_compneg.errors import TrainingError
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import mean
from pyserini_compneg.train.config import DevConfig
from pyserini_compneg.train.examples import query_texts

_DEPTH = 1000
_BATCH = 32


class DevEvaluator(BaseEvaluator):  # type: ignore[misc]  # mypy is told nothing of sentence-transformers
    """Means of measures on a split, and how many terms vectors have.

    Args:
        config: The split.
        seed: Of the draw of documents that nobody judged.

    Attributes:
        run: The scores of the last evaluation, ``{qid: {docid: score}}``: the 1,000 best of each query and the judged.
        texts: The queries, by their ids.
        qrels: Their judgements.
        step: Of the last evaluation.
        results: Its means.

    Raises:
        CompNegError: A dataset or a measure that there is not.
    """

    def __init__(self, config: DevConfig, seed: int) -> None:
        super().__init__()
        dataset = open_dataset(config.dataset)
        self._measures = parse_measures(config.measures)
        self.primary_metric = self._measures[0].name
        self.texts = query_texts(dataset.topics(config.split))
        self.qrels = {qid: judged for qid, judged in dataset.qrels(config.split).items() if qid in self.texts}
        documents = {document.docid: document.text or "" for document in dataset.documents(config.split)}
        judged = {docid for found in self.qrels.values() for docid in found}
        if not self.qrels:
            raise TrainingError(f"{config.dataset}: no query of {config.split} is judged; name another split for dev")
        if missing := sorted(judged - documents.keys()):
            raise TrainingError(
                f"{config.dataset}: document {missing[0]!r} of {config.split} is judged, but is not there"
            )
        if config.documents is not None and config.documents < len(documents):
            others = sorted(documents.keys() - judged)
            drawn = random.Random(seed).sample(others, max(0, config.documents - len(judged)))
            documents = {docid: documents[docid] for docid in sorted([*judged, *drawn])}
        self._documents = documents
        self.run: dict[str, dict[str, float]] = {}
        self.step, self.results = -1, dict[str, float]()

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """``{measure: mean}``, with ``query_terms`` and ``document_terms``, the mean numbers of terms."""
        queries = encode(model, list(self.texts.values()), "query")
        documents = encode(model, list(self._documents.values()), "document")
        self.run = _ranked(queries, documents, list(self.texts), list(self._documents), self.qrels)
        values = evaluate(self.qrels, self.run, self._measures)
        found = {measure.name: mean(values, measure, list(self.qrels)) for measure in self._measures}
        terms = {"query_terms": queries, "document_terms": documents}
        self.step = steps
        self.results = found | {name: matrix._nnz() / len(matrix) for name, matrix in terms.items()}
        return dict(self.results)


def encode(model: Any, texts: Sequence[str], side: str) -> Tensor:
    """The vectors of texts, a sparse matrix (texts, terms), in their order.

    Args:
        model: A SparseEncoder.
        texts: At least one.
        side: ``query`` or ``document``.
    """
    was_training = model.training
    model.eval()
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    rows, columns, weights = [], [], []
    width = 0
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        features = model.preprocess([texts[number] for number in batch], task=side)
        features = {
            name: item.to(model.device) if isinstance(item, Tensor) else item for name, item in features.items()
        }
        with torch.no_grad():
            vectors = model(features, task=side)["sentence_embedding"].float().cpu()
        row, column = vectors.nonzero(as_tuple=True)
        rows.append(torch.tensor(batch)[row])
        columns.append(column)
        weights.append(vectors[row, column])
        width = vectors.shape[1]
    model.train(was_training)
    places = torch.stack([torch.cat(rows), torch.cat(columns)])
    return torch.sparse_coo_tensor(places, torch.cat(weights), (len(texts), width), check_invariants=False).coalesce()


def _ranked(
    queries: Tensor,
    documents: Tensor,
    qids: Sequence[str],
    docids: Sequence[str],
    qrels: Mapping[str, Mapping[str, int]],
) -> dict[str, dict[str, float]]:
    place = {docid: number for number, docid in enumerate(docids)}
    run = {}
    for number, qid in enumerate(qids):
        scores = torch.sparse.mm(documents, queries[number].to_dense()[:, None])[:, 0]
        best = scores.topk(min(_DEPTH, len(docids))).indices.tolist()
        judged = [place[docid] for docid in qrels.get(qid, {})]
        run[qid] = {docids[found]: scores[found].item() for found in [*best, *judged]}
    return run
