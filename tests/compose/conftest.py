"""Lets these tests import the strategies for expressions when they run alone."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "expression"))
