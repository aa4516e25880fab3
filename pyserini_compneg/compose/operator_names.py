"""The names of operators, and operators of users: functions of vectors, from Python or from an installed package."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pyserini_compneg.support.errors import QueryError, in_one_line
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import checked, is_number

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

VectorOperator: TypeAlias = Callable[..., dict[str, float]]
Operator: TypeAlias = str | VectorOperator
"""The name of an operator, or a function as in ``VECTOR_UNIONS`` and ``VECTOR_DIFFERENCES``."""

GROUP = "pyserini_compneg.operators"
"""The entry points of operators, each named by its kind and its name, such as ``difference.halved``."""


@dataclass(frozen=True, slots=True)
class OperatorKind(Collection[str]):
    """The operators of union, intersection or difference: the choices of an option.

    Entry points are read only for a name that is not one of ``names``, or to list all names.
    """

    kind: str
    names: tuple[str, ...]
    functions: Mapping[str, VectorOperator]
    """The named operators that work on vectors."""

    def __contains__(self, operator: object) -> bool:
        if isinstance(operator, str):
            return operator in self.names or operator in _installed(self.kind)
        return callable(operator)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.names, *_installed(self.kind))))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # without a look at the entry points

    def function(self, operator: Operator) -> VectorOperator | None:
        """The function of an operator that works on vectors. The result of a user's function is checked."""
        if isinstance(operator, str) and operator in self.names:
            return self.functions.get(operator)
        function, place = self._own(operator), f"{self.kind} {operator_name(operator)}"

        def checked_function(*arguments: Any) -> dict[str, float]:
            vector: object = function(*arguments)
            if not isinstance(vector, Mapping):
                raise QueryError(f"must give a dictionary of terms and weights, got {shown(vector)}", where=place)
            return checked(vector, place)

        return checked_function

    def strength(self, operator: Operator, known: Mapping[str, float]) -> float | None:
        """The default λ: of ``known`` or, of a user's function, the default of its third argument, or 1. None if none.

        >>> OperatorKind("difference", (), {}).strength(lambda a, negatives, weight=0.5: a, {})
        0.5
        """
        if isinstance(operator, str) and operator in self.names:
            return known.get(operator)
        third = [*inspect.signature(self._own(operator)).parameters.values()][2:3]
        default = third[0].default if third else inspect.Parameter.empty
        if default is inspect.Parameter.empty:
            return 1.0
        if not is_number(default) or not math.isfinite(default):
            place = f"{self.kind} {operator_name(operator)}"
            raise QueryError(f"the default of its third argument must be a finite number, got {default!r}", where=place)
        return float(default)

    def _own(self, operator: Operator) -> VectorOperator:
        """The function of a user, which takes a vector, a list of vectors and λ, or a list of vectors alone."""
        function = self._loaded(operator) if isinstance(operator, str) else operator
        count = 3 if self.kind == "difference" else 1
        arguments = "argument" if count == 1 else "arguments"
        what, place = f"cannot be called with {count} {arguments}", f"{self.kind} {operator_name(operator)}"
        with in_one_line(QueryError, what, where=place):
            inspect.signature(function).bind(*[None] * count)
        return function

    def _loaded(self, operator: str) -> VectorOperator:
        entry = _installed(self.kind)[operator]
        with in_one_line(QueryError, f"cannot be loaded from {entry.value}", where=f"{self.kind} {operator}"):
            function: VectorOperator = entry.load()
        if not callable(function):
            raise QueryError(
                f"{entry.value} must be a function, got {shown(function)}", where=f"{self.kind} {operator}"
            )
        return function


def operator_name(operator: Operator) -> str:
    """The name of an operator for people."""
    return operator if isinstance(operator, str) else getattr(operator, "__name__", type(operator).__name__)


@cache
def _installed(kind: str) -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow, and few users have operators of their own

    found = (one for one in entry_points(group=GROUP) if one.name.startswith(f"{kind}."))
    return {one.name.removeprefix(f"{kind}."): one for one in found}
