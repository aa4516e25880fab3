"""Reads the settings of trainings: files, and recipes, which come with the package for the paper's tables.

A file of the folder ``recipes`` has two YAML documents: the recipes with their values, and the settings they share,
where ``$name`` stands for a value.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template

from pyserini_compneg.lab.training.config import AnyConfig, ReaderTrainConfig, TrainConfig
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.settings_files import parse_settings, settings_text

_FOLDER = Path(__file__).parent / "recipes"
_READER = re.compile(r"""^\s*\{?\s*["']?reader["']?\s*:""", re.MULTILINE)
"""The section of a settings file that only readers have."""


def recipe_names() -> list[str]:
    """The names of the recipes."""
    return sorted(_recipes())


def read_config(name: str | Path) -> AnyConfig:
    """Reads the settings of a training.

    Args:
        name: A YAML file, or the name of a recipe.

    Raises:
        InputError: Neither a file nor a recipe, a file that cannot be read, or a setting that is unknown, missing
            or not allowed; the message starts with the name.
    """
    text = recipe_text(name)
    if _READER.search(text):
        return parse_settings(text, str(name), ReaderTrainConfig, InputError)
    return parse_settings(text, str(name), TrainConfig, InputError)


def recipe_text(name: str | Path) -> str:
    """The YAML of a file or a recipe.

    Raises:
        InputError: Neither a file nor a recipe, or a file that cannot be read.
    """
    if Path(name).is_file():
        return settings_text(name, InputError)
    if str(name) not in _recipes():
        raise InputError(f"{name}: neither a file nor a recipe; the recipes are: {', '.join(recipe_names())}")
    return _recipes()[str(name)]


def located(
    config: AnyConfig, data: str | None = None, base: str | None = None, teacher: str | None = None
) -> AnyConfig:
    """Settings with the paths of a machine.

    Args:
        config: The settings.
        data: The folder that relative paths of datasets start from; None for the current one.
        base: The checkpoint to start from, instead of that of the settings.
        teacher: The teacher, instead of that of the settings.

    Raises:
        InputError: A teacher for settings that have none.
    """
    root = Path(data or "")
    if teacher and (isinstance(config, ReaderTrainConfig) or config.teacher is None):
        raise InputError("the settings have no teacher; leave --teacher out")
    if isinstance(config, ReaderTrainConfig):
        files = {
            name: tuple(str(root / path) for path in getattr(config.reader, name)) for name in ("requests", "judged")
        }
        reader = config.reader.model_copy(update={**files, "base": base or config.reader.base})
        return config.model_copy(update={"reader": reader})
    sources = tuple(source.model_copy(update={"dataset": str(root / source.dataset)}) for source in config.data)
    dev = config.dev and config.dev.model_copy(update={"dataset": str(root / config.dev.dataset)})
    model = config.model.model_copy(update={"base": base}) if base else config.model
    taught = config.teacher.model_copy(update={"model": teacher}) if teacher and config.teacher else config.teacher
    return config.model_copy(update={"data": sources, "dev": dev, "model": model, "teacher": taught})


@cache
def _recipes() -> dict[str, str]:
    import yaml

    texts = {}
    for path in _FOLDER.glob("*.yaml"):
        recipes, settings = path.read_text(encoding="utf-8").split("\n---\n")
        for name, values in yaml.safe_load(recipes).items():
            texts[name] = Template(settings).substitute(values)
    return texts
