"""Searches in several threads, and in several indexes at once: no call goes to another thread's Java object."""

import json
import sys
import threading

import pytest

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import ImpactReader

TERMS = [f"t{i}" for i in range(12)]


@pytest.fixture
def hasty():
    """Python turns to another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def index_of(folder, name):
    lines = [{"id": f"{name}-{term}", "vector": {term: 3}} for term in TERMS]
    folder.mkdir()
    (folder / "vectors.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    build_index(folder / "vectors.jsonl", folder / "index", encoder="none", impact_scale=1, store_raw=True)
    return folder / "index"


def test_every_thread_gets_its_own_answers(tmp_path, hasty):
    with ImpactReader(index_of(tmp_path / "a", "a")) as a, ImpactReader(index_of(tmp_path / "b", "b")) as b:
        failures = []

        def search(name, reader, shift):
            for number in range(400):
                term = TERMS[(number + shift) % len(TERMS)]
                try:
                    (ranking,) = reader.search([Linear({term: 1.0})], 5)
                    found = (ranking.docids, json.loads(reader.raw(f"{name}-{term}") or "{}").get("id"))
                except Exception as error:
                    found = error
                if found != ([f"{name}-{term}"], f"{name}-{term}"):
                    failures.append((name, term, found))

        threads = [
            threading.Thread(target=search, args=(*pair, shift)) for shift in range(3) for pair in (("a", a), ("b", b))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
