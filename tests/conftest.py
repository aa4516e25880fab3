"""What tests of several packages share."""

import math
import os
import signal
import sys
import tempfile
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import jnius_config
import pytest
from checkpoints import (
    write_masked_lm,
    write_opensearch,
    write_router,
    write_signed,
    write_sparse_encoder,
)
from hosts import adapter, pyserini_2
from hypothesis import settings
from metadata_server import ask_here, metadata_server

from pyserini_compneg.lucene import java_class
from pyserini_compneg.support import progress

settings.register_profile("untimed", deadline=None)  # no test is timed: on a busy machine an example may take seconds
settings.load_profile("untimed")
progress.SECONDS = math.inf  # nor does it log how far it is

_caches = pytest.StashKey[tempfile.TemporaryDirectory]()


TOOLS = (
    *("torch", "transformers", "huggingface_hub", "sentence_transformers", "onnx", "onnxscript", "onnxruntime"),
    *("datasets", "ray", "mteb", "playwright", "schemathesis"),
)
"""Without these, tests are skipped; not so in CI on the line of Pyserini 1, where all of them are installed."""


_LONG = {"training", "test_kills.py", "test_no_foreign_code.py", "test_page.py", "test_page_hits.py"}
"""Folders and modules with long tests that would be among the last by their names."""


def pytest_configure(config):
    """Keeps all tests from the user's caches, and from the hub, before anything is imported that looks them up."""
    if (
        "CI" in os.environ
        and sys.version_info < (3, 12)
        and (missing := [tool for tool in TOOLS if not find_spec(tool)])
    ):
        raise pytest.UsageError(f"CI must run all tests, and lacks {', '.join(missing)}; install the extra dev")
    config.stash[_caches] = folder = tempfile.TemporaryDirectory(prefix="compneg-tests-")
    exports = Path(folder.name, "models")
    if hasattr(config, "workerinput"):  # one of several processes, which share what takes seconds to export
        exports.symlink_to(Path(os.environ["COMPNEG_CACHE"], "models"))
    else:
        exports.mkdir()
    os.environ |= {"COMPNEG_CACHE": folder.name, "HF_HOME": f"{folder.name}/hub", "HF_HUB_OFFLINE": "1"}
    os.environ["COMPNEG_CLASS_ARCHIVE"] = "off"  # no test is to leave a process behind
    os.environ.pop("HF_HUB_CACHE", None)
    if sys.version_info < (3, 12):  # the better compiler takes a third of the time; the other line has it, as users do
        jnius_config.add_options("-XX:TieredStopAtLevel=1")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell has it for what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # or commands that tests interrupt would inherit it


@pytest.hookimpl(tryfirst=True)  # before markers choose
def pytest_collection_modifyitems(items):
    """Has long modules begin first, or one of two processes would wait for the other at the end.

    The tests of the lab run on one line, since the lab reaches Lucene through modules whose own tests run on both.
    """
    for item in items:
        if Path(__file__).parent / "lab" in item.path.parents:
            item.add_marker("once")
    items.sort(key=lambda item: not _LONG.intersection({item.path.parent.name, item.path.name}))


def pytest_unconfigure(config):
    """Removes what was cached."""
    config.stash[_caches].cleanup()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark data, named by COMPNEG_DATA. Without it a test is skipped, but never in CI."""
    folder = os.environ.get("COMPNEG_DATA")
    if folder is None:
        if "CI" in os.environ:
            pytest.fail("COMPNEG_DATA is not set; in CI it must name the folder of benchmark data")
        pytest.skip("COMPNEG_DATA is not set; let it name the folder of benchmark data")
    if not Path(folder).is_dir():
        pytest.fail(f"COMPNEG_DATA is {folder!r}, which is no folder")
    return Path(folder)


@pytest.fixture(scope="session")
def metadata(tmp_path_factory):
    """What stands in for the network that Anserini 2 and Pyserini 2 look prebuilt indexes up in; None before these."""
    if java_class("org.apache.lucene.util.Version").LATEST.major < 10:
        yield None
        return
    with metadata_server(tmp_path_factory.mktemp("metadata")) as server:
        ask_here(server, java_class)
        yield server


@pytest.fixture(scope="session")
def pyserini_host(metadata):
    """The module for Pyserini, which imports Pyserini's search."""
    with pyserini_2(metadata) if metadata else nullcontext():
        return adapter("pyserini")


@pytest.fixture(scope="session")
def anserini(metadata):
    """The environment of processes that run Anserini; in this process, too, it then opens indexes without a network."""
    return metadata.environment if metadata else {}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders of tiny checkpoints: two networks, and the layouts of the hub around them; no test may change them."""
    pytest.importorskip("torch", reason="checkpoints are written by torch")
    folder = tmp_path_factory.mktemp("checkpoints")
    bert, distilbert = (write_masked_lm(folder / kind, kind) for kind in ("bert", "distilbert"))
    prompts = {"query": "films about ", "document": "film: "}
    return SimpleNamespace(
        bert=bert,
        distilbert=distilbert,
        older=write_masked_lm(folder / "older", tokenizer="vocab.txt"),
        opensearch=write_opensearch(folder / "opensearch", distilbert),
        sparse_encoder=write_sparse_encoder(folder / "sparse_encoder", bert),
        legacy=write_sparse_encoder(
            folder / "legacy", bert, first="MLMTransformer", prompts=prompts, activation="log1p_relu", pooling="sum"
        ),
        signed=write_signed(folder / "signed"),
        router=write_router(folder / "router", distilbert),
    )


@pytest.fixture(scope="session")
def splade_tiny(shared_data):
    """The folder of a trained SPLADE, for what random weights cannot show."""
    for package in ("torch", "transformers", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="models are exported by torch, and run by onnxruntime")
    return shared_data / "models" / "splade-tiny"


@pytest.fixture(scope="session")
def exported(checkpoints):
    """The folder of the export of a checkpoint's document side; the tests share few, since each takes seconds."""
    from pyserini_compneg.encode.export import export_model
    from pyserini_compneg.encode.models import read_checkpoint

    home = os.environ["COMPNEG_CACHE"]

    @cache
    def export(name, precision="fp32"):
        with pytest.MonkeyPatch.context() as patch:  # a test may have a cache of its own
            patch.setenv("COMPNEG_CACHE", home)
            return export_model(read_checkpoint(getattr(checkpoints, name)).document, precision)

    return export


@pytest.fixture
def small_parts(monkeypatch):
    """Several threads search parts of small indexes, too, for one query."""
    monkeypatch.setattr("pyserini_compneg.lucene.reader._SMALLEST_PART", 100)
