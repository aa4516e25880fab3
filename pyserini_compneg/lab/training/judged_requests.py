"""Requests in plain words with their correct reading, and the comparison of readings with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field, ValidationError, model_validator

from pyserini_compneg.expression import Difference, Expression, Intersection, Union
from pyserini_compneg.lab.training.tagged_requests import FUNCTION_WORDS, TaggedRequest
from pyserini_compneg.reading import TAGS, Decomposition, tagged_reading, words_of
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.settings_files import Settings, first_fault
from pyserini_compneg.support.terminal import shown

Kind = Literal["exclusion", "union", "intersection", "combined", "whole", "plain"]
"""The kinds of judged requests. The last two exclude and join nothing; ``whole`` has words that seem to."""

KINDS: tuple[str, ...] = get_args(Kind)

_Words = Annotated[str, Field(pattern=r"\S")]


class JudgedRequest(Settings, extra="ignore"):
    """A request and its meaning: the wanted and excluded words of the request, and how the wanted parts are joined."""

    kind: Kind
    query: _Words
    wanted: Annotated[list[_Words], Field(min_length=1)]
    excluded: list[_Words]
    wanted_op: Literal["single", "or", "and"]

    @model_validator(mode="after")
    def _is_in_its_words(self) -> JudgedRequest:
        if not self.query.strip():
            raise ValueError("the query is blank")
        if lost := [words for words in (*self.wanted, *self.excluded) if words not in self.query]:
            raise ValueError(f"{shown(lost[0])} is not in the query")
        return self


def judged_by_tags(request: TaggedRequest) -> JudgedRequest:
    """What a tagged request asks for.

    >>> from pyserini_compneg.lab.training.tagged_requests import parse_request
    >>> judged_by_tags(parse_request("[W spy] [OR or] [W war] [S films], no [X comedies]", "line 1"))
    JudgedRequest(kind='combined', query='spy or war films, no comedies', wanted=['spy films', 'war films'], \
excluded=['comedies'], wanted_op='or')
    """
    reading = tagged_reading(request.text, [TAGS[tag] for tag in request.tags(words_of(request.text))])
    parts = {side: [part.text for part in reading.parts if part.excluded == side] for side in (False, True)}
    joins = [name for name, kind in (("or", Union), ("and", Intersection)) if _has(reading.expression, kind)]
    kind = "combined" if joins else "exclusion"
    if not parts[True]:
        kind = {"or": "union", "and": "intersection"}[joins[0]] if joins else "whole"
    return JudgedRequest.model_construct(  # without its checks, as parts may be in pieces
        kind=kind,
        query=request.text,
        wanted=parts[False],
        excluded=parts[True],
        wanted_op=(*joins, "single")[0],
    )


def read_judged(path: str | Path) -> list[JudgedRequest]:
    judged = []
    for line, record in iter_jsonl(path):
        try:
            judged.append(JudgedRequest.model_validate(record))
        except ValidationError as cause:
            raise InputError(first_fault(cause.errors(include_url=False)), where=f"{path}:{line}") from None
    if not judged:
        raise InputError("no request in it", where=path)
    return judged


class _RequestScore(NamedTuple):
    """Which parts of a reading are right."""

    excluded: bool
    """Whether the excluded content words are right."""

    joined: bool
    """Whether the operator is right: a union, an intersection, or neither."""

    whole: bool
    """Whether both are right and no wanted word is missing."""


def request_score(request: JudgedRequest, reading: Decomposition) -> _RequestScore:
    excluded = _content(part.text for part in reading.parts if part.excluded)
    has_union, has_intersection = _has(reading.expression, Union), _has(reading.expression, Intersection)
    joined = {"or": has_union, "and": has_intersection}.get(request.wanted_op, not (has_union or has_intersection))
    if request.kind == "exclusion" and request.wanted_op == "and":  # one wanted part, split by an exclusion
        joined = not has_union
    if request.kind in ("whole", "plain"):
        return _RequestScore(not excluded, joined, joined and not excluded)
    kept = _content(part.text for part in reading.parts if not part.excluded)
    right = excluded == _content(request.excluded)
    return _RequestScore(right, joined, right and joined and _content(request.wanted) <= kept)


def _has(expression: Expression, kind: type[Union | Intersection]) -> bool:
    while isinstance(expression, Difference):
        expression = expression.left
    if isinstance(expression, kind):
        return True
    return isinstance(expression, Union | Intersection) and any(_has(one, kind) for one in expression.operands)


def _content(texts: Iterable[str]) -> frozenset[str]:
    words = {word for text in texts for word in re.findall(r"\w+", text.lower().replace("’", "'"))}
    return frozenset(words - FUNCTION_WORDS)


def refuse_common(requests: Sequence[TaggedRequest], judged: Sequence[JudgedRequest]) -> None:
    """Refuses judged requests that are also trained on."""
    trained = {_plain(request.text) for request in requests}
    if common := next((request.query for request in judged if _plain(request.query) in trained), None):
        fault = f"the judged request {shown(common)} is among the tagged ones"
        raise InputError(fault, remedy="take it out of them")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
