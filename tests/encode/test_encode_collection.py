import json

import pytest
from json_lines import write_jsonl
from refusals import EXISTS, refusal
from stand_in_encoder import StandInEncoder, vector
from vector_files import DOCUMENTS, NAME, encode, leftovers, records, sources

from pyserini_compneg.documents.vector_files import shard_path
from pyserini_compneg.index import build_index
from pyserini_compneg.support import files
from pyserini_compneg.support.errors import InputError, OutputError


@pytest.mark.parametrize("blocks", [1 << 10, 1 << 20])
def test_the_lines(tmp_path, collection, monkeypatch, blocks):
    monkeypatch.setattr(files, "_BLOCK_BYTES", blocks)
    place = encode(collection, tmp_path / "deep" / "out", "owner/m")
    assert place == tmp_path / "deep" / "out" / NAME
    expected = [
        (document["id"], document["title"], f"{document['title']}\n{document['text']}")
        for document in sources(collection)
    ]
    assert records(place) == [
        {"id": docid, "contents": text, "vector": vector(text), "encoder": "owner/m", "title": title, "note": "x"}
        for docid, title, text in expected
    ]
    assert len(expected) == DOCUMENTS
    assert leftovers(place.parent) == []
    assert encode(collection, tmp_path / "again", "owner/m").read_bytes() == place.read_bytes()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("count", [2, 3, 7])
def test_shards_partition_the_collection(tmp_path, collection, count):
    found = []
    for number in range(count):
        place = encode(collection, tmp_path / "out", shard_id=number, shard_num=count)
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
    message = refusal(encode, collection, tmp_path / "other", fields=["body", "abstract"])
    assert message == f"{collection / 'part0.jsonl'}:1: no text; expected `body`, `abstract`"


def test_fields_that_are_not_encoded_are_said_unless_they_were_chosen(tmp_path, caplog):
    path = write_jsonl(
        tmp_path / "c.jsonl", {"id": "a", "title": "On soup", "body": "broth"}, {"id": "b", "text": "spy"}
    )
    encode(path, tmp_path / "out")
    encode(path, tmp_path / "chosen", fields=["title", "text"])
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "1 document has text in fields that are not indexed (body), for example a; "
        "name all fields of the text with --fields, or rename them"
    ]


@pytest.mark.parametrize(
    ("content", "shard", "where"),
    [("", {}, ""), ('{"id": "a", "contents": "x"}', {"shard_id": 1, "shard_num": 2}, " in shard 1 of 2")],
)
def test_a_shard_without_documents_leaves_nothing(tmp_path, content, shard, where, caplog):
    (tmp_path / "c.jsonl").write_text(content)
    message = refusal(encode, tmp_path / "c.jsonl", tmp_path / "out", **shard)
    assert message == f"{tmp_path / 'c.jsonl'}: no documents{where}"
    assert not (tmp_path / "out").exists()
    assert caplog.records == []


def test_a_file_that_is_there_already(tmp_path, collection):
    place = encode(collection, tmp_path / "out")
    before = place.read_bytes()
    for existing in ("refuse", "resume"):
        message = refusal(encode, collection, tmp_path / "out", "other", existing=existing, error=OutputError)
        assert message == f"{place}: {EXISTS}"
    assert place.read_bytes() == before
    encode(collection, tmp_path / "out", "other", existing="overwrite")
    assert records(place)[0]["encoder"] == "other"
    assert leftovers(place.parent) == []


def test_a_bad_document_is_found_before_anything_is_encoded(tmp_path, collection, small_blocks, caplog, monkeypatch):
    with (collection / "part1.jsonl").open("a") as handle:
        handle.write("{\n")
    monkeypatch.setattr(StandInEncoder, "stream", None)
    with pytest.raises(InputError, match=r"part1\.jsonl:\d+: not valid JSON"):
        encode(collection, tmp_path / "out")
    assert caplog.records == []


def test_a_place_that_cannot_be_written(tmp_path, collection):
    (tmp_path / "file").write_text("")
    assert refusal(encode, collection, tmp_path / "file" / "out", error=OutputError) == (
        f"{tmp_path / 'file' / 'out' / NAME}: cannot be written: {tmp_path / 'file'} is not a folder; "
        "make room, or give another --output"
    )


def test_nothing_of_the_collection_is_replaced(tmp_path, collection):
    vectors = encode(collection, tmp_path / "out")
    before = vectors.read_bytes()
    for place in (tmp_path / "out", tmp_path / "out" / "below"):
        message = refusal(encode, tmp_path / "out", place, existing="overwrite", error=OutputError)
        assert message == (f"{place}: would overwrite {tmp_path / 'out'}; choose another place with --output")
    with pytest.raises(OutputError):
        encode(vectors, tmp_path / "out", existing="overwrite")
    assert vectors.read_bytes() == before


def test_a_folder_has_the_vectors_of_one_model(tmp_path, collection):
    """Which has the same content under whatever name."""
    encode(collection, tmp_path / "out", shard_id=0, shard_num=2)
    message = refusal(
        encode, collection, tmp_path / "out", settings={"model": "another"}, shard_id=1, shard_num=2, error=OutputError
    )
    assert message == (f"{tmp_path / 'out'}: holds vectors of 'm' with other settings; give another --output")
    encode(collection, tmp_path / "out", "/of/another/machine", shard_id=1, shard_num=2)


def test_an_index_asks_for_all_shards_of_one_division(tmp_path, collection):
    encode(collection, tmp_path / "out", shard_id=1, shard_num=2)
    message = refusal(build_index, tmp_path / "out", tmp_path / "index", "m")
    assert message == f"{tmp_path / 'out'}: shard 0 of 2 is missing; encode it first"
    message = refusal(encode, collection, tmp_path / "out", shard_id=0, shard_num=3, error=OutputError)
    there = shard_path(tmp_path / "out", 1, 2)
    assert message == f"{there}: is not a shard of 3; move it, or give another --output"
    there.rename(shard_path(tmp_path / "out", 0, 3))
    encode(collection, tmp_path / "other", shard_id=1, shard_num=2)
    (tmp_path / "other" / there.name).rename(there)
    message = refusal(build_index, tmp_path / "out", tmp_path / "index", "m")
    assert message == f"{tmp_path / 'out'}: has shards of 2 and of 3; keep the shards of one encoding"


def test_an_index_knows_what_made_its_vectors(tmp_path, collection):
    encode(collection, tmp_path / "out")
    manifest = build_index(tmp_path / "out", tmp_path / "index", "m")
    assert manifest.settings == StandInEncoder().settings
    assert manifest.impact_scale == 51.2
    message = refusal(build_index, tmp_path / "out", tmp_path / "index", "other", existing="overwrite")
    assert message == f"{tmp_path / 'out'}: the vectors are of 'm', not of 'other'"
    file = tmp_path / "out" / "vectors.about"
    about = json.loads(file.read_text())
    wrong = [json.dumps(about | {"impact_scale": value}) for value in (None, "2", [], 0)]
    wrong += [json.dumps(about | {key: None}) for key in ("encoder", "settings", "signed")]
    for content in ("{}", "[" * 10**5, *wrong):
        file.write_text(content)
        message = refusal(build_index, tmp_path / "out", tmp_path / "index", "m", existing="overwrite")
        assert message == f"{file}: damaged; delete it, and name --encoder and --impact-scale"
