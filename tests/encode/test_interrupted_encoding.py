"""An encoding that was killed can be continued, and an incomplete file never has its final name."""

import os
import resource
import subprocess
import sys

import pytest
from refusals import refusal
from stand_in_encoder import StandInEncoder
from vector_files import DOCUMENTS, NAME, encode, leftovers, records, sources

from pyserini_compneg.encode.corpus import encode_collection
from pyserini_compneg.support.errors import OutputError

SCRIPT = """
import sys
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.support import files
from vector_files import encode

files._BLOCK_BYTES = 1 << 10
sys.exit(run_main(lambda _: print(encode(*sys.argv[1:], existing="resume"))))
"""


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


@pytest.fixture
def unfinished(tmp_path, collection, small_blocks, monkeypatch, caplog):
    """The place of a file whose encoding ended after some blocks."""
    stream = StandInEncoder.stream

    def fails(self, batches):
        for number, vectors in enumerate(stream(self, batches)):
            if number == 7:
                raise KeyboardInterrupt
            yield vectors

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StandInEncoder, "stream", fails)
        encode(collection, tmp_path / "out")
    place = tmp_path / "out" / NAME
    assert leftovers(place.parent) == [f".{NAME}.partial", f".{NAME}.state"]
    assert caplog.messages == [f"{place}: the encoded documents are kept; continue with --resume"]
    return place


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
    assert refusal(encode, collection, tmp_path / "out", error=OutputError) == (
        f"{unfinished}: there is unfinished work; continue it with --resume, or discard it with --overwrite"
    )


def test_data_that_are_too_short_are_not_continued(tmp_path, collection, unfinished):
    os.truncate(tmp_path / "out" / f".{NAME}.partial", 10)
    encode(collection, tmp_path / "out", existing="resume")
    assert [record["id"] for record in records(unfinished)] == [document["id"] for document in sources(collection)]
    assert leftovers(tmp_path / "out") == []


@pytest.mark.slow
def test_a_second_writer_is_told(tmp_path, collection):
    place = tmp_path / "out" / NAME
    told = []

    class Slow(StandInEncoder):
        def stream(self, batches):
            told.append(refusal(encode, collection, tmp_path / "out", existing="overwrite", error=OutputError))
            told.append(run(SCRIPT, collection, tmp_path / "out"))
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
        *(SCRIPT, collection, tmp_path / "out"),
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
    assert run(SCRIPT, collection, tmp_path / "out").returncode == 0
    assert records(place) == records(encode(collection, tmp_path / "expected"))
