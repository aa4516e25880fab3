"""Fine-tuning: puts together the model, the data, the loss and the trainer, and runs the training.

The loss is contrastive or learns margins, and has a regulariser that keeps vectors sparse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainingArguments,
    SparseEncoder,
    SparseEncoderTrainingArguments,
)
from sentence_transformers.base.modules import Router
from sentence_transformers.base.training_args import BaseTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sparse_encoder.callbacks.splade_callbacks import SpladeRegularizerWeightSchedulerCallback
from sentence_transformers.sparse_encoder.losses import (
    SparseMarginMSELoss,
    SparseMultipleNegativesRankingLoss,
    SpladeLoss,
)
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, PrinterCallback

from pyserini_compneg.encode.models import model_folder, quiet_transformers
from pyserini_compneg.lab.training.bases import LENGTH, build_modules
from pyserini_compneg.lab.training.batches import example_tables
from pyserini_compneg.lab.training.config import TrainConfig
from pyserini_compneg.lab.training.dev import DevEvaluator
from pyserini_compneg.lab.training.encoder_module import EncoderModule, write_layout
from pyserini_compneg.lab.training.examples import TrainingExample
from pyserini_compneg.lab.training.trainers import (
    DenseTrainer,
    Reporting,
    SparseTrainer,
    check_checkpoint,
    last_checkpoint,
)
from pyserini_compneg.support.errors import InputError, in_one_line


class AbsoluteFlops(nn.Module):  # type: ignore[misc]  # mypy has no types of torch
    """FLOPS of |w|: the sum over terms of the squared mean absolute weight in a batch.

    The FlopsLoss of sentence-transformers takes no absolute value. There, +1 and −1 of a term cancel, and signed
    vectors of any length cost nothing.

    Source: Paria et al. 2020, with |w|, because signed activations may be negative.
    """

    def compute_loss_from_embeddings(self, embeddings: Tensor) -> Tensor:
        """The cost of vectors, (texts, terms).

        >>> AbsoluteFlops().compute_loss_from_embeddings(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).item()
        1.0
        """
        return embeddings.abs().mean(0).square().sum()


class Trained(NamedTuple):
    """The model that a training kept."""

    save: Callable[[Path], None]
    """Writes the model into a folder."""

    log: list[dict[str, Any]]
    """The trainer's log entries, by step."""

    dev: DevEvaluator | None
    """The evaluator, with the results of the model on dev."""


def fine_tune(config: TrainConfig, sources: Sequence[Sequence[TrainingExample]], checkpoints: Path) -> Trained:
    """Trains a model. Continues from the last checkpoint in the folder, if there is one."""
    dev = DevEvaluator(config.dev, config.training.seed) if config.dev else None
    data = example_tables(config, sources)
    model: Any
    if config.model.is_dense:
        model = dense_model(config)
        loss, kind = _dense_loss(model), DenseTrainer
        arguments = _arguments(config, checkpoints, dev)
        save = partial(_save_dense, model, model.max_seq_length)
        model.max_seq_length = config.training.max_length or model.max_seq_length  # only while training
    else:
        query, document = build_modules(config, sources)
        router = None if query is document else Router.for_query_document([query], [document])
        model = SparseEncoder(modules=[router or document], similarity_fn_name="dot")
        loss, save, kind = _loss(model, config), partial(write_layout, query=query, document=document), SparseTrainer
        names = {name for part in data.values() for name in part.column_names}
        routes = {**dict.fromkeys(names, "document"), "query": "query"}
        arguments = _arguments(config, checkpoints, dev, document, routes if router else None)
    trainer = kind(
        model,
        arguments,
        train_dataset=data if len(data) > 1 else next(iter(data.values())),
        loss=loss,
        evaluator=dev,
        callbacks=_callbacks(config, loss),
    )
    trainer.remove_callback(PrinterCallback)
    checkpoint = last_checkpoint(checkpoints)
    with quiet_transformers():
        if checkpoint:
            check_checkpoint(checkpoint)
        if not (checkpoint and trainer.restore_finished(checkpoint)):
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if dev and dev.step != trainer.state.best_global_step:  # the kept model was not evaluated last
        dev(model, steps=trainer.state.best_global_step)
    return Trained(save, trainer.state.log_history, dev)


def dense_model(config: TrainConfig) -> SentenceTransformer:
    """The bi-encoder from which a training starts.

    Weights that the base lacks, such as weights of an unused layer, are drawn with the training's seed.
    """
    base, length = config.model.base, config.model.max_length
    loading = in_one_line(InputError, "cannot be loaded as a bi-encoder", where=base)
    with loading, quiet_transformers(), torch.random.fork_rng():
        torch.manual_seed(config.training.seed)
        model = SentenceTransformer(str(model_folder(base)), local_files_only=True, trust_remote_code=False)
    model.max_seq_length = length or min(model.max_seq_length or LENGTH, LENGTH)
    model.similarity_fn_name = config.model.similarity or model.similarity_fn_name  # saved with the model
    return model


def _dense_loss(model: SentenceTransformer) -> MultipleNegativesRankingLoss:
    """Cross-entropy over the documents of a batch, by the similarity of the model."""
    if model.similarity_fn_name == "dot":
        return MultipleNegativesRankingLoss(model, scale=1.0, similarity_fct=model.similarity)
    return MultipleNegativesRankingLoss(model)


def _save_dense(model: SentenceTransformer, length: int, folder: Path) -> None:
    model.max_seq_length = length
    model.save_pretrained(str(folder), create_model_card=False)


def _loss(model: SparseEncoder, config: TrainConfig) -> SpladeLoss:
    """Cross-entropy over the documents of a batch, or margin-MSE with a teacher, plus FLOPS of both sides."""
    return SpladeLoss(
        model,
        SparseMarginMSELoss(model) if config.teacher else SparseMultipleNegativesRankingLoss(model),
        document_regularizer_weight=config.training.document_flops,
        query_regularizer_weight=config.training.query_flops,
        document_regularizer=AbsoluteFlops(),
        query_regularizer=AbsoluteFlops(),
    )


def _callbacks(config: TrainConfig, loss: Any) -> list[Any]:
    training = config.training
    callbacks: list[Any] = [Reporting()]
    if training.flops_warmup and not config.model.is_dense:
        callbacks.append(SpladeRegularizerWeightSchedulerCallback(loss, "quadratic", training.flops_warmup))
    if training.patience is not None:
        callbacks.append(EarlyStoppingCallback(training.patience))
    return callbacks


def _arguments(
    config: TrainConfig,
    checkpoints: Path,
    dev: DevEvaluator | None,
    module: EncoderModule | None = None,
    routes: dict[str, str] | None = None,
) -> BaseTrainingArguments:
    training = config.training
    head_rate = training.head_learning_rate
    cuda = torch.cuda.is_available()
    bf16 = cuda and torch.cuda.is_bf16_supported(including_emulation=False)
    kind = SparseEncoderTrainingArguments if module is not None else SentenceTransformerTrainingArguments
    return kind(
        output_dir=str(checkpoints),
        max_steps=training.steps,
        per_device_train_batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        learning_rate_mapping={_outside_trunk(module): head_rate} if module and head_rate is not None else {},
        warmup_steps=int(training.warmup * training.steps),
        seed=training.seed,
        bf16=bf16,
        fp16=cuda and not bf16,
        eval_on_start=dev is not None and last_checkpoint(checkpoints) is None,  # the start of the learning curve
        eval_strategy="steps" if dev else "no",
        eval_steps=training.evaluate_every,
        save_steps=training.evaluate_every,
        restore_callback_states_from_checkpoint=True,
        load_best_model_at_end=dev is not None,
        metric_for_best_model=f"eval_{dev.primary_metric}" if dev else None,
        greater_is_better=True if dev else None,
        logging_steps=max(1, min(10, training.evaluate_every)),
        batch_sampler="no_duplicates",  # a repeated text would be both positive and negative
        router_mapping=routes or {},
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
