"""The scripts in ``examples/`` run, and print what their first lines promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "compare_operators.py": "_ that are not _",
    "own_vectors.py": "night animals NOT singers [('bat', ",
    "search_films.py": "1 Sky_Murder",
}


def test_every_example_is_run():
    """That of PyTerrier is in docs/how-to/integrations.md, which test_pages.py runs."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys() | {"pyterrier_experiment.py"}


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_example(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    shown = capfd.readouterr()
    assert EXPECTED[name] in shown.out
    assert "Traceback" not in shown.err
    assert not list(tmp_path.iterdir())
