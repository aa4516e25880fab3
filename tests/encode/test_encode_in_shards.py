"""A collection that is encoded in shards in one run: what a later run may keep, and what is refused before any work."""

import json
import shutil
from contextvars import copy_context
from threading import Timer

import pytest
from filelock import FileLock
from json_lines import write_jsonl
from refusals import START_ANEW, UNFINISHED, refusal
from vector_files import records

from pyserini_compneg.documents.vector_files import shard_path
from pyserini_compneg.encode import sharded
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.encode.sharded import encode_in_shards
from pyserini_compneg.support.errors import ClusterError, CompNegError, InputError, OutputError
from pyserini_compneg.support.staging import lock_seconds


@pytest.fixture
def collection(tmp_path):
    return write_jsonl(tmp_path / "films.jsonl", *({"id": f"d{i}", "contents": f"a spy film {i}"} for i in range(5)))


@pytest.fixture
def output(tmp_path):
    return tmp_path / "vectors"


def ids(paths):
    return [[record["id"] for record in records(path)] for path in paths]


def interrupted(work, parts, doing):
    """A runner whose process is killed after the first shard."""
    done = [work(*part) for part in parts[: 1 if doing == "encoding" else None]]
    if doing == "encoding":
        raise KeyboardInterrupt
    return done


def test_shards_of_another_collection_are_not_kept(collection, output):
    with pytest.raises(KeyboardInterrupt):
        encode_in_shards(collection, output, "mini", 2, run=interrupted)
    before = collection.read_text()
    collection.write_text('{"id": "new", "contents": "a war film"}\n' + before)
    with pytest.raises(OutputError) as refused:
        encode_in_shards(collection, output, "mini", 2, existing="resume")
    why = "the unfinished work cannot be continued, because sources changed since"
    assert str(refused.value) == f"{output}: {why}; {START_ANEW}"
    paths = encode_in_shards(collection, output, "mini", 2, existing="resume or overwrite")
    assert ids(paths) == [["new", "d1", "d3"], ["d0", "d2", "d4"]]


def test_whole_shards_are_not_called_unfinished(collection, output):
    encode_in_shards(collection, output, "mini", 2)
    collection.write_text('{"id": "new", "contents": "a war film"}\n' + collection.read_text())
    resumed = refusal(encode_in_shards, collection, output, "mini", 2, existing="resume", error=OutputError)
    assert resumed == f"{output}: exists already, and sources changed since; {START_ANEW}"


def test_damaged_unfinished_work_is_not_discarded_unasked(collection, output):
    with pytest.raises(KeyboardInterrupt):
        encode_in_shards(collection, output, "mini", 2, run=interrupted)
    first, second = (shard_path(output, number, 2) for number in range(2))
    first.unlink()
    second.with_name(f".{second.name}.state").write_text("{")
    refused = refusal(encode_in_shards, collection, output, "mini", 2, error=OutputError)
    assert refused == f"{second}: {UNFINISHED}"


def test_a_run_that_was_killed_goes_on(collection, output, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        encode_in_shards(collection, output, "mini", 2, run=interrupted)
    encoded, encode = [], sharded.encode_shard
    monkeypatch.setattr(sharded, "encode_shard", lambda *a, **k: (encoded.append(a[3].shard_id), encode(*a, **k)))
    paths = encode_in_shards(collection, output, "mini", 2, existing="resume")
    assert encoded == [1]
    assert ids(paths) == [["d0", "d2", "d4"], ["d1", "d3"]]
    assert encode_in_shards(collection, output, "mini", 2, existing="resume") == paths
    assert encoded == [1]


def test_a_part_waits_for_the_end_of_its_own_first_process(collection, output):
    path = output / "vectors-00000-of-00001.jsonl.gz"
    output.mkdir()
    first = FileLock(output / f".{path.name}.lock", thread_local=False)
    first.acquire()
    with pytest.raises(OutputError, match="another process is writing it"):
        encode_in_shards(collection, output, "mini", 1)
    context = copy_context()
    context.run(lock_seconds.set, 60.0)
    Timer(0.5, first.release).start()
    assert context.run(encode_in_shards, collection, output, "mini", 1, existing="resume") == [path]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"fields": ["id"]}, "fields"),
        ({"model_options": ModelOptions(top_terms=3)}, "model"),
        ({"shards": 1}, "is not a shard of 1"),
        ({"encoder": "no-such-folder/of-a-model/"}, "no-such-folder"),
    ],
)
def test_whole_shards_of_another_plan_are_not_taken_for_those_asked_for(collection, output, changed, name):
    asked = {"encoder": "mini", "shards": 2}
    encode_in_shards(collection, output, **asked)
    with pytest.raises(CompNegError, match=name):
        encode_in_shards(collection, output, **(asked | changed), existing="resume")


def test_shards_without_a_plan(collection, output):
    paths = encode_in_shards(collection, output, "mini", 2)
    plan = output / sharded.PLAN_FILE
    good = json.loads(plan.read_text())
    (paths[1]).unlink()
    for damage in ({"plan": []}, {"plan": {}}, {"documents": 7}, {"documents": ["1", "2"]}, {"length": "1"}, {"x": 1}):
        plan.write_text(json.dumps(good | damage))
        with pytest.raises(OutputError, match="nothing says what its shards are made of"):
            encode_in_shards(collection, output, "mini", 2, existing="resume")
    plan.unlink()
    with pytest.raises(OutputError, match="nothing says what its shards are made of"):
        encode_in_shards(collection, output, "mini", 2, existing="resume")
    assert paths[0].exists()
    plan.write_text(json.dumps(good))
    assert encode_in_shards(collection, output, "mini", 2, existing="resume") == paths


def test_another_model_replaces_all_shards(collection, output):
    encode_in_shards(collection, output, "mini", 2)
    with pytest.raises(CompNegError):
        encode_in_shards(collection, output, "no-such-folder/of-a-model/", 2, existing="overwrite")
    assert sorted(path.name for path in output.glob("vectors-*")) == [
        "vectors-00000-of-00002.jsonl.gz",
        "vectors-00001-of-00002.jsonl.gz",
    ]
    paths = encode_in_shards(
        collection, output, "mini", 2, existing="overwrite", model_options=ModelOptions(top_terms=1)
    )
    assert {len(record["vector"]) for path in paths for record in records(path)} == {1}


def test_bad_input_is_found_before_anything_is_encoded(collection, output):
    with pytest.raises(InputError) as refused:
        encode_in_shards(collection, output, "mini", 7)
    assert str(refused.value) == f"{collection}: no documents in shard 5 of 7; encode fewer shards"
    with collection.open("a") as lines:
        lines.write('\n{"id": "bad"\n')
    with pytest.raises(InputError, match=f"{collection}:7: "):
        encode_in_shards(collection, output, "mini", 2)
    assert not output.exists()


def test_a_folder_that_is_not_shared(collection, output):
    def elsewhere(work, parts, doing):
        done = [work(*part) for part in parts]
        shutil.rmtree(output, ignore_errors=True)
        return done

    with pytest.raises(OutputError, match="vectors-00000-of-00002.jsonl.gz: is not here, but on the node "):
        encode_in_shards(collection, output, "mini", 2, run=elsewhere)


def test_a_collection_that_is_not_shared(collection, output):
    def elsewhere(work, parts, doing):
        if doing == "encoding":
            write_jsonl(collection, {"id": "other", "contents": "a drama"})
        return [work(*part) for part in parts]

    with pytest.raises(ClusterError, match=f"{collection}: is on .* not the file that the command has read"):
        encode_in_shards(collection, output, "mini", 2, run=elsewhere)
