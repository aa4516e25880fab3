"""Whether a reading says what a request asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pyserini_compneg.expression import Difference, Expression, Intersection, Union
from pyserini_compneg.lab.training.requests import FUNCTION_WORDS, JudgedRequest
from pyserini_compneg.reading.decomposition import Decomposition


class RequestScore(NamedTuple):
    """Which sides of a reading are right.

    Attributes:
        excluded: The content words that are excluded.
        joined: Whether there is a union, an intersection, or neither.
        whole: Both, and no word that is wanted is missing.
    """

    excluded: bool
    joined: bool
    whole: bool


def request_score(request: JudgedRequest, reading: Decomposition) -> RequestScore:
    """Compares a reading with what a request asks for."""
    excluded = _content(part.text for part in reading.parts if part.excluded)
    has_union, has_intersection = _has(reading.expression, Union), _has(reading.expression, Intersection)
    joined = {"or": has_union, "and": has_intersection}.get(request.joined, not (has_union or has_intersection))
    if request.kind == "exclusion" and request.joined == "and":  # one wish in pieces around an exclusion
        joined = not has_union
    if request.kind in ("whole", "plain"):
        return RequestScore(not excluded, joined, joined and not excluded)
    kept = _content(part.text for part in reading.parts if not part.excluded)
    right = excluded == _content(request.excluded)
    return RequestScore(right, joined, right and joined and _content(request.wanted) <= kept)


def _has(expression: Expression, kind: type[Union | Intersection]) -> bool:
    while isinstance(expression, Difference):
        expression = expression.left
    if isinstance(expression, kind):
        return True
    return isinstance(expression, Union | Intersection) and any(_has(one, kind) for one in expression.operands)


def _content(texts: Iterable[str]) -> frozenset[str]:
    words = {word for text in texts for word in re.findall(r"\w+", text.lower().replace("’", "'"))}
    return frozenset(words - FUNCTION_WORDS)
