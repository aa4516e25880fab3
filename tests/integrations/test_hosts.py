import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from refusals import refusal

from pyserini_compneg.integrations import hosts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "mteb is not installed, and 2.1 or later is needed: pip install torch==2.13.0 'mteb>=2.10'"),
        ("2.0.9", "mteb 2.0.9 is too old, 2.1 or later is needed: pip install 'mteb>=2.10'"),
        ("2.1.0", None),
        ("10.0rc1", None),
    ],
)
def test_requirements(monkeypatch, found, said):
    def version(name):
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)
    if said is None:
        hosts.require("mteb", "2.1")
    else:
        assert refusal(hosts.require, "mteb", "2.1", error=ImportError) == said


def test_floors_are_those_of_the_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    sources = [path.read_text("utf-8") for path in Path(hosts.__file__).parent.glob("*.py")]
    required = re.findall(r'^require\("([\w-]+)", "([\d.]+)"(?:, "(\w+)")?\)', "".join(sources), re.MULTILINE)
    assert len(required) == 3
    for host, floor, extra in required:
        assert extras[extra or host] == [f"{host}>={floor}"]
