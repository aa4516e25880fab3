"""The training itself: model, data, loss and trainer put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import Dataset, DatasetDict, DatasetInfo
from sentence_transformers import SparseEncoder, SparseEncoderTrainingArguments
from sentence_transformers.base.modules import Router
from sentence_transformers.sparse_encoder.callbacks.splade_callbacks import SpladeRegularizerWeightSchedulerCallback
from sentence_transformers.sparse_encoder.losses import (
    SparseMarginMSELoss,
    SparseMultipleNegativesRankingLoss,
    SpladeLoss,
)
from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.train.config import TrainConfig, TrainingConfig
from pyserini_compneg.train.dev import DevEvaluator
from pyserini_compneg.train.encoder_module import EncoderModule
from pyserini_compneg.train.examples import Example
from pyserini_compneg.train.masked_lm import quiet_transformers
from pyserini_compneg.train.modules import build_modules
from pyserini_compneg.train.regularisation import AbsoluteFlops
from pyserini_compneg.train.sparse_trainer import Reporting, SparseTrainer, check_checkpoint, last_checkpoint
from pyserini_compneg.train.static_query import StaticQueryModule
from pyserini_compneg.train.teacher import margins
from pyserini_compneg.train.twins import TWINS, split_twins

_NEGATIVE = "negative_{}"


class Trained(NamedTuple):
    """What a training gives.

    Attributes:
        query: Encodes queries.
        document: Encodes documents; the same if one network does both.
        results: Of the model that was kept, on dev.
        log: What was logged, by steps.
        dev: The evaluator, if there is one; its run is that of the results.
    """

    query: EncoderModule | StaticQueryModule
    document: EncoderModule
    results: dict[str, float]
    log: list[dict[str, Any]]
    dev: DevEvaluator | None


def run_training(config: TrainConfig, sources: Sequence[Sequence[Example]], checkpoints: Path) -> Trained:
    """Trains from the last checkpoint on, if there is one.

    Args:
        config: What to train.
        sources: The examples of each source.
        checkpoints: The folder of the checkpoints.

    Raises:
        CompNegError: See :func:`~pyserini_compneg.train.train`.
    """
    dev = DevEvaluator(config.dev, config.training.seed) if config.dev else None
    query, document = build_modules(config, sources)
    router = None if query is document else Router.for_query_document([query], [document])
    model = SparseEncoder(modules=[router or document], similarity_fn_name="dot")
    data = _columns(config, sources)
    loss = _loss(model, config)
    mapping = {name: "query" if name == "query" else "document" for part in data.values() for name in part.column_names}
    arguments = _arguments(config, checkpoints, dev, document, mapping if router else None)
    trainer = SparseTrainer(
        model,
        arguments,
        train_dataset=data if len(data) > 1 else next(iter(data.values())),
        loss=loss,
        evaluator=dev,
        callbacks=_callbacks(config.training, loss),
    )
    for printer in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printer)
    found = last_checkpoint(checkpoints)
    with quiet_transformers():
        if found:
            check_checkpoint(found)
        if not (found and trainer.take_up(found)):
            trainer.train(resume_from_checkpoint=str(found) if found else None)
    if dev and dev.step != trainer.state.best_global_step:  # what is kept is not what was evaluated last
        dev(model, steps=trainer.state.best_global_step)
    return Trained(query, document, dev.results if dev else {}, trainer.state.log_history, dev)


def _columns(config: TrainConfig, sources: Sequence[Sequence[Example]]) -> DatasetDict:
    """The examples as columns of texts; a table for each source and number of negatives, and for twins.

    A batch is of one table: documents of one source are harder to tell apart than those of several.
    """
    tables: dict[tuple[int, str, int], list[Example]] = {}
    for source, examples in enumerate(sources):
        twins, others = ([], examples) if config.teacher else split_twins(examples)
        if twins:
            tables[source, TWINS, 0] = twins
        for one in others:
            tables.setdefault((source, "", len(one.negatives)), []).append(one)
    columns = {}
    for (source, kind, count), examples in sorted(tables.items()):
        if not count and len({one.positive for one in examples}) < 2:
            raise TrainingError(
                f"{config.data[source].dataset}: its examples without negatives have one document alone, so there is "
                "nothing to tell it from; add others, or negatives"
            )
        table: dict[str, Any] = {
            "query": [one.query for one in examples],
            "positive": [one.positive for one in examples],
        }
        for number in range(count):
            table[_NEGATIVE.format(number + 1)] = [one.negatives[number] for one in examples]
        if config.teacher:
            table["label"] = margins(config.teacher, examples)
        columns[f"{source}-{kind or count}"] = Dataset.from_dict(table, info=DatasetInfo(description=kind))
    return DatasetDict(columns)


def _loss(model: SparseEncoder, config: TrainConfig) -> SpladeLoss:
    inner = SparseMarginMSELoss(model) if config.teacher else SparseMultipleNegativesRankingLoss(model)
    return SpladeLoss(
        model,
        inner,
        document_regularizer_weight=config.training.document_flops,
        query_regularizer_weight=config.training.query_flops,
        document_regularizer=AbsoluteFlops(),
        query_regularizer=AbsoluteFlops(),
    )


def _callbacks(training: TrainingConfig, loss: SpladeLoss) -> list[Any]:
    callbacks: list[Any] = [Reporting()]
    if training.flops_warmup:
        callbacks.append(SpladeRegularizerWeightSchedulerCallback(loss, "quadratic", training.flops_warmup))
    if training.patience is not None:
        callbacks.append(EarlyStoppingCallback(training.patience))
    return callbacks


def _arguments(
    config: TrainConfig,
    checkpoints: Path,
    dev: DevEvaluator | None,
    module: EncoderModule,
    routes: dict[str, str] | None,
) -> SparseEncoderTrainingArguments:
    training = config.training
    rates = {}
    if training.head_learning_rate is not None:
        rates[_outside_trunk(module)] = training.head_learning_rate
    cuda = torch.cuda.is_available()
    bf16 = cuda and torch.cuda.is_bf16_supported(including_emulation=False)
    return SparseEncoderTrainingArguments(
        output_dir=str(checkpoints),
        max_steps=training.steps,
        per_device_train_batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        learning_rate_mapping=rates,
        warmup_steps=int(training.warmup * training.steps),
        seed=training.seed,
        bf16=bf16,
        fp16=cuda and not bf16,
        eval_strategy="steps" if dev else "no",
        eval_steps=training.evaluate_every,
        save_steps=training.evaluate_every,
        save_total_limit=None,  # see SparseTrainer
        restore_callback_states_from_checkpoint=True,
        load_best_model_at_end=dev is not None,
        metric_for_best_model=f"eval_{dev.primary_metric}" if dev else None,
        greater_is_better=True if dev else None,
        logging_steps=max(1, min(10, training.evaluate_every)),
        # A text that is twice in a batch would be positive and negative at once.
        batch_sampler="no_duplicates",
        router_mapping=routes,
        report_to="none",
        disable_tqdm=True,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
    )


def _outside_trunk(module: EncoderModule) -> str:
    """A pattern for names of weights outside the trunk: own logits, hidden layer, decoder's bias, static weights."""
    trunk = {id(weight) for weight in module.model.base_model.parameters()}
    names = [name for name, weight in module.named_parameters() if id(weight) not in trunk]
    return rf"\.({'|'.join(map(re.escape, names))})$|\.query\.0\.weight$"
