"""Evaluation during training: exact scores of all dev documents, with the measures of ``eval``."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SparseEncoder
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import Tensor
from torch.nn import functional

from pyserini_compneg.eval import evaluate, mean, parse_measures
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training.config import DevConfig
from pyserini_compneg.lab.training.examples import query_texts
from pyserini_compneg.support.errors import InputError

_DEPTH = 1000
_BATCH = 32


class DevEvaluator(BaseEvaluator):  # type: ignore[misc]  # mypy has no types of sentence-transformers
    """Computes means of measures on a split, and means that describe the vectors.

    ``step``, ``results`` and ``run``, ``{qid: {docid: score}}``, belong to the last evaluation. The run has the 1,000
    best documents of each query and the judged documents.
    """

    def __init__(self, config: DevConfig, seed: int) -> None:
        super().__init__()
        dataset = open_dataset(config.dataset)
        self._measures = parse_measures(config.measures)
        self.primary_metric = self._measures[0].name
        self.texts = query_texts(dataset.topics(config.split))
        self.qrels = {qid: judged for qid, judged in dataset.qrels(config.split).items() if qid in self.texts}
        documents = {document.docid: document.text or "" for document in dataset.documents(config.split)}
        judged = {docid for grades in self.qrels.values() for docid in grades}
        if not self.qrels:
            fault = f"no query of {config.split} is judged"
            raise InputError(fault, where=config.dataset, remedy="name another split for dev")
        if missing := sorted(judged - documents.keys()):
            fault = f"document {missing[0]!r} of {config.split} is judged, but not in the collection"
            raise InputError(fault, where=config.dataset)
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
        """Returns ``{measure: mean}``, including the mean numbers of terms of sparse vectors.

        If each query has two judged documents, the result includes ``pair_similarity``, the mean of the cosines of the
        two documents, and its standard deviation.
        """
        queries = _encode(model, list(self.texts.values()), "query")
        documents = _encode(model, list(self._documents.values()), "document")
        self.run = self._ranked(queries, documents)
        values = evaluate(self.qrels, self.run, self._measures)
        self.step = steps
        self.results = {measure.name: mean(values, measure, list(self.qrels)) for measure in self._measures}
        if queries.is_sparse:
            self.results["query_terms"] = queries._nnz() / len(queries)
            self.results["document_terms"] = documents._nnz() / len(documents)
        if {len(judged) for judged in self.qrels.values()} == {2}:
            similarities = self._pair_similarities(documents)
            self.results["pair_similarity"] = similarities.mean().item()
            self.results["pair_similarity_sd"] = similarities.std().item()
        return dict(self.results)

    def _pair_similarities(self, documents: Tensor) -> Tensor:
        """The cosine of the two judged documents of each query, as in Figure 8 of Weller et al. 2024 (NevIR)."""
        row_of = {docid: row for row, docid in enumerate(self._documents)}
        pairs = torch.tensor([[row_of[docid] for docid in judged] for judged in self.qrels.values()])
        one, other = (documents.index_select(0, pairs[:, side]).to_dense() for side in (0, 1))
        return functional.cosine_similarity(one, other)

    def _ranked(self, queries: Tensor, documents: Tensor) -> dict[str, dict[str, float]]:
        docids = list(self._documents)
        row_of = {docid: row for row, docid in enumerate(docids)}
        run = {}
        if documents.is_sparse:  # by rows: products of torch's coordinate format take some thirty times as long
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # torch calls the format a beta
                documents = documents.to_sparse_csr()
        for number, qid in enumerate(self.texts):
            scores = (documents @ queries[number].to_dense()[:, None])[:, 0]
            best = scores.topk(min(_DEPTH, len(docids))).indices.tolist()
            judged = [row_of[docid] for docid in self.qrels.get(qid, {})]
            run[qid] = {docids[row]: scores[row].item() for row in [*best, *judged]}
        return run


def _encode(model: Any, texts: Sequence[str], side: str) -> Tensor:
    """The vectors of texts, a matrix (texts, terms or dimensions), sparse if the model's vectors are sparse.

    The sort is stable, unlike the sort of ``model.encode``. So batches, and the last bits of vectors, are equal on
    every machine.
    """
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    vectors = []
    for start in range(0, len(order), _BATCH):
        batch = [texts[number] for number in order[start : start + _BATCH]]
        if isinstance(model, SparseEncoder):
            vectors.append(model.encode(batch, task=side, save_to_cpu=True, show_progress_bar=False))
        else:
            encode = model.encode_query if side == "query" else model.encode_document
            vectors.append(encode(batch, convert_to_tensor=True, show_progress_bar=False).cpu())
    sorted_back = torch.cat(vectors).index_select(0, torch.tensor(order).argsort())
    if sorted_back.is_sparse:
        return sorted_back.coalesce()
    return sorted_back if model.similarity_fn_name == "dot" else functional.normalize(sorted_back)
