"""Whatever ends a build, the old index stays, and what was done can be gone on with."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading

import pytest

from pyserini_compneg import files
from pyserini_compneg.errors import CollectionError, OutputError
from pyserini_compneg.index import ImpactIndexer, build, build_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, Manifest

DOCUMENTS = 400
KILLS = 24

# Runs the command, and kills its own process at a step of the work, before or after it is done.
MORTAL_COMMAND = """
import shutil, sys
from mortal import make_mortal
from pyserini_compneg import files
from pyserini_compneg.index import build, index_folder, indexer
from pyserini_compneg.commands.index import main
from pyserini_compneg.lucene import ImpactWriter, Manifest

steps = int(sys.argv.pop())
files._BLOCK_BYTES = 1 << 10
build.CHECKPOINT_SECONDS = 0

places = (
    (ImpactWriter, ("add_lines", "commit", "optimize", "__exit__")),
    (Manifest, ("write",)),
    (indexer, ("keep_unfinished",)),
    (index_folder, ("_exchange",)),
    (shutil, ("rmtree",)),
)
left = make_mortal(places, steps)
code = main()
print(f"steps left {left()}", flush=True)
sys.exit(code)
"""


@pytest.fixture
def collection(tmp_path):
    choice = random.Random(5)
    folder = tmp_path / "collection"
    folder.mkdir()
    for part in range(2):
        with (folder / f"part{part}.jsonl").open("w") as handle:
            for i in range(part, DOCUMENTS, 2):
                vector = {term: choice.randint(1, 9) for term in choice.sample("abcdefghij", 4)}
                end = "" if i + 2 >= DOCUMENTS else "\r\r\n"
                handle.write(json.dumps({"id": f"d{i:03}", "contents": " ".join(vector), "vector": vector}) + end)
    return folder


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def rankings(index):
    with ImpactReader(index) as reader:
        queries = [json.dumps({"vector": {a: 2, b: -1, c: 5}}) for a, b, c in ("abc", "def", "ghi", "jab")]
        return reader.manifest, reader.search(queries, 2 * DOCUMENTS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("encoder", ["splade", "bm25"])
def test_kills_at_random_points(tmp_path, collection, encoder):
    expected, index = tmp_path / "expected", tmp_path / "index"
    build_index(collection, expected, encoder, optimize=True)
    (tmp_path / "old.jsonl").write_text('{"id": "old", "contents": "bird", "vector": {"bird": 1}}\n')
    build_index(tmp_path / "old.jsonl", index, encoder)
    before = contents(index)
    arguments = ("--collection", collection, "--index", index, "--encoder", encoder, "--optimize", "--overwrite")
    choice = random.Random(encoder)
    killed = 0
    while killed < KILLS // 2:
        done = run(MORTAL_COMMAND, *arguments, "--resume", choice.randint(1, 60))
        if done.returncode == 0:
            assert rankings(index) == rankings(expected)
            build_index(tmp_path / "old.jsonl", index, encoder, overwrite=True)
            before = contents(index)
        else:
            assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
            killed += 1
            if contents(index) != before:  # killed after the exchange
                assert rankings(index) == rankings(expected)
                build_index(tmp_path / "old.jsonl", index, encoder, overwrite=True)
                before = contents(index)
    assert run(MORTAL_COMMAND, *arguments, "--resume", 0).returncode == 0
    assert rankings(index) == rankings(expected)
    assert leftovers(tmp_path) == []


class Killed(BaseException):
    """Ends a build as a kill would, but for its leftovers."""


@pytest.fixture
def unfinished(tmp_path, collection, monkeypatch):
    """An index whose build ended after some checkpoints."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(build, "CHECKPOINT_SECONDS", 0)
    add_lines, calls = ImpactWriter.add_lines, []

    def fails(*arguments):
        calls.append(arguments)
        if len(calls) == 30:
            raise Killed
        return add_lines(*arguments)

    monkeypatch.setattr(ImpactWriter, "add_lines", fails)
    with pytest.raises(Killed):
        build_index(collection, tmp_path / "index", "splade")
    monkeypatch.setattr(ImpactWriter, "add_lines", add_lines)
    assert leftovers(tmp_path) == [".index.building"]
    assert not (tmp_path / "index").exists()
    return tmp_path / "index"


def test_an_unfinished_build_is_gone_on_with(tmp_path, collection, unfinished, monkeypatch):
    added = []
    add_lines = ImpactWriter.add_lines
    monkeypatch.setattr(
        ImpactWriter, "add_lines", lambda *arguments: added.append(arguments[1]) or add_lines(*arguments)
    )
    manifest = build_index(collection, unfinished, "splade", resume=True)
    assert 0 < sum(block.count(b"\n") for block in added) < DOCUMENTS - 10
    monkeypatch.undo()
    build_index(collection, tmp_path / "expected", "splade")
    assert manifest.documents == DOCUMENTS
    assert rankings(unfinished) == rankings(tmp_path / "expected")
    assert leftovers(tmp_path) == []


def test_an_unfinished_build_is_not_thrown_away_unasked(collection, unfinished):
    with pytest.raises(OutputError) as caught:
        build_index(collection, unfinished, "splade")
    assert str(caught.value) == (
        f"{unfinished}: there is an unfinished build of it; give --resume to continue it, or --overwrite to throw it "
        "away"
    )
    assert build_index(collection, unfinished, "splade", overwrite=True).documents == DOCUMENTS
    assert leftovers(unfinished.parent) == []


@pytest.mark.parametrize(
    ("changed", "options"),
    [("sources", {}), ("signed", {"signed": True}), ("pair_terms", {"pair_terms": 4}), ("encoder", {"encoder": "x"})],
)
def test_another_build_is_not_gone_on_with(collection, unfinished, changed, options):
    if changed == "sources":
        with (collection / "part1.jsonl").open("a") as handle:
            handle.write("\n")
    with pytest.raises(OutputError) as caught:
        build_index(collection, unfinished, **{"encoder": "splade", "resume": True, **options})
    assert str(caught.value) == (
        f"{unfinished}: the unfinished build cannot be continued, because {changed} changed since; give --overwrite "
        "without --resume to start anew"
    )
    assert leftovers(unfinished.parent) == [".index.building"]


def test_nothing_to_go_on_with(tmp_path, collection):
    assert build_index(collection, tmp_path / "index", "splade", resume=True).documents == DOCUMENTS


def test_skipped_documents_are_listed_once_after_a_resume(tmp_path, collection, monkeypatch):
    with (collection / "part0.jsonl").open("a") as handle:
        handle.write('\n{"id": "bad"}\n' + '{"id": "d000", "vector": {"a": 1}}\n')
    expected = tmp_path / "expected"
    build_index(collection, expected, "splade", on_error="skip")
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(build, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(ImpactWriter, "duplicate_ids", lambda *_: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        build_index(collection, tmp_path / "index", "splade", on_error="skip")
    monkeypatch.undo()
    build_index(collection, tmp_path / "index", "splade", on_error="skip", resume=True)
    assert (tmp_path / "index" / SKIPPED_LOG).read_text() == (expected / SKIPPED_LOG).read_text()
    assert rankings(tmp_path / "index") == rankings(expected)


def test_a_second_writer_is_told(tmp_path, collection):
    index, told = tmp_path / "index", []

    def second():
        try:
            build_index(collection, index, "splade")
        except OutputError as error:
            told.append(str(error))

    with ImpactIndexer(index, "m") as indexer:
        indexer.add("d1", {"a": 1})
        second()
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        script = "import sys; from pyserini_compneg.commands.index import main; sys.exit(main())"
        other = run(script, "--collection", collection, "--index", index, "--encoder", "splade")
    said = f"{index}: another process is building it; wait for it, or give another --index"
    assert told == [said, said]
    assert (other.returncode, other.stderr) == (1, f"error: {said}\n")
    assert Manifest.read(index).documents == 1
    assert leftovers(tmp_path) == []


def test_a_full_disk_is_reported(tmp_path, collection):
    (tmp_path / "old.jsonl").write_text('{"id": "old", "vector": {"bird": 1}}\n')
    index = tmp_path / "index"
    build_index(tmp_path / "old.jsonl", index, "splade")
    before = contents(index)
    script = "import sys; from pyserini_compneg.commands.index import main; sys.exit(main())"
    done = run(
        script,
        *("--collection", collection, "--index", index, "--encoder", "splade", "--overwrite"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),  # no file may grow further
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {index}: the index cannot be written: ")
    assert done.stderr.count("\n") == 1
    assert contents(index) == before
    assert leftovers(tmp_path) == []


def test_an_exception_inside_leaves_nothing(tmp_path):
    said = f"{tmp_path}/index: document:2: the weight of 'a' is negative"
    with pytest.raises(CollectionError, match=said), ImpactIndexer(tmp_path / "index", "m") as indexer:
        indexer.add("d1", {"a": 1})
        indexer.add("d2", {"a": -1})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "[]", "\udcff", ""])
def test_a_damaged_plan_is_no_plan(collection, unfinished, content):
    plan = unfinished.parent / ".index.building" / "build.json"
    plan.write_bytes(content.encode(errors="surrogateescape"))
    assert build_index(collection, unfinished, "splade", resume=True).documents == DOCUMENTS
    assert leftovers(unfinished.parent) == []


def test_no_place_at_all(collection):
    with pytest.raises(CollectionError, match="is in the folder of the index, /; give another --index$"):
        build_index(collection, "/", "splade", resume=True)


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs a mount point that is always there")
def test_a_mount_point_is_known_before_the_work():
    with pytest.raises(OutputError) as caught, ImpactIndexer("/proc", "m"):
        pass
    assert str(caught.value) == "/proc: is a mount point, which no folder can replace; give a folder in it as --index"
