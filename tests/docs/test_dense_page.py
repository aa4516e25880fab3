"""``docs/dense.md`` has a row for every operator of dense vectors, and its defaults are the code's."""

import re
from pathlib import Path

from pyserini_compneg.compose.dense import DENSE_OPERATORS, DenseOperators

PAGE = Path(__file__).parents[2] / "docs" / "dense.md"
KINDS = {"A OR B": "union", "A AND B": "intersection", "A NOT B": "difference"}


def test_every_operator_has_a_row():
    rows = re.findall(r"^\| (A \w+ B|any|) ?\| `(\w+)`( \(default\))? \|", PAGE.read_text(encoding="utf-8"), re.M)
    described, defaults, kind = {}, {}, None
    for heading, name, is_default in rows:
        kind = KINDS.get(heading, kind) if heading != "any" else "any"
        described.setdefault(kind, []).append(name)
        if is_default:
            defaults[kind] = name
    whole = described.pop("any")
    assert {kind: (*names, *whole) for kind, names in described.items()} == DENSE_OPERATORS
    assert DenseOperators(**defaults) == DenseOperators()
    assert defaults.keys() == {"union", "difference"}  # intersection has but one that composes
