"""However a build ends, the old index stays, and what was done can be continued."""

import json
import os
import random
import resource
import shutil
import signal
import threading

import pytest
from film_index import start
from index_folders import contents, hidden
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.index import ImpactIndexer, build, build_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, Manifest, writer
from pyserini_compneg.support import files
from pyserini_compneg.support.errors import InputError, OutputError

pytestmark = pytest.mark.slow

DOCUMENTS = 200
KILLS = 4

# Runs the command, and kills its own process at a step of the work, before or after it is done.
MORTAL_COMMAND = """
import shutil, sys
from mortal import make_mortal
from pyserini_compneg.support import files, staging
from pyserini_compneg.index import build, indexer
from pyserini_compneg.commands.index import main
from pyserini_compneg.lucene import ImpactWriter, Manifest

steps = int(sys.argv.pop())
files._BLOCK_BYTES = 1 << 10
build.CHECKPOINT_SECONDS = 0

places = (
    (ImpactWriter, ("add_lines", "commit", "optimize", "__exit__")),
    (Manifest, ("write",)),
    (indexer, ("keep_unfinished",)),
    (staging, ("_exchange",)),
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


@pytest.fixture
def old(tmp_path):
    return write_jsonl(tmp_path / "old.jsonl", {"id": "old", "contents": "bird", "vector": {"bird": 1}})


def run(*arguments, **options):
    with start(*arguments, **{"module": "pyserini_compneg.index", **options}) as process:
        _, said = process.communicate(timeout=120)
    return process.returncode, said


def rankings(index):
    with ImpactReader(index) as reader:
        queries = [json.dumps({"vector": {a: 2, b: -1, c: 5}}) for a, b, c in ("abc", "def", "ghi", "jab")]
        return reader.manifest, reader.search(queries, 2 * DOCUMENTS)


@pytest.mark.kill
@pytest.mark.parametrize("encoder", ["splade", "bm25"])
def test_kills_at_random_points(tmp_path, collection, old, encoder):
    expected, index = tmp_path / "expected", tmp_path / "index"
    build_index(collection, expected, encoder, optimize=True)
    build_index(old, index, encoder)
    before = contents(index)
    arguments = "--collection", collection, "--index", index, "--encoder", encoder, "--reorder", "--overwrite"
    choice = random.Random(encoder)
    killed = 0
    while killed < KILLS:
        ended = run(*arguments, "--resume", choice.randint(1, 60), code=MORTAL_COMMAND)
        if ended[0] != 0:
            assert ended == (-signal.SIGKILL, "")
            killed += 1
        if contents(index) != before:  # complete, or killed after the exchange
            assert rankings(index) == rankings(expected)
            build_index(old, index, encoder, existing="overwrite")
            before = contents(index)
        else:
            assert ended[0] != 0
    assert run(*arguments, "--resume", 0, code=MORTAL_COMMAND)[0] == 0
    assert rankings(index) == rankings(expected)
    assert hidden(tmp_path) == []


def test_the_new_index_is_there_when_the_old_one_is_deleted(tmp_path, collection, old, monkeypatch):
    index, seen, rmtree = tmp_path / "index", [], shutil.rmtree
    build_index(old, index, "splade")

    def watched(*arguments, **options):
        rmtree(*arguments, **options)
        seen.append(Manifest.read(index).documents)

    monkeypatch.setattr(shutil, "rmtree", watched)
    build_index(collection, index, "splade", existing="overwrite")
    assert seen == [DOCUMENTS]


class Killed(BaseException):
    """Ends a build as a kill does, but Python still cleans up."""


@pytest.fixture
def unfinished(tmp_path, collection, monkeypatch):
    """An index whose build ended after some checkpoints."""
    add_lines, calls = ImpactWriter.add_lines, []

    def fails(*arguments):
        calls.append(arguments)
        if len(calls) == 10:
            raise Killed
        return add_lines(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(files, "_BLOCK_BYTES", 1 << 10)
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)
        patch.setattr(ImpactWriter, "add_lines", fails)
        build_index(collection, tmp_path / "index", "splade")
    assert hidden(tmp_path) == [".index.building"]
    assert not (tmp_path / "index").exists()
    return tmp_path / "index"


# What becomes of a build where an index is there, an unfinished build of the same collection, and one of another.
EXISTING = {
    "refuse": ("refused", "refused", "refused"),
    "resume": ("refused", "continued", "refused"),
    "overwrite": ("built", "built", "built"),
    "replace": ("built", "continued", "built"),
    "resume or overwrite": ("built", "continued", "refused"),
}


@pytest.mark.parametrize("existing", EXISTING)
def test_what_is_there_already(tmp_path, collection, old, unfinished, monkeypatch, caplog, existing):
    added, told, add_lines = [], [], ImpactWriter.add_lines
    build_index(collection, tmp_path / "expected", "splade", existing="resume")  # there is nothing to continue
    expected = rankings(tmp_path / "expected")
    monkeypatch.setattr(ImpactWriter, "add_lines", lambda *all_: added.append(all_[1]) or add_lines(*all_))

    def outcome(index):
        added.clear()
        try:
            build_index(collection, index, "splade", existing=existing)
        except OutputError as error:
            told.append(str(error))
            return "refused"
        if index.name != "other":  # its collection has another line
            assert rankings(index) == expected
        lines = sum(block.count(b"\n") for block in added)
        assert lines > 0
        return "continued" if lines < DOCUMENTS - 10 else "built"

    shutil.copytree(tmp_path / ".index.building", tmp_path / ".other.building")
    build_index(old, tmp_path / "there", "splade")
    outcomes = [outcome(tmp_path / "there"), outcome(unfinished)]
    with (collection / "part1.jsonl").open("a") as handle:
        handle.write("\n")
    assert (*outcomes, outcome(tmp_path / "other")) == EXISTING[existing]
    if existing == "refuse":
        assert told[1] == (
            f"{unfinished}: there is an unfinished build of it; give --resume (existing='resume') to continue it, or "
            "--overwrite (existing='overwrite') to discard it"
        )
    if existing == "replace":
        said = f"{tmp_path / 'other'}: sources changed since the unfinished build, so it starts anew"
        assert said in caplog.messages
    left = {"refuse": [".index.building", ".other.building"]}
    kept = [".other.building"] if EXISTING[existing][2] == "refused" else []
    assert sorted(hidden(tmp_path)) == left.get(existing, kept)


def test_an_interruption_is_heard_while_java_merges(tmp_path, collection, old, monkeypatch):
    index, asked = tmp_path / "index", []
    build_index(old, index, "splade")
    before = contents(index)

    def call(self, method, original=ImpactWriter._call):
        answer = original(self, method)
        if answer is False and not asked:  # it still merges
            asked.append(answer)
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "_BLOCK_BYTES", 1 << 10)
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)  # so that there are segments to merge
        patch.setattr(ImpactWriter, "_call", call)
        patch.setattr(writer, "_MILLISECONDS", 0)
        build_index(collection, index, "splade", reorder=True, existing="overwrite")
    assert asked == [False]
    assert contents(index) == before
    assert build_index(collection, index, "splade", reorder=True, existing="replace").documents == DOCUMENTS
    assert hidden(tmp_path) == []


def test_another_build_is_not_continued(collection, unfinished):
    changes = {"signed": {"signed": True}, "pair_terms": {"pair_terms": 4}, "encoder": {"encoder": "x"}, "sources": {}}
    for changed, options in changes.items():
        if changed == "sources":
            with (collection / "part1.jsonl").open("a") as handle:
                handle.write("\n")
        assert refusal(
            build_index,
            collection,
            unfinished,
            **{"encoder": "splade", "existing": "resume", **options},
            error=OutputError,
        ) == (
            f"{unfinished}: the unfinished build cannot be continued, because {changed} changed since; give "
            "--replace (existing='replace') to start anew"
        )
        assert hidden(unfinished.parent) == [".index.building"]


def test_what_a_killed_build_left_is_removed_by_the_next_command(tmp_path, collection, old):
    index, building = tmp_path / "index", tmp_path / ".index.building"
    build_index(old, index, "splade")
    building.mkdir()
    (building / "_0.doc").touch()
    (tmp_path / ".index.lock").touch()
    said = f"{index}: exists already; give --overwrite (existing='overwrite') to replace it, or another folder"
    assert refusal(build_index, collection, index, "splade", error=OutputError) == said
    assert hidden(tmp_path) == []
    with ImpactIndexer(index, "m", existing="overwrite") as indexer:
        assert refusal(build_index, collection, index, "splade", error=OutputError) == said
        indexer.add("d", {"a": 1})
    assert Manifest.read(index).documents == 1


@pytest.mark.parametrize("encoder", ["splade", "bm25"])
@pytest.mark.parametrize("content", ["{", "[]", '{"encoder": "bm25"}'])
def test_a_damaged_plan_is_no_plan(collection, unfinished, content, encoder):
    plan = unfinished.parent / ".index.building" / "build.json"
    plan.write_text(content)
    assert build_index(collection, unfinished, encoder, existing="resume").documents == DOCUMENTS
    assert hidden(unfinished.parent) == []


def test_skipped_documents_are_listed_once_after_a_resume(tmp_path, collection, monkeypatch):
    with (collection / "part0.jsonl").open("a") as handle:
        handle.write('\n{"id": "bad"}\n' + '{"id": "d000", "vector": {"a": 1}}\n')
    expected = tmp_path / "expected"
    build_index(collection, expected, "splade", on_error="skip")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(files, "_BLOCK_BYTES", 1 << 10)
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)
        patch.setattr(ImpactWriter, "duplicate_ids", lambda *_: (_ for _ in ()).throw(Killed))
        build_index(collection, tmp_path / "index", "splade", on_error="skip")
    build_index(collection, tmp_path / "index", "splade", on_error="skip", existing="resume")
    assert (tmp_path / "index" / SKIPPED_LOG).read_text() == (expected / SKIPPED_LOG).read_text()
    assert rankings(tmp_path / "index") == rankings(expected)


def test_a_second_writer_is_refused(tmp_path, collection):
    index, refusals = tmp_path / "index", []

    def second():
        try:
            build_index(collection, index, "splade")
        except OutputError as error:
            refusals.append(str(error))

    with ImpactIndexer(index, "m") as indexer:
        indexer.add("d1", {"a": 1})
        second()
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        ended = run("--collection", collection, "--index", index, "--encoder", "splade")
    said = f"{index}: another process is building it; wait for it, or give another folder"
    assert refusals == [said, said]
    assert ended == (1, f"error: {said}\n")
    assert Manifest.read(index).documents == 1
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("bad_lines", [0, 500])  # their list does not fit, either
def test_a_full_disk_is_reported(tmp_path, collection, old, bad_lines):
    index = tmp_path / "index"
    build_index(old, index, "splade")
    before = contents(index)
    (collection / "bad.jsonl").write_text("bad\n" * bad_lines)
    arguments = "--collection", collection, "--index", index, "--encoder", "splade", "--overwrite", "--on-error", "skip"
    no_file_may_grow_further = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))  # noqa: E731
    code, said = run(*arguments, preexec_fn=no_file_may_grow_further)
    assert code == 1
    assert said.startswith(f"error: {index}: the index cannot be written: ")
    assert said.count("\n") == 1
    assert contents(index) == before
    assert hidden(tmp_path) == []


def test_the_root_of_the_file_system_is_no_index(collection):
    with pytest.raises(InputError, match="is in the folder of the index, /; give another folder$"):
        build_index(collection, "/", "splade", existing="resume")


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs a folder that takes no files")
def test_a_place_that_cannot_be_written(collection):
    message = refusal(build_index, collection, "/proc/index", "splade", error=OutputError)
    assert message == "/proc/index: cannot be written: /proc takes no files; give another folder"


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs a mount point that is always there")
def test_a_mount_point_is_known_before_the_work():
    with pytest.raises(OutputError) as caught, ImpactIndexer("/proc", "m"):
        pass
    assert str(caught.value) == "/proc: is a mount point, which no folder can replace; give a folder in it"
