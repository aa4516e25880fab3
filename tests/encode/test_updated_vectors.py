"""Vectors that are updated are those of a new encoding, and only texts that have changed are encoded."""

import gzip
import json
import random

import pytest
from json_lines import write_jsonl
from refusals import refusal
from stand_in_encoder import StandInEncoder, taken_texts, vector
from vector_files import NAME, encode, leftovers, records

from pyserini_compneg.documents.passages import split_text
from pyserini_compneg.documents.vector_files import VECTORS_FILE
from pyserini_compneg.encode import document_encoders
from pyserini_compneg.encode.corpus import INSTEAD, SHARDS_STAY
from pyserini_compneg.encode.sharded import encode_in_shards
from pyserini_compneg.index import build_index, update_index
from pyserini_compneg.lucene import open_reader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, OutputError

WORDS = ["spy", "film", "comedy", "Vienna", "naïve", "東京", "\u2028", "war"]


@pytest.fixture
def encoded(monkeypatch):
    """Takes the texts that are encoded."""
    return taken_texts(monkeypatch, StandInEncoder)


def draw_document(choice, docid):
    document = {"docid": docid, "text": " ".join(choice.choices(WORDS, k=5)), "year": choice.randrange(1990, 2000)}
    return document | {"title": choice.choice(WORDS), "genres": choice.sample(WORDS, 2)}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", range(4))
def test_an_update_makes_what_a_new_encoding_makes(tmp_path, encoded, caplog, seed):
    caplog.set_level("INFO")
    choice = random.Random(seed)
    documents = {f"d{i}": draw_document(choice, f"d{i}") for i in range(80)}
    passages = {"words": 2, "overlap": 1} if seed % 2 else None
    encode(write_jsonl(tmp_path / "c.jsonl", *documents.values()), tmp_path / "out", passages=passages)
    for turn in range(3):
        before = dict(documents)
        gone = set(choice.sample(sorted(documents), 6))
        for docid in choice.sample(sorted(documents.keys() - gone), 10):
            documents[docid] = draw_document(choice, docid)
        for docid in choice.sample(sorted(documents.keys() - gone), 10):
            documents[docid] = documents[docid] | {"year": 2000 + turn}
        documents |= {f"n{turn}{i}": draw_document(choice, f"n{turn}{i}") for i in range(7)}
        documents = {
            docid: documents[docid] for docid in sorted(documents.keys() - gone, key=lambda _: choice.random())
        }
        path = write_jsonl(tmp_path / "c.jsonl", *documents.values())
        texts = {docid: f"{one['title']}\n{one['text']}" for docid, one in documents.items()}
        old = {docid: f"{one['title']}\n{one['text']}" for docid, one in before.items()}
        changed = [text for docid, text in texts.items() if old.get(docid) != text]
        split = [
            f"{title}\n{one.text}"
            for title, text in (one.split("\n") for one in changed)
            for one in split_text(text, 2, 1)
        ]
        encoded.clear()
        place = encode(path, tmp_path / "out", existing="update", passages=passages)
        assert encoded == (split if passages else changed)
        new = len(texts.keys() - old.keys())
        assert caplog.messages[-1] == (
            f"{place}: {new} inserted, {len(changed) - new} replaced, {len(texts) - len(changed)} unchanged, "
            f"{len(gone)} deleted, {len(texts)} documents now"
        )
        assert (
            place.read_bytes() == encode(path, tmp_path / "new", existing="overwrite", passages=passages).read_bytes()
        )
        assert leftovers(place.parent) == []


def test_fields_of_the_source_reach_an_index(tmp_path):
    documents = [
        {"_id": "a", "title": "Spies", "text": "spy film", "year": 1999, "genre": ["spy", "war"], "note": None},
        {"_id": "b", "contents": "spy comedy", "text": "kept", "year": 2003, "encoder": "x", "vector": {"x": 1}},
    ]
    path = write_jsonl(tmp_path / "c.jsonl", *documents)
    path.write_text(path.read_text().replace('"note": null', '"note": 1e999'))
    place = encode(path, tmp_path / "out")
    kept = [
        {key: value for key, value in one.items() if key not in ("id", "contents", "vector")} for one in records(place)
    ]
    assert kept == [
        {"encoder": "m", "title": "Spies", "year": 1999, "genre": ["spy", "war"], "note": None},
        {"encoder": "m", "text": "kept", "year": 2003},
    ]
    build_index(tmp_path / "out", tmp_path / "index", "m", filter_fields=["year", "genre"], store_raw=True)
    with SignedImpactSearcher(tmp_path / "index", StandInQueries()) as searcher:
        assert [hit.docid for hit in searcher.search("spy", filter={"year": "2000.."})] == ["b"]
        assert [hit.docid for hit in searcher.search("spy", filter={"genre": "war"})] == ["a"]
        assert searcher.title("a") == "Spies"
    with open_reader(tmp_path / "index") as reader:
        assert json.loads(reader.raw("a"))["year"] == 1999


class StandInQueries:
    def encode_batch(self, texts):
        return [{word: 1.0 for word in text.split()} for text in texts]


def test_vectors_of_an_earlier_release_are_updated(tmp_path, encoded):
    """Their lines have the id, the text and the vector alone."""
    documents = [{"id": f"d{i}", "contents": f"spy {i}", "year": i} for i in range(3)]
    path = write_jsonl(tmp_path / "c.jsonl", *documents)
    place = encode(path, tmp_path / "out")
    expected = place.read_bytes()
    with gzip.open(place, "rt") as lines:
        old = [{key: value for key, value in json.loads(line).items() if key != "year"} for line in lines]
    with gzip.open(place, "wt") as handle:
        handle.writelines(json.dumps(one) + "\n" for one in old)
    build_index(tmp_path / "out", tmp_path / "index", "m")
    encoded.clear()
    assert encode(path, tmp_path / "out", existing="update").read_bytes() == expected
    assert encoded == []


def test_a_killed_update_goes_on(tmp_path, collection, small_blocks, encoded, monkeypatch):
    place = encode(collection, tmp_path / "out")
    whole = place.read_bytes()
    lines = (collection / "part0.jsonl").read_text().replace("film", "films")
    (collection / "part0.jsonl").write_text(lines)
    stream = StandInEncoder.stream

    def fails(self, batches):
        for number, vectors in enumerate(stream(self, batches)):
            if number == 7:
                raise KeyboardInterrupt
            yield vectors

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StandInEncoder, "stream", fails)
        encode(collection, tmp_path / "out", existing="update")
    assert place.read_bytes() == whole
    assert leftovers(place.parent) == [f".{NAME}.partial", f".{NAME}.state"]
    first = len(encoded)
    encoded.clear()
    (tmp_path / "copy").mkdir()
    for file in (place, place.with_name(VECTORS_FILE), *place.parent.glob(".*")):
        (tmp_path / "copy" / file.name).write_bytes(file.read_bytes())
    encode(collection, tmp_path / "out", existing="update")
    assert 0 < len(encoded) < first
    expected = encode(collection, tmp_path / "new").read_bytes()
    assert place.read_bytes() == expected
    (collection / "part1.jsonl").open("a").write("\n")  # another collection: the unfinished work is of no use
    encode(collection, tmp_path / "copy", existing="update")
    assert (tmp_path / "copy" / NAME).read_bytes() == expected


def test_what_cannot_be_updated(tmp_path, collection):
    place = tmp_path / "out" / NAME
    message = refusal(encode, collection, tmp_path / "out", existing="update", error=OutputError)
    assert message == f"{place}: there is no file to update; encode without --update"
    encode(collection, tmp_path / "out")
    whole = place.read_bytes()
    message = refusal(
        encode, collection, tmp_path / "out", existing="update", settings={"max_length": 7}, error=OutputError
    )
    assert message == f"{tmp_path / 'out'}: holds vectors of 'm' with other settings; give another --output"
    for damaged in (whole[:-9], b"x" + whole, gzip.compress(b"{}\n")):
        place.write_bytes(damaged)
        message = refusal(encode, collection, tmp_path / "out", existing="update")
        assert message == f"{place}: is damaged, so it cannot be updated; encode all again with --overwrite"
        assert place.read_bytes() == damaged
    (tmp_path / "out" / VECTORS_FILE).unlink()
    message = refusal(encode, collection, tmp_path / "out", existing="update", error=OutputError)
    assert message == (
        f"{place}: cannot be updated: there is no {VECTORS_FILE} that says how it was made; "
        "encode all again with --overwrite"
    )


def test_shards_are_not_updated_and_an_index_of_them_is(tmp_path, collection, monkeypatch):
    shards = tmp_path / "s"
    for number in range(2):
        encode(collection, shards, shard_id=number, shard_num=2)
    said = f"{SHARDS_STAY}; {INSTEAD}"
    assert refusal(encode, collection, shards, existing="update", error=OutputError) == f"{shards}: {said}"
    assert refusal(encode, collection, shards, existing="update", shard_num=2, error=ArgumentError) == said
    message = refusal(encode_in_shards, collection, shards, "m", 2, existing="update", error=ArgumentError)
    assert message == said
    films = [{"id": f"d{i}", "contents": text} for i, text in enumerate(["spy film", "war film", "comedy"])]
    path = write_jsonl(tmp_path / "c.jsonl", *films)
    for number in range(2):
        encode(path, tmp_path / "v", shard_id=number, shard_num=2)
    build_index(tmp_path / "v", tmp_path / "index", "m")
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())
    update_index(tmp_path / "index", write_jsonl(tmp_path / "new.jsonl", {"id": "d1", "contents": "spy comedy"}))
    with open_reader(tmp_path / "index") as updated:
        impacts = {term: round(51.2 * weight) for term, weight in vector("spy comedy").items()}
        assert updated.vector("d1") == impacts
