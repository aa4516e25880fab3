"""The methods that protocols compare, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.reproduce.methods.composed import Composed, Guarded
from pyserini_compneg.reproduce.methods.filtering import Filtering
from pyserini_compneg.reproduce.methods.fusion import ScaledScoreFusion, ScoreFusion
from pyserini_compneg.reproduce.methods.method import ComposingMethod, Context, Method
from pyserini_compneg.reproduce.methods.two_step import TwoStep

DENSE = "dense"
"""The method that has an encoder of its own, ``DenseMethod`` of ``reproduce.dense``."""

METHODS: Mapping[str, Callable[[Context, Mapping[str, Any]], Method]] = {
    "operators": Composed,
    "guarded": Guarded,
    "score-fusion": ScoreFusion,
    "score-fusion-scaled": ScaledScoreFusion,
    "filtering": Filtering,
    "two-step": TwoStep,
}

__all__ = ["DENSE", "METHODS", "ComposingMethod", "Context", "Method", "make_method"]


def make_method(name: str, settings: Mapping[str, Any], context: Context) -> Method:
    """Makes a method.

    Args:
        name: One of ``METHODS``.
        settings: What it is told.
        context: What it works with.

    Raises:
        ProtocolError: No such method, or a setting that it does not have.
    """
    if name not in METHODS:
        raise ProtocolError(f"no method {name!r}; expected one of {', '.join((*METHODS, DENSE))}")
    return METHODS[name](context, settings)
