"""Postings are inverted a segment at a time, and are those that Lucene's own inverter writes."""

import random

import pytest
from impact_indexes import json_lines

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, writer

COLLIDING = ["AaAaAaAa", "BBBBBBBB", "AaAaBBBB"]  # of one hash, and longer than a key
TERMS = [f"t{number}" for number in range(400)] + ["é", "😀", "￮", "z∩", "t", "1234567", "12345678", *COLLIDING]
POSTINGS = {".doc", ".tim", ".tip", ".tmd", ".psm", ".nvd", ".nvm"}


def make_vectors(seed=5, documents=1500):
    """Some without a term, some with all; neighbours share terms; the impacts of a term vary widely."""
    choice = random.Random(seed)
    vectors = {}
    for number in range(documents):
        start = choice.randrange(len(TERMS))
        terms = {TERMS[(start + choice.randrange(60)) % len(TERMS)] for _ in range(choice.choice([0, 1, 8, 40]))}
        vectors[f"d{number}"] = {term: choice.choice([1, 2, 40, 300, 2**20]) for term in sorted(terms)}
    vectors["all"] = dict.fromkeys(TERMS, 7)
    return vectors


def files_of_postings(folder):
    """The files with postings and norms, without the id of the segment in their headers and the checksum at the end."""
    contents = {}
    for path in folder.iterdir():
        if path.suffix in POSTINGS:
            data = path.read_bytes()
            start = 4 + 1 + data[4] + 4  # behind a number, the name of the format with its length, its version
            contents[path.name] = data[:-8].replace(data[start : start + 16], b"")
    assert {name[name.index(".") :] for name in contents} >= {".doc", ".tim", ".nvd"}
    return contents


@pytest.mark.parametrize("signed", [False, True])
def test_the_files_are_those_of_lucenes_inverter(tmp_path, signed):
    vectors = make_vectors()
    if signed:
        choice = random.Random(6)
        vectors = {key: {t: choice.choice([1, -1]) * w for t, w in one.items()} for key, one in vectors.items()}
    for name, other in (("at once", False), ("by document", True)):  # vectors are stored as Lucene inverts them
        with ImpactIndexer(tmp_path / name, "m", threads=1, signed=signed, store_docvectors=other) as indexer:
            for docid, vector in vectors.items():
                indexer.add(docid, vector)
    assert files_of_postings(tmp_path / "at once") == files_of_postings(tmp_path / "by document")


def found(folder):
    """All rankings of single terms, and how many documents have each."""
    with ImpactReader(folder) as reader:
        nodes = [Linear({term: 1.0}) for term in TERMS]
        return reader.search(nodes, 10_000), reader.document_frequencies(TERMS), reader.document_count


def segments_written(folder):
    """How many segments were written, those that merges replaced included: Lucene counts them in base 36."""
    return max(int(path.stem.strip("_"), 36) for path in folder.glob("*.si")) + 1


def test_vectors_wait_in_bounded_memory_for_several_threads(tmp_path, monkeypatch):
    vectors = make_vectors()
    for name, megabytes, threads in (("one", 64.0, 1), ("many", 0.1, 3)):
        monkeypatch.setattr(writer, "_MEMORY_BUFFER_MB", megabytes)
        with ImpactWriter(tmp_path / name, threads=threads) as writing:
            ids = list(vectors)
            for start in range(0, len(ids), 50):
                block = [{"id": docid, "vector": vectors[docid]} for docid in ids[start : start + 50]]
                assert writing.add_lines(json_lines(block), "vectors", start + 1) == []
            assert writing.drain() == []
            writing.commit()
    assert segments_written(tmp_path / "one") == 1
    assert segments_written(tmp_path / "many") > 1
    assert found(tmp_path / "many") == found(tmp_path / "one")
    assert found(tmp_path / "one")[1] == [sum(term in vector for vector in vectors.values()) for term in TERMS]


def test_the_memory_of_terms_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_MEMORY_BUFFER_MB", 0.2)
    segments = {}
    for name, terms in (("rare", 9000), ("few", 30)):  # with as many postings
        with ImpactWriter(tmp_path / name, threads=1) as writing:
            for number in range(300):
                vector = {f"t{(30 * number + place) % terms}": 1 for place in range(30)}
                assert writing.add_lines(json_lines([{"id": f"d{number}", "vector": vector}]), "vectors") == []
            assert writing.drain() == []
            writing.commit()
        segments[name] = segments_written(tmp_path / name)
    assert segments["few"] < segments["rare"]


def test_a_refused_document_leaves_nothing_behind(tmp_path):
    good = {"id": "good", "vector": {"a": 3, "b": 1}, "year": "1999"}
    bad = {"id": "bad", "vector": {"a": 5, "c": 2}, "year": "x" * 40_000}
    with ImpactWriter(tmp_path / "index", filter_fields=["year"]) as writing:
        problems = writing.add_lines(json_lines([good, bad, good | {"id": "last"}]), "vectors") + writing.drain()
        writing.commit()
    assert len(problems) == 1
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_frequencies(["a", "b", "c"]) == [2, 2, 0]
        assert reader.search([Linear({"a": 1.0})], 10)[0].docids == ["good", "last"]
