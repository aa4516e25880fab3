"""Trains a reader of plain texts, and writes the folder that ``--read`` takes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pyserini_compneg.encode.networks import dense_graph
from pyserini_compneg.lab.training.config import ReaderTrainConfig
from pyserini_compneg.lab.training.four_bits import round_weights, rounded
from pyserini_compneg.lab.training.judged_requests import JudgedRequest, judged_by_tags, request_score
from pyserini_compneg.lab.training.resumption import check_finite, keep, restore
from pyserini_compneg.lab.training.tagged_requests import TaggedRequest, augmented, exclusions, separators, unasked
from pyserini_compneg.lab.training.tagger_module import NO_TAG, TaggerModule, batch_of, load_base, sequence_loss
from pyserini_compneg.lab.training.trained_folder import write_card, write_log
from pyserini_compneg.reading import MODEL_FILE, SIGNS, TAGS, TOKENIZER_FILE, ModelReader, words_of, write_settings
from pyserini_compneg.support.errors import OutputError, in_one_line
from pyserini_compneg.support.progress import progress

_HEAD_RATE = 1e-3
"""The learning rate of the last layer, which is new."""

_CHAIN_RATE = 5e-3
"""The learning rate of the transitions between tags."""

_CHAIN_WEIGHT = 0.4
"""The weight of the log probabilities of transitions at the start, relative to 1 for the scores of tags for words."""

_SMOOTHING = 0.03
"""The share of each target that is divided among all tags (label smoothing)."""

_HELD_OUT = 25
"""One request in this many is not learnt from: on them and on the judged requests the confidence is calibrated."""

_BIAS = {"O": -1.3, "W": 0.0, "S": 0.0, "X": -1.3, "OR": -0.7, "AND": -0.7}
"""Values added to the scores of tags when the best sequence is looked for, chosen on dev and on texts that exclude and
join nothing. The worst errors are to lose a word, to exclude it wrongly, and to tear a fact apart."""

_PENALTY = 1.0
"""The weight of the squared weights of signs in the loss, so that few requests give small weights."""

_WARMUP = 0.1
_LONGEST_IN_TRAINING = 256
_CHECKPOINT = "checkpoints/last/epoch.pt"
_CARD_TAGS = "onnxruntime", "token-classification", "pyserini_compneg"
_USE = "search --index DIR --read THIS_FOLDER --query 'spy films but no comedies'"


def fit_reader(
    config: ReaderTrainConfig,
    requests: Sequence[TaggedRequest],
    judged: Sequence[JudgedRequest],
    names: Sequence[str],
    unfinished: Path,
) -> dict[str, float]:
    """Trains a reader, writes it to the folder ``model`` of ``unfinished``, and returns its :func:`shares`.

    ``names`` take the place of others in some requests. After each epoch a checkpoint is written to ``unfinished``. A
    later call continues from it.
    """
    settings = config.reader
    torch.manual_seed(settings.seed)
    module, tokenizer = load_base(settings.base)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    held_out = requests[_HELD_OUT - 1 :: _HELD_OUT]
    learnt = [request for number, request in enumerate(requests, start=1) if number % _HELD_OUT]
    _fit(module, tokenizer, learnt, names, config, unfinished / _CHECKPOINT)
    round_weights(module)
    folder = unfinished / "model"
    shutil.rmtree(folder, ignore_errors=True)  # of an export that was killed
    folder.mkdir()
    (folder / TOKENIZER_FILE).write_text(tokenizer.to_str(), encoding="utf-8")
    _save_graph(module, folder)
    entries = {
        "transitions": module.transitions.detach().double().numpy().round(6).tolist(),
        "bias": [_BIAS[tag] for tag in TAGS],
        "separators": separators(learnt),
        "unasked": unasked(learnt),
        "max_tokens": _most_tokens(module, config),
    }
    write_settings(folder, entries | {"confidence": [0.0] * (len(SIGNS) + 1), "threshold": 0.0})
    weights = calibrated(ModelReader(folder), judged, list(map(judged_by_tags, held_out)))
    write_settings(folder, entries | {"confidence": weights, "threshold": settings.threshold})
    results = shares(ModelReader(folder), judged)
    write_log(folder, config=config.model_dump(mode="json"), results=results)
    _write_card(folder, config, len(learnt), results)
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
    module: TaggerModule,
    tokenizer: Any,
    requests: Sequence[TaggedRequest],
    names: Sequence[str],
    config: ReaderTrainConfig,
    checkpoint: Path,
) -> None:
    settings = config.reader
    with torch.no_grad():
        module.transitions.copy_(_log_frequencies(requests))
    steps = -(-len(requests) // settings.batch_size)
    total = steps * settings.epochs
    groups = [
        {"params": list(module.trunk.parameters()), "lr": settings.learning_rate},
        {"params": list(module.head.parameters()), "lr": _HEAD_RATE},
        {"params": [module.transitions], "lr": _CHAIN_RATE, "weight_decay": 0.0},
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
                texts = [augmented(request, excluded, names, draw) for request in batch]
                inputs, tags = batch_of(tokenizer, texts, longest)
                if bool((tags == NO_TAG).all()):
                    continue  # the tokenizer knows no word of it
                optimizer.zero_grad()
                with rounded(module) if epoch + 1 == settings.epochs else nullcontext():
                    scores = module(*inputs)
                    loss = _loss(scores, tags, module.transitions)
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

    with in_one_line(OutputError, "the reader cannot be exported", where=folder, passing=(OSError,)):
        onnx.save(dense_graph(module, "int4", folder, "scores"), folder / MODEL_FILE)


def _log_frequencies(requests: Sequence[TaggedRequest]) -> Tensor:
    """The log probability of each tag (column) after each tag (row), weighted for the start of the training."""
    counts = np.full((len(TAGS), len(TAGS)), 0.1)
    for request in requests:
        tags = request.tags(words_of(request.text))
        np.add.at(counts, (tags[:-1], tags[1:]), 1)
    return torch.tensor(_CHAIN_WEIGHT * np.log(counts / counts.sum(1, keepdims=True)))


def _loss(scores: Tensor, tags: Tensor, transitions: Tensor) -> Tensor:
    """The loss of the tag of each word alone, and of the tags as a sequence."""
    alone = nn.functional.cross_entropy(scores.transpose(1, 2), tags, ignore_index=NO_TAG, label_smoothing=_SMOOTHING)
    return alone + sequence_loss(scores, tags, transitions)


def calibrated(reader: ModelReader, judged: Sequence[JudgedRequest], held_out: Sequence[JudgedRequest]) -> list[float]:
    """The weights of the signs of a reading in its confidence, and the offset (logistic regression).

    With the same signs, readings of ``judged`` and ``held_out`` requests may be right unequally often. The offset is
    that of ``judged``.
    """
    known, right = list[tuple[float, ...]](), list[bool]()
    requests = [*judged, *held_out]
    readings = reader.signed([request.query for request in requests])
    for number, (request, (reading, signs)) in enumerate(zip(requests, readings, strict=True)):
        if signs is not None:
            known.append((*signs, float(number >= len(judged))))
            right.append(request_score(request, reading).whole)
    if not known:  # all are too long
        return [0.0] * (len(SIGNS) + 1)
    rows = np.array(known)
    means, scales = rows.mean(0), np.maximum(rows.std(0), 1e-6)
    features = np.column_stack([(rows - means) / scales, np.ones(len(rows))])
    fitted = np.zeros(features.shape[1])
    for _ in range(50):  # Newton's method; the penalty keeps the weights finite where all readings are right
        chances = 1 / (1 + np.exp(-np.clip(features @ fitted, -30, 30)))
        gradient = features.T @ (chances - np.array(right)) + _PENALTY * fitted
        curvature = (features.T * (chances * (1 - chances))) @ features + _PENALTY * np.eye(len(fitted))
        fitted -= np.linalg.solve(curvature, gradient)
    weights = fitted[:-1] / scales
    found: list[float] = np.append(weights[:-1], fitted[-1] - weights @ means).round(6).tolist()
    return found


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
