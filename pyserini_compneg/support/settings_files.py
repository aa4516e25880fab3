"""Settings files: YAML, checked against a pydantic model. Errors are one line with the file, the key and the fault.

Importing this module loads pydantic, so only modules that describe a settings file import it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.terminal import shown, suggestion

ModelT = TypeVar("ModelT", bound="Settings")

_LARGEST_SIZE = 1_000_000

_WANTED = {
    "model_type": "keys and values",
    "dict_type": "keys and values",
    "string_type": "a text",
    "tuple_type": "a list, such as [a, b]",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_too_short": "a text",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "float_type": "a number",
    "too_short": "a list of at least {min_length}",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number from {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number up to {le}",
}
"""The expected value in plain words, by pydantic's name of the fault. Pydantic's messages use terms of JSON Schema."""


class Settings(BaseModel):
    """A mapping of a settings file. Types are not converted. Infinities and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def settings_text(path: str | Path, error: type[CompNegError]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise error("cannot be read: not UTF-8 text", where=path) from None
    except OSError as cause:
        raise error(f"cannot be read: {reason_of(cause)}", where=path) from None


def read_settings(path: str | Path, model: type[ModelT], error: type[CompNegError]) -> ModelT:
    return parse_settings(settings_text(path, error), str(path), model, error)


def parse_settings(text: str, source: str, model: type[ModelT], error: type[CompNegError]) -> ModelT:
    try:
        # JSON refuses what YAML allows: sets, endless numbers, halves of characters, lists that contain themselves.
        content = json.dumps(yaml.load(text, _Loader), ensure_ascii=False).encode()  # noqa: S506  # it is a SafeLoader
    except yaml.MarkedYAMLError as cause:
        line = f":{cause.problem_mark.line + 1}" if cause.problem_mark else ""
        raise error(f"not valid YAML: {cause.problem}", where=f"{source}{line}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as cause:
        reason = "nested too deeply" if isinstance(cause, RecursionError) else " ".join(str(cause).split())[:200]
        raise error(f"not valid YAML: {reason}", where=source) from None
    try:
        return model.model_validate_json(content)
    except ValidationError as cause:
        raise error(first_fault(cause.errors(include_url=False), model), where=source) from None


def first_fault(faults: Sequence[Mapping[str, Any]], model: type[BaseModel] | None = None) -> str:
    """The first fault in one sentence, such as ``sections[0].rows[1].name: expected a text, got 7``."""
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    keys = [
        part for part in fault["loc"] if not str(part).startswith("function-")
    ]  # these parts only name pydantic's attempts
    *parents, last = keys or [""]
    if fault["type"] == "extra_forbidden":
        known = _model_at(model, parents).model_fields if model else []
        listed = f"; known are {', '.join(known)}" if known else ""
        said = f"unknown key {shown(last)}{suggestion(str(last), known) or listed}"
    elif fault["type"] == "missing":
        said = f"the key {last!r} is missing"
    elif fault["type"] == "value_error":
        parents, said = [*parents, *([] if last == "" else [last])], str(fault["ctx"]["error"])
    else:
        wanted = _WANTED.get(fault["type"], fault["msg"].removeprefix("Input should be "))
        value = "nothing" if fault["input"] is None else shown(fault["input"])
        said = f"expected {wanted.format(**fault.get('ctx', {}))}, got {value}"
        parents += (
            [last] if last not in ("int", "float", "") else []
        )  # pydantic adds the kinds of numbers that it tried
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parents).removeprefix(".")
    return f"{key}: {said}" if key else said


def _model_at(model: type[BaseModel], keys: Sequence[str | int]) -> type[BaseModel]:
    """The model of the mapping at a path of keys in a file."""
    rest = iter(keys)
    for key in rest:
        if isinstance(key, str):
            types = [model.model_fields[key].annotation]
            if get_origin(types[0]) is dict:
                next(rest)  # skip the key of the mapping
            while not (isinstance(types[-1], type) and issubclass(types[-1], BaseModel)):
                is_annotated = get_origin(types[-1]) is Annotated
                types[-1:] = get_args(types[-1])[: 1 if is_annotated else None]
            model = types[-1]
    return model


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Reads plain values as in YAML 1.2, so ``no`` and ``1_000`` are texts. Keys are texts and may not be repeated.

    Content counts each time that an alias repeats it. Otherwise a few lines of nested aliases would fill the memory.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._size = 0
        self._anchored = dict[str, int]()

    def compose_node(self, parent: Any, index: Any) -> Any:
        event, before = self.peek_event(), self._size
        if getattr(event, "tag", None) is not None:
            said = f"the tag {event.tag.replace(_TAG, '!!'):.60}; write values plainly, and texts in quotes"
            raise yaml.composer.ComposerError(None, None, said, event.start_mark)
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            self._size += self._anchored.get(event.anchor, 0)
        else:
            self._size += 1 + len(node.value)
            self._anchored[event.anchor] = self._size - before
        if self._size > _LARGEST_SIZE:
            said = f"more than {_LARGEST_SIZE:,} values and characters, those that aliases repeat included"
            raise yaml.composer.ComposerError(None, None, said, event.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node, names = super().compose_mapping_node(anchor), set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise yaml.composer.ComposerError(None, None, f"{key.value} is given twice", key.start_mark)
                names.add(key.value)
                key.tag = key.tag if key.tag == _MERGE else self.DEFAULT_SCALAR_TAG
        return node


def _whole(_: _Loader, node: Any) -> int:
    if (value := whole_number(node.value)) is None:
        raise yaml.constructor.ConstructorError(None, None, "a number of thousands of digits", node.start_mark)
    return value


_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
for _kind, _form, _first in (
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(rf"(?:{_form})\Z"), _first)
_Loader.add_constructor(f"{_TAG}int", _whole)
