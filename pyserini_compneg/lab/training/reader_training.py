"""Trains a reader of plain texts, and writes the folder that ``--read`` takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyserini_compneg.encode.networks import dense_graph
from pyserini_compneg.lab.training.config import ReaderTrainConfig
from pyserini_compneg.lab.training.judged_requests import JudgedRequest, read_judged, request_score
from pyserini_compneg.lab.training.resumption import check_finite, keep, restore
from pyserini_compneg.lab.training.tagged_requests import TaggedRequest, augmented, exclusions, separators, unasked
from pyserini_compneg.lab.training.tagger_module import NO_TAG, TaggerModule, batch_of, load_base
from pyserini_compneg.lab.training.trained_folder import write_card, write_log
from pyserini_compneg.reading import MODEL_FILE, TAGS, TOKENIZER_FILE, ModelReader, words_of, write_settings
from pyserini_compneg.support.errors import OutputError, in_one_line
from pyserini_compneg.support.progress import progress

_HEAD_RATE = 1e-3
"""The learning rate of the last layer, which is new."""

_SMOOTHING = 0.03
"""The share of each target that is divided among all tags (label smoothing)."""

_CHAIN_WEIGHT = 0.4
"""The weight of the log probabilities of transitions, relative to 1 for the scores of tags for words; chosen on dev."""

_BIAS = {"O": -0.9, "X": -0.9}
"""Values added to the scores of tags, chosen on dev. Losing a word or excluding it wrongly are the worst errors."""

_PENALTY = 1e-3
_WARMUP = 0.1
_LONGEST_IN_TRAINING = 256
_CHECKPOINT = "checkpoints/last/epoch.pt"
_CARD_TAGS = "onnxruntime", "token-classification", "pyserini_compneg"
_USE = "search --index DIR --read THIS_FOLDER --query 'spy films but no comedies'"


def fit_reader(config: ReaderTrainConfig, requests: Sequence[TaggedRequest], unfinished: Path) -> dict[str, float]:
    """Trains a reader, writes it to the folder ``model`` of ``unfinished``, and returns its :func:`shares`.

    After each epoch a checkpoint is written to ``unfinished``. A later call continues from it.
    """
    settings = config.reader
    torch.manual_seed(settings.seed)
    module, tokenizer = load_base(settings.base)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    _fit(module, tokenizer, requests, config, unfinished / _CHECKPOINT)
    folder = unfinished / "model"
    folder.mkdir(exist_ok=True)
    (folder / TOKENIZER_FILE).write_text(tokenizer.to_str(), encoding="utf-8")
    _save_graph(module, folder)
    entries = {
        "transitions": _chain(requests),
        "separators": separators(requests),
        "unasked": unasked(requests),
        "max_tokens": _most_tokens(module, config),
    }
    write_settings(folder, entries | {"calibration": (1.0, 0.0), "threshold": 0.0})
    judged = [request for path in settings.judged for request in read_judged(path)]
    calibration = calibrated(ModelReader(folder), judged)
    write_settings(folder, entries | {"calibration": calibration, "threshold": settings.threshold})
    results = shares(ModelReader(folder), judged)
    write_log(folder, config=config.model_dump(mode="json"), results=results)
    _write_card(folder, config, len(requests), results)
    return results


def shares(reader: ModelReader, judged: Sequence[JudgedRequest]) -> dict[str, float]:
    """The shares of requests whose whole reading is right, over all requests (``all``) and by kind."""
    readings = reader.read([request.query for request in judged])
    right: dict[str, list[bool]] = {"all": []}
    for request, reading in zip(judged, readings, strict=True):
        score = request_score(request, reading).whole
        right["all"].append(score)
        right.setdefault(request.kind, []).append(score)
    return {kind: sum(scores) / len(scores) for kind, scores in right.items()}


def _fit(
    module: TaggerModule, tokenizer: Any, requests: Sequence[TaggedRequest], config: ReaderTrainConfig, checkpoint: Path
) -> None:
    settings = config.reader
    steps = -(-len(requests) // settings.batch_size)
    total = steps * settings.epochs
    groups = [
        {"params": list(module.trunk.parameters()), "lr": settings.learning_rate},
        {"params": list(module.head.parameters()), "lr": _HEAD_RATE},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (_WARMUP * total)) * max(0.0, 1 - step / total)
    )
    states: dict[str, Any] = {"module": module, "optimizer": optimizer, "schedule": schedule}
    done = restore(checkpoint, states).get("epochs", 0)
    longest = min(_LONGEST_IN_TRAINING, _most_tokens(module, config))
    excluded = exclusions(requests)
    module.train()
    with progress(None, total, " steps", "training", done=done * steps) as bar:
        for epoch in range(done, settings.epochs):
            draw = random.Random(f"{settings.seed} {epoch}")
            for batch in _batches(requests, settings.batch_size, draw):
                texts = [augmented(request, excluded, draw) for request in batch]
                inputs, tags = batch_of(tokenizer, texts, longest)
                if bool((tags == NO_TAG).all()):
                    continue  # the tokenizer knows no word of it
                scores = module(*inputs).transpose(1, 2)
                loss = nn.functional.cross_entropy(scores, tags, ignore_index=NO_TAG, label_smoothing=_SMOOTHING)
                optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                check_finite(loss, norm, f"epoch {epoch + 1}")
                optimizer.step()
                schedule.step()
                bar.update(1)
            keep(checkpoint, states, epochs=epoch + 1)
    module.eval()


def _most_tokens(module: TaggerModule, config: ReaderTrainConfig) -> int:
    return min(config.reader.max_tokens, int(module.trunk.config.max_position_embeddings))


def _batches(requests: Sequence[TaggedRequest], size: int, draw: random.Random) -> list[list[TaggedRequest]]:
    ordered = sorted(requests, key=lambda request: len(request.text) + 30 * draw.random())
    batches = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    draw.shuffle(batches)
    return batches


def _save_graph(module: TaggerModule, folder: Path) -> None:
    import onnx

    failed = in_one_line(
        OutputError, "the reader cannot be exported", where=folder, remedy="free some space, and use --resume"
    )
    with failed:
        onnx.save(dense_graph(module, "int8", folder, "scores"), folder / MODEL_FILE)


def _chain(requests: Sequence[TaggedRequest]) -> list[list[float]]:
    """The score of each tag (column) after each tag (row), from its frequency in the requests."""
    counts = np.full((len(TAGS), len(TAGS)), 0.1)
    for request in requests:
        tags = request.tags(words_of(request.text))
        np.add.at(counts, (tags[:-1], tags[1:]), 1)
    scores = _CHAIN_WEIGHT * np.log(counts / counts.sum(1, keepdims=True)) + [_BIAS.get(tag, 0.0) for tag in TAGS]
    rows: list[list[float]] = scores.round(6).tolist()
    return rows


def calibrated(reader: ModelReader, judged: Sequence[JudgedRequest]) -> tuple[float, float]:
    """The slope and the offset of the confidence (Platt's scaling), fitted to uncalibrated readings."""
    readings = reader.read([request.query for request in judged])
    confidences = np.clip([reading.confidence for reading in readings], 1e-6, 1 - 1e-6)
    logits = np.log(confidences / (1 - confidences))
    right = np.array([request_score(*pair).whole for pair in zip(judged, readings, strict=True)])
    features = np.stack([logits, np.ones_like(logits)])
    fitted = np.array([1.0, 0.0])
    for _ in range(100):  # Newton's method with halved steps, and a small penalty, so that it ends where all are right
        chances = 1 / (1 + np.exp(-np.clip(fitted @ features, -30, 30)))
        gradient = features @ (chances - right) + _PENALTY * fitted
        curvature = (features * chances * (1 - chances)) @ features.T + _PENALTY * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        before = _calibration_loss(fitted, features, right)
        while _calibration_loss(fitted - step, features, right) > before and np.abs(step).max() > 1e-9:
            step = step / 2
        fitted = fitted - step
    return round(float(fitted[0]), 6), round(float(fitted[1]), 6)


def _calibration_loss(fitted: NDArray[np.float64], features: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    signs = np.where(right, -1.0, 1.0)
    return float(np.logaddexp(0, signs * (fitted @ features)).sum() + _PENALTY / 2 * fitted @ fitted)


def _write_card(folder: Path, config: ReaderTrainConfig, count: int, results: dict[str, float]) -> None:
    settings = config.reader
    rows = "\n".join(f"| {kind} | {100 * share:.1f} |" for kind, share in results.items())
    made_of = [
        f"the weights of {settings.base}, whose licence applies",
        f"{count:,} tagged requests: {', '.join(settings.requests)}",
    ]
    judged = f"""
## Whole readings that are right, %

On {", ".join(settings.judged)}, on which the confidence is calibrated:

| kind | right |
|---|---|
{rows}
"""
    about = config.about or "Trained with pyserini_compneg."
    entries = config.model_dump(mode="json", exclude_none=True)
    write_card(folder, _CARD_TAGS, "A reader of plain texts", about, _USE, made_of, entries, judged)
