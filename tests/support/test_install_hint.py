"""The command that hints name installs exactly what an extra needs, wherever the package came from."""

import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from pyserini_compneg.support.errors import TORCH, install_hint

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def needed(extra):
    for requirement in EXTRAS[extra]:
        if own := re.match(r"pyserini_compneg\[(.*)\]", requirement):
            for name in own[1].split(","):
                yield from needed(name)
        else:
            yield requirement


@pytest.mark.parametrize("extra", sorted({*EXTRAS} - {"test", "dev"}))
def test_everything_that_is_missing_is_named(extra, monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    pip, install, *requirements = shlex.split(install_hint(extra))
    assert (pip, install) == ("pip", "install")
    expected = [requirement for requirement in needed(extra) if not requirement.startswith("torch>")]
    brought = {"torch", "sentence-transformers", "mteb", "pyserini"} & {
        re.split("[<>=]", one)[0] for one in needed(extra)
    }
    assert sorted(requirements) == sorted([*expected, *[TORCH] * bool(brought)])


def test_torch_is_the_version_that_is_tested_and_the_page_names_the_command(monkeypatch):
    """Without a version, pip takes the newest torch, which brings gigabytes of CUDA."""

    def version(name):
        raise metadata.PackageNotFoundError(name)

    assert TORCH in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    monkeypatch.setattr(metadata, "version", version)
    page = (ROOT / "docs/start/install.md").read_text("utf-8")
    for extra in ("export", "dense"):
        assert install_hint(extra) in page


def test_torch_is_not_named_where_it_is_there(monkeypatch):
    def version(name):
        if name == "sentence-transformers":
            raise metadata.PackageNotFoundError(name)
        return "2.9"

    monkeypatch.setattr(metadata, "version", version)
    assert install_hint("dense") == "pip install 'sentence-transformers>=6'"


def test_what_is_there_is_not_named(monkeypatch):
    def version(name):
        if name in ("fastapi", "prometheus_client"):
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    assert install_hint("serve") == "pip install 'fastapi>=0.115' 'prometheus_client>=0.20'"
    assert install_hint("ray") == "pip install 'ray>=2.54'"  # too old, or broken


def test_names_of_extras():
    """pip 23.2 leaves an extra out whose name has an underscore, because it compares with the name in the wheel."""
    assert not [extra for extra in EXTRAS if not re.fullmatch("[a-z]+(-[a-z]+)*", extra)]
    sources = [*(ROOT / "pyserini_compneg").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    named = set(re.findall(r"""install_hint\(["']([^"']+)["']\)""", text))
    asked = ",".join(re.findall(r"""'(?:\.|pyserini_compneg)\[([\w,-]+)\]'""", text)).split(",")
    assert {"ir-datasets", "parquet", "serve"} <= named | {*asked} <= {*EXTRAS}


def requires_nothing(name):
    return []


def is_not_installed(name):
    raise metadata.PackageNotFoundError(name)


@pytest.mark.parametrize("requires", [requires_nothing, is_not_installed])
def test_a_checkout_that_is_not_installed(monkeypatch, requires):
    monkeypatch.setattr(metadata, "requires", requires)
    assert install_hint("ray") == "pip install -c constraints.txt -e '.[ray]' in the checkout"
