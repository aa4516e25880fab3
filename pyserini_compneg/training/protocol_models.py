"""The models that the rows of a protocol name: found in a folder, and trained there where this is asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.experiments.datasets.dataset import Dataset
from pyserini_compneg.experiments.protocol import Protocol
from pyserini_compneg.training.config import LOG_FILE, TrainConfig
from pyserini_compneg.training.recipe_file import read_config
from pyserini_compneg.training.training import train

_logger = logging.getLogger(__name__)


def find_models(protocol: Protocol, dataset: Dataset, folder: Path) -> dict[str, Path]:
    """The folders of the models that are there, by the names that rows give them; a warning says which are not.

    A model's folder has the name of its recipe, or of its settings file: of those that the protocol names, the first
    whose splits the dataset has.

    Args:
        protocol: Has rows that name models.
        dataset: What they are trained on.
        folder: Has the models.

    Raises:
        TrainingError: No such recipe, or one that trains no encoder.
    """
    fitting = _recipes(protocol, dataset)
    places = {name: folder / Path(chosen[0]).stem for name, chosen in fitting.items() if chosen}
    if missing := [place.name for place in places.values() if not place.is_dir()]:
        listed = ", ".join(missing)
        _logger.warning("left out: rows of models that %s lacks: %s; --train trains them", folder, listed)
    if untrained := [name for name, chosen in fitting.items() if not chosen]:
        listed = ", ".join(map(repr, untrained))
        _logger.warning("left out: rows of models for which %s has no split to train on: %s", dataset.folder, listed)
    return {name: place for name, place in places.items() if place.is_dir()}


def train_models(
    protocol: Protocol, dataset: Dataset, folder: Path, base: str | None = None, dense_base: str | None = None
) -> dict[str, Path]:
    """Trains the models that are not there, or goes on where a training was interrupted.

    Args:
        protocol: Has rows that name models.
        dataset: What they are trained on, in place of the datasets that the recipes name.
        folder: Has the models.
        base: The checkpoint that sparse models start from, instead of that of the recipe.
        dense_base: The same of dense ones.

    Returns:
        The folders of all models, by the names that rows give them.

    Raises:
        TrainingError: No such recipe, one that trains no encoder or for which the dataset has no split, or a model that
            is there from another base.
        CompNegError: See :func:`~pyserini_compneg.training.train`.
    """
    places = {}
    for name, fitting in _recipes(protocol, dataset).items():
        if fitting is None:
            there = ", ".join(dataset.splits)
            raise TrainingError(f"{dataset.folder}: no split to train the model {name!r} on; there are: {there}")
        recipe, config = fitting
        chosen = (dense_base if config.model.is_dense else base) or config.model.base
        root = str(dataset.folder.resolve())
        sources = tuple(source.model_copy(update={"dataset": root}) for source in config.data)
        dev = config.dev and config.dev.model_copy(update={"dataset": root})
        model = config.model.model_copy(update={"base": chosen})
        places[name] = folder / Path(recipe).stem
        if places[name].exists():
            _check_base(places[name], chosen)
        else:
            _logger.info("training %s", recipe)
            train(config.model_copy(update={"data": sources, "dev": dev, "model": model}), places[name], resume=True)
    return places


def _recipes(protocol: Protocol, dataset: Dataset) -> dict[str, tuple[str, TrainConfig] | None]:
    """The models that rows name, each with its recipe and what this says; None where the dataset fits no recipe."""
    named = {row.model for section in protocol.sections for row in section.rows}
    return {name: _fitting(recipes, dataset) for name, recipes in protocol.models.items() if name in named}


def _fitting(recipes: Sequence[str], dataset: Dataset) -> tuple[str, TrainConfig] | None:
    for recipe in recipes:
        config = read_config(recipe)
        if not isinstance(config, TrainConfig):
            raise TrainingError(
                f"{recipe}: trains no encoder, so it cannot be a model of a protocol; name another recipe"
            )
        splits = {source.split for source in config.data} | ({config.dev.split} if config.dev else set())
        if splits <= {*dataset.splits}:
            return recipe, config
    return None


def _check_base(place: Path, base: str) -> None:
    try:
        former = json.loads((place / LOG_FILE).read_text(encoding="utf-8"))["config"]["model"]["base"]
    except (OSError, ValueError, KeyError, TypeError):
        raise TrainingError(
            f"{place}: is no model that was trained here (no {LOG_FILE}); choose another place with --models"
        ) from None
    if former != base:
        raise TrainingError(f"{place}: was trained from {former}, not from {base}; choose another place with --models")
