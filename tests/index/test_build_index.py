import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyserini_compneg.commands.index import main
from pyserini_compneg.errors import CollectionError, OutputError
from pyserini_compneg.index import ImpactIndexer, build_index, index_folder
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader, ImpactWriter, Manifest


@pytest.fixture
def collection(tmp_path):
    return write(tmp_path / "collection.jsonl", ("d1", "birds of Colombia"), ("d2", "bats"), ("d3", "birds, birds"))


def write(path, *documents):
    path.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in documents))
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def found(index, term="bird"):
    with ImpactReader(index) as reader:
        return reader.search([json.dumps({"vector": {term: 1}})], 100)[0].docids


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"optimize": True}, {"store_raw": True}])
def test_an_index_and_its_manifest(tmp_path, collection, options):
    index = tmp_path / "deep" / "index"
    manifest = build_index(collection, index, **options)
    assert Manifest.read(index) == manifest
    assert (manifest.encoder, manifest.impact_scale, manifest.documents, manifest.empty_documents) == (
        "bm25",
        256,
        3,
        0,
    )
    assert found(index) == ["d3", "d1"]
    assert hidden(index.parent) == []
    with ImpactReader(index) as reader:
        raw = reader.raw("d2")
    assert raw == ('{"id": "d2", "contents": "bats"}' if "store_raw" in options else None)


def test_vectors_are_indexed_as_they_are(tmp_path):
    path = tmp_path / "vectors.jsonl"
    path.write_text('{"id": "d1", "vector": {"a": 3, "b": 0, "c": 2.0}}\n{"id": "d2", "vector": {"é": 1048576}}\n')
    assert build_index(path, tmp_path / "index", "splade") == Manifest("splade", {}, 1.0, documents=2)
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_frequencies(["a", "b", "c", "é"]) == [1, 0, 1, 1]
        assert list(reader.search(['{"vector": {"a": 1, "c": 1}}'], 9)[0].scores) == [5.0]


def test_fractional_weights_are_scaled_and_rounded_half_to_even(tmp_path):
    path = tmp_path / "vectors.jsonl"
    path.write_text('{"id": "d1", "vector": {"a": 0.25, "b": 0.75, "c": 1.25, "d": 0.1}}\n')
    assert build_index(path, tmp_path / "index", "splade", impact_scale=2).impact_scale == 2
    with ImpactReader(tmp_path / "index") as reader:
        queries = [json.dumps({"vector": {term: 1}}) for term in "abcd"]
        assert [list(ranking.scores) for ranking in reader.search(queries, 9)] == [[], [2.0], [2.0], []]


def test_documents_without_terms_are_counted_and_can_be_looked_up(tmp_path):
    path = write(tmp_path / "c.jsonl", ("d1", "birds"), ("e1", ""), ("d2", "birds"), ("e2", "the of"))
    manifest = build_index(path, tmp_path / "index", store_raw=True)
    assert (manifest.documents, manifest.empty_documents) == (4, 2)
    assert Manifest.read(tmp_path / "index") == manifest
    assert found(tmp_path / "index") == ["d1", "d2"]
    with ImpactReader(tmp_path / "index") as reader:
        assert (reader.document_count, reader.field_document_count) == (4, 2)
        assert reader.raw("e2") == '{"id": "e2", "contents": "the of"}'


def test_empty_documents_do_not_count_for_the_average_length(tmp_path):
    path = write(
        tmp_path / "c.jsonl", ("d1", "birds and bats"), ("e1", ""), ("d2", "birds and bats and fish and films")
    )
    assert build_index(path, tmp_path / "index").settings["average_length"] == 3.0


def test_empty_vectors(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "d1", "vector": {}}\n{"id": "d2", "vector": {"a": 1}}\n{"id": "d3", "vector": {"a": 0}}\n')
    assert build_index(path, tmp_path / "index", "m").empty_documents == 2


def test_folders_made_for_a_build_that_fails_are_removed(tmp_path):
    path = write(tmp_path / "c.jsonl", ("d1", "birds"), ("d1", "birds"))
    (tmp_path / "mine").mkdir()
    for index in (tmp_path / "mine" / "a" / "b" / "index", tmp_path / "c" / "index"):
        with pytest.raises(CollectionError, match=f"^{path}:2: document id 'd1' was given at {path}:1 already$"):
            build_index(path, index)
    assert {place.name for place in tmp_path.rglob("*")} == {"c.jsonl", "mine"}


def test_of_the_folders_made_for_a_build_those_in_use_stay(tmp_path):
    with pytest.raises(CollectionError, match="nothing to index"), ImpactIndexer(tmp_path / "a/b/index", "m"):
        (tmp_path / "a" / "mine").mkdir()
    assert {place.name for place in tmp_path.rglob("*")} == {"a", "mine"}


def test_an_existing_index_is_refused_and_untouched(tmp_path, collection):
    index = tmp_path / "index"
    build_index(collection, index)
    before = contents(index)
    with pytest.raises(OutputError) as caught:
        build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index)
    assert str(caught.value) == f"{index}: exists already; give --overwrite to replace it, or another --index"
    assert contents(index) == before
    assert hidden(tmp_path) == []


def test_the_place_is_checked_before_the_collection_is_read(tmp_path, collection):
    index = tmp_path / "index"
    build_index(collection, index)
    collection.write_text("broken")
    with pytest.raises(OutputError, match="exists already"):
        build_index(collection, index)
    with pytest.raises(CollectionError, match="not valid JSON"):
        build_index(collection, index, overwrite=True)


def test_an_empty_folder_is_filled(tmp_path, collection):
    (tmp_path / "index").mkdir()
    build_index(collection, tmp_path / "index")
    assert found(tmp_path / "index") == ["d3", "d1"]


def test_a_file_in_the_place_of_the_index(tmp_path, collection):
    other = write(collection.with_name("other.jsonl"), ("x", "birds"))
    with pytest.raises(OutputError) as caught:
        build_index(other, collection)
    assert str(caught.value).startswith(f"{collection}: exists and is no index; ")
    for index in (collection / "index", collection / "deep" / "index"):
        with pytest.raises(OutputError) as caught:
            build_index(other, index)
        assert str(caught.value) == f"{index}: cannot be written: {collection} is no folder; give another --index"


def test_nothing_but_an_index_is_overwritten(tmp_path, collection):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mum.txt").write_text("dear")
    with pytest.raises(OutputError) as caught:
        build_index(collection, tmp_path / "letters", overwrite=True)
    assert str(caught.value) == f"{tmp_path / 'letters'}: exists and is no index; give another --index"
    assert (tmp_path / "letters" / "to-mum.txt").read_text() == "dear"
    for name in ("segments_of_my_thesis.txt", MANIFEST_NAME):
        (tmp_path / "letters" / name).write_text("{}")
        with pytest.raises(OutputError, match="exists and is no index"):
            build_index(collection, tmp_path / "letters", overwrite=True)


@pytest.mark.parametrize("name", ["letter.doc", "letters", "notes.txt", "_readme"])
def test_nothing_that_was_put_into_an_index_is_lost(tmp_path, collection, name):
    index = tmp_path / "index"
    build_index(collection, index)
    (index / name).mkdir() if name == "letters" else (index / name).write_text("dear")
    with pytest.raises(OutputError) as caught:
        build_index(collection, index, overwrite=True)
    assert (
        str(caught.value) == f"{index}: holds {name!r}, which is no part of an index; move it, or give another --index"
    )
    assert (index / name).exists()


def test_overwrite_replaces(tmp_path, collection):
    index = tmp_path / "index"
    build_index(collection, index)
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index, overwrite=True)
    assert found(index) == ["x"]
    assert Manifest.read(index).documents == 1
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_interruption_leaves_what_was_there(tmp_path, collection, monkeypatch, interruption, overwrite):
    index = tmp_path / "index"
    if overwrite:
        build_index(collection, index)
    before = contents(index) if overwrite else None

    def drain(self):
        raise interruption

    monkeypatch.setattr(ImpactWriter, "drain", drain)
    with pytest.raises(interruption):
        build_index(collection, index, overwrite=overwrite)
    assert (contents(index) if index.exists() else None) == before
    assert hidden(tmp_path) == []
    monkeypatch.undo()
    build_index(collection, index, overwrite=overwrite)
    assert found(index) == ["d3", "d1"]


def test_a_bad_document_late_in_the_collection_keeps_the_old_index(tmp_path, collection):
    index = tmp_path / "index"
    build_index(collection, index)
    before = contents(index)
    with (tmp_path / "bad.jsonl").open("w") as handle:
        handle.writelines(json.dumps({"id": f"d{i}", "contents": "birds"}) + "\n" for i in range(1500))
        handle.write("{}\n")
    with pytest.raises(CollectionError, match=":1501: "):
        build_index(tmp_path / "bad.jsonl", index, overwrite=True)
    assert contents(index) == before
    assert hidden(tmp_path) == []


SLOW_COMMAND = """
import sys, time
from pyserini_compneg.index import indexer
from pyserini_compneg.commands.index import main
original = indexer.ImpactWriter.add_lines
def add_lines(self, *arguments):
    print("adding", flush=True)
    time.sleep(30)
indexer.ImpactWriter.add_lines = add_lines
sys.exit(main())
"""


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_what_was_there(tmp_path, collection, number, code, overwrite):
    index = tmp_path / "index"
    if overwrite:
        build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index)
    arguments = ["--collection", str(collection), "--index", str(index)] + ["--overwrite"] * overwrite
    with run(["-c", SLOW_COMMAND, *arguments]) as process:
        assert process.stdout.readline() == "adding\n"
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == code
    assert hidden(tmp_path) == []
    assert (found(index) == ["x"]) if overwrite else not index.exists()


def run(arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment)


def test_the_command(tmp_path, collection, capfd):
    index = tmp_path / "index"
    arguments = ["--collection", str(collection), "--index", str(index)]
    assert main(arguments) == 0
    assert capfd.readouterr() == ("", f"{index}: 3 documents, encoder bm25\n")
    assert main(arguments) == 1
    assert capfd.readouterr() == (
        "",
        f"error: {index}: exists already; give --overwrite to replace it, or another --index\n",
    )
    assert (
        main([*arguments, "--overwrite", "--threads", "2", "--store-raw", "--optimize", "--impact-scale", "100"]) == 0
    )
    assert Manifest.read(index).impact_scale == 100
    with ImpactReader(index) as reader:
        assert reader.raw("d2") is not None


@pytest.mark.parametrize(
    "wrong",
    [
        ["--threads", "0"],
        ["--threads", "x"],
        ["--impact-scale", "0"],
        ["--impact-scale", "-1"],
        ["--impact-scale", "nan"],
        ["--impact-scale", "inf"],
        ["--colour", "red"],
    ],
)
def test_wrong_usage(tmp_path, collection, capsys, wrong):
    assert main(["--collection", str(collection), "--index", str(tmp_path / "index"), *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def test_missing_arguments_and_help(capsys):
    assert main([]) == 2
    assert "--collection, --index" in capsys.readouterr().err
    assert main(["-h"]) == 0
    assert "\nexamples:\n  python -m pyserini_compneg.index --collection " in capsys.readouterr().out


def test_a_bad_collection_is_one_line(tmp_path, capfd):
    assert main(["--collection", str(tmp_path / "none"), "--index", str(tmp_path / "index")]) == 1
    assert capfd.readouterr() == ("", f"error: {tmp_path / 'none'}: no such file\n")


def test_the_module_runs(tmp_path, collection):
    arguments = ["-m", "pyserini_compneg.index", "--collection", str(collection), "--index", str(tmp_path / "index")]
    with run(arguments) as process:
        assert process.communicate(timeout=60) == ("", f"{tmp_path / 'index'}: 3 documents, encoder bm25\n")
    assert process.returncode == 0
    assert (tmp_path / "index" / MANIFEST_NAME).exists()


def test_an_index_that_appeared_meanwhile_is_kept(tmp_path, collection):
    other = tmp_path / "other"
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), other)
    with pytest.raises(OutputError, match="exists already"), ImpactIndexer(tmp_path / "index", "m") as indexer:
        indexer.add("d1", {"bird": 1})
        other.rename(tmp_path / "index")
    assert found(tmp_path / "index") == ["x"]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_failed_exchange_keeps_the_old_index(tmp_path, collection, monkeypatch, in_one_step):
    index = tmp_path / "index"
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index)
    rename = Path.rename

    def fails(path, target):
        if path.name.endswith(".building"):
            raise KeyboardInterrupt
        return rename(path, target)

    def exchange(a, b):
        if in_one_step:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(index_folder, "_exchange", exchange)
    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(KeyboardInterrupt):
        build_index(collection, index, overwrite=True)
    monkeypatch.undo()
    assert found(index) == ["x"]
    assert hidden(tmp_path) == []


def test_without_an_exchange_in_one_step(tmp_path, collection, monkeypatch):
    index = tmp_path / "index"
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index)
    monkeypatch.setattr(index_folder, "_exchange", lambda a, b: False)
    build_index(collection, index, overwrite=True)
    assert found(index) == ["d3", "d1"]
    assert hidden(tmp_path) == []


def test_a_kill_between_two_renames_is_mended(tmp_path, collection):
    index = tmp_path / "index"
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), index)
    index.rename(tmp_path / ".index.old")
    with pytest.raises(OutputError, match="exists already"):
        build_index(collection, index)
    assert found(index) == ["x"]


def test_a_link_to_an_index_is_followed(tmp_path, collection):
    real, link = tmp_path / "real", tmp_path / "link"
    build_index(write(tmp_path / "other.jsonl", ("x", "birds")), real)
    link.symlink_to(real)
    build_index(collection, link, overwrite=True)
    assert link.is_symlink()
    assert found(real) == found(link) != ["x"]
