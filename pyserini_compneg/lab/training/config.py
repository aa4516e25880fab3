"""The settings of a training, as their YAML file has them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from pyserini_compneg.encode.models.heads import Head
from pyserini_compneg.support.settings_files import Settings

LOG_FILE = "training_log.json"
"""In the folder of a trained model: the settings, the results, and what was logged."""

DENSE = "dense"
"""The head of a bi-encoder."""

_Positive = Annotated[int, Field(ge=1)]
_TextLength = Annotated[int, Field(ge=3)]  # the model adds two tokens to a text
_Rate = Annotated[float, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


def _default(settings: Settings, name: str) -> object:
    return type(settings).model_fields[name].default


class ModelConfig(Settings):
    """The model.

    Attributes:
        base: The checkpoint to start from: a folder, or a name on the Hugging Face hub.
        head: ``activation:pooling[:epsilon]``, see :class:`~pyserini_compneg.encode.models.Head`; by default that of
            the base. ``dense`` trains a bi-encoder of sentence-transformers, with the base's own pooling.
        query_encoder: What encodes queries: the documents' network (``shared``), a network of their own
            (``separate``), or no network but a learned weight for each token (``static``).
        max_length: The number of tokens that the model reads of a text; by default 256, or fewer if its base reads
            fewer.
        vocabulary: The terms of vectors: ``all``, or only those of the texts of the training.
        frozen_layers: The number of layers of the trunk, counted from the first, that are not trained. With 1 or more
            the embeddings are not trained either.
        dropout: The share of the states that dropout leaves out; by default the base's own.
    """

    base: str
    head: str | None = None
    query_encoder: Literal["shared", "separate", "static"] = "shared"
    max_length: _TextLength | None = None
    vocabulary: Literal["all", "training"] = "all"
    frozen_layers: Annotated[int, Field(ge=0)] = 0
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None

    @field_validator("head")
    @classmethod
    def _head_is_known(cls, head: str | None) -> str | None:
        if head not in (None, DENSE):
            Head.parse(head)
        return head

    @model_validator(mode="after")
    def _sparse_settings(self) -> ModelConfig:
        sparse = ("query_encoder", "vocabulary", "frozen_layers", "dropout")
        if self.is_dense and (given := [name for name in sparse if getattr(self, name) != _default(self, name)]):
            raise ValueError(f"model.{given[0]} is for sparse vectors; leave it out, or choose another head than dense")
        return self

    @property
    def is_dense(self) -> bool:
        """Whether a bi-encoder is trained."""
        return self.head == DENSE


class SourceConfig(Settings):
    """A source of examples.

    Attributes:
        dataset: The folder of a dataset, or a JSON Lines file of ``query``, ``positive`` and perhaps ``negative``.
        split: The split of a dataset.
        negatives: The kind of hard negatives, in addition to the other documents of a batch; by default those of a
            file (``judged``), and none of a dataset.
        positives: The largest number of relevant documents of a query; each makes an example.
    """

    dataset: str
    split: str | None = None
    negatives: Literal["none", "judged", "bm25", "compositional", "mixed"] | None = None
    positives: _Positive = 4


class TeacherConfig(Settings):
    """A teacher, whose margins are learned (margin-MSE).

    Attributes:
        model: A bi-encoder or cross-encoder that sentence-transformers loads.
        scale: The factor of its scores. Cosines need about 20 to be like scores of sparse vectors.
    """

    model: str
    scale: Annotated[float, Field(gt=0)] = 1.0


class DevConfig(Settings):
    """The evaluation during training; the first measure chooses the model.

    Attributes:
        dataset: The folder of a dataset.
        split: Its split.
        measures: Measures, named as in ``eval``.
        documents: The number of documents: those that are judged, and others drawn at random; None for all.
    """

    dataset: str
    split: str
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = ("ndcg_cut.10", "recall.100")
    documents: _Positive | None = None


class TrainingConfig(Settings):
    """The optimisation.

    Attributes:
        steps: The number of batches.
        batch_size: The number of queries in a batch.
        max_length: The number of tokens that are read of a text in training; by default that of the model.
        seed: The seed of all random draws.
        learning_rate: The learning rate of the trunk: AdamW, with linear warm-up and decay.
        head_learning_rate: The learning rate of what follows the trunk; by default the same.
        warmup: The share of the steps until the learning rate is reached.
        query_flops: The weight of the regulariser for queries.
        document_flops: The weight of the regulariser for documents.
        flops_warmup: The share of the steps until these weights are reached, quadratically.
        evaluate_every: The steps between evaluations, and between checkpoints.
        patience: The number of evaluations without a better result after which training ends early; None for never.
    """

    steps: _Positive
    batch_size: _Positive = 16
    max_length: _TextLength | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42  # transformers seeds numpy's generator, which takes 32 bits
    learning_rate: _Rate = 2e-5
    head_learning_rate: _Rate | None = None
    warmup: _Share = 0.1
    query_flops: _Rate = 1e-3
    document_flops: _Rate = 1e-3
    flops_warmup: _Share = 0.33
    evaluate_every: _Positive = 100
    patience: _Positive | None = None


class TrainConfig(Settings):
    """A training.

    Attributes:
        about: Its purpose and the results that are expected; goes into the model card.
        model: The model.
        data: The sources of examples.
        training: The optimisation.
        dev: The evaluation, if there is one.
        teacher: The teacher, if there is one.
    """

    model: ModelConfig
    data: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]
    training: TrainingConfig
    dev: DevConfig | None = None
    teacher: TeacherConfig | None = None
    about: str = ""

    @model_validator(mode="after")
    def _sections_agree(self) -> TrainConfig:
        length = self.training.max_length
        if length is not None and self.model.max_length is not None and length > self.model.max_length:
            raise ValueError(f"training.max_length must be at most model.max_length, {self.model.max_length}")
        if self.training.batch_size < 2 and not self.teacher:
            raise ValueError("training.batch_size must be at least 2, because other documents serve as negatives")
        if self.model.is_dense and (self.teacher or self.training.head_learning_rate is not None):
            raise ValueError("the head dense has no teacher and no training.head_learning_rate; leave them out")
        if self.training.patience is not None and not self.dev:
            raise ValueError("training.patience needs a dev section")
        return self


class ReaderSection(Settings):
    """A reader of plain texts.

    Attributes:
        base: The BERT to start from: a folder, or a name on the Hugging Face hub.
        requests: Files of tagged requests.
        judged: Files of requests with what they ask for, on which the confidence is calibrated; none of them may be
            among ``requests``.
        epochs: The number of passes over the requests.
        batch_size: The number of requests in a batch.
        learning_rate: Of the transformer: AdamW, with linear warm-up and decay.
        max_tokens: The number of tokens that the reader reads of a text; a longer text stays whole.
        threshold: The confidence below which a reading is not understood.
        seed: The seed of all random draws.
    """

    base: str
    requests: Annotated[tuple[str, ...], Field(min_length=1)]
    judged: Annotated[tuple[str, ...], Field(min_length=1)]
    epochs: Annotated[int, Field(ge=1, le=1000)] = 4
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 32
    learning_rate: Annotated[float, Field(ge=0, le=1)] = 8e-5
    max_tokens: Annotated[int, Field(ge=3, le=512)] = 384
    threshold: _Share = 0.86
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0


class ReaderTrainConfig(Settings):
    """A training of a reader.

    Attributes:
        about: Its purpose; goes into the model card.
        reader: The reader.
    """

    reader: ReaderSection
    about: str = ""


AnyConfig: TypeAlias = TrainConfig | ReaderTrainConfig
"""The settings of any training."""
