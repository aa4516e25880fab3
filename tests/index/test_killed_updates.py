"""A merge that is killed keeps the order of documents; ``tests/test_kills.py`` kills other updates."""

from random import Random

from json_lines import write_jsonl
from steps import as_steps
from updated_indexes import build, draw_document
from works import killed_at_steps

from pyserini_compneg.index import ImpactUpdater, update_index, verify_index
from pyserini_compneg.lucene import ImpactWriter
from pyserini_compneg.lucene.shards import read_shards, shard_commit


def are_ordered(index):
    """Whether each commit that a search opens has block maxima of one of its segments."""
    commits = [shard_commit(index / entry.path, entry) for entry in read_shards(index)]
    header = 4 + 1 + len("CompnegBlockMaxima") + 4
    return [
        any(file.read_bytes()[header : header + 16] in commit.read_bytes() for file in commit.parent.glob("*.maxima*"))
        for commit in commits
    ]


def test_a_killed_merge_loses_no_order(tmp_path, monkeypatch):
    """After each step of a merge of two shards."""
    random, index = Random(6), tmp_path / "index"
    build(index, [draw_document(random, f"d{i:04}", False) for i in range(200)], 2, {"reorder": True})
    change = write_jsonl(tmp_path / "change.jsonl", {"id": "n", "vector": {"t1": 7}, "year": 3})
    as_steps(monkeypatch, ImpactWriter, "optimize", "commit", "release")
    with killed_at_steps(index, tmp_path) as killed, ImpactUpdater(index, 1) as updater:
        updater.add("n", {"t1": 7})
        updater.optimize()
    assert len(killed) > 12
    for folder in [*killed, index]:
        assert are_ordered(folder) == [True, True]
        update_index(folder, change, threads=1)
        assert are_ordered(folder) == [True, True]
        assert verify_index(folder) == 201
    assert [path.name for path in index.rglob("*.maxima.*")] == []
