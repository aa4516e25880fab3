"""The training of mini for ``bm25+mini``: what is trained is the sum of its score and BM25's.

Queries have no network, a learned weight for each token. So only the weights of the terms of a batch's queries count in
the loss, and the others need no logits. Of these a sample is drawn for the regulariser: the whole vocabulary is trained
at a fraction of its cost.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lead_queries import LeadQueries
from mini_batches import SPLIT, Batch, Films, Passages, TrainingTexts, read_texts
from torch import Tensor, nn

from pyserini_compneg.encode.hybrid import MODEL_WEIGHT
from pyserini_compneg.encode.models import Head, model_folder
from pyserini_compneg.experiments.datasets import open_dataset
from pyserini_compneg.progress import progress
from pyserini_compneg.training.config import LOG_FILE
from pyserini_compneg.training.encoder_module import EncoderModule, write_layout
from pyserini_compneg.training.masked_lm import load_base, neural_side
from pyserini_compneg.training.resumption import check_finite, keep, restore
from pyserini_compneg.training.static_query import StaticQueryModule, idf_weights

_SHARES = (6, 4, 12)
"""Queries of films that choose a batch's documents: judged with a decade, judged with a name, made of leads."""

_PASSAGE_QUERIES = 16
_SAMPLED_TERMS = 600
_TEACHER_SCALE = 20.0
"""What a cosine of the teacher is multiplied by, to be added to a score of BM25."""

_TEMPERATURE = 3.0
"""Of the softmax over passages, of the teachers and of the model alike."""

_START = 0.45
"""The factor of ``idf_weights`` at the start: the model's scores are then a fraction of BM25's."""

_LEAST_IDF = 0.5
"""In the unit of ``idf_weights``, too: FLOPS counts tokens below it alike."""

_WARMUP_STEPS = 100
_FLOPS_WARMUP_STEPS = 300
_LAST_RATE = 0.02
_LENGTH_GROUPS = 3
_CHECKPOINT = "checkpoints/last/step.pt"
_CHECKPOINT_STEPS = 100
_LOG_STEPS = 25


@dataclass(frozen=True, slots=True)
class Settings:
    """What is trained, and how long.

    Attributes:
        base: The sparse model to start from: a folder, or a name on the Hugging Face hub.
        teacher: A bi-encoder for the passages, whose scores and BM25's are learned together.
        films: The folder of FilmSets.
        passages: Files of ``query``, ``positive`` and perhaps ``negative``.
        steps: The number of batches.
        learning_rate: That of the network: AdamW, with linear warm-up and decay.
        query_learning_rate: That of the weights of queries' tokens.
        passage_weight: The weight of the loss of passages beside that of films.
        flops: The weight of the regulariser for documents.
        max_length: The number of tokens that the model reads of a text.
        training_length: The number of tokens that are read in training.
        seed: The seed of all random draws.
    """

    base: str
    teacher: str
    films: str
    passages: tuple[str, ...]
    steps: int = 800
    learning_rate: float = 5e-4
    query_learning_rate: float = 2e-2
    passage_weight: float = 3.0
    flops: float = 5e-4
    max_length: int = 256
    training_length: int = 112
    seed: int = 0


class HybridModule(nn.Module):  # type: ignore[misc]  # torch without types
    """The model: a network for documents, a weight for each token of queries.

    Args:
        base: The checkpoint to start from.
        collections: The texts of the training; a token's first weight is its mean idf.
        lengths: The number of tokens that the model reads of a text, and of those that are read in training.

    Raises:
        EncodingError: A checkpoint that cannot be read.
        TrainingError: A checkpoint that cannot be trained.
    """

    def __init__(self, base: str, collections: Sequence[Sequence[str]], lengths: tuple[int, int]) -> None:
        super().__init__()
        network = load_base(model_folder(base), base, dropout=0.0)
        self.document = EncoderModule(network, network.head or Head(), lengths[0], None, lengths[1])
        width = self.document.decoder.out_features
        idf = sum(idf_weights(network.tokenizer, texts, width) for texts in collections) / len(collections)
        self.query = StaticQueryModule(network.tokenizer, _START * idf, None)
        self.register_buffer("cost", idf.mean() / idf.clamp(min=_LEAST_IDF))
        self._width = width

    def forward(self, queries: Sequence[str], documents: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The scores, (queries, documents), and the regulariser: FLOPS with a higher cost for frequent tokens.

        Source: Paria et al. 2020 for FLOPS; Geng et al. 2024 for its weights by idf.
        """
        tokens = self.query.tokenizer(list(queries), add_special_tokens=False, verbose=False)["input_ids"]
        terms = sorted({token for ids in tokens for token in ids})
        place = {term: number for number, term in enumerate(terms)}
        wanted = torch.zeros(len(queries), len(terms))
        for row, ids in enumerate(tokens):
            wanted[row, [place[token] for token in ids]] = 1
        sample = torch.randint(0, self._width, (_SAMPLED_TERMS,))
        weights = self._weights(documents, torch.cat([torch.tensor(terms), sample]))
        scores = (wanted * torch.relu(self.query.weight[terms])) @ weights[:, : len(terms)].T
        flops = (weights[:, len(terms) :].mean(0).square() * self.cost[sample]).sum()
        return scores, flops * self._width / _SAMPLED_TERMS

    def _weights(self, texts: Sequence[str], terms: Tensor) -> Tensor:
        """The weights of some terms, (texts, terms). Texts of like lengths go together, so that little is padding."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        size = -(-len(order) // _LENGTH_GROUPS)
        self.document.vocabulary = terms
        vectors = [
            self.document(self.document.preprocess([texts[number] for number in order[start : start + size]]))
            for start in range(0, len(order), size)
        ]
        self.document.vocabulary = None
        weights = torch.cat([features["sentence_embedding"] for features in vectors])
        return weights[torch.tensor(order).argsort()]

    def write(self, folder: Path) -> None:
        """Writes a checkpoint for ``bm25+FOLDER``, whose default model weight gives the sum that was trained."""
        with torch.no_grad():
            self.query.weight /= MODEL_WEIGHT
        write_layout(folder, self.query, self.document)


def film_loss(scores: Tensor, relevant: Tensor) -> Tensor:
    """The cross-entropy of each relevant document among it and all that are not relevant, averaged.

    >>> film_loss(torch.tensor([[2.0, 2.0, 0.0]]), torch.tensor([[1.0, 1.0, 0.0]])).item() < 0.2
    True
    """
    others = torch.logsumexp(scores.masked_fill(relevant > 0, -1e9), 1, keepdim=True)
    losses = nn.functional.softplus(others - scores) * relevant
    return (losses.sum(1) / relevant.sum(1).clamp(min=1)).mean()


def passage_loss(scores: Tensor, teacher: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of the distributions over the documents, in the scores' unit."""
    given, wanted = (torch.log_softmax(values / _TEMPERATURE, 1) for values in (scores, teacher))
    return _TEMPERATURE * nn.functional.kl_div(given, wanted, log_target=True, reduction="batchmean")


def train_mini(settings: Settings, unfinished: Path) -> Path:
    """Trains the model. Checkpoints are kept in ``unfinished``, and a later call goes on from the last one.

    Args:
        settings: What to train.
        unfinished: A folder that exists.

    Returns:
        The folder of the model, in ``unfinished``.

    Raises:
        CompNegError: Data or a base that cannot be used, a loss that is not a finite number, or a checkpoint that
            cannot be written.
    """
    neural_side(model_folder(settings.base), settings.base, "document")  # before the data are read
    texts = read_texts(settings.films, settings.passages)
    films = Films(texts.films, LeadQueries(texts.films, texts.judged, settings.films), _SHARES)
    passages = Passages(texts.examples, settings.teacher, _TEACHER_SCALE, _PASSAGE_QUERIES, settings.seed)
    torch.manual_seed(settings.seed)
    module = HybridModule(settings.base, (films.texts, passages.texts), (settings.max_length, settings.training_length))
    log = _fit(module, settings, films, passages, unfinished / _CHECKPOINT)
    folder = unfinished / "model"
    folder.mkdir(exist_ok=True)
    module.write(folder)
    said = {"settings": asdict(settings), "log": log}
    (folder / LOG_FILE).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_model_card(settings, texts), encoding="utf-8")
    return folder


def _fit(
    module: HybridModule, settings: Settings, films: Films, passages: Passages, checkpoint: Path
) -> list[dict[str, float]]:
    groups = [
        {"params": list(module.document.parameters()), "lr": settings.learning_rate},
        {"params": [module.query.weight], "lr": settings.query_learning_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / _WARMUP_STEPS) * max(_LAST_RATE, 1 - step / settings.steps)
    )
    states: dict[str, Any] = {"module": module, "optimizer": optimizer, "schedule": schedule}
    done, log, draw = 0, list[dict[str, float]](), random.Random(settings.seed)
    if saved := restore(checkpoint, states):
        done, log = saved["steps"], saved["log"]
        draw.setstate(saved["draw"])
    sums: dict[str, float] = {}
    with progress(None, settings.steps, " steps", "training", done=done) as bar:
        for step in range(done + 1, settings.steps + 1):
            losses = _losses(module, films, films.batch(draw), film=True)
            losses |= _losses(module, passages, passages.batch(draw), film=False)
            flops = settings.flops * min(1.0, step / _FLOPS_WARMUP_STEPS) ** 2
            loss = losses["films"] + settings.passage_weight * losses["passages"]
            loss = loss + flops * (losses["films_flops"] + losses["passages_flops"])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            check_finite(loss, norm, f"step {step}")
            optimizer.step()
            schedule.step()
            bar.update(1)
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach())
            if step % _LOG_STEPS == 0 or step == settings.steps:
                count = (step - 1) % _LOG_STEPS + 1
                log.append({"step": step, **{name: value / count for name, value in sums.items()}})
                sums = {}
            if step % _CHECKPOINT_STEPS == 0:
                keep(checkpoint, states, steps=step, log=log, draw=draw.getstate())
    return log


def _losses(module: HybridModule, source: Films | Passages, batch: Batch, film: bool) -> dict[str, Tensor]:
    scores, flops = module(batch.queries, [source.texts[number] for number in batch.documents])
    known, target = torch.from_numpy(batch.bm25), torch.from_numpy(batch.target)
    if film:
        summed, drawn = scores + known, batch.drawn  # the queries of single leads are many, and easier
        parts = [(summed[:drawn], target[:drawn]), (summed[drawn:], target[drawn:])]
        losses = torch.stack([film_loss(*part) for part in parts if len(part[0])])
        return {"films": losses.mean(), "films_flops": flops}
    return {"passages": passage_loss(scores + known, known + _TEACHER_SCALE * target), "passages_flops": flops}


def _model_card(settings: Settings, texts: TrainingTexts) -> str:
    """The model card: purpose, sources and settings."""
    listed = "\n".join(f"- {name}: {value}" for name, value in asdict(settings).items())
    return f"""---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags: [sparse-encoder, splade, inference-free, pyserini_compneg]
---

# A small sparse encoder beside BM25

Distilled from {settings.teacher} and BM25 on passages, and trained on judged queries about films. FilmSets is also a
benchmark of this project.

    python -m pyserini_compneg.index --collection documents.jsonl --index indexes/name --encoder bm25+THIS_FOLDER

Queries have no network: each token of a query has a learned weight. What was trained is the sum with BM25's score.

## Made of

- the weights of {settings.base}, whose licence applies
- the scores of {settings.teacher}, the teacher for passages, and of BM25
- {settings.films}, split {SPLIT}: {open_dataset(settings.films).provenance}; {len(texts.judged):,} queries about
  {len(texts.films):,} documents, and queries that are made of the documents' words
- {", ".join(settings.passages)}: {len(texts.examples):,} questions with passages, and sentences of the passages

## Settings

{listed}
"""
