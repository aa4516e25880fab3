"""Searches that are ended before they are done."""

import json

import film_index
import pytest

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.compose import Linear
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import ImpactReader, cancellation, reader
from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.support.errors import SearchCancelled, SearchTimeout

QUERY = Linear({"spi": 1.0})


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An index of several windows, which a search can be left between."""
    folder = tmp_path_factory.mktemp("large")
    lines = (json.dumps({"id": f"d{i}", "vector": {"spi": 1 + i % 7}}) for i in range(20_000))
    (folder / "vectors.jsonl").write_text("".join(f"{line}\n" for line in lines))
    build_index(folder / "vectors.jsonl", folder / "index", encoder="none", impact_scale=1)
    return folder / "index"


def test_a_search_ends_between_two_windows(large, monkeypatch):
    monkeypatch.setattr(reader, "_SLICE_MS", 0)
    checks = []

    def check(self):
        checks.append(1)
        if len(checks) == 4:
            raise SearchCancelled("enough")

    monkeypatch.setattr(Cancellation, "check", check)
    with ImpactReader(large) as index:
        whole = index.search([QUERY], 20_000)
        with pytest.raises(SearchCancelled), Cancellation(60).applied():
            index.search([QUERY], 20_000)
        assert len(checks) == 4
        assert index.search([QUERY], 20_000) == whole


def test_no_search_begins_after_the_deadline(tmp_path, monkeypatch):
    with SignedImpactSearcher(film_index.build(tmp_path)) as searcher:
        limit = Cancellation(60)
        with limit.applied():
            assert searcher.search("spy")
            monkeypatch.setattr(cancellation.time, "monotonic", lambda: float("inf"))
            with pytest.raises(SearchTimeout, match="^the search took longer than the limit of 60 seconds; ask for"):
                searcher.search("spy")
        assert searcher.search("spy")


def test_a_count_ends_while_passages_are_read(tmp_path, monkeypatch):
    count = 5000
    lines = [{"id": f"d{i}", "contents": "spy"} for i in range(count)]
    build_index(lines, tmp_path / "index", passages={"words": 9, "overlap": 0})
    monkeypatch.setattr(reader, "_SLICE_MS", 0)
    checks = []

    def check(self):
        checks.append(1)
        if len(checks) == 3:
            raise SearchCancelled("enough")

    monkeypatch.setattr(Cancellation, "check", check)
    with SignedImpactSearcher(tmp_path / "index") as searcher, Cancellation(60).applied():
        (query,) = searcher.compose(["spy"])
        checks.clear()
        with pytest.raises(SearchCancelled):
            searcher.matches(query)
        slices = []
        for _ in range(2):  # the rest of the passages is read, and none
            checks.clear()
            monkeypatch.setattr(Cancellation, "check", lambda self: checks.append(1))
            assert searcher.matches(query).total == (count, "eq")
            slices.append(len(checks))
    assert slices[0] > slices[1]
