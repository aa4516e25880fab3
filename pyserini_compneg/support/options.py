"""Options as fields of frozen dataclasses: a field gives its flag, its default, its help and its check."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Container, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any

from pyserini_compneg.support.arguments import finite_number, whole_number
from pyserini_compneg.support.errors import ArgumentError, CompNegError
from pyserini_compneg.support.progress import warn_once
from pyserini_compneg.support.terminal import shown


@dataclass(frozen=True, slots=True)
class Number:
    """A kind of numbers. It can be the ``type`` of a flag."""

    what: str
    parse: Callable[[str], float | None]
    fits: Callable[[float], bool] = lambda _: True

    def __call__(self, text: str) -> float:
        if (value := self.parse(text)) is None or not self.fits(value):
            raise argparse.ArgumentTypeError(f"must be {self.what}, got {text}")
        return value

    def has(self, value: object) -> bool:
        """Whether a Python value is such a number. Booleans, texts and numpy scalars are not."""
        numbers = int if self.parse is whole_number else (int, float)
        return isinstance(value, numbers) and not isinstance(value, bool) and self.fits(value)


WHOLE = Number("a whole number", whole_number)
NOT_BELOW_0 = Number("a whole number from 0", whole_number, lambda value: value >= 0)
COUNT = Number("a whole number from 1", whole_number, lambda value: value >= 1)
FINITE = Number("a finite number", finite_number, lambda value: abs(value) < float("inf"))
POSITIVE = Number("a finite number above 0", finite_number, lambda value: 0 < value < float("inf"))
FACTOR = Number("a finite number from 1", finite_number, lambda value: 1 <= value < float("inf"))
SHARE = Number("0, or a number from 1e-06 to 1e+06", finite_number, lambda value: value == 0 or 1e-6 <= value <= 1e6)
PART = Number("a number above 0 and at most 1", finite_number, lambda value: 0 < value <= 1)
NOT_NEGATIVE = Number("a finite number from 0", finite_number, lambda value: 0 <= value < float("inf"))


def option(
    default: Any,
    help: str,
    number: Number | None = None,
    *,
    choices: Collection[Any] = (),
    metavar: str | None = None,
    replaced: Mapping[str, str] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Any:
    """Makes a field of a settings dataclass. A ``bool`` default makes a flag without a value.

    The choices True and False make a flag with an opposite: ``--reorder`` and ``--no-reorder``.

    An option with choices and a kind of number takes one of the choices or a number of this kind. ``replaced`` maps
    choices of earlier releases to the choices that replace them, for messages. ``renamed`` maps former names of choices
    to their names. Former names are accepted with a warning.
    """
    about = {"help": help, "number": number, "choices": choices, "metavar": metavar}
    return field(default=default, metadata=about | {"replaced": replaced, "renamed": renamed})


def check_options(settings: Any, error: type[CompNegError] = ArgumentError) -> None:
    """Refuses, in ``__post_init__``, a value that is neither a choice nor of the option's kind of number.

    A former name of a choice becomes its name.
    """
    for one in fields(settings):
        value = getattr(settings, one.name)
        if (value is None and one.default is None) or "choices" not in one.metadata:
            continue
        if (name := _current_name(one, value)) is not value:
            object.__setattr__(settings, one.name, value := name)
        number, choices = one.metadata.get("number"), one.metadata["choices"]
        if (number or choices) and not (value in choices or (number and number.has(value))):
            raise error(f"{one.name} {_fault(one.metadata, value, shown(value))}")


def _current_name(option: Field[Any], value: Any) -> Any:
    """The value, or the name of a choice whose former name it is. Warns of a former name."""
    renamed = option.metadata.get("renamed") or {}
    if not isinstance(value, str) or value not in renamed:
        return value
    warn_once(f"{option.name} {value} is now {renamed[value]}")
    return renamed[value]


def _fault(option: Mapping[str, Any], value: object, named: str) -> str:
    """What is wrong with a value, which the message shows as ``named``."""
    number, choices = option.get("number"), option["choices"]
    expected = [f"one of {', '.join(map(str, choices))}"] if choices else []
    said = f"must be {', or '.join([*expected, number.what] if number else expected)}, got {named}"
    new = (option.get("replaced") or {}).get(value) if isinstance(value, str) else None
    return f"{said}; {new} replaces it" if new else said


def add_flags(flags: argparse._ActionsContainer, settings: type, only: Container[str] | None = None) -> None:
    """Adds a flag for each option, or for the options in ``only``. A flag that is not given is None."""
    for one in fields(settings):
        if "help" not in one.metadata or (only is not None and one.name not in only):
            continue
        name = f"--{one.name.replace('_', '-')}"
        help, number, choices, metavar = (one.metadata[key] for key in ("help", "number", "choices", "metavar"))
        if isinstance(one.default, bool):
            flags.add_argument(name, action="store_true", default=None, help=help)
        elif True in choices:
            flags.add_argument(name, action=argparse.BooleanOptionalAction, help=help)
        elif number is None:
            flags.add_argument(
                name, type=partial(_current_name, one), choices=choices or None, metavar=metavar, help=help
            )
        else:
            metavar = metavar or ("N" if number.parse is whole_number else "X")
            flags.add_argument(name, type=_parser(one.metadata), metavar=metavar, help=help)


def _parser(option: Mapping[str, Any]) -> Callable[[str], str | float]:
    number: Number = option["number"]
    if not option["choices"]:
        return number

    def parse(text: str) -> str | float:
        with suppress(argparse.ArgumentTypeError):
            return text if text in option["choices"] else number(text)
        raise argparse.ArgumentTypeError(_fault(option, text, text))

    return parse


def given_options(settings: type, args: argparse.Namespace) -> dict[str, Any]:
    values = {one.name: getattr(args, one.name, None) for one in fields(settings)}
    return {name: value for name, value in values.items() if value is not None}
