"""Composed queries as JSON: ``{"vector": …}`` for one linear leaf, else ``{"score": tree}``.

A product says its ``power`` where it is not 1/n, of n operands, and its ``root`` and ``weight`` where they are not 1.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

from pyserini_compneg.compose.scoring import (
    Linear,
    Max,
    Product,
    ScoringNode,
    Sum,
    checked_operand,
    checked_power,
    checked_product_weight,
    checked_root,
    checked_weights,
)
from pyserini_compneg.errors import CompositionError
from pyserini_compneg.expression import MAX_DEPTH
from pyserini_compneg.vectors import SparseVector


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
        value: ``{"vector": …}``, or what stands under ``score``.
        source: Where it came from, for the message.

    Raises:
        CompositionError: Any other shape, or a weight that no node takes. The message holds the path inside the value.

    >>> from_json({"max": [{"vector": {"birds": 2}}, {"vector": {"bats": 1}}]}, "queries.jsonl:1")
    Max(children=(Linear(weights={'birds': 2.0}), Linear(weights={'bats': 1.0})))
    """
    return _read(value, source, "$", 1)


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


def _settings(product: Product) -> dict[str, float]:
    """What is not the default."""
    settings: dict[str, float] = {} if product.power is None else {"power": _number(product.power)}
    settings |= {} if product.root == 1 else {"root": product.root}
    return settings | ({} if product.weight == 1 else {"weight": _number(product.weight)})


def _vector(weights: SparseVector) -> dict[str, Any]:
    """Whole numbers are written as such: stock Anserini takes no others."""
    return {"vector": {term: _number(weight) for term, weight in weights.items()}}


def _number(number: float) -> float:
    return int(number) if number == int(number) else number


def _read(value: object, source: str, path: str, level: int) -> ScoringNode:
    if level > MAX_DEPTH:
        raise CompositionError(f"{source}: the score is more than {MAX_DEPTH} levels deep; flatten it")
    if isinstance(value, Mapping) and "product" in value:
        return _product(value, source, path)
    kind, body = _only_item(value, ("vector", "product", "max", "sum"), source, path)
    path = f"{path}.{kind}"
    if kind == "vector":
        return Linear(checked_weights(_object(body, source, path), source=f"{source}: {path}"))
    children = tuple(_read(member, source, place, level + 1) for place, member in _members(body, source, path, 1))
    return Max(children) if kind == "max" else Sum(children)


def _product(value: Mapping[str, Any], source: str, path: str) -> Product:
    if unknown := [key for key in value if key not in ("product", "power", "root", "weight")]:
        raise CompositionError(f"{source}: {path}: a product has no {unknown[0]!r}, only product, power, root, weight")
    members = _members(value["product"], source, f"{path}.product", 2)
    operands = tuple(_operand(member, source, place) for place, member in members)
    place = f"{source}: {path}"
    power = checked_power(value["power"], len(operands), f"{place}.power") if "power" in value else None
    root = checked_root(value.get("root", 1), f"{place}.root")
    return Product(operands, power, root, checked_product_weight(value.get("weight", 1), f"{place}.weight"))


def _operand(value: object, source: str, path: str) -> dict[str, float]:
    _, body = _only_item(value, ("vector",), source, path)
    path = f"{path}.vector"
    return checked_operand(_object(body, source, path), source=f"{source}: {path}")


def _only_item(value: object, keys: tuple[str, ...], source: str, path: str) -> tuple[str, object]:
    if isinstance(value, Mapping) and len(value) == 1:
        key, body = next(iter(value.items()))
        if key in keys:
            return str(key), body
    expected = f"an object with one key, {' or '.join(keys)}"
    raise CompositionError(f"{source}: {path}: expected {expected}, got {reprlib.repr(value)}")


def _object(value: object, source: str, path: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise CompositionError(f"{source}: {path}: expected an object of terms and weights, got {reprlib.repr(value)}")
    return value


def _members(value: object, source: str, path: str, least: int) -> list[tuple[str, object]]:
    """The members of a list with their paths."""
    if not isinstance(value, list) or len(value) < least:
        wanted = "two or more operands" if least == 2 else "one or more children"
        raise CompositionError(f"{source}: {path}: expected a list of {wanted}, got {reprlib.repr(value)}")
    return [(f"{path}[{i}]", member) for i, member in enumerate(value)]
