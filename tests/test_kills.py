"""Work that is killed, interrupted or begun twice at any step: what is visible is whole, and what was done is kept."""

import errno
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar

import pytest
from film_index import start
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from index_folders import hidden
from json_lines import write_jsonl
from refusals import KEPT
from stand_in_encoder import StandInEncoder
from steps import as_steps, at_step, copied
from updated_indexes import best, draw_document
from updated_indexes import build as build_old
from vector_files import NAME, encode, records
from works import Work, killed_at_steps

from pyserini_compneg.compose import Linear
from pyserini_compneg.documents.vector_files import VECTORS_FILE
from pyserini_compneg.encode.export import save_exported
from pyserini_compneg.encode.models import MINI, model_folder, read_checkpoint
from pyserini_compneg.index import build, build_index, build_sharded_index, update_index, verify_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactWriter, open_reader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support import files, staging
from pyserini_compneg.support.errors import OutputError
from pyserini_compneg.topics.topic_runs import search_topics
from pyserini_compneg.topics.topics import read_topics

DOCUMENTS = 24
SHARDS = 3
QUERIES = [Linear({a: 2.0, b: -1.0, c: 5.0}) for a, b, c in ("abc", "def", "ghi", "jab")]
BUILDING = ".index.building"
EXCHANGE = staging._exchange


@dataclass(frozen=True)
class Disturbed(Work):
    """A function that is disturbed at its steps.

    Attributes:
        existing: The ways to begin it: what to do about what exists, its last argument.
        mark: A file in the folder, which says that unfinished work can be continued.
        kept: How many documents need not be taken again, given the folder of work that can be continued.
        half: A file to which a kill may have written half of something.
        busy: What a second process is told; without it, the last one wins.
        cleans: Whether it removes what a killed process has left.
        in_place: Whether it changes an existing result, of which it takes only the documents that differ.
    """

    existing: tuple[str, ...] = ("refuse", "resume", "overwrite", "resume or overwrite")
    mark: str = ""
    kept: Callable[[Path], int] = lambda folder: 1
    half: str = ""
    busy: str = ""
    cleans: bool = True
    in_place: bool = False


def indexing(collection, folder, existing, encoder="splade"):
    build_index(collection, folder / "index", encoder, existing=existing, on_error="skip", optimize=True, threads=1)


def indexing_in_shards(collection, folder, existing):
    index, options = folder / "index", {"existing": existing, "on_error": "skip", "threads": 1}
    build_sharded_index(collection / "part0.jsonl", index, SHARDS, "splade", **options)


def whole_shards(folder):
    return sum(1 for shard in (folder / BUILDING).glob("shard-*/compneg.json")) * DOCUMENTS // 2 // SHARDS


def found(index):
    """What an index finds, and the documents that were left out."""
    assert hidden(index) == []
    with open_reader(index) as reader:
        rankings = [[*zip(*hits, strict=True)] for hits in reader.search(QUERIES, 2 * DOCUMENTS)]
        return reader.manifest, rankings, sorted(path.read_text() for path in index.rglob(SKIPPED_LOG))


def folder_bytes(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def searching(collection, folder, existing):
    with SignedImpactSearcher(folder / "index") as searcher:
        search_topics(searcher, read_topics(f"{collection}.tsv"), folder / "run.txt")


def old_index(folder, shards=0):
    """The index that is updated: each update inserts, replaces, keeps and deletes documents of it."""
    build_old(folder / "index", drawn("ab", "old"), shards, {})
    (folder / "index.jsonl").unlink()


def drawn(names, version):
    """Documents of several names, a third of which are the same in all versions."""
    seeds = {f"{name}{i:02}": version if i % 3 else "" for name in names for i in range(DOCUMENTS // 3)}
    return [draw_document(random.Random(docid + seed), docid, False) for docid, seed in seeds.items()]


def updating(collection, folder, existing):
    update_index(folder / "index", f"{collection}.changes.jsonl", f"{collection}.ids", threads=1)


def updated(index):
    """What an index that is updated finds. A kill may leave files in it that the next update removes."""
    verify_index(index)
    with open_reader(index) as reader:
        return reader.manifest, best(reader, DOCUMENTS)


def exporting(collection, folder, existing):
    source = model_folder(MINI)
    save_exported(read_checkpoint(source), source, "int8", folder / "model")


INDEX = Disturbed(
    *(indexing, "index", found),
    existing=("refuse", "resume", "overwrite", "replace", "resume or overwrite"),
    mark=f"{BUILDING}/build.json",
    half=f"{BUILDING}/{SKIPPED_LOG}",
    busy="another process is building it; wait for it, or give another folder",
)
UPDATE = Disturbed(
    *(updating, "index", updated, old_index),
    existing=("overwrite",),
    busy="another process is updating or building it; wait for it",
    in_place=True,
)
WORKS = {
    "index": INDEX,
    "vectors": Disturbed(
        lambda collection, folder, existing: encode(collection / "part0.jsonl", folder, existing=existing),
        *(NAME, records),
        beside=(VECTORS_FILE,),
        mark=f".{NAME}.state",
        kept=lambda folder: json.loads((folder / f".{NAME}.state").read_text())["documents"],
        half=f".{NAME}.partial",
        busy="another process is writing it; wait for it",
    ),
    "index in shards": replace(INDEX, start=indexing_in_shards, kept=whole_shards, half=""),
    "index of texts": replace(INDEX, start=partial(indexing, encoder="bm25")),
    "update": UPDATE,
    "update of shards": replace(UPDATE, prepare=partial(old_index, shards=2)),
    "export": Disturbed(exporting, "model", folder_bytes, existing=("refuse",), cleans=False),
    "run": Disturbed(
        *(searching, "run.txt", Path.read_text),
        prepare=lambda folder: indexing(folder.parent / "a", folder, "refuse", "bm25"),
        beside=("index",),
        existing=("overwrite",),
    ),
}


@pytest.fixture
def collections(tmp_path):
    """Two collections, each with a document that cannot be indexed and an id given twice; topics; and updates."""
    choice = random.Random(5)
    for name in "ab":
        vectors = [{term: choice.randint(1, 9) for term in choice.sample("abcdefghij", 4)} for _ in range(DOCUMENTS)]
        lines = [
            {"id": f"{name}{i:02}", "contents": " ".join(vector), "vector": vector} for i, vector in enumerate(vectors)
        ]
        write_jsonl(tmp_path / name / "part0.jsonl", *lines[::2])
        write_jsonl(tmp_path / name / "part1.jsonl", *lines[1::2], {**lines[1], "vector": {"a": 1}}, {"id": "bad"})
        (tmp_path / f"{name}.tsv").write_text("".join(f"{i}\t{name} NOT {q}\n" for i, q in enumerate("cdefg")))
        write_jsonl(tmp_path / f"{name}.changes.jsonl", *drawn(f"{name}c", name))
        gone = [document["id"] for document in drawn("ab".replace(name, ""), "")]
        (tmp_path / f"{name}.ids").write_text("\n".join([*gone, "missing"]))
    return {name: tmp_path / name for name in "ab"}


class Works(RuleBasedStateMachine):
    """A folder in which a work is begun with one collection or the other, and seldom comes to its end."""

    work: ClassVar[Disturbed]
    collections: ClassVar[dict[str, Path]]
    expected: ClassVar[dict[str, tuple[object, int, int]]]
    """What the target holds when nobody disturbs the work, how many documents it takes, and in how many steps."""

    taken: ClassVar[list[int]]
    """The documents that were taken since the list was emptied."""

    home: ClassVar[Path]

    def __init__(self):
        super().__init__()
        self.killed = Path(mkdtemp(dir=self.home), "killed")
        self.folder = shutil.copytree(self.home / "prepared", self.killed.with_name("folder"))
        self.visible = self.look()

    @initialize(swaps=st.booleans())
    def choose(self, swaps):
        """Systems that cannot swap two folders rename one after the other."""
        staging._exchange = EXCHANGE if swaps else lambda a, b: False

    @rule(
        of=st.sampled_from("ab"),
        existing=st.integers(0, 4),
        end=st.sampled_from(["killed", "killed", "killed", "interrupted", "full", "joined", ""]),
        when=st.integers(0, 99),
        half=st.booleans(),
    )
    def begin(self, of, existing, end, when, half):
        """Begins the work, and maybe has something happen at one of its steps."""
        step = 1 + when * self.expected[of][2] // 90
        self.run(of, self.work.existing[existing % len(self.work.existing)], end, step, half)

    @precondition(lambda self: (self.folder / (self.work.mark or "none")).is_file())
    @rule(content=st.sampled_from(["", "{", "[]", "7", '{"encoder": "bm25"}', '{"bytes": "x", "plan": {}}']))
    def damage(self, content):
        """Unfinished work of which nobody knows what it is cannot be continued, and is discarded only on request."""
        (self.folder / self.work.mark).write_text(content)

    def teardown(self):
        """However it has come so far, the work can be finished."""
        unfinished = self.unfinished()
        self.run(unfinished if unfinished in self.collections else "a", self.work.existing[-1])

    def run(self, of, existing, end="", step=0, half=False):
        outcome, before, left, told, error = self.outcome(of, existing), self.visible, self.left(), [], ""
        kept = self.work.kept(self.folder) if outcome == "continued" else 0
        whole, documents, _ = self.expected[of]

        def act(kind):
            told.append(kind)
            if end == "killed":
                copied(self.folder, self.killed)
            elif end == "interrupted":
                raise KeyboardInterrupt
            elif end == "full":
                raise OSError(errno.ENOSPC, "no space left on device")
            elif end == "joined":
                told.append(self.join(of, left))

        self.taken.clear()
        with at_step(self.folder, step if end else 0, act) as steps:
            try:
                self.work.start(self.collections[of], self.folder, existing)
            except OutputError as refused:
                error = str(refused)
            except KeyboardInterrupt:
                assert end == "interrupted"
        opened = [Path(path) for kind, path in steps if kind == "open"]
        in_result = [path for path in opened if path.is_relative_to(self.folder / self.work.result)]
        assert in_result == [] or self.work.in_place  # it would be half there
        visible = self.visible = self.look()
        if end in ("interrupted", "full") and told:
            assert visible == before or (visible == whole and outcome != "refused")
            assert visible is None or (self.folder / self.work.result).exists()
            if told[0] not in ("os.remove", "os.rmdir", "shutil.rmtree"):  # or it is the cleaning that was disturbed
                kept = (self.work.mark, self.work.half) if self.unfinished() else ()
                former = {self.former()} if visible == whole else set()
                assert self.left() - left <= {path.partition("/")[0] for path in kept} | former
        elif end == "joined" and told:
            assert visible == (before if outcome == "refused" and told[1] else whole)
        elif outcome == "refused":
            assert error
            assert visible == before
            if self.work.mark.startswith(BUILDING) and not self.unfinished() and (self.folder / "index").exists():
                assert self.left() <= {self.former()}
        else:
            assert error == ""
            assert visible == whole
            assert self.left() == set() or not self.work.cleans
            if not self.work.in_place:
                assert sum(self.taken) <= documents - kept
                assert outcome == "continued" or sum(self.taken) == documents
        if end == "killed" and told:
            shutil.rmtree(self.folder)
            self.killed.rename(self.folder)
            visible = self.visible = self.look()
            assert visible == before or (visible == whole and outcome != "refused")
            if half and (self.folder / self.work.half).is_file():
                with (self.folder / self.work.half).open("ab") as file:
                    file.write(b"\x1f\x8b half of a block\n" * 100)

    def join(self, of, left):
        """Begins the work once more, while it is going on; returns why that is refused."""
        result = self.folder / self.work.result
        staged = self.left() - left - {staging.lock_file(result).name}
        try:
            self.work.start(self.collections[of], self.folder, "overwrite")
        except OutputError as error:
            assert str(error) == f"{result}: {self.work.busy}"
            return str(error)
        assert not (staged and self.work.busy)
        return ""

    def look(self):
        return self.work.look(self.folder)

    def left(self):
        return self.work.left(self.folder)

    def former(self):
        """The name under which an old result may be left where folders are not swapped, until one is built again."""
        return staging.former_folder(self.folder / self.work.result).name

    def unfinished(self):
        """Of which collection there is unfinished work; ``damaged`` if nothing says so; None without such work."""
        mark, half = (self.folder / (name or "none") for name in (self.work.mark, self.work.half))
        if not mark.is_file() or (self.work.half and not half.is_file()):
            return None
        text = mark.read_text()
        return next((name for name, place in self.collections.items() if f'"{place}/' in text), "damaged")

    def outcome(self, of, existing):
        """What is to become of the work."""
        unfinished = self.unfinished()
        if existing in ("refuse", "resume") and self.visible is not None:
            return "refused"
        if unfinished is None or existing == "overwrite" or (existing == "replace" and unfinished != of):
            return "built"
        if unfinished == "damaged" and existing == "resume or overwrite":
            return "built"
        return "continued" if unfinished == of and existing != "refuse" else "refused"


def prepare(patch):
    """Has the works read small blocks, each of which is a checkpoint; returns the documents that they take from now."""
    taken, add_lines, stream = [], ImpactWriter.add_lines, StandInEncoder.stream

    def adding(writer, lines, *more):
        taken.append(lines.count(b'"id"'))
        return add_lines(writer, lines, *more)

    def streaming(model, batches):
        return stream(model, (taken.append(len(texts)) or texts for texts in batches))

    patch.setattr(staging, "_exchange", EXCHANGE)
    patch.setattr(files, "_BLOCK_BYTES", 1 << 8)
    patch.setattr(build, "CHECKPOINT_SECONDS", -1)
    patch.setattr(ImpactWriter, "add_lines", adding)
    patch.setattr(StandInEncoder, "stream", streaming)
    as_steps(patch, ImpactWriter, "add_lines", "remove", "commit", "optimize", "settle", "release")
    return taken


@pytest.fixture
def machine(name, tmp_path, collections, monkeypatch):
    """The state machine of a work."""
    work, expected, taken = WORKS[name], {}, prepare(monkeypatch)
    (tmp_path / "prepared").mkdir()
    work.prepare(tmp_path / "prepared")
    for of, collection in collections.items():
        folder = shutil.copytree(tmp_path / "prepared", tmp_path / "expected" / of)
        taken.clear()
        with at_step(folder, 0, str) as steps:
            work.start(collection, folder, work.existing[0])
        expected[of] = work.look(folder), sum(taken), len(steps)
    attributes = {"work": work, "collections": collections, "expected": expected, "taken": taken}
    return type(name, (Works,), {**attributes, "home": tmp_path})


FAST = {"vectors": 20, "run": 10, "index": 3, "update": 3}
SLOW = {"index": 9, "index in shards": 5, "update": 9, "update of shards": 5}  # beside the fast ones
ONCE = {"vectors": 40, "run": 10, "export": 10, "index of texts": 5}  # Lucene writes nothing, or what an index has


def works(examples, *marks):
    return [pytest.param(*work, marks=marks, id=f"{work[0]}-slow") for work in examples.items()]


@pytest.mark.parametrize(
    ("name", "examples"),
    [*FAST.items(), *works(SLOW, pytest.mark.slow), *works(ONCE, pytest.mark.slow, pytest.mark.once)],
)
def test_work_that_is_disturbed_is_whole_in_the_end(machine, examples):
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=5))


EACH_STEP = pytest.param("update of shards", 1, marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "every"), [("update", 4), ("update of shards", 9), EACH_STEP])
def test_work_that_is_killed_at_its_steps_shows_nothing_and_can_be_begun_again(machine, tmp_path, every):
    state, work, collection, after = machine(), machine.work, machine.collections["a"], machine.expected["a"][0]
    with killed_at_steps(state.folder, tmp_path, every) as killed:
        work.start(collection, state.folder, work.existing[0])
    assert len(killed) * every > 8
    shown = [work.look(folder) for folder in killed]
    assert shown == [state.visible] * shown.count(state.visible) + [after] * shown.count(after)
    for folder in killed:
        work.start(collection, folder, work.existing[-1])
        assert work.look(folder) == after
        assert work.left(folder) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index"])
@pytest.mark.parametrize("end", ["killed", "full", "interrupted"])
def test_an_old_index_that_is_removed_in_part(machine, end):
    """Where folders are not swapped, the old one has another name until it is gone."""
    last = machine.expected["a"][2]
    for step in range(last - 2, last + 20, 3):
        state = machine()
        state.choose(swaps=False)
        state.run("b", "refuse")
        state.run("a", "overwrite", end, step)
        state.run("a", "refuse")
        state.teardown()


BEGUN = """
import os, signal, sys
from pathlib import Path
import pytest
from steps import at_step
from test_kills import WORKS, prepare
from pyserini_compneg.commands.running import run_main

name, collection, folder, existing, step = sys.argv[1:]
prepare(pytest.MonkeyPatch())
with at_step(Path(folder), int(step), lambda _: os.kill(os.getpid(), signal.SIGKILL)):
    sys.exit(run_main(lambda _: print(WORKS[name].start(Path(collection), Path(folder), existing))))
"""


def ended(name, state, existing, step=0, **options):
    """The exit code and the messages of a process that does a work, and is killed at a step."""
    with start(name, state.collections["a"], state.folder, existing, step, code=BEGUN, **options) as process:
        said = process.communicate(timeout=120)[1]
    return process.returncode, said


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "vectors"])
def test_processes_that_are_killed(machine, name):
    """As above, where the system itself takes the locks of a process away, and Java is killed, too."""
    state = machine()
    steps = machine.expected["a"][2]
    for step in (steps // 2, 5, 8):
        assert ended(name, state, "resume", step) == (-signal.SIGKILL, "")
        assert state.look() is None
        assert state.unfinished() == "a"
    state.run("a", "resume")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "vectors", "update"])
def test_a_second_process_is_told(machine, name):
    state, seen = machine(), []
    with at_step(state.folder, machine.expected["a"][2] // 2, lambda _: seen.append(ended(name, state, "overwrite"))):
        machine.work.start(machine.collections["a"], state.folder, machine.work.existing[0])
    assert seen == [(1, f"error: {state.folder / machine.work.result}: {machine.work.busy}\n")]
    assert state.look() == machine.expected["a"][0]
    assert state.left() == set()


WARNED = re.escape(f"warning: FOLDER/{NAME}: {KEPT}\n")
NO_ROOM = "error: FOLDER/.*: cannot be written: file too large; make room, or give another --output\n"
NO_ROOM_FOR_INDEX = "(info: updating: .*\n)?error: FOLDER/index: the index cannot be written: [Ff]ile too large\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [
        ("vectors", 100, NO_ROOM),
        ("vectors", 450, WARNED + NO_ROOM),
        ("update of shards", 400, NO_ROOM_FOR_INDEX),
        ("update of shards", 700, NO_ROOM_FOR_INDEX),
    ],
)
def test_a_full_disk(machine, name, limit, message):
    """A few lines tell; what is visible stays, and the work can be begun again."""
    state = machine()
    no_file_may_grow_further = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
    code, said = ended(name, state, machine.work.existing[0], preexec_fn=no_file_may_grow_further)
    assert code == 1
    assert re.fullmatch(message.replace("FOLDER", re.escape(str(state.folder))), said), said
    assert state.look() == state.visible
    assert bool(state.left()) == message.startswith(WARNED)
    state.run("a", machine.work.existing[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("shards --ray", "with --ray, the works are encode, index, search, not shards"),
        ("search --victims worker", "without --ray, the victims are command, not worker"),
    ],
)
def test_what_kills_cannot_do_is_said_before_anything_starts(arguments, said):
    script = [sys.executable, Path(__file__).with_name("kills.py"), *arguments.split()]
    done = subprocess.run(script, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"kills.py: error: {said}")
