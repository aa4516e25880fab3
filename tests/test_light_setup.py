"""The set-up of ``make search``: what pyproject.toml asks for without an extra, and of Pyserini only the package.

Processes here do not see any other package that is installed, so a wrong import fails in the full set-up, too.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pyserini_compneg.commands.main import COMMANDS
from pyserini_compneg.lucene.anserini import anserini_jar

ROOT = Path(__file__).parents[1]
MINI = ROOT / "pyserini_compneg" / "resources" / "mini"

OF_EXTRAS = (
    *("encode.networks", "integrations.", "lab.experiments.datasets.irds", "serve."),
    *(f"lab.training.{name}" for name in ("bases", "batches", "dev", "encoder_module", "fine_tuning")),
    *(f"lab.training.{name}" for name in ("four_bits", "reader_training", "resumption")),
    *(f"lab.training.{name}" for name in ("autoencoder", "latent_model", "latent_names", "tagger_module")),
    *(f"lab.training.{name}" for name in ("token_vectors", "trainers")),
)
"""Beginnings of the names of modules that need an extra."""

HIDING = """
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden} else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""


def installed_without_extras():
    """The distributions that pip installs for the package, Pyserini, and pip itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found, waiting = {"pip", "pyserini", "pyserini-compneg"}, project["dependencies"]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += metadata.requires(name) or ()
    return found


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """Runs Python code that sees nothing else; returns the exit code and what was printed."""
    there = installed_without_extras()
    hidden = {
        name
        for name, distributions in metadata.packages_distributions().items()
        if there.isdisjoint(map(canonicalize_name, distributions))
    }
    assert {"matplotlib", "pandas", "pytest"} <= hidden
    folder = tmp_path_factory.mktemp("light")

    def run(code, also_hidden=(), **variables):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COMPNEG_CACHE": str(folder / "cache")} | variables
        command = [sys.executable, "-c", HIDING.format(hidden=hidden.union(also_hidden)) + code]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_everything_but_extras_can_be_imported(light):
    code = f"""
from importlib import import_module
from pkgutil import walk_packages
import pyserini_compneg
from pyserini_compneg import *
for module in walk_packages(pyserini_compneg.__path__, "pyserini_compneg."):
    name = module.name.partition(".")[2]
    if not name.startswith({OF_EXTRAS}) and not name.endswith("__main__"):
        import_module(module.name)
        print(name)
"""
    status, printed, errors = light(code)
    assert (status, errors) == (0, "")
    assert {f"commands.{name}" for name in COMMANDS} <= {*printed.split()}


def test_without_pandas_an_import_of_it_fails(light):
    assert light("import pandas")[0] == 1


def code_of(*arguments):
    return f"from pyserini_compneg.commands.main import main\nraise SystemExit(main({[*map(str, arguments)]}))"


def run_command(light, *arguments):
    return light(code_of(*arguments))


@pytest.mark.slow
def test_the_demo_runs(light):
    status, printed, errors = run_command(light, "demo")
    assert status == 0, errors
    assert "Sky Murder" in printed


def test_trainings_are_shown_and_readings_made(light):
    assert run_command(light, "train", "table5-sum", "--show")[0] == 0
    status, printed, errors = run_command(light, "read", "spy films without comedies")
    assert (status, "NOT" in printed) == (0, True), errors


@pytest.fixture
def documents(tmp_path):
    file = tmp_path / "docs.jsonl"
    file.write_text('{"id": "d", "contents": "a bird"}\n')
    return file


def test_the_jar_of_another_pyserini_is_enough(light, documents, tmp_path):
    code = code_of("index", "--collection", documents, "--index", tmp_path / "index")
    status, _, errors = light(code, ["pyserini"], PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    said, *lines = errors.splitlines()
    assert (status, said.partition(":")[0], len(lines)) == (1, "warning", 1), errors
    assert re.match("error: Anserini's jar cannot be downloaded: .*; install it", lines[0])
    status, _, errors = light(code, ["pyserini"], ANSERINI_CLASSPATH=str(anserini_jar().parent))
    assert status == 0, errors


@pytest.fixture
def checkpoint(tmp_path):
    """A model whose weights only torch can load."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(MINI, folder, ignore=shutil.ignore_patterns("export.json", "model.onnx"))
    (folder / "model.safetensors").touch()
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["index", "--collection", "{docs}", "--index", "made", "--encoder", "{model}"],
        ["index", "--collection", "{docs}", "--index", "made", "--encoder", "{model}", "--backend", "torch"],
        ["encode", "--collection", "{docs}", "--output", "made", "--encoder", "{model}"],
        ["export", "--encoder", "{model}", "--output", "made"],
    ],
    ids=lambda command: "-".join(re.findall(r"^\w+|torch", " ".join(command))),
)
def test_what_needs_torch_says_so(light, documents, checkpoint, command):
    status, printed, errors = run_command(light, *(word.format(docs=documents, model=checkpoint) for word in command))
    assert (status, printed, errors.count("\n")) == (2, "", 1), errors
    torch = "'torch>=" if find_spec("torch") else "torch=="  # only where torch is missing is a version recommended
    assert re.match(f"error: .*needs torch.*; pip install .*{torch}.*", errors)
