"""An encoding that was killed can be continued, and an incomplete file never has its final name."""

import os
import random
import resource
import signal
import subprocess
import sys

import pytest
from refusals import refusal
from stand_in_encoder import StandInEncoder
from vector_files import DOCUMENTS, NAME, encode, leftovers, records, sources

from pyserini_compneg.encode.corpus import encode_collection
from pyserini_compneg.support.errors import OutputError

# Runs the encoding with the stand-in, and kills its own process at a step of the work, before or after it is done.
MORTAL = """
import os, sys
from mortal import make_mortal
from pyserini_compneg.support import files
from pyserini_compneg.documents import vector_files
from pyserini_compneg.encode.corpus import encode_collection
from stand_in_encoder import StandInEncoder

collection, output, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
files._BLOCK_BYTES = 1 << 10

make_mortal(((os, ("fsync", "replace", "unlink")), (vector_files.ShardFile, ("add", "_open"))), steps)
from pyserini_compneg.commands.running import run_main
model = StandInEncoder()
sys.exit(run_main(lambda _: print(encode_collection(collection, output, "m", model=model, existing="resume"))))
"""


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


class Killed(BaseException):
    """Ends a run as a kill would, but for its leftovers."""


@pytest.fixture
def unfinished(tmp_path, collection, small_blocks, monkeypatch, caplog):
    """The place of a file whose encoding ended after some blocks."""
    stream = StandInEncoder.stream

    def fails(self, batches):
        for number, vectors in enumerate(stream(self, batches)):
            if number == 7:
                raise Killed
            yield vectors

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(StandInEncoder, "stream", fails)
        encode(collection, tmp_path / "out")
    place = tmp_path / "out" / NAME
    assert leftovers(place.parent) == [f".{NAME}.partial", f".{NAME}.state"]
    assert caplog.messages == [f"{place}: the encoded documents are kept; continue with --resume"]
    return place


@pytest.mark.parametrize("after_the_state", [b"", b"\x1f\x8b half of a block" * 10_000])  # which a kill left
def test_unfinished_work_is_continued(tmp_path, collection, unfinished, monkeypatch, after_the_state):
    with (tmp_path / "out" / f".{NAME}.partial").open("ab") as partial:
        partial.write(after_the_state)
    seen = []
    stream = StandInEncoder.stream
    monkeypatch.setattr(
        StandInEncoder, "stream", lambda self, batches: stream(self, (seen.extend(texts) or texts for texts in batches))
    )
    encode(collection, tmp_path / "out", existing="resume")
    assert 0 < len(seen) < DOCUMENTS - 20
    assert records(unfinished) == records(encode(collection, tmp_path / "expected"))
    assert leftovers(tmp_path / "out") == []


def test_unfinished_work_is_kept_without_a_flag(tmp_path, collection, unfinished):
    assert refusal(encode, collection, tmp_path / "out", error=OutputError) == (
        f"{unfinished}: there is unfinished work; continue it with --resume, or discard it with --overwrite"
    )
    assert encode(collection, tmp_path / "out", existing="overwrite") == unfinished
    assert len(records(unfinished)) == DOCUMENTS
    assert leftovers(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ("model", {"settings": {"precision": "int8"}}),
        ("model", {"settings": {"max_length": 64}}),
        ("encoder", {"name": "other"}),
        ("fields", {"fields": ["title"]}),
        ("sources", {}),
    ],
)
def test_other_work_is_not_continued(tmp_path, collection, unfinished, changed, options):
    if changed == "sources":
        with (collection / "part1.jsonl").open("a") as handle:
            handle.write("\n")
    for existing in ("resume", "resume or overwrite"):
        options |= {"existing": existing}
        assert refusal(encode, collection, tmp_path / "out", **options, error=OutputError) == (
            f"{unfinished}: cannot be continued, because {changed} changed; start again with --overwrite and without "
            "--resume"
        )
    assert leftovers(tmp_path / "out") == [f".{NAME}.partial", f".{NAME}.state"]


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"bytes": 10}', '{"bytes": "x", "plan": {}}', None])
def test_a_damaged_state_or_data_that_are_too_short_are_not_continued(tmp_path, collection, unfinished, content):
    if content is None:
        os.truncate(tmp_path / "out" / f".{NAME}.partial", 10)
    else:
        (tmp_path / "out" / f".{NAME}.state").write_text(content)
    encode(collection, tmp_path / "out", existing="resume")
    assert [record["id"] for record in records(unfinished)] == [document["id"] for document in sources(collection)]
    assert leftovers(tmp_path / "out") == []


@pytest.mark.kill
@pytest.mark.slow
def test_kills_at_random_points(tmp_path, collection):
    expected = records(encode(collection, tmp_path / "expected"))
    place = tmp_path / "out" / NAME
    choice = random.Random(11)
    killed = 0
    while killed < 6:
        done = run(MORTAL, collection, tmp_path / "out", choice.randint(1, 80))
        if done.returncode == 0:
            assert records(place) == expected
            place.unlink()
            continue
        assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
        killed += 1
        if place.exists():  # killed after it had its name
            assert records(place) == expected
            place.unlink()
    done = run(MORTAL, collection, tmp_path / "out", 0)
    assert (done.returncode, done.stdout) == (0, f"{place}\n")
    assert records(place) == expected
    assert leftovers(tmp_path / "out") == []


@pytest.mark.slow
def test_a_second_writer_is_told(tmp_path, collection):
    place = tmp_path / "out" / NAME
    told = []

    class Slow(StandInEncoder):
        def stream(self, batches):
            told.append(refusal(encode, collection, tmp_path / "out", existing="overwrite", error=OutputError))
            told.append(run(MORTAL, collection, tmp_path / "out", 0))
            yield from super().stream(batches)

    encode_collection(collection, tmp_path / "out", "m", model=Slow())
    said = f"{place}: another process is writing it; wait for it"
    assert told[0] == said
    assert (told[1].returncode, told[1].stderr) == (1, f"error: {said}\n")
    assert len(records(place)) == DOCUMENTS
    assert leftovers(tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize("limit", [100, 700, 3000])
def test_a_full_disk_is_reported(tmp_path, collection, limit):
    """The state is what does not fit first, or the vectors are; complete blocks can be continued."""
    done = run(
        MORTAL,
        *(collection, tmp_path / "out", 0),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),  # no file may grow further
    )
    place = tmp_path / "out" / NAME
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].endswith("cannot be written: file too large; make room, or give another --output")
    assert errors[0].startswith(f"error: {tmp_path / 'out'}")
    assert done.stderr.splitlines()[:-1] in (
        [],
        [f"warning: {place}: the encoded documents are kept; continue with --resume"],
    )
    assert not place.exists()
    assert len(leftovers(tmp_path / "out")) in (0, 2)
    assert run(MORTAL, collection, tmp_path / "out", 0).returncode == 0
    assert records(place) == records(encode(collection, tmp_path / "expected"))
