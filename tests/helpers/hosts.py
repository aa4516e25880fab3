"""The hosts of integrations: imported where they are installed, and Pyserini also where its own needs are missing."""

import os
import sys
import urllib.request
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

import pytest

ALIASED = ("msmarco-v1-passage.unicoil", "msmarco-v2-passage.unicoil-0shot")
_MODEL_LIBRARIES = {"torch", "transformers", "sklearn", "tiktoken", "faiss"}


def adapter(name, *needs):
    """A module of ``pyserini_compneg.integrations``. Without its host the tests are skipped, but never in CI.

    Args:
        name: The module.
        *needs: Modules that a line of CI may lack; without them the tests are skipped there, too.
    """
    for needed in needs:
        pytest.importorskip(needed)
    if "CI" not in os.environ:
        pytest.importorskip(f"pyserini_compneg.integrations.{name}", exc_type=ImportError)
    return import_module(f"pyserini_compneg.integrations.{name}")


def prebuilt_entry(name):
    """What Pyserini 2 is told of a prebuilt index."""
    about = {"name": name, "description": "", "filename": f"lucene-inverted.{name}.tar.gz"}
    return {**about, "urls": [], "md5": "5" * 32, "size": 1}


@contextmanager
def pyserini_2(server):
    """Lets Pyserini 2 be imported: a stand-in answers for the network, and mocks for the libraries of its models.

    Importing ``pyserini.search`` reads the lists in which two indexes with a second name are, and nothing else.
    """
    server.files["/msmarco-v1-passage-impact.json"] = [prebuilt_entry(name) for name in ALIASED]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        mocks = _Mocks()
        patch.setattr(sys, "meta_path", [*sys.meta_path, mocks])
        patch.setattr(urllib.request, "_opener", None)  # one that was used before does not know the proxy
        try:
            yield
        finally:
            for name in mocks.made:  # other libraries look there for what is installed
                sys.modules.pop(name, None)


class _Mocks(MetaPathFinder, Loader):
    """Comes last, so it finds only what is not installed."""

    def __init__(self):
        self.made = []

    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in _MODEL_LIBRARIES else None

    def create_module(self, spec):
        self.made.append(spec.name)
        return MagicMock()

    def exec_module(self, module):
        module.__path__ = []
