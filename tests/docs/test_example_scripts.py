"""The scripts in ``examples/`` run, and print what their first lines promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "compare_operators.py": "_ that are not _",
    "own_vectors.py": "night animals NOT singers [('owl', ",
    "search_films.py": "1 Sky_Murder",
}


def test_every_example_is_run():
    """That of PyTerrier is in docs/integrations.md, which test_pages.py runs."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys() | {"pyterrier_experiment.py"}


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_example(name, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(EXAMPLES / name)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert EXPECTED[name] in answer.stdout
    assert "Traceback" not in answer.stderr
    assert not list(tmp_path.iterdir())
