"""Composed queries as JSON: ``{"vector": …}`` for one linear leaf, else ``{"score": tree}``.

A product of n operands states its ``power`` unless it is 1/n, and its ``root`` and ``weight`` unless they are 1. A
damped score is ``{"damped": tree, "excluded": [vector or product, …], "best": [score, …], "weight": λ}``. A score that
excludes documents is ``{"excluding": tree, "excluded": [vector, product or filter, …], "above": [limit, …]}``. To
require terms, the same object has ``"required": [vector, …]``; then ``excluded`` may be left out. A query for all
documents is ``{"all": true}``.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from pyserini_compneg.compose.scoring import All, Combination, Damped, Excluding, Linear, Product, ScoringNode
from pyserini_compneg.compose.trees import is_open
from pyserini_compneg.expression import MAX_DEPTH, Filter
from pyserini_compneg.support.errors import ArgumentError, QueryError
from pyserini_compneg.support.vectors import SparseVector

_written = json.JSONEncoder(ensure_ascii=False).encode

_DEFAULT_SETTINGS = {"power": None, "root": 1, "weight": 1}

_COMBINATIONS = {kind.key: kind for kind in get_args(ScoringNode) if issubclass(kind, Combination)}
"""The kinds that are written as a list of children, by the key of the list."""

_KINDS = {
    "product": ("a product", (), ("power", "root", "weight")),
    "damped": ("a damped score", ("excluded", "best", "weight"), ("floor",)),
    "excluding": ("what excludes", ("excluded", "above"), ("required",)),
    "vector": ("a vector", (), ()),
    **{key: (kind.called, (), ()) for key, kind in _COMBINATIONS.items()},
    "filter": ("a filter", (), ()),
}
"""For each key that identifies a kind of object: the kind's name in messages, its other keys, and its optional keys."""

_SCORE, _OPERAND, _EXCLUDED, _REQUIRED = (
    ("a score", ("vector", "product", *_COMBINATIONS, "damped", "excluding")),
    ("an operand of a product", ("vector",)),
    ("an excluded part", ("vector", "product", "damped", "filter")),
    ("a required part", ("vector",)),
)
"""The kinds of objects that are allowed in a place."""


def to_json(node: ScoringNode) -> dict[str, Any]:
    """The fields that represent a composed query in a JSON line.

    >>> to_json(Linear({"birds": 2.0, "parrots": -0.5}))
    {'vector': {'birds': 2, 'parrots': -0.5}}
    >>> to_json(Product(({"birds": 2.0}, {"andes": 1.0})))
    {'score': {'product': [{'vector': {'birds': 2}}, {'vector': {'andes': 1}}]}}
    """
    return _vector(node.weights) if isinstance(node, Linear) else {"score": _tree(node)}


def query_line(node: ScoringNode) -> str:
    """A composed query as one line of JSON, the form in which an index takes it.

    >>> query_line(Linear({"é": 2.0}))
    '{"vector": {"é": 2}}'
    """
    return _written(to_json(node))


def composed_line(qid: str, contents: str, node: ScoringNode, extra: Mapping[str, Any] | None = None) -> str:
    """A composed query as one line of JSON, without a line end.

    Args:
        qid: The query's id.
        contents: The expression, for people.
        node: The composed query.
        extra: Further fields.

    >>> composed_line("7", "birds NOT parrots", Linear({"birds": 2.0, "parrots": -1.0}))
    '{"id": "7", "contents": "birds NOT parrots", "vector": {"birds": 2, "parrots": -1}}'
    """
    return json.dumps({"id": qid, "contents": contents, **to_json(node), **(extra or {})}, ensure_ascii=False)


def from_json(value: object, source: str) -> ScoringNode:
    """Reads a scoring tree from a value that ``json.loads`` returned. Zero weights are dropped.

    Args:
        value: ``{"vector": …}``, or the value of ``score``.
        source: The origin of the value, for the message.

    Raises:
        QueryError: The value has another shape, or a weight that its node does not allow. The message holds the path
            inside the value.

    >>> from_json({"max": [{"vector": {"birds": 2}}, {"vector": {"bats": 1}}]}, "queries.jsonl:1")
    Max(children=(Linear(weights={'birds': 2.0}), Linear(weights={'bats': 1.0})))
    """
    if value == {"all": True}:
        return All()
    try:
        node: ScoringNode = _read(value, "$", 1)
    except QueryError as error:
        raise error.at(source) from None
    return node


def _tree(node: ScoringNode | Filter) -> dict[str, Any]:
    if not isinstance(node, Filter) and is_open(node):
        raise QueryError("lacks the best scores of what it excludes", remedy="compose it for an index")
    match node:
        case Filter():
            return {"filter": node.to_json()}
        case All():
            return {"all": True}
        case Linear(weights):
            return _vector(weights)
        case Product(operands):
            settings = {name: getattr(node, name) for name in _DEFAULT_SETTINGS}
            given = {name: _number(value) for name, value in settings.items() if value != _DEFAULT_SETTINGS[name]}
            return {"product": [_vector(operand) for operand in operands], **given}
        case Combination(children):
            return {node.key: [_tree(child) for child in children]}
        case Damped(child, excluded, best, weight, floor):
            parts = {"excluded": [_tree(part) for part in excluded], "best": [_number(score) for score in best]}
            last = {"floor": _number(floor)} if floor else {}
            return {"damped": _tree(child), **parts, "weight": _number(weight), **last}
        case Excluding(child, excluded, above, required):
            lists = {"excluded": [*map(_tree, excluded)], "above": [*map(_number, above)]}
            lists["required"] = [*map(_tree, required)]
            return {"excluding": _tree(child), **{name: parts for name, parts in lists.items() if parts}}


def _vector(weights: SparseVector) -> dict[str, Any]:
    """Writes whole numbers without a fraction, because stock Anserini takes only those."""
    return {"vector": dict(zip(weights, map(_number, weights.values()), strict=True))}


def _number(number: float) -> float:
    whole = int(number)
    return whole if number == whole else number


def _read(value: object, path: str, level: int, place: tuple[str, tuple[str, ...]] = _SCORE) -> Any:
    if level > MAX_DEPTH:
        raise QueryError(f"the score is more than {MAX_DEPTH} levels deep", remedy="flatten it")
    what, kinds = place
    kind = next((key for key in _KINDS if isinstance(value, Mapping) and key in value), "")
    if not isinstance(value, Mapping) or kind not in kinds:
        named = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        raise QueryError(f"{what} must be an object with {named}, got {reprlib.repr(value)}", where=path)
    _check_keys(value, kind, path)
    parts = partial(_parts, value, path, level + 1)
    if kind in _COMBINATIONS:
        return _COMBINATIONS[kind](parts(kind, "one or more scores"))
    match kind:
        case "vector":
            return _made(Linear, path, _weights(value["vector"], f"{path}.vector"))
        case "filter":
            return _made(Filter, f"{path}.filter", value["filter"])
        case "product":
            settings = {key: setting for key, setting in value.items() if key != kind}
            operands = _parts(value, path, level, kind, "two or more vectors", _OPERAND)
            return _made(Product, path, tuple(operand.weights for operand in operands), **settings)
    child = _read(value[kind], f"{path}.{kind}", level + 1)
    if kind == "damped":
        excluded = parts("excluded", "one or more vectors or products", _EXCLUDED)
        best = _list(value, path, "best", "one or more scores, of the excluded parts")
        return _made(Damped, path, child, excluded, tuple(best), value["weight"], value.get("floor", 0.0))
    required = parts("required", "one or more vectors", _REQUIRED) if "required" in value else ()
    if "excluded" not in value:
        return _made(Excluding, path, child, required=required)
    excluded = parts("excluded", "one or more vectors, products, filters", _EXCLUDED)
    limits = _list(value, path, "above", "limits, one for each excluded part")
    return _made(Excluding, path, child, excluded, tuple(limits), required)


def _check_keys(value: Mapping[str, Any], kind: str, path: str) -> None:
    what, others, optional = _KINDS[kind]
    needed = (kind, *others)
    lacking = set() if value.keys() == {"excluding", "required"} else set(needed) - value.keys()
    if wrong := sorted(lacking | (value.keys() - {*needed, *optional})):
        says = "has no" if wrong[0] in value else "needs"
        raise QueryError(f"{what} {says} {wrong[0]!r}, only {', '.join((*needed, *optional))}", where=path)
    if value.get("power", 1) is None:  # None means 1/n only in Python
        raise QueryError("expected a number, got nothing", where=f"{path}.power", remedy="without the key it is 1/n")


def _made(kind: type[ScoringNode | Filter], path: str, *arguments: Any, **settings: Any) -> ScoringNode | Filter:
    """Constructs an object. If its constructor refuses, the error names the path inside the JSON value."""
    try:
        return kind(*arguments, **settings)
    except (QueryError, ArgumentError) as error:
        where = f"{path}.{error.where}" if error.where else path
        raise QueryError(error.what, where=where, remedy=error.remedy) from None


def _parts(
    value: Mapping[str, Any],
    path: str,
    level: int,
    key: str,
    expected: str,
    place: tuple[str, tuple[str, ...]] = _SCORE,
) -> tuple[Any, ...]:
    """The items of a list in an object."""
    listed = enumerate(_list(value, path, key, expected))
    return tuple(_read(part, f"{path}.{key}[{i}]", level, place) for i, part in listed)


def _weights(value: object, path: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise QueryError(f"expected an object of terms and weights, got {reprlib.repr(value)}", where=path)
    return value


def _list(value: Mapping[str, Any], path: str, key: str, expected: str) -> list[Any]:
    listed = value[key]
    if not isinstance(listed, list) or len(listed) < (2 if expected.startswith("two") else 1):
        raise QueryError(f"expected a list of {expected}, got {reprlib.repr(listed)}", where=f"{path}.{key}")
    return listed
