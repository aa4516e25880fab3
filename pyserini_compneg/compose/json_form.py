"""Composed queries as JSON: ``{"vector": …}`` for one linear leaf, else ``{"score": tree}``.

A product of n operands gives its ``power`` unless it is 1/n, and its ``root`` and ``weight`` unless they are 1. A
damped score is ``{"damped": tree, "excluded": [vector or product, …], "best": [score, …], "weight": λ}``. Where
documents are excluded, it is ``{"excluding": tree, "excluded": [vector, product or filter, …], "above": [limit, …]}``.
Where documents must have terms, that gets ``"required": [vector, …]``, with which it needs no excluded part.
"""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections.abc import Mapping
from typing import Any

from pyserini_compneg.compose.scoring import Damped, Excluding, Linear, Max, Product, ScoringNode, Sum
from pyserini_compneg.expression import MAX_DEPTH, Filter
from pyserini_compneg.support.errors import ArgumentError, QueryError
from pyserini_compneg.support.vectors import SparseVector

_DEFAULT_SETTINGS = {"power": None, "root": 1, "weight": 1}


def to_json(node: ScoringNode) -> dict[str, Any]:
    """The fields that a composed query adds to its JSON line.

    >>> to_json(Linear({"birds": 2.0, "parrots": -0.5}))
    {'vector': {'birds': 2, 'parrots': -0.5}}
    >>> to_json(Product(({"birds": 2.0}, {"andes": 1.0})))
    {'score': {'product': [{'vector': {'birds': 2}}, {'vector': {'andes': 1}}]}}
    """
    return _vector(node.weights) if isinstance(node, Linear) else {"score": _tree(node)}


def query_line(node: ScoringNode) -> str:
    """A composed query as one line of JSON, as an index takes it.

    >>> query_line(Linear({"é": 2.0}))
    '{"vector": {"é": 2}}'
    """
    return json.dumps(to_json(node), ensure_ascii=False)


def composed_line(qid: str, contents: str, node: ScoringNode, extra: Mapping[str, Any] | None = None) -> str:
    """A composed query as one line of JSON, without the line's end.

    Args:
        qid: The query's id.
        contents: The expression, for people.
        node: What it became.
        extra: Further fields.

    >>> composed_line("7", "birds NOT parrots", Linear({"birds": 2.0, "parrots": -1.0}))
    '{"id": "7", "contents": "birds NOT parrots", "vector": {"birds": 2, "parrots": -1}}'
    """
    return json.dumps({"id": qid, "contents": contents, **to_json(node), **(extra or {})}, ensure_ascii=False)


def from_json(value: object, source: str) -> ScoringNode:
    """Reads a scoring tree that ``json.loads`` gave; zero weights are dropped.

    Args:
        value: ``{"vector": …}``, or the value of ``score``.
        source: Where it came from, for the message.

    Raises:
        QueryError: Any other shape, or a weight that no node takes. The message holds the path inside the value.

    >>> from_json({"max": [{"vector": {"birds": 2}}, {"vector": {"bats": 1}}]}, "queries.jsonl:1")
    Max(children=(Linear(weights={'birds': 2.0}), Linear(weights={'bats': 1.0})))
    """
    try:
        return _read(value, "$", 1)
    except QueryError as error:
        raise QueryError(f"{source}: {error}") from None


def _tree(node: ScoringNode) -> dict[str, Any]:
    match node:
        case Linear(weights):
            return _vector(weights)
        case Product(operands):
            return {"product": [_vector(operand) for operand in operands], **_settings(node)}
        case Max(children):
            return {"max": [_tree(child) for child in children]}
        case Sum(children):
            return {"sum": [_tree(child) for child in children]}
        case Damped(child, excluded, best, weight, floor):
            parts = {"excluded": [_tree(part) for part in excluded], "best": [_number(score) for score in best]}
            last = {"floor": _number(floor)} if floor else {}
            return {"damped": _tree(child), **parts, "weight": _number(weight), **last}
        case Excluding(child, excluded, above, required):
            left_out = [_filter(part) if isinstance(part, Filter) else _tree(part) for part in excluded]
            lists = {"excluded": left_out, "above": list(map(_number, above)), "required": list(map(_tree, required))}
            return {"excluding": _tree(child), **{name: parts for name, parts in lists.items() if parts}}


def _filter(part: Filter) -> dict[str, Any]:
    return {"filter": part.to_json()}


def _settings(product: Product) -> dict[str, float]:
    settings = {name: getattr(product, name) for name in _DEFAULT_SETTINGS}
    return {name: _number(value) for name, value in settings.items() if value != _DEFAULT_SETTINGS[name]}


def _vector(weights: SparseVector) -> dict[str, Any]:
    """Whole numbers are written as such: stock Anserini takes no others."""
    return {"vector": {term: _number(weight) for term, weight in weights.items()}}


def _number(number: float) -> float:
    return int(number) if number == int(number) else number


def _read(value: object, path: str, level: int) -> ScoringNode:
    if level > MAX_DEPTH:
        raise QueryError(f"the score is more than {MAX_DEPTH} levels deep; flatten it")
    if isinstance(value, Mapping) and "product" in value:
        return _read_product(value, path)
    if isinstance(value, Mapping) and "damped" in value:
        return _read_damped(value, path, level)
    if isinstance(value, Mapping) and "excluding" in value:
        return _read_excluding(value, path, level)
    kinds = "vector, product, max, sum, damped or excluding"
    kind, body = _only_item(value, ("vector", "max", "sum"), path, "a score", kinds)
    if kind == "vector":
        return _node(Linear, path, _weights(body, f"{path}.vector"))
    members = _members(body, f"{path}.{kind}", "one or more scores")
    children = tuple(_read(member, f"{path}.{kind}[{i}]", level + 1) for i, member in enumerate(members))
    return Max(children) if kind == "max" else Sum(children)


def _read_product(value: Mapping[str, Any], path: str) -> ScoringNode:
    settings = {key: setting for key, setting in value.items() if key != "product"}
    if unknown := [key for key in settings if key not in _DEFAULT_SETTINGS]:
        raise QueryError(f"{path}: a product has no {unknown[0]!r}, only product, power, root, weight")
    if "power" in settings and settings["power"] is None:  # which stands for 1/n in Python alone
        raise QueryError(f"{path}.power: expected a number, got nothing; without the key it is 1/n")
    operands = []
    for i, member in enumerate(_members(value["product"], f"{path}.product", "two or more vectors")):
        _, body = _only_item(member, ("vector",), f"{path}.product[{i}]", "an operand of a product", "vector")
        operands.append(_weights(body, f"{path}.product[{i}].vector"))
    return _node(Product, path, tuple(operands), **settings)


def _read_damped(value: Mapping[str, Any], path: str, level: int) -> ScoringNode:
    fields = {field.name for field in dataclasses.fields(Damped)} - {"child"} | {"damped"}
    if wrong := sorted(fields ^ {*value, "floor"}):
        what = "has no" if wrong[0] in value else "needs"
        said = f"a damped score {what} {wrong[0]!r}, only damped, excluded, best, weight, floor"
        raise QueryError(f"{path}: {said}")
    child = _read(value["damped"], f"{path}.damped", level + 1)
    excluded = _members(value["excluded"], f"{path}.excluded", "one or more vectors or products")
    best = _members(value["best"], f"{path}.best", "one or more scores, of the excluded parts")
    parts = tuple(_read_lowering(part, f"{path}.excluded[{i}]", level) for i, part in enumerate(excluded))
    return _node(Damped, path, child, parts, tuple(best), value["weight"], value.get("floor", 0.0))


def _read_excluding(value: Mapping[str, Any], path: str, level: int) -> ScoringNode:
    needed = {"excluding"} if value.keys() == {"excluding", "required"} else {"excluding", "excluded", "above"}
    if wrong := sorted(needed ^ (value.keys() - {"required"})):
        what = "has no" if wrong[0] in value else "needs"
        raise QueryError(f"{path}: what excludes {what} {wrong[0]!r}, only excluding, excluded, above, required")
    child = _read(value["excluding"], f"{path}.excluding", level + 1)
    required = []
    if "required" in value:
        for i, part in enumerate(_members(value["required"], f"{path}.required", "one or more vectors")):
            _only_item(part, ("vector",), f"{path}.required[{i}]", "a required part", "vector")
            required.append(_read(part, f"{path}.required[{i}]", level + 1))
    if "excluded" not in value:
        return _node(Excluding, path, child, required=tuple(required))
    parts: list[ScoringNode | Filter] = []
    for i, part in enumerate(_members(value["excluded"], f"{path}.excluded", "one or more vectors, products, filters")):
        if isinstance(part, Mapping) and part.keys() == {"filter"}:
            try:
                parts.append(Filter(part["filter"]))
            except ArgumentError as error:
                raise QueryError(f"{path}.excluded[{i}].filter: {error}") from None
        else:
            parts.append(_read_excluded(part, f"{path}.excluded[{i}]", level))
    limits = _members(value["above"], f"{path}.above", "limits, one for each excluded part")
    return _node(Excluding, path, child, tuple(parts), tuple(limits), tuple(required))


def _read_lowering(part: object, path: str, level: int) -> ScoringNode:
    if isinstance(part, Mapping) and "damped" in part:
        return _read(part, path, level + 1)
    return _read_excluded(part, path, level)


def _read_excluded(part: object, path: str, level: int) -> ScoringNode:
    if not isinstance(part, Mapping) or "product" not in part:
        _only_item(part, ("vector",), path, "an excluded part", "vector or product")
    return _read(part, path, level + 1)


def _node(
    kind: type[Linear | Product | Damped | Excluding], path: str, *arguments: Any, **settings: Any
) -> ScoringNode:
    """A leaf, a product or a damped score, whose own message goes on with the path inside it."""
    try:
        return kind(*arguments, **settings)
    except QueryError as error:
        raise QueryError(f"{path}.{error}") from None


def _only_item(value: object, keys: tuple[str, ...], path: str, what: str, allowed: str) -> tuple[str, object]:
    if isinstance(value, Mapping) and len(value) == 1:
        key, body = next(iter(value.items()))
        if key in keys:
            return str(key), body
    raise QueryError(f"{path}: {what} must be an object with {allowed}, got {reprlib.repr(value)}")


def _weights(value: object, path: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise QueryError(f"{path}: expected an object of terms and weights, got {reprlib.repr(value)}")
    return value


def _members(value: object, path: str, expected: str) -> list[object]:
    if not isinstance(value, list) or len(value) < (2 if expected.startswith("two") else 1):
        raise QueryError(f"{path}: expected a list of {expected}, got {reprlib.repr(value)}")
    return value
