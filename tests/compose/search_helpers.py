"""The small indexes of ``tests/search``, for tests that run before those or without them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "search"))

from film_index import build, start  # noqa: E402
from pair_index import write, write_atoms  # noqa: E402

__all__ = ["build", "start", "write", "write_atoms"]
