"""Recipes: configurations that come with the package, for the paper's tables of training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.train.config import TrainConfig
from pyserini_compneg.train.config_file import read_config

_FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """The names of the recipes."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def named_config(name: str) -> TrainConfig:
    """The configuration of a file or a recipe.

    Raises:
        TrainingError: Neither, or one that cannot be used.
    """
    return read_config(_file(name))


def recipe_text(name: str) -> str:
    """The YAML of a file or a recipe.

    Raises:
        TrainingError: Neither.
    """
    return _file(name).read_text(encoding="utf-8")


def located(config: TrainConfig, data: str | None = None, base: str | None = None) -> TrainConfig:
    """A configuration on a machine.

    Args:
        config: What to train.
        data: The folder that relative paths of datasets start from; None for the current one.
        base: The checkpoint to start from, instead of the configuration's.
    """
    root = Path(data or "")
    sources = tuple(replace(source, dataset=str(root / source.dataset)) for source in config.data)
    dev = replace(config.dev, dataset=str(root / config.dev.dataset)) if config.dev else None
    model = replace(config.model, base=base) if base else config.model
    return replace(config, data=sources, dev=dev, model=model)


def _file(name: str) -> Path:
    path, recipe = Path(name), _FOLDER / f"{name}.yaml"
    if path.is_file():
        return path
    if Path(name).name == name and recipe.is_file():
        return recipe
    raise TrainingError(f"{name}: neither a file nor a recipe; the recipes are: {', '.join(recipe_names())}")
