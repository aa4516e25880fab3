"""What tests of several packages share."""

import os
from pathlib import Path

import pytest
from metadata_server import ask_here, metadata_server

from pyserini_compneg.lucene import java_class


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
def lucene_impact_searcher(metadata):
    """Pyserini's own searcher. Where it cannot be imported a test is skipped, but in CI with Pyserini 1 it must be."""
    if metadata:
        pytest.skip("Pyserini 2 asks the network for more when its search is imported")
    if "CI" not in os.environ:
        return pytest.importorskip("pyserini.search.lucene", exc_type=Exception).LuceneImpactSearcher
    from pyserini.search.lucene import LuceneImpactSearcher

    return LuceneImpactSearcher


@pytest.fixture(scope="session")
def anserini(metadata):
    """The environment of processes that run Anserini; in this process, too, it then opens indexes without a network."""
    return metadata.environment if metadata else {}
