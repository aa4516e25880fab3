"""However a build ends, the old index stays, and what was done can be continued."""

import json
import os
import random
import resource
import shutil
import threading

import pytest
from film_index import start
from index_folders import contents, hidden
from json_lines import write_jsonl
from refusals import EXISTS, START_ANEW, UNFINISHED, refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import ImpactIndexer, build, build_index
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, Manifest, writer
from pyserini_compneg.support import files
from pyserini_compneg.support.errors import InputError, OutputError

pytestmark = pytest.mark.slow

DOCUMENTS = 200


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
        queries = [Linear({a: 2.0, b: -1.0, c: 5.0}) for a, b, c in ("abc", "def", "ghi", "jab")]
        return reader.manifest, reader.search(queries, 2 * DOCUMENTS)


@pytest.fixture
def unfinished(tmp_path, collection, monkeypatch):
    """An index whose build ended after some checkpoints."""
    add_lines, calls = ImpactWriter.add_lines, []

    def fails(*arguments):
        calls.append(arguments)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return add_lines(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "_BLOCK_BYTES", 1 << 10)
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)
        patch.setattr(ImpactWriter, "add_lines", fails)
        build_index(collection, tmp_path / "index", "splade")
    assert hidden(tmp_path) == [".index.building"]
    assert not (tmp_path / "index").exists()
    return tmp_path / "index"


def test_an_interruption_is_heard_while_java_merges(tmp_path, collection, old, monkeypatch):
    index, asked, segments = tmp_path / "index", [], []
    build_index(old, index, "splade")
    before = contents(index)

    def call(self, method, original=ImpactWriter._call):
        if "optimize" in method.__code__.co_names:
            segments.extend(tmp_path.glob(".index.building/*.si"))
        answer = original(self, method)
        if "optimized" in method.__code__.co_names and not asked:
            asked.append(answer)
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(files, "_BLOCK_BYTES", 1 << 10)
        patch.setattr(build, "CHECKPOINT_SECONDS", 0)  # so that there are segments to merge
        patch.setattr(ImpactWriter, "_call", call)
        patch.setattr(writer, "_MILLISECONDS", 0)
        for _ in range(5):  # a slow machine may ask when the merge has just ended
            asked.clear()
            with pytest.raises(KeyboardInterrupt):
                build_index(collection, index, "splade", reorder=True, existing="overwrite")
            assert len(segments) > 1
            assert contents(index) == before
            if asked == [False]:
                break
    assert asked == [False]
    assert build_index(collection, index, "splade", reorder=True, existing="replace").documents == DOCUMENTS
    assert hidden(tmp_path) == []


def test_another_build_is_not_continued(collection, unfinished, caplog):
    changes = {"signed": {"signed": True}, "filter_fields": {"filter_fields": ["a"]}, "encoder": {"encoder": "x"}}
    changes |= {"pair_terms, pair_scale": {"pair_terms": 4}, "pairs, pair_scale": {"pairs": ("a∩b",)}, "sources": {}}
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
        ) == (f"{unfinished}: the unfinished work cannot be continued, because {changed} changed since; {START_ANEW}")
        assert hidden(unfinished.parent) == [".index.building"]
    said = refusal(build_index, collection, unfinished, "splade", error=OutputError)
    assert said == f"{unfinished}: {UNFINISHED}"
    build_index(collection, unfinished, "splade", existing="replace")
    assert f"{unfinished}: sources changed since the work was begun, so it starts anew" in caplog.messages


def test_a_former_index_is_removed_by_the_next_build_only(tmp_path, old):
    """Where folders are not swapped, a kill between two renames leaves one."""
    index, former = tmp_path / "index", tmp_path / ".index.old"
    build_index(old, index, "splade")
    shutil.copytree(index, former)
    assert refusal(build_index, old, index, "splade", error=OutputError) == f"{index}: {EXISTS}"
    assert contents(former) == contents(index)
    build_index(old, index, "splade", existing="overwrite")
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("files", [[], ["_0.cfs"]])
def test_a_folder_that_has_the_name_of_a_former_index_stays(tmp_path, old, files):
    former = tmp_path / ".index.old"
    former.mkdir()
    for name in files:
        (former / name).touch()
    for _ in range(2):
        build_index(old, tmp_path / "index", "splade", existing="overwrite")
    assert [path.name for path in former.iterdir()] == files


def test_a_damaged_build_is_not_discarded_unasked(collection, unfinished):
    (unfinished.parent / ".index.building" / "build.json").write_text("{")
    resumed = refusal(build_index, collection, unfinished, "splade", existing="resume", error=OutputError)
    why = "the unfinished work cannot be continued, because its record is missing or damaged"
    assert resumed == f"{unfinished}: {why}; {START_ANEW}"
    assert refusal(build_index, collection, unfinished, "splade", error=OutputError) == f"{unfinished}: {UNFINISHED}"
    assert build_index(collection, unfinished, "splade", existing="resume or overwrite").documents == DOCUMENTS
    assert hidden(unfinished.parent) == []


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
