"""The workflows are YAML, and name targets of make and files that there are."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_name_what_there_is(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    named = {word for line in lines if (made := re.search(r"\bmake (.*)", line)) for word in made[1].split()}
    assert named <= TARGETS
    for file in re.findall(r"\S+\.py\b", "\n".join(lines)):
        assert (ROOT / file).is_file()


def test_the_version_is_written_once_and_has_its_changes():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    for name in ("CITATION.cff", "pyserini_compneg/__init__.py", "setup.cfg", "README.md"):
        assert version not in (ROOT / name).read_text("utf-8"), name
    newest = re.search(
        r"^## \[(?!Unreleased)(.*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert newest and newest[1] == version
