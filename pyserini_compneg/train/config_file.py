"""A training's configuration from a YAML file, read strictly."""

from __future__ import annotations

import difflib
import math
import reprlib
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.train.config import TrainConfig


def read_config(path: str | Path) -> TrainConfig:
    """Reads a configuration.

    Raises:
        TrainingError: A file that cannot be read, a key that is unknown or missing, or a value of the wrong kind; the
            message starts with the path.
    """
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        twice = _key_given_twice(yaml.compose(text, yaml.SafeLoader))
        content = yaml.safe_load(text)
    except OSError as cause:
        raise TrainingError(f"{path}: cannot be read: {(cause.strerror or str(cause)).lower()}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as cause:  # such as no UTF-8, or a date of a 13th month
        raise TrainingError(f"{path}: no YAML: {' '.join(str(cause).split())[:200]}") from None
    if twice is not None:
        raise TrainingError(f"{path}: {twice} is given twice")
    try:
        config: TrainConfig = _value(TrainConfig, content, "")
        return config
    except TrainingError as cause:
        raise TrainingError(f"{path}: {cause}") from None


def _key_given_twice(root: Any) -> str | None:
    """A key that a mapping of YAML has twice; the last would be taken."""
    nodes = [root]
    seen = set()  # aliases make graphs of trees
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not isinstance(getattr(node, "value", None), list):
            continue
        seen.add(id(node))
        pairs = [pair for pair in node.value if isinstance(pair, tuple)]
        keys = [str(key.value) for key, _ in pairs]
        if len(set(keys)) < len(keys):
            return next(key for key in keys if keys.count(key) > 1)
        nodes.extend([value for _, value in pairs] or node.value)
    return None


def _value(kind: Any, value: Any, key: str) -> Any:
    """A value of YAML as what the configuration has in its place."""
    if get_origin(kind) in (Union, types.UnionType):
        options = [option for option in get_args(kind) if option is not type(None)]
        return None if value is None else _value(options[0], value, key)
    if get_origin(kind) is tuple:
        if not isinstance(value, list) or not value:
            raise TrainingError(f"{key} must be a list that is not empty, got {reprlib.repr(value):.60}")
        return tuple(_value(get_args(kind)[0], item, key) for item in value)
    if is_dataclass(kind):
        return _section(kind, value, key)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        hint = ""
        if kind is float and isinstance(value, str) and "e" in value.lower():
            hint = "; YAML wants a point in it, such as 2.0e-5"
        names = {str: "a text", int: "a whole number", float: "a finite number", bool: "true or false"}
        raise TrainingError(f"{key} must be {names[kind]}, got {reprlib.repr(value):.60}{hint}")
    return value


def _section(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise TrainingError(f"{key or 'the file'} must be a mapping, got {reprlib.repr(value):.60}")
    prefix = f"{key}." if key else ""
    known = {field.name: field for field in fields(kind)}
    for name in value:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            raise TrainingError(
                f"unknown key {prefix}{name}; "
                + (f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}")
            )
    hints = get_type_hints(kind)
    for name, field in known.items():
        if name not in value and field.default is MISSING:
            raise TrainingError(f"{prefix}{name} is missing")
    return kind(**{name: _value(hints[name], item, f"{prefix}{name}") for name, item in value.items()})
