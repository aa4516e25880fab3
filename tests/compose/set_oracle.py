"""The expressions and sets of ``tests/expression``, for tests that run before those or without them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "expression"))

from expression_strategies import contains, expressions  # noqa: E402

__all__ = ["contains", "expressions"]
