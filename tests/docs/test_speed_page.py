"""The charts of README.md and of two pages are drawn from the records of benchmarks/results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.once]
ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/explanations/speed.md", "docs/how-to/indexing.md")
IMAGES = ROOT / "docs" / "images"


def draw(*arguments):
    command = [sys.executable, ROOT / "benchmarks" / "charts.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_pages_have_every_chart_of_the_records(tmp_path):
    done = draw("--output", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    pages = [(ROOT / page).read_text("utf-8") for page in PAGES]
    shown = re.findall(r"!\[.+?\]\(\S*images/(.+?\.svg)\)", "".join(pages))
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        assert figures(IMAGES / name) == figures(tmp_path / name), f"{name}: run benchmarks/charts.py"


def figures(chart):
    """What a chart was drawn from. The lines themselves depend on the release of matplotlib."""
    (found,) = re.findall(r"<dc:description>(.+?)</dc:description>", chart.read_text("utf-8"))
    return found


def test_a_wrong_record_is_named_and_nothing_is_drawn(tmp_path):
    records, output = tmp_path / "results", tmp_path / "images"
    records.mkdir()
    output.mkdir()
    for source in (ROOT / "benchmarks" / "results").glob("*.json"):
        (records / source.name).write_text(source.read_text("utf-8").replace('"threads"', '"thread"'), "utf-8")
    done = draw("--results", records, "--output", output)
    assert done.returncode == 2
    assert re.fullmatch(r"charts.py: \S+threads-9\.9\.json: unknown chart 'thread'; known are .+\n", done.stderr)
    assert not list(output.iterdir())
