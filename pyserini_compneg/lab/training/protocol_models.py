"""Finds the models that the rows of a protocol name, or trains them on request."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyserini_compneg.lab.experiments.datasets import Dataset
from pyserini_compneg.lab.experiments.datasets.dataset import DOMAIN
from pyserini_compneg.lab.experiments.protocol import ProtocolPlan
from pyserini_compneg.lab.experiments.splits import reported_split, shared_queries
from pyserini_compneg.lab.training.config import LOG_FILE, SourceConfig, TrainConfig, moved_data, read_config
from pyserini_compneg.lab.training.training import train
from pyserini_compneg.support.errors import InputError

_DEPENDS_ON = ("model", "data", "dev", "training", "teacher")
_logger = logging.getLogger(__name__)


def find_models(
    protocol: ProtocolPlan, dataset: Dataset, folder: Path, split: str | None = None, domain: str | None = None
) -> dict[str, Path]:
    """The folders of existing models, by their names in rows. A warning names missing models.

    A model's folder has the name of its recipe or settings file: the first of the protocol's recipes whose splits the
    dataset has. With a domain, models are trained on its queries, and the domain is in the name of the folder. A
    warning names models that were trained with other settings, except another base.
    """
    reported = reported_split(protocol, dataset, split)
    fitting = _recipes(protocol, dataset, domain)
    places = {name: folder / _place(chosen[0], domain) for name, chosen in fitting.items() if chosen}
    if missing := [place.name for place in places.values() if not place.is_dir()]:
        listed = ", ".join(missing)
        _logger.warning("left out: rows of models that %s lacks: %s; --train trains them", folder, listed)
    if untrained := [name for name, chosen in fitting.items() if not chosen]:
        listed = ", ".join(map(repr, untrained))
        _logger.warning("left out: rows of models for which %s has no split to train on: %s", dataset.folder, listed)
    there = {name: place for name, place in places.items() if place.is_dir()}
    configs = {name: chosen[1] for name, chosen in fitting.items() if chosen and name in there}
    _check_apart(protocol, dataset, reported, configs.values())
    for name, place in there.items():
        if difference := _difference(place, _on(dataset.folder, configs[name], None), from_any_base=True):
            _logger.warning("%s: %s; rows show what is there", place, difference)
    return there


def train_models(
    protocol: ProtocolPlan,
    dataset: Dataset,
    folder: Path,
    base: str | None = None,
    dense_base: str | None = None,
    split: str | None = None,
    domain: str | None = None,
) -> dict[str, Path]:
    """Trains missing models on the dataset, or continues an interrupted training.

    ``base`` and ``dense_base`` are checkpoints from which sparse and dense models start instead of the recipes' bases.
    Returns the folders of all models, by their names in rows.
    """
    reported, configs = reported_split(protocol, dataset, split), {}
    for name, fitting in _recipes(protocol, dataset, domain).items():
        if fitting is None:
            there = ", ".join(dataset.splits)
            raise InputError(f"no split to train the model {name!r} on; there are: {there}", where=dataset.folder)
        recipe, config = fitting
        configs[name] = recipe, _on(dataset.folder, config, dense_base if config.model.is_dense else base)
    _check_apart(protocol, dataset, reported, [config for _, config in configs.values()])
    places = {name: folder / _place(recipe, domain) for name, (recipe, _) in configs.items()}
    for name, (recipe, config) in configs.items():
        if not places[name].exists():
            _logger.info("training %s", recipe)
            train(config, places[name], existing="resume")
        elif difference := _difference(places[name], config):
            raise InputError(difference, where=places[name], remedy="choose another place with --models")
    return places


def _on(folder: Path | None, config: TrainConfig, base: str | None) -> TrainConfig:
    """The recipe with another dataset and base. None keeps the recipe's own."""
    return moved_data(config, lambda dataset: (folder or Path(dataset)).resolve(), base)


def _check_apart(protocol: ProtocolPlan, dataset: Dataset, reported: str, configs: Iterable[TrainConfig]) -> None:
    """Refuses models that are trained on queries of the report."""
    for other in sorted(set[str]().union(*map(_splits, configs))):
        if count := shared_queries(dataset, other, reported):
            fault = f"models of protocol {protocol.name} are trained with {other}, which shares {count} queries with "
            raise InputError(
                fault + reported,
                where=dataset.folder,
                remedy="report another split with --split, or others with --domains",
            )


def _splits(config: TrainConfig) -> set[str]:
    """The splits of the examples, and the split that chooses the checkpoint."""
    return {source.split or "" for source in config.data} | ({config.dev.split} if config.dev else set())


def _place(recipe: str, domain: str | None) -> str:
    return Path(recipe).stem + (f"-{domain}" if domain else "")


def _recipes(protocol: ProtocolPlan, dataset: Dataset, domain: str | None) -> dict[str, tuple[str, TrainConfig] | None]:
    """The recipe of each model that rows name, with the recipe's settings; None if the dataset fits no recipe."""
    named = {row.model for section in protocol.sections for row in section.rows}
    found = {name: _fitting(recipes, dataset) for name, recipes in protocol.models.items() if name in named}
    if domain is None:
        return found
    return {name: chosen and (chosen[0], _of_domain(chosen[1], domain)) for name, chosen in found.items()}


def _of_domain(config: TrainConfig, domain: str) -> TrainConfig:
    """The settings with a domain's queries in place of the queries for training, all of them or the atomic ones."""

    def split(source: SourceConfig) -> str | None:
        whole = (source.split or "").removesuffix("-nc")
        is_training = whole in ("train", "train_aug", f"{DOMAIN}train")
        return (source.split or "").replace(whole, f"{DOMAIN}{domain}", 1) if is_training else source.split

    data = tuple(source.model_copy(update={"split": split(source)}) for source in config.data)
    return config.model_copy(update={"data": data})


def _fitting(recipes: Sequence[str], dataset: Dataset) -> tuple[str, TrainConfig] | None:
    for recipe in recipes:
        config = read_config(recipe)
        if not isinstance(config, TrainConfig):
            fault = "trains no encoder, so it cannot be a model of a protocol"
            raise InputError(fault, where=recipe, remedy="name another recipe")
        if _splits(config) <= {*dataset.splits}:
            return recipe, config
    return None


def _difference(place: Path, config: TrainConfig, from_any_base: bool = False) -> str:
    """The difference between an existing model and a model trained with these settings, or an empty text."""
    try:
        log = json.loads((place / LOG_FILE).read_text(encoding="utf-8"))
        former = TrainConfig.model_validate_json(json.dumps(log["config"]))
        former = _on(None, former, config.model.base if from_any_base else None)
    except (OSError, ValueError, KeyError, TypeError):
        return f"is not a model that was trained here (no {LOG_FILE})"
    changed = [name for name in _DEPENDS_ON if getattr(former, name) != getattr(config, name)]
    return f"was trained with other settings ({', '.join(changed)})" if changed else ""
