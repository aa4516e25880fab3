"""What a build of an index in shards makes, what it goes on with, and what it refuses."""

import json
import shutil
import socket

import pytest
from index_folders import hidden
from json_lines import write_jsonl

from pyserini_compneg.commands.encode import main as encode
from pyserini_compneg.commands.index import main
from pyserini_compneg.commands.search import main as search
from pyserini_compneg.documents.collection import CollectionPart, collection_files, parts
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.index import build_index, build_sharded_index, verify_index
from pyserini_compneg.lucene import SHARDS_NAME, ImpactReader, open_reader
from pyserini_compneg.support.errors import (
    ArgumentError,
    ClusterError,
    IndexReadError,
    InputError,
    OutputError,
)

TEXTS = ["a spy film", "a war film", "a comedy of spies", "war", "a western", "a comedy", "a spy comedy", "a drama"]


def films(path, start=0):
    return write_jsonl(path, *({"id": f"d{start + i}", "contents": text} for i, text in enumerate(TEXTS)))


@pytest.fixture
def collection(tmp_path):
    return films(tmp_path / "films.jsonl")


def listed(index):
    return json.loads((index / SHARDS_NAME).read_text())["shards"]


def test_a_file_is_divided_by_lines(tmp_path, collection):
    manifest = build_sharded_index(collection, tmp_path / "index", 3)
    assert manifest.documents == 8
    assert [(shard["path"], shard["documents"]) for shard in listed(tmp_path / "index")] == [
        ("shard-00000-of-00003", 3),
        ("shard-00001-of-00003", 3),
        ("shard-00002-of-00003", 2),
    ]
    assert hidden(tmp_path) == []
    with ImpactReader(tmp_path / "index" / "shard-00001-of-00003") as reader:
        assert [reader.has(f"d{number}") for number in range(8)] == [number % 3 == 1 for number in range(8)]
        assert reader.manifest.settings == manifest.settings
    assert verify_index(tmp_path / "index") == 8


def test_many_files_are_divided_as_they_are(tmp_path):
    for number, lines in enumerate((5, 1, 2, 3, 4)):
        write_jsonl(tmp_path / "films" / f"{number}.jsonl", *({"id": f"{number}-{i}"} for i in range(lines)))
    files = collection_files(tmp_path / "films")
    names = [[file.path.stem for file in part.files] for part in parts(files, 3)]
    assert names == [["0"], ["1", "4"], ["2", "3"]]
    assert parts(files[:1], 2) == [CollectionPart(files[:1], 0, 2), CollectionPart(files[:1], 1, 2)]


def test_vectors_of_shards_become_shards(tmp_path, collection, capsys):
    """``encode --shards`` and ``index --shards`` in turn, as on one machine, and without the model at the end."""
    common = ["--encoder", "bm25+mini"]
    vectors, index = ["--output", str(tmp_path / "vectors")], str(tmp_path / "index")
    assert encode(["--collection", str(collection), *vectors, *common, "--shards", "3"]) == 0
    names = [f"vectors-0000{number}-of-00003.jsonl.gz" for number in range(3)]
    assert capsys.readouterr().out.split() == [str(tmp_path / "vectors" / name) for name in names]
    assert main(["--collection", str(tmp_path / "vectors"), "--index", index, "--shards", "3", *common]) == 0
    build_index(tmp_path / "vectors", tmp_path / "one", "bm25+mini")
    runs = []
    for name in ("one", "index"):
        assert search(["--index", str(tmp_path / name), "--query", "spy NOT war", "--output-format", "trec"]) == 0
        runs.append(capsys.readouterr().out)
    assert runs[0] == runs[1] and len(runs[0].splitlines()) >= 3


def test_only_an_index_is_replaced(tmp_path, collection):
    index = tmp_path / "index"
    build_index(collection, index)
    with pytest.raises(OutputError, match="exists already"):
        build_sharded_index(collection, index, 2)
    build_sharded_index(collection, index, 2, existing="overwrite")
    assert sorted(path.name for path in index.iterdir()) == [SHARDS_NAME, *(shard["path"] for shard in listed(index))]
    (index / "shard-00001-of-00002" / "notes").touch()
    with pytest.raises(OutputError) as refused:
        build_index(collection, index, existing="overwrite")
    said = "holds 'shard-00001-of-00002/notes', which is not part of an index; move it, or give another folder"
    assert str(refused.value) == f"{index}: {said}"
    (index / "shard-00001-of-00002" / "notes").unlink()
    build_index(collection, index, existing="overwrite")
    with open_reader(index) as reader:
        assert isinstance(reader, ImpactReader)


def test_an_id_that_two_shards_have(tmp_path, collection):
    with collection.open("a") as lines:
        lines.write('\n{"id": "d4", "contents": "again"}\n')
    for skip in ("stop", "skip"):
        with pytest.raises(InputError) as refused:
            build_sharded_index(collection, tmp_path / "index", 3, on_error=skip)
        assert str(refused.value) == f"{collection}:10: document id 'd4' was given at {collection}:5 already"
    assert [path.name for path in tmp_path.iterdir()] == ["films.jsonl"]


def test_an_id_that_two_shards_come_to_have_is_damage(tmp_path, collection):
    index = tmp_path / "index"
    build_sharded_index(collection, index, 2)
    build_sharded_index(films(tmp_path / "others.jsonl", 1), tmp_path / "other", 2)
    (index / "shard-00001-of-00002").rename(tmp_path / "away")
    (tmp_path / "other" / "shard-00001-of-00002").rename(index / "shard-00001-of-00002")
    shards = [listed(index)[0], listed(tmp_path / "other")[1]]
    (index / SHARDS_NAME).write_text(json.dumps({"format_version": 1, "documents": 8, "shards": shards}))
    with pytest.raises(IndexReadError) as refused:
        verify_index(index)
    assert str(refused.value) == f"{index}: is damaged, rebuild it: two shards have the document 'd2'"


def test_a_filter_field_that_some_shards_lack(tmp_path):
    lines = ({"id": f"d{i}", "contents": "a film", **({"genre": "war"} if i == 1 else {})} for i in range(4))
    collection = write_jsonl(tmp_path / "films.jsonl", *lines)
    build_sharded_index(collection, tmp_path / "index", 4, filter_fields=["genre"])
    with pytest.raises(InputError) as refused:
        build_sharded_index(collection, tmp_path / "other", 4, filter_fields=["genre", "year"])
    assert str(refused.value) == f"{collection}: no document has the filter field 'year'; leave it out"
    assert not (tmp_path / "other").exists()


def test_more_shards_than_documents(tmp_path, collection):
    with pytest.raises(InputError) as refused:
        build_sharded_index(collection, tmp_path / "index", 9)
    assert str(refused.value) == f"{collection}: 9 shards need as many documents, got 8; build fewer shards"
    with pytest.raises(ArgumentError, match="^the number of shards must be from 1 to 10,000, got 0$"):
        build_sharded_index(collection, tmp_path / "index", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["films.jsonl"]


def test_a_bad_document(tmp_path, collection):
    with collection.open("a") as lines:
        lines.write('{"id": "bad"\n')
    with pytest.raises(InputError, match=f"{collection}:9: "):
        build_sharded_index(collection, tmp_path / "index", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["films.jsonl"]
    manifest = build_sharded_index(collection, tmp_path / "index", 2, on_error="skip")
    assert manifest.documents == 8
    skipped = [path.parent.name for path in tmp_path.glob("index/*/skipped-documents.txt")]
    assert skipped == ["shard-00000-of-00002"]


def elsewhere(where, change):
    """A runner that meets another machine: something is otherwise there before, or after, the shards are built."""

    def run(work, parts, doing):
        if doing == "indexing" and where == "before":
            change()
        done = [work(*part) for part in parts]
        if doing == "indexing" and where == "after":
            change()
        return done

    return run


def test_a_folder_that_is_not_shared(tmp_path, collection):
    index, building = tmp_path / "index", tmp_path / ".index.building"
    lost = building / "shard-00001-of-00002"
    with pytest.raises(IndexReadError) as refused:
        build_sharded_index(collection, index, 2, run=elsewhere("after", lambda: shutil.rmtree(lost)))
    node = f"the node {socket.gethostname()} built it, and all nodes must reach the same paths"
    assert str(refused.value) == f"{lost}: the shard cannot be read: no such file or directory; {node}"
    assert not index.exists()
    assert build_sharded_index(collection, index, 2, existing="resume").documents == 8


def test_a_collection_that_is_not_shared(tmp_path, collection):
    other = elsewhere("before", lambda: write_jsonl(collection, {"id": "other", "contents": "a spy"}))
    with pytest.raises(ClusterError, match=f"{collection}: is on .* not the file that the command has read"):
        build_sharded_index(collection, tmp_path / "index", 1, run=other)


@pytest.mark.parametrize(
    ("shards", "options", "changed"), [(2, ModelOptions(top_terms=3), "settings"), (3, None, "shards")]
)
def test_another_build_is_refused_before_a_shard_is_built(tmp_path, collection, shards, options, changed):
    def killed(work, parts, doing):
        if doing == "indexing":
            raise KeyboardInterrupt
        return [work(*part) for part in parts]

    with pytest.raises(KeyboardInterrupt):
        build_sharded_index(collection, tmp_path / "index", 2, "mini", run=killed)
    with pytest.raises(OutputError, match=f"cannot be continued, because {changed} changed since"):
        build_sharded_index(*(collection, tmp_path / "index", shards, "mini"), model_options=options, existing="resume")


def test_a_filter_field_that_no_document_has_is_found_before_a_shard_is_built(tmp_path, collection):
    done = []

    def run(work, parts, doing):
        done.append(doing)
        return [work(*part) for part in parts]

    with pytest.raises(InputError, match="no document has the filter field 'gener'; leave it out"):
        build_sharded_index(collection, tmp_path / "index", 2, run=run, filter_fields=["gener"])
    assert done == ["looking for filter fields"]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (main, ["--index", "i", "--ray", "local"], "--ray needs --shards N, the indexes that its machines build"),
        (
            encode,
            ["--output", "v", "--encoder", "mini", "--ray", "local"],
            "--ray needs --shards N, the parts that its machines encode",
        ),
        (
            encode,
            ["--output", "v", "--encoder", "mini", "--shards", "2", "--shard-num", "2"],
            "--shards encodes all shards, but --shard-id and --shard-num encode one; give either",
        ),
    ],
)
def test_flags_that_do_not_go_together(collection, capsys, command, arguments, message):
    assert command(["--collection", str(collection), *arguments]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {message}"
