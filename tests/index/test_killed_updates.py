"""An update that is killed, at any step, or that has no room: the index is the old one, and takes the update again."""

import resource
from random import Random

import pytest
from film_index import start
from json_lines import write_jsonl
from steps import as_steps, at_step, copied
from updated_indexes import best, build, draw_document, draw_update

from pyserini_compneg.index import ImpactUpdater, build_sharded_index, update_index, verify_index
from pyserini_compneg.lucene import ImpactWriter, open_reader
from pyserini_compneg.lucene.shards import read_shards, shard_commit


def test_a_full_disk(tmp_path):
    """One line, and the old index; what was written stays unseen, and the update can be given again."""
    index, old = tmp_path / "index", [{"id": f"d{i}", "vector": {"t": i + 1}} for i in range(6)]
    build_sharded_index(write_jsonl(tmp_path / "old.jsonl", *old), index, 2, "m")
    new = write_jsonl(tmp_path / "new.jsonl", *({"id": f"n{i}", "vector": {f"t{i}": 7, "t": 1}} for i in range(500)))
    no_file_may_grow_further = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    told = ["update", "--index", index, "--collection", new]
    with start(*told, module="pyserini_compneg", preexec_fn=no_file_may_grow_further) as process:
        said = process.communicate()[1]
    assert process.returncode == 1
    assert said.startswith(f"error: {index}: the index cannot be written: ")
    assert said.count("\n") == 1
    assert verify_index(index) == 6
    assert update_index(index, new).inserted == 500
    assert verify_index(index) == 506


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
    random, index, killed = Random(6), tmp_path / "index", []
    build(index, [draw_document(random, f"d{i:04}", False) for i in range(200)], 2, {"reorder": True})
    methods = {name: getattr(ImpactWriter, name) for name in ("optimize", "commit", "release")}
    for name in methods:

        def stepping(*given, name=name, **options):
            result = methods[name](*given, **options)
            killed.append(tmp_path / f"killed{len(killed)}")
            copied(index, killed[-1])
            return result

        monkeypatch.setattr(ImpactWriter, name, stepping)
    change = write_jsonl(tmp_path / "change.jsonl", {"id": "n", "vector": {"t1": 7}, "year": 3})
    with ImpactUpdater(index, 1) as updater:
        updater.add("n", {"t1": 7})
        updater.optimize()
    monkeypatch.undo()
    assert len(killed) == 6
    for folder in [*killed, index]:
        assert are_ordered(folder) == [True, True]
        update_index(folder, change, threads=1)
        assert are_ordered(folder) == [True, True]
        assert verify_index(folder) == 201
    assert [path.name for path in index.rglob("*.maxima.*")] == []


@pytest.mark.parametrize(("shards", "every"), [(0, 3), (2, 6), pytest.param(2, 1, marks=pytest.mark.slow)])
def test_a_killed_update_shows_nothing_and_can_be_given_again(shards, every, tmp_path, monkeypatch):
    """The folder is copied at each step, as a killed process would leave it, and the update is given to the copy."""
    random = Random(7)
    there = {docid: draw_document(random, docid, False) for docid in (f"d{i:04}" for i in range(40))}
    build(tmp_path / "index", there.values(), shards, {})
    documents, ids, _ = draw_update(random, there, 12, False)
    changes, deletes = write_jsonl(tmp_path / "changes.jsonl", *documents), tmp_path / "ids.txt"
    deletes.write_text("\n".join(ids))
    as_steps(monkeypatch, ImpactWriter, "add_lines", "remove", "settle", "commit", "release")

    def content(folder):
        with open_reader(folder) as reader:
            return best(reader, 100), reader.manifest

    index, before, killed = tmp_path / "index", content(tmp_path / "index"), []

    def copy(_):
        killed.append(tmp_path / f"killed{len(killed)}")
        copied(index, killed[-1])

    with at_step(index, range(1, 1000, every), copy) as seen:
        update_index(index, changes, deletes, threads=1)
    assert len(seen) > 8
    assert verify_index(index) == len(there)
    after = content(index)
    shown = [content(folder) for folder in killed]
    assert shown == [before] * shown.count(before) + [after] * shown.count(after)
    for folder in killed:
        update_index(folder, changes, deletes, threads=1)
        assert content(folder) == after
