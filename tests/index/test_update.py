"""Updates: after any sequence of them, an index finds, scores and tells what a new index of its documents does."""

import json
from dataclasses import asdict
from random import Random

import pytest
from index_folders import hidden, postings
from json_lines import write_jsonl
from refusals import refusal
from stand_in_encoder import taken_texts
from updated_indexes import build, draw_document, draw_update, told

from pyserini_compneg.compose import Linear
from pyserini_compneg.encode import Bm25DocumentEncoder
from pyserini_compneg.encode.hybrid import HybridDocumentEncoder
from pyserini_compneg.expression import Filter
from pyserini_compneg.index import (
    ImpactIndexer,
    ImpactUpdater,
    UpdateCounts,
    build_index,
    build_sharded_index,
    update_index,
    verify_index,
)
from pyserini_compneg.index.sources import VectorSource
from pyserini_compneg.lucene import open_reader, writer
from pyserini_compneg.lucene.shards import read_shards
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, CompNegError, IndexFormatError, OutputError


def has_block_maxima(index):
    """Whether the block maxima are of a segment of the index. Lucene's id of the segment follows the file's header."""
    header = 4 + 1 + len("CompnegBlockMaxima") + 4
    segment = (index / "compneg.maxima").read_bytes()[header : header + 16]
    return any(segment in path.read_bytes() for path in index.glob("*.si"))


SIZES = {"words": 2, "overlap": 1}
PAIRS = "t1∩t2", "t1∩t9", "t3∩t4"
FORMS = {
    "plain": (0, {}, 60),
    "pairs": (0, {"pair_terms": 4, "store_docvectors": True}, 60),
    "pairs of earlier releases": (0, {"pair_terms": 4, "pair_scale": 1}, 60),
    "signed": (0, {"signed": True, "impact_scale": 51.2}, 60),
    "shards": (3, {}, 60),
    "shards with pairs": (2, {"pair_terms": 3, "signed": True}, 60),
    "reordered": (0, {"reorder": True}, 1500),
    "passages with pairs": (0, {"passages": SIZES, "pairs": PAIRS, "signed": True}, 60),
    "passages in shards": (2, {"passages": SIZES}, 60),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("updates", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_updates_equal_a_new_index(form, updates, tmp_path):
    """The long sequences merge segments; every sixth of their updates is compared."""
    shards, options, count = FORMS[form]
    kind = bool(options.get("signed")), 4 * ("passages" in options)
    random, updated = Random(f"{form} {updates}"), tmp_path / "updated"
    there = {docid: draw_document(random, docid, *kind) for docid in (f"d{i:04}" for i in range(count))}
    build(updated, there.values(), shards, options)
    reader = open_reader(updated)
    for update in range(1, updates + 1):
        documents, ids, counts = draw_update(random, there, 30, *kind)
        changes, deletes = write_jsonl(tmp_path / "changes.jsonl", *documents), tmp_path / "ids.txt"
        deletes.write_text("".join(f"{docid}\n" for docid in ids))
        last = update == updates
        report = update_index(updated, changes, deletes, optimize=last, threads=random.choice([1, 3]))
        assert (report.inserted, report.replaced, report.unchanged, report.deleted, report.not_found) == counts
        assert not last or len(list(updated.rglob("*.si"))) == max(1, shards)
        assert reader.reopen()
        assert reader.update.get("updates", 0) == update
        assert reader.manifest == report.manifest
        assert reader.document_count == len(there)
        assert form != "reordered" or has_block_maxima(updated)
        if updates > 3 and update % 6:
            continue
        lines = sum(len(one.get("vectors", "1")) for one in there.values())
        assert reader.manifest.documents == verify_index(updated) == lines
        build(tmp_path / f"new{update}", there.values(), 0, {**options, "reorder": False})
        with open_reader(tmp_path / f"new{update}") as fresh:
            assert fresh.manifest == reader.manifest
            assert told(fresh) == told(reader)
            assert fresh.raws(sorted(there)[::9]) == reader.raws(sorted(there)[::9])
    assert update_index(updated, changes, threads=1).changes == 0
    assert not reader.reopen()
    reader.close()
    assert hidden(updated) == []


TEXTS = {"a": "birds fly", "b": "birds sing", "c": "spies lie", "d": "spies run"}
"""All of one length, which is then the average of any index of these."""


def texts(**changed):
    return [{"id": docid, "contents": text} for docid, text in {**TEXTS, **changed}.items()]


def hits(index, query="birds"):
    with SignedImpactSearcher(index) as searcher:
        return [(hit.docid, hit.score) for hit in searcher.search(query, 10)]


@pytest.mark.parametrize(
    ("encoder", "made", "words"),
    [("bm25", Bm25DocumentEncoder, 0), ("bm25", Bm25DocumentEncoder, 1), ("bm25+mini", HybridDocumentEncoder, 0)],
)
def test_texts_are_encoded_as_in_a_new_index(encoder, made, words, tmp_path, monkeypatch):
    """BM25's query weights count no deleted document. Only changed texts are encoded."""
    documents = write_jsonl(tmp_path / "old.jsonl", *texts())
    passages = {"passages": {"words": words, "overlap": 0}} if words else {}
    build_index(documents, tmp_path / "index", encoder, **passages)
    changes = write_jsonl(tmp_path / "new.jsonl", *texts(a="birds run", e="birds lie"))
    (tmp_path / "ids.txt").write_text("c\nx\n\nc\n")
    with monkeypatch.context() as patch:
        encoded = taken_texts(patch, made)
        report = update_index(tmp_path / "index", changes)
    assert (report.inserted, report.replaced, report.unchanged) == (1, 1, 3)
    assert encoded == (["birds", "run", "birds", "lie"] if words else ["birds run", "birds lie"])
    report = update_index(tmp_path / "index", write_jsonl(tmp_path / "none.jsonl"), tmp_path / "ids.txt")
    assert (report.deleted, report.not_found, report.manifest.documents) == (1, 1, 8 if words else 4)
    left = [document for document in texts(a="birds run", e="birds lie") if document["id"] != "c"]
    build_index(write_jsonl(tmp_path / "left.jsonl", *left), tmp_path / "fresh", encoder, **passages)
    for query in ("birds", "birds NOT run", "spies AND run"):
        assert hits(tmp_path / "index", query) == hits(tmp_path / "fresh", query)


def test_documents_of_a_program_are_those_of_a_file(tmp_path):
    build_index(iter(texts()), tmp_path / "index")
    changed = texts(a="birds run", e="birds lie")
    report = update_index(tmp_path / "index", (one for one in changed if one["id"] != "c"), ["c", "x"])
    assert (report.inserted, report.replaced, report.unchanged, report.deleted, report.not_found) == (1, 1, 2, 1, 1)
    assert asdict(report)["manifest"] == asdict(report.manifest)
    assert update_index(tmp_path / "index", write_jsonl(tmp_path / "same.jsonl", *texts(a="birds run"))).replaced == 0


@pytest.mark.parametrize("form", ["one", "shards", "passages"])
def test_documents_that_the_collection_lacks_are_deleted(form, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_MISSING", 2)
    lines = [{"id": f"d{i}", "contents": "birds fly over films. " * (i % 3 + 1)} for i in range(9)]
    passages = {"passages": {"words": 4, "overlap": 0}} if form == "passages" else {}
    if form == "shards":
        build_sharded_index(write_jsonl(tmp_path / "old.jsonl", *lines), tmp_path / "index", 2)
    else:
        build_index(lines, tmp_path / "index", **passages)
    kept = [{**lines[4], "contents": "birds"}, lines[7], {"id": "n", "contents": "birds"}]
    report = update_index(tmp_path / "index", kept, ["d2"], delete_missing=True)
    assert (report.inserted, report.replaced, report.unchanged, report.deleted) == (1, 1, 1, 7)
    assert verify_index(tmp_path / "index") == (4 if passages else 3)
    assert {docid for docid, _ in hits(tmp_path / "index")} == {"d4", "d7", "n"}
    for none in ([], [{"id": "", "contents": ""}]):
        assert refusal(update_index, tmp_path / "index", none, ["d4"], delete_missing=True)
    with ImpactUpdater(tmp_path / "index") as updater:
        said = f"{tmp_path / 'index'}: no documents, so all of the index would be deleted"
        assert refusal(updater.delete_missing) == said
    assert refusal(update_index, tmp_path / "index", delete=["d4"], delete_missing=True, error=ArgumentError)
    said = "delete must be a file or a list of ids, got {'d4': 1}"
    assert refusal(update_index, tmp_path / "index", delete={"d4": 1}, error=ArgumentError) == said
    assert len(hits(tmp_path / "index")) == 3


def test_texts_are_in_the_language_of_the_index(tmp_path):
    old = write_jsonl(tmp_path / "old.jsonl", {"id": "a", "contents": "das Haus"})
    build_index(old, tmp_path / "index", bm25={"language": "de"})
    update_index(tmp_path / "index", write_jsonl(tmp_path / "new.jsonl", {"id": "b", "contents": "die Häuser"}))
    assert {docid for docid, _ in hits(tmp_path / "index", "Haus")} == {"a", "b"}


def test_the_average_length_is_that_of_the_build(tmp_path):
    build_index(write_jsonl(tmp_path / "old.jsonl", *texts()), tmp_path / "index")
    changes = write_jsonl(
        tmp_path / "new.jsonl", *texts(a="birds fly high, over films and towns", b="birds swim far away")
    )
    report = update_index(tmp_path / "index", changes)
    assert report.manifest.settings["average_length"] == 2
    assert report.drift == pytest.approx(2 / 4 * ((6 + 4) / 2 / 2 - 1))
    assert update_index(tmp_path / "index", changes).drift == report.drift
    vector = write_jsonl(tmp_path / "vector.jsonl", {"id": "v", "vector": {"bird": 1}})
    text = "add its text, or build an index of vectors with index --encoder MODEL"
    said = f"{vector}:1: only a `vector`, where texts are encoded; {text}"
    assert refusal(update_index, tmp_path / "index", vector) == said
    with ImpactUpdater(tmp_path / "index") as updater:
        said = f"{tmp_path / 'index'} has texts, encoded by 'bm25', not vectors of programs"
        told_why = refusal(updater.add, "v", {"bird": 1.0}, error=ArgumentError)
        assert told_why == f"{said}; give the texts to update_index"


def test_an_updater_in_a_program(tmp_path):
    with ImpactIndexer(tmp_path / "index", "m", store_raw=True) as indexer:
        for docid in "abc":
            indexer.add(docid, {"t": 1}, {"id": docid})
    with ImpactUpdater(tmp_path / "index") as updater:
        updater.delete(["a", "", "x\ny"])
        updater.add("b", {"t": 1}, {"id": "b"})
        for i in range(1000):
            updater.add(f"n{i}", {"t": 2})
    assert updater.counts == UpdateCounts(inserted=1000, unchanged=1, deleted=1, not_found=2)
    assert updater.manifest.documents == 1002
    assert len(postings(tmp_path / "index", "t")) == 1002


@pytest.fixture
def index(tmp_path):
    """An index of vectors in two shards."""
    lines = [{"id": f"d{i}", "vector": {"t": i + 1}, "year": i} for i in range(6)]
    build_sharded_index(write_jsonl(tmp_path / "old.jsonl", *lines), tmp_path / "index", 2, "m", filter_fields=["year"])
    return tmp_path / "index"


REFUSED = [
    (
        [{"id": "d1", "vector": {"t": 7}}] * 2,
        "",
        "{new}:2: the id 'd1' was given before in this update, or is one to delete; give each id once",
    ),
    (
        [{"id": "n", "vector": {"t": 7}}] * 2,
        "",
        "{new}:2: the id 'n' was given before in this update, or is one to delete; give each id once",
    ),
    (
        [{"id": "d1", "vector": {"t": 7}}],
        "d1",
        "{new}:1: the id 'd1' was given before in this update, or is one to delete; give each id once",
    ),
    (
        [{"id": "n", "vector": {"t": 7}}],
        "n",
        "{new}:1: the id 'n' was given before in this update, or is one to delete; give each id once",
    ),
    ([{"id": "n", "vector": {"t": 7}, "encoder": "mx"}], "", "{new}:1: the vector is of 'mx', not of 'm'; encode"),
    ([{"id": "n", "vector": {"t": 0.5}}], "", "{new}:1: the weight of 't' must be a whole number, got 0.5; for "),
    ([{"id": "n", "vector": {"t": 1}, "year": {}}], "", "{new}:1: the field 'year' must be a text of at most"),
    ([{"id": "n", "vector": {"t": -1}}], "", "{new}:1: the weight of 't' is negative, -1; to index negative weights"),
    ([{"id": "d1", "vector": {"t": 7}}, "{"], "", "{new}:2: not valid JSON"),
    ([{"id": "n", "contents": "x"}], "", "the index was built from vectors of 'm', and these documents have texts; "),
    ([""], "", "{new}: no documents"),
    ([{"id": "n", "vector": {}}], "d0 d1 d2 d3 d4 d5", "{index}: the update would leave no document with a term"),
]


def test_each_block_is_searched_for_encoders_once(tmp_path, monkeypatch):
    build_index(write_jsonl(tmp_path / "old.jsonl", {"id": "d", "vector": {"t": 1}}), tmp_path / "index", "m")
    blocks, own = [], VectorSource._own
    monkeypatch.setattr(VectorSource, "_own", lambda source, block: blocks.append(block) or own(source, block))
    update_index(tmp_path / "index", write_jsonl(tmp_path / "new.jsonl", {"id": "d", "vector": {"t": 2}}))
    assert len(blocks) == 1


@pytest.mark.parametrize(("lines", "ids", "said"), REFUSED)
def test_a_refused_update_changes_nothing(lines, ids, said, index, tmp_path):
    new = write_jsonl(tmp_path / "new.jsonl", *lines)
    (tmp_path / "ids.txt").write_text(ids.replace(" ", "\n"))
    with open_reader(index) as reader:
        before = reader.search([Linear({"t": 1.0})], 100)
        text = refusal(update_index, index, new, tmp_path / "ids.txt" if ids else None)
        assert text.startswith(said.format(new=new, index=index))
        assert not reader.reopen()
    with open_reader(index) as reader:
        assert reader.search([Linear({"t": 1.0})], 100) == before
    assert verify_index(index) == 6


def test_what_cannot_be_updated(index, tmp_path):
    shard = index / "shard-00000-of-00002"
    new = write_jsonl(tmp_path / "new.jsonl", {"id": "n", "vector": {"t": 7}})
    assert (
        refusal(update_index, shard, new, error=CompNegError) == f"{shard}: is a shard; update the whole index, {index}"
    )
    assert (
        refusal(update_index, index, error=CompNegError)
        == "nothing to do; give a collection, a file of ids to delete, or both"
    )
    assert refusal(update_index, index, new, encoder="bm25", error=CompNegError) == (
        "bm25: the index was encoded with 'm'; build another index with this encoder"
    )
    text = refusal(update_index, tmp_path / "none", new, error=IndexFormatError)
    assert text.startswith(f"{tmp_path / 'none'}: no such index folder")
    with ImpactUpdater(index) as first:
        text = refusal(update_index, index, new, error=OutputError)
        assert text == f"{index}: another process is updating or building it; wait for it"
        first.delete(["d3"])
    assert hidden(tmp_path) == []
    about = {"encoder": "m", "settings": {"model": "x", "max_length": 7}, "signed": False, "impact_scale": 1.0}
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "vectors.about").write_text(json.dumps(about))
    vectors = write_jsonl(tmp_path / "vectors" / "v.jsonl", {"id": "n", "vector": {"t": 7}})
    build_index(vectors, tmp_path / "other", "m")
    (tmp_path / "vectors" / "vectors.about").write_text(
        json.dumps(about | {"settings": {"model": "x", "max_length": 8}})
    )
    text = "max_length of the vectors is 8, and 7 in the index; encode them with the settings of the index"
    assert refusal(update_index, tmp_path / "other", vectors) == f"{vectors.parent}: {text}"


def test_texts_that_no_range_finds_are_warned_of(index, tmp_path, caplog):
    lines = [{"id": f"n{n}", "vector": {"t": 7}, "year": ["7.5", "5/1/1999"]} for n in range(2)]
    update_index(index, write_jsonl(tmp_path / "new.jsonl", *lines))
    said = "filter fields have numbers as texts, which ranges do not find: year (2, such as '7.5'); remove the quotes"
    assert f"{index}: {said}" in caplog.messages
    said = "filter fields have dates not of ISO 8601, which ranges do not find: year (2, such as '5/1/1999')"
    assert f"{index}: {said}; write them as 1999-05-01" in caplog.messages


def test_filters_know_the_fields_of_the_index(index, tmp_path):
    """Also if the last document with a field is deleted. A shard may lose all its documents."""
    with ImpactUpdater(index) as updater:
        updater.delete(["d0", "d1", "d2", "d4", "d5"])
        updater.add("n", {"t": 3}, {"id": "n"})
    with ImpactUpdater(index) as updater:
        updater.delete(["d3"])
    assert verify_index(index) == 1
    with open_reader(index) as reader:
        assert reader.filtered(Filter({"year": ("3",)})).allowed == 0
        assert refusal(reader.filtered, Filter({"colour": ("3",)}), error=IndexFormatError)
    with ImpactUpdater(index) as updater:
        for i in range(5):
            updater.add(f"m{i}", {"t": 3}, {"id": f"m{i}", "year": 3})
    with open_reader(index) as reader:
        assert reader.filtered(Filter({"year": ("3",)})).allowed == 5
        assert [shard.documents for shard in read_shards(index)] == [3, 3]


def test_the_ordered_segment_survives_small_updates(tmp_path):
    """Until half of its documents are deleted."""
    random = Random(5)
    build(tmp_path / "index", [draw_document(random, f"d{i:04}", False) for i in range(300)], 0, {"reorder": True})
    for update in range(16):
        with ImpactUpdater(tmp_path / "index", 1) as updater:
            for docid in (*(f"d{i:04}" for i in range(9 * update, 9 * update + 9)), f"n{update}"):
                updater.add(docid, {"t1": 1 + update})
        assert has_block_maxima(tmp_path / "index")
    assert len(list((tmp_path / "index").glob("*.si"))) < 6
    with ImpactUpdater(tmp_path / "index", 1) as updater:
        updater.delete(f"d{i:04}" for i in range(200))
    assert not has_block_maxima(tmp_path / "index")
    assert verify_index(tmp_path / "index") == 116
