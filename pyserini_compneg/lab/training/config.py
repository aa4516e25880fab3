"""The settings of trainings: files, and recipes of this package for the paper's tables.

docs/how-to/training.md explains each setting. A file in the folder ``recipes`` has two YAML documents: the recipes
with their values, and their common settings, in which ``$name`` stands for a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Template
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, field_validator, model_validator

from pyserini_compneg.baselines import Similarity
from pyserini_compneg.encode.models import Head
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.settings_files import Settings, parse_settings, settings_text

LOG_FILE = "training_log.json"
"""The file with the settings, the results and, for an encoder, the log of a training, in the model's folder."""

DENSE = "dense"
"""The head of a bi-encoder."""

_RECIPES = Path(__file__).parent / "recipes"
_READER = re.compile(r"""^\s*\{?\s*["']?reader["']?\s*:""", re.MULTILINE)
"""The section that only settings files of readers have."""

SettingsT = TypeVar("SettingsT", bound=Settings)
_Positive = Annotated[int, Field(ge=1)]
_TextLength = Annotated[int, Field(ge=3)]  # the model adds two tokens to a text
_Rate = Annotated[float, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Seed = Annotated[int, Field(ge=0, lt=2**32)]  # transformers seeds numpy's generator, which takes 32 bits


class ModelConfig(Settings):
    """The model to start from, and changes to it."""

    base: str
    head: str | None = None
    similarity: Similarity | None = None
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
        given = [name for name in sparse if getattr(self, name) != type(self).model_fields[name].default]
        if self.is_dense and given:
            raise ValueError(f"model.{given[0]} is for sparse vectors; leave it out, or choose another head than dense")
        if self.similarity and not self.is_dense:
            raise ValueError("model.similarity is for the head dense; leave it out")
        return self

    @property
    def is_dense(self) -> bool:
        return self.head == DENSE

    @property
    def chooses_epsilon(self) -> bool:
        """Whether the head is signed and leaves the width of its dead zone to the base."""
        return self.head not in (None, DENSE) and self.head.count(":") < 2 and Head.parse(self.head).signed


class SourceConfig(Settings):
    """A source of examples: the folder of a dataset, or a JSON Lines file."""

    dataset: str
    split: str | None = None
    negatives: Literal["none", "judged", "bm25", "compositional", "mixed"] | None = None
    positives: _Positive = 4
    atoms: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _atoms_have_a_use(self) -> SourceConfig:
        if self.atoms and self.negatives not in ("compositional", "mixed"):
            raise ValueError("atoms are for the negatives compositional and mixed; leave them out")
        return self


class TeacherConfig(Settings):
    """A teacher whose margins are learned (margin-MSE)."""

    model: str
    scale: Annotated[float, Field(gt=0)] = 1.0
    """The factor of its scores. Cosines need about 20 to be comparable to scores of sparse vectors."""


class DevConfig(Settings):
    """The evaluation during training. The first measure chooses the model."""

    dataset: str
    split: str
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = ("ndcg_cut.10", "recall.100")
    documents: _Positive | None = None


class TrainingConfig(Settings):
    """The optimisation."""

    steps: _Positive
    batch_size: _Positive = 16
    max_length: _TextLength | None = None
    seed: _Seed = 42
    learning_rate: _Rate = 2e-5
    head_learning_rate: _Rate | None = None
    warmup: _Share = 0.1
    query_flops: _Rate = 1e-3
    document_flops: _Rate = 1e-3
    flops_warmup: _Share = 0.33
    evaluate_every: _Positive = 100
    patience: _Positive | None = None


class TrainConfig(Settings):
    """The settings for training an encoder.

    Attributes:
        model: The model.
        data: The sources of examples.
        training: The optimisation.
        dev: The evaluation, if there is one.
        teacher: The teacher, if there is one.
        about: The purpose and the expected results, for the model card.
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
    """A reader of plain texts."""

    base: str
    requests: Annotated[tuple[str, ...], Field(min_length=1)]
    judged: Annotated[tuple[str, ...], Field(min_length=1)]
    names: tuple[str, ...] = ()
    epochs: Annotated[int, Field(ge=1, le=1000)] = 4
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 32
    learning_rate: Annotated[float, Field(ge=0, le=1)] = 8e-5
    max_tokens: Annotated[int, Field(ge=3, le=512)] = 384
    threshold: _Share = 0.9
    seed: _Seed = 0


class ReaderTrainConfig(Settings):
    """The settings for training a reader."""

    reader: ReaderSection
    about: str = ""


AnyConfig: TypeAlias = TrainConfig | ReaderTrainConfig
"""The settings of any training."""


def recipe_names() -> list[str]:
    return sorted(_recipes())


def read_config(name: str | Path) -> AnyConfig:
    """Reads the settings of a training.

    Args:
        name: A YAML file, or the name of a recipe.

    Raises:
        InputError: ``name`` is neither a file nor a recipe, the file cannot be read, or a setting is unknown, missing
            or not allowed. The message starts with ``name``.
    """
    text = recipe_text(name)
    if _READER.search(text):
        return parse_settings(text, str(name), ReaderTrainConfig, InputError)
    return parse_settings(text, str(name), TrainConfig, InputError)


def recipe_text(name: str | Path) -> str:
    """The YAML of a file or a recipe."""
    if Path(name).is_file():
        return settings_text(name, InputError)
    if str(name) not in _recipes():
        known = ", ".join(recipe_names())
        raise InputError("neither a file nor a recipe", where=name, remedy=f"the recipes are: {known}")
    return _recipes()[str(name)]


def located(
    config: AnyConfig, data: str | None = None, base: str | None = None, teacher: str | None = None
) -> AnyConfig:
    """The settings with relative paths of datasets below ``data``, and with another base or teacher if given."""
    root = Path(data or "")
    if teacher and (isinstance(config, ReaderTrainConfig) or config.teacher is None):
        raise InputError("the settings have no teacher", remedy="leave --teacher out")
    if isinstance(config, TrainConfig):
        moved = moved_data(config, lambda dataset: root / dataset, base)
        sources = tuple(_updated(source, atoms=source.atoms and str(root / source.atoms)) for source in moved.data)
        chosen = _updated(config.teacher, model=teacher) if teacher and config.teacher else config.teacher
        return _updated(moved, data=sources, teacher=chosen)
    reader = config.reader
    files = {
        name: tuple(str(root / path) for path in getattr(reader, name)) for name in ("requests", "judged", "names")
    }
    return _updated(config, reader=_updated(reader, base=base or reader.base, **files))


def moved_data(config: TrainConfig, place: Callable[[str], Path], base: str | None = None) -> TrainConfig:
    """The settings with other places of datasets, and with another base if given."""
    sources = tuple(_updated(source, dataset=str(place(source.dataset))) for source in config.data)
    dev = config.dev and _updated(config.dev, dataset=str(place(config.dev.dataset)))
    return _updated(config, data=sources, dev=dev, model=_updated(config.model, base=base or config.model.base))


def _updated(settings: SettingsT, **changes: object) -> SettingsT:
    return settings.model_copy(update=changes)


@cache
def _recipes() -> dict[str, str]:
    import yaml

    texts = {}
    for path in _RECIPES.glob("*.yaml"):
        recipes, settings = path.read_text(encoding="utf-8").split("\n---\n")
        for name, values in yaml.safe_load(recipes).items():
            texts[name] = Template(settings).substitute(values)
    return texts
