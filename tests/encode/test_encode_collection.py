"""Files of vectors: what is in them, and that whatever ends a run, it can be gone on with."""

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys

import pytest
from stand_in_encoder import StandInEncoder, vector

from pyserini_compneg import files
from pyserini_compneg.encode.corpus import Shard, write_vectors
from pyserini_compneg.errors import CollectionError, OutputError
from pyserini_compneg.index import build_index

DOCUMENTS = 300
NAME = "vectors-00000-of-00001.jsonl.gz"

# Runs the encoding with the stand-in, and kills its own process at a step of the work, before or after it is done.
MORTAL = """
import os, sys
from mortal import make_mortal
from pyserini_compneg import files
from pyserini_compneg.encode import shard_file
from pyserini_compneg.encode.corpus import write_vectors
from stand_in_encoder import StandInEncoder

collection, output, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
files._BLOCK_BYTES = 1 << 10

make_mortal(((os, ("fsync", "replace", "unlink")), (shard_file.ShardFile, ("add", "_open"))), steps)
from pyserini_compneg.cli import run_main
sys.exit(run_main(lambda _: print(write_vectors(collection, output, StandInEncoder(), "m", resume=True))))
"""


@pytest.fixture
def collection(tmp_path):
    choice = random.Random(3)
    folder = tmp_path / "collection"
    folder.mkdir()
    for part in range(2):
        with (folder / f"part{part}.jsonl").open("w", encoding="utf-8") as handle:
            for i in range(part, DOCUMENTS, 2):
                text = " ".join(choice.choices(["spy", "film", "comedy", "Vienna", "¬", "naïve", "東京"], k=8))
                handle.write(json.dumps({"id": f"d{i:03}", "title": f"Title {i}", "text": text, "note": "x"}) + "\n")
                handle.write("\n" * (i % 5 == 0))
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 10)


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def encode(collection, output, name="m", **options):
    settings = options.pop("settings", {})
    return write_vectors(collection, output, StandInEncoder(**settings), name, **options)


def records(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path, *lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def sources(collection):
    lines = [line for path in sorted(collection.iterdir()) for line in path.read_text().splitlines() if line]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("blocks", [1 << 10, 1 << 20])
def test_the_lines(tmp_path, collection, monkeypatch, blocks):
    monkeypatch.setattr(files, "_BLOCK_BYTES", blocks)
    place = encode(collection, tmp_path / "deep" / "out", "owner/m")
    assert place == tmp_path / "deep" / "out" / NAME
    expected = [(document["id"], f"{document['title']}\n{document['text']}") for document in sources(collection)]
    assert records(place) == [
        {"id": docid, "contents": text, "vector": vector(text), "encoder": "owner/m"} for docid, text in expected
    ]
    assert len(expected) == DOCUMENTS
    assert leftovers(place.parent) == []


def test_the_same_run_gives_the_same_bytes(tmp_path, collection):
    assert encode(collection, tmp_path / "a").read_bytes() == encode(collection, tmp_path / "b").read_bytes()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("count", [2, 3, 7])
def test_shards_partition_the_collection(tmp_path, collection, count):
    found = []
    for number in range(count):
        place = encode(collection, tmp_path / "out", shard=Shard(number, count))
        assert place.name == f"vectors-{number:05}-of-{count:05}.jsonl.gz"
        found.append([record["id"] for record in records(place)])
    everything = [document["id"] for document in sources(collection)]
    assert sorted(sum(found, [])) == sorted(everything)
    order = {docid: place for place, docid in enumerate(everything)}
    assert all(part == sorted(part, key=order.__getitem__) for part in found)
    assert max(map(len, found)) - min(map(len, found)) <= 0.2 * DOCUMENTS
    assert build_index(tmp_path / "out", tmp_path / "index", "m", impact_scale=51.2).documents == DOCUMENTS


def test_fields(tmp_path, collection):
    path = encode(collection, tmp_path / "out", fields=["note", "title"])
    assert records(path)[0]["contents"] == "x\nTitle 0"
    with pytest.raises(CollectionError) as caught:
        encode(collection, tmp_path / "other", fields=["body", "abstract"])
    assert str(caught.value) == f"{collection / 'part0.jsonl'}:1: no text; expected `body`, `abstract`"


def test_documents_without_a_text_have_no_terms(tmp_path):
    path = write(
        tmp_path / "c.jsonl", {"id": "a", "contents": ""}, {"id": "b", "contents": "spy"}, {"id": "c", "contents": " "}
    )
    assert [record["vector"] for record in records(encode(path, tmp_path / "out"))] == [{}, {"spy": 1.0}, {}]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not valid JSON: Expecting property name enclosed in double quotes at column 2"),
        ('{"contents": "x"}', "no document id; expected one of the fields id, _id, docid"),
        ('{"id": "x"}', "no text; expected `contents`, `title` and `text`, or `vector`"),
        ('{"id": "x", "contents": 7}', "the text must be a string, got int"),
        (
            '{"id": "x", "vector": {"a": 1}}',
            "only a `vector`, where texts are encoded; give the model that made it as --encoder",
        ),
    ],
)
def test_bad_documents(tmp_path, line, said):
    path = write(tmp_path / "c.jsonl", {"id": "a", "contents": "spy"}, line)
    with pytest.raises(CollectionError) as caught:
        encode(path, tmp_path / "out")
    assert str(caught.value) == f"{path}:2: {said}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "shard", "where"),
    [
        ("", Shard(), ""),
        ("\n\n", Shard(), ""),
        ('{"id": "a", "contents": "x"}', Shard(1, 2), " in shard 1 of 2"),
    ],
)
def test_a_shard_without_documents_leaves_nothing(tmp_path, content, shard, where, caplog):
    (tmp_path / "c.jsonl").write_text(content)
    with pytest.raises(CollectionError) as caught:
        encode(tmp_path / "c.jsonl", tmp_path / "out", shard=shard)
    assert str(caught.value) == f"{tmp_path / 'c.jsonl'}: no documents{where}"
    assert not (tmp_path / "out").exists()
    assert caplog.records == []


def test_a_file_that_is_there_already(tmp_path, collection):
    place = encode(collection, tmp_path / "out")
    before = place.read_bytes()
    for resume in (False, True):
        with pytest.raises(OutputError) as caught:
            encode(collection, tmp_path / "out", "other", resume=resume)
        assert str(caught.value) == f"{place}: exists already; give --overwrite to replace it, or another --output"
    assert place.read_bytes() == before
    encode(collection, tmp_path / "out", "other", overwrite=True)
    assert records(place)[0]["encoder"] == "other"
    assert leftovers(place.parent) == []


class Killed(BaseException):
    """Ends a run as a kill would, but for its leftovers."""


@pytest.fixture
def unfinished(tmp_path, collection, small_blocks, monkeypatch):
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
    assert leftovers(tmp_path / "out") == [f".{NAME}.partial", f".{NAME}.state"]
    return tmp_path / "out" / NAME


def test_unfinished_work_is_gone_on_with(tmp_path, collection, unfinished, monkeypatch):
    seen = []
    stream = StandInEncoder.stream
    monkeypatch.setattr(
        StandInEncoder, "stream", lambda self, batches: stream(self, (seen.extend(texts) or texts for texts in batches))
    )
    encode(collection, tmp_path / "out", resume=True)
    assert 0 < len(seen) < DOCUMENTS - 20
    assert records(unfinished) == records(encode(collection, tmp_path / "expected"))
    assert leftovers(tmp_path / "out") == []


def test_what_a_kill_wrote_after_the_state_is_cut_off(tmp_path, collection, unfinished):
    with (tmp_path / "out" / f".{NAME}.partial").open("ab") as partial:
        partial.write(b"\x1f\x8b half of a block" * 10_000)
    encode(collection, tmp_path / "out", resume=True)
    assert records(unfinished) == records(encode(collection, tmp_path / "expected"))


def test_unfinished_work_is_not_thrown_away_unasked(tmp_path, collection, unfinished):
    with pytest.raises(OutputError) as caught:
        encode(collection, tmp_path / "out")
    assert str(caught.value) == (
        f"{unfinished}: unfinished work on it is there; give --resume to go on with it, or --overwrite to throw it away"
    )
    assert encode(collection, tmp_path / "out", overwrite=True) == unfinished
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
def test_other_work_is_not_gone_on_with(tmp_path, collection, unfinished, changed, options):
    if changed == "sources":
        with (collection / "part1.jsonl").open("a") as handle:
            handle.write("\n")
    for overwrite in (False, True):
        with pytest.raises(OutputError) as caught:
            encode(collection, tmp_path / "out", resume=True, overwrite=overwrite, **options)
        assert str(caught.value) == (
            f"{unfinished}: cannot go on, because {changed} changed since; give --overwrite without --resume to start "
            "anew"
        )
    assert leftovers(tmp_path / "out") == [f".{NAME}.partial", f".{NAME}.state"]


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"bytes": 10}', '{"bytes": "x", "plan": {}}'])
def test_a_damaged_state_is_none(tmp_path, collection, unfinished, content):
    (tmp_path / "out" / f".{NAME}.state").write_text(content)
    encode(collection, tmp_path / "out", resume=True)
    assert len(records(unfinished)) == DOCUMENTS
    assert leftovers(tmp_path / "out") == []


def test_data_that_are_shorter_than_their_state(tmp_path, collection, unfinished):
    with (tmp_path / "out" / f".{NAME}.partial").open("r+b") as handle:
        handle.truncate(10)
    encode(collection, tmp_path / "out", resume=True)
    assert [record["id"] for record in records(unfinished)] == [document["id"] for document in sources(collection)]


def test_nothing_to_go_on_with(tmp_path, collection):
    assert len(records(encode(collection, tmp_path / "out", resume=True))) == DOCUMENTS


def test_a_bad_document_is_found_before_anything_is_encoded(tmp_path, collection, small_blocks, caplog, monkeypatch):
    with (collection / "part1.jsonl").open("a") as handle:
        handle.write("{\n")
    monkeypatch.setattr(StandInEncoder, "stream", None)
    with pytest.raises(CollectionError, match=r"part1\.jsonl:\d+: not valid JSON"):
        encode(collection, tmp_path / "out")
    assert caplog.records == []


def test_what_was_encoded_is_said_to_be_kept(unfinished, caplog):
    said = [record.getMessage() for record in caplog.get_records("setup")]
    assert said == [f"{unfinished}: what was encoded is kept; give --resume to go on with it"]


def test_kills_at_random_points(tmp_path, collection):
    expected = records(encode(collection, tmp_path / "expected"))
    place = tmp_path / "out" / NAME
    choice = random.Random(11)
    killed = 0
    while killed < 10:
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


def test_a_second_writer_is_told(tmp_path, collection):
    place = tmp_path / "out" / NAME
    told = []

    class Slow(StandInEncoder):
        def stream(self, batches):
            with pytest.raises(OutputError) as caught:
                encode(collection, tmp_path / "out", overwrite=True)
            told.append(str(caught.value))
            told.append(run(MORTAL, collection, tmp_path / "out", 0))
            yield from super().stream(batches)

    write_vectors(collection, tmp_path / "out", Slow(), "m")
    said = f"{place}: another process is writing it; wait for it"
    assert told[0] == said
    assert (told[1].returncode, told[1].stderr) == (1, f"error: {said}\n")
    assert len(records(place)) == DOCUMENTS
    assert leftovers(tmp_path / "out") == []


@pytest.mark.parametrize("limit", [100, 700, 3000])
def test_a_full_disk_is_reported(tmp_path, collection, limit):
    """The state is what does not fit first, or the vectors are; what was complete can be gone on with."""
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
        [f"warning: {place}: what was encoded is kept; give --resume to go on with it"],
    )
    assert not place.exists()
    assert len(leftovers(tmp_path / "out")) in (0, 2)
    assert run(MORTAL, collection, tmp_path / "out", 0).returncode == 0
    assert records(place) == records(encode(collection, tmp_path / "expected"))


def test_a_place_that_cannot_be_written(tmp_path, collection):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as caught:
        encode(collection, tmp_path / "file" / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'file' / 'out' / NAME}: cannot be written: not a directory; make room, or give another --output"
    )


def test_nothing_of_the_collection_is_replaced(tmp_path, collection):
    vectors = encode(collection, tmp_path / "out")
    before = vectors.read_bytes()
    for place in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(OutputError) as caught:
            encode(tmp_path / "out", place, overwrite=True)
        assert str(caught.value) == (f"{place}: would overwrite {tmp_path / 'out'}; choose another place with --output")
    with pytest.raises(OutputError):
        encode(vectors, tmp_path / "out", overwrite=True)
    assert vectors.read_bytes() == before


def test_a_folder_has_the_vectors_of_one_model(tmp_path, collection):
    encode(collection, tmp_path / "out", shard=Shard(0, 2))
    with pytest.raises(OutputError) as caught:
        encode(collection, tmp_path / "out", "other", shard=Shard(1, 2))
    assert str(caught.value) == (f"{tmp_path / 'out'}: holds vectors of 'm' made in another way; give another --output")


def test_an_index_asks_for_all_shards_of_one_division(tmp_path, collection):
    encode(collection, tmp_path / "out", shard=Shard(1, 2))
    with pytest.raises(CollectionError) as caught:
        build_index(tmp_path / "out", tmp_path / "index", "m")
    assert str(caught.value) == f"{tmp_path / 'out'}: shard 0 of 2 is missing; encode it first"
    encode(collection, tmp_path / "out", shard=Shard(0, 3))
    with pytest.raises(CollectionError) as caught:
        build_index(tmp_path / "out", tmp_path / "index", "m")
    assert str(caught.value) == f"{tmp_path / 'out'}: has shards of 2 and of 3; keep those of one"


def test_an_index_knows_what_made_its_vectors(tmp_path, collection):
    encode(collection, tmp_path / "out")
    manifest = build_index(tmp_path / "out", tmp_path / "index", "m")
    assert manifest.settings == StandInEncoder().settings
    assert manifest.impact_scale == 51.2
    with pytest.raises(CollectionError) as caught:
        build_index(tmp_path / "out", tmp_path / "index", "other", overwrite=True)
    assert str(caught.value) == f"{tmp_path / 'out'}: the vectors are of 'm', not of 'other'"
    (tmp_path / "out" / "vectors.about").write_text("{}")
    with pytest.raises(CollectionError) as caught:
        build_index(tmp_path / "out", tmp_path / "index", "m", overwrite=True)
    assert str(caught.value) == (
        f"{tmp_path / 'out' / 'vectors.about'}: damaged; delete it, and name --encoder and --impact-scale"
    )
