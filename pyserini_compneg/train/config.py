"""What a training is told."""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_compneg.errors import EncodingError, TrainingError
from pyserini_compneg.models.heads import Head

QUERY_ENCODERS = ("shared", "separate", "static")
"""What encodes queries: the documents' network, one of their own, or no network: a learned weight for each token."""

NEGATIVES = ("none", "judged", "bm25", "compositional", "mixed")
"""Where the hard negatives of a source come from, beside the other documents of a batch, which always count."""

LARGEST_SEED = 2**32 - 1
"""Of numpy's generator, which transformers seeds, too."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The model.

    Attributes:
        base: The checkpoint to start from: a folder, or a name of the Hugging Face hub.
        head: ``activation:pooling[:epsilon]``, see :class:`~pyserini_compneg.models.Head`; by default the base's own.
        query_encoder: One of ``QUERY_ENCODERS``.
        max_length: Tokens that the model reads of a text.
        vocabulary: The terms of vectors: ``all``, or those of the training's texts alone.
        frozen_layers: How many of the trunk's layers, the first ones and the embeddings, are left as they are; 0 for
            none, the embeddings neither.
        dropout: Share of the states that are left out at random while training; by default the base's.
    """

    base: str
    head: str | None = None
    query_encoder: str = "shared"
    max_length: int = 256
    vocabulary: str = "all"
    frozen_layers: int = 0
    dropout: float | None = None


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Something to learn from.

    Attributes:
        dataset: The folder of a dataset, or a JSON Lines file of ``query``, ``positive`` and perhaps ``negative``.
        split: The split of a dataset.
        negatives: One of ``NEGATIVES``; a file has its own.
        positives: Relevant documents of a query, at most; each makes an example.
    """

    dataset: str
    split: str | None = None
    negatives: str = "none"
    positives: int = 4


@dataclass(frozen=True, slots=True)
class TeacherConfig:
    """Whose margins are learnt (margin-MSE), instead of which document is relevant.

    Attributes:
        model: A bi-encoder or cross-encoder that sentence-transformers loads.
        scale: What its scores are multiplied by; cosines need some 20 to be scores of sparse vectors.
    """

    model: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class DevConfig:
    """What is evaluated on while training; the first measure chooses the model.

    Attributes:
        dataset: The folder of a dataset.
        split: Its split.
        measures: As ``eval`` has them.
        documents: The judged documents, and others drawn at random up to this number; None for all.
    """

    dataset: str
    split: str
    measures: tuple[str, ...] = ("ndcg_cut.10", "recall.100")
    documents: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How it is trained.

    Attributes:
        steps: Batches.
        batch_size: Queries in a batch.
        max_length: Tokens that are read of a text while training; by default as many as the model reads.
        seed: Of everything that is drawn.
        learning_rate: Of the trunk: AdamW, with linear warm-up and decay.
        head_learning_rate: Of what follows the trunk; by default the same.
        warmup: Share of the steps until the learning rate is reached.
        query_flops: Weight of the regulariser for queries.
        document_flops: The same for documents.
        flops_warmup: Share of the steps until these weights are reached, quadratically.
        evaluate_every: Steps between evaluations, and between checkpoints.
        patience: Evaluations without a better result after which training ends early; None for never.
    """

    steps: int
    batch_size: int = 16
    max_length: int | None = None
    seed: int = 42
    learning_rate: float = 2e-5
    head_learning_rate: float | None = None
    warmup: float = 0.1
    query_flops: float = 1e-3
    document_flops: float = 1e-3
    flops_warmup: float = 0.33
    evaluate_every: int = 100
    patience: int | None = None


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A training.

    Attributes:
        model: The model.
        data: What it learns from.
        training: How.
        dev: What it is evaluated on, if on anything.
        teacher: Whose scores it learns, if anyone's.
        about: What it is for, and what results are expected; goes into the model card.

    Raises:
        TrainingError: A value that is out of range.
    """

    model: ModelConfig
    data: tuple[SourceConfig, ...]
    training: TrainingConfig
    dev: DevConfig | None = None
    teacher: TeacherConfig | None = None
    about: str = ""

    def __post_init__(self) -> None:
        """Checks the values."""
        _choice("model.vocabulary", self.model.vocabulary, ("all", "training"))
        _choice("model.query_encoder", self.model.query_encoder, QUERY_ENCODERS)
        for source in self.data:
            _choice("data.negatives", source.negatives, NEGATIVES)
            _at_least("data.positives", source.positives, 1)
        training = self.training
        for name in ("steps", "evaluate_every"):
            _at_least(f"training.{name}", getattr(training, name), 1)
        _at_least("training.batch_size", training.batch_size, 1 if self.teacher else 2)  # others are negatives
        if self.teacher and self.teacher.scale <= 0:
            raise TrainingError(f"teacher.scale must be above 0, got {self.teacher.scale}")
        for name in ("learning_rate", "head_learning_rate", "query_flops", "document_flops", "warmup", "flops_warmup"):
            _at_least(f"training.{name}", getattr(training, name), 0)
        _at_least("training.patience", training.patience, 1)
        _at_least("model.frozen_layers", self.model.frozen_layers, 0)
        _at_least("model.dropout", self.model.dropout, 0)
        if self.model.dropout is not None and self.model.dropout >= 1:
            raise TrainingError(f"model.dropout must be below 1, got {self.model.dropout}")
        _at_least("model.max_length", self.model.max_length, 3)  # two are added to a text
        _at_least("training.max_length", training.max_length, 3)
        if training.max_length is not None and training.max_length > self.model.max_length:
            raise TrainingError(
                f"training.max_length must be model.max_length, {self.model.max_length}, or less, "
                f"got {training.max_length}"
            )
        _at_least("training.seed", training.seed, 0)
        if training.seed > LARGEST_SEED:
            raise TrainingError(f"training.seed must be {LARGEST_SEED} or less, got {training.seed}")
        if self.dev is not None:
            _at_least("dev.documents", self.dev.documents, 1)
        for name in ("warmup", "flops_warmup"):
            if getattr(training, name) > 1:
                raise TrainingError(
                    f"training.{name} must be a share of the steps, 0 to 1, got {getattr(training, name)}"
                )
        if self.model.head is not None:
            try:
                Head.parse(self.model.head)
            except EncodingError as cause:
                raise TrainingError(f"model.head: {cause}") from None
        if training.patience is not None and self.dev is None:
            raise TrainingError("training.patience needs a dev section to tell what is better")


def _choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise TrainingError(f"{key} must be one of {', '.join(choices)}, got {value!r}")


def _at_least(key: str, value: float | None, least: float) -> None:
    if value is not None and value < least:
        raise TrainingError(f"{key} must be {least} or more, got {value}")
