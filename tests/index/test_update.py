"""Updates: after any sequence of them, an index finds, scores and tells what a new index of its documents does."""

import json
import resource
import shutil
from random import Random

import pytest
from film_index import start
from impact_indexes import pairs, search, write_stock_index
from index_folders import hidden, postings
from json_lines import write_jsonl
from refusals import refusal
from stand_in_encoder import taken_texts
from steps import as_steps, at_step, copied

from pyserini_compneg.compose import Linear, Max, Product
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
from pyserini_compneg.lucene import ImpactWriter, Manifest, open_reader
from pyserini_compneg.lucene.shards import read_shards, shard_commit
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import CompNegError, IndexFormatError, OutputError

TERMS = [f"t{i}" for i in range(12)]
NODES = [
    *(
        Linear({term: 3.0, other: -1.0, third: 2.0})
        for term, other, third in zip(TERMS, TERMS[3:], TERMS[5:], strict=False)
    ),
    Linear({"t0": 1.0}),
    Product(({"t1": 1.0, "t2": 2.0}, {"t3": 1.0})),
    Max((Linear({"t4": 2.0}), Linear({"t5": 1.0, "t6": -3.0}))),
    Linear({"t1∩t2": 2.0, "¬t3": 1.0, "t4": 1.0}),
]
FILTERS = [
    Filter({"year": ("1990..1994",)}),
    Filter({"genre": ("spy", "war")}),
    Filter({"id": ("d0001", "d0007", "none")}),
]


def draw_vector(random, signed):
    """A vector of few different weights, so that scores tie; sometimes an empty one."""
    signs = [1, 1, -1] if signed else [1]
    return {
        term: random.choice([1, 2, 7]) * random.choice(signs) for term in random.sample(TERMS, random.randint(0, 5))
    }


def draw_document(random, docid, signed, passages=0):
    fields = {"year": random.randint(1988, 1999), "genre": random.choice(["spy", "war", "love"])}
    vectors = [draw_vector(random, signed) for _ in range(random.randint(1, passages or 1))]
    found = {"vectors": vectors} if passages else {"vector": vectors[0]}
    return {"id": docid, **found, "contents": f"text {random.random()}", **fields}


def ranked(reader, hits):
    """All that an index tells."""
    docids = [f"d{i:04}" for i in range(0, 3000, 97)]
    lines = [json.dumps({"vector": node.weights}) for node in NODES[:5]]
    return [
        *(pairs(ranking) for node in NODES for ranking in search(reader, [node], hits)),
        *(pairs(r) for one in FILTERS for r in search(reader, NODES, hits, filters=[one] * len(NODES))),
        [getattr(ranking, "passages", None) for ranking in reader.search(lines, hits)],
        [reader.matches(lines, [one] * len(lines), {"genre": 2}) for one in (None, *FILTERS)],
        [list(reader.filtered(one)[:3]) for one in FILTERS],
        reader.score(lines, [docids] * len(lines)),
        [reader.explain(lines[0], docid) for docid in docids],
        reader.raws(docids),
        reader.document_frequencies([*TERMS, "t1∩t2", "¬t3"]),
        reader.field_document_count,
        reader.document_count,
        [reader.has(docid) for docid in docids],
    ]


def build(folder, documents, shards, options):
    """A new index of documents."""
    collection = write_jsonl(folder.with_suffix(".jsonl"), *documents)
    fields = {"filter_fields": ["year", "genre"], "store_raw": True, **options}
    if shards:
        build_sharded_index(collection, folder, shards, "m", **fields)
    else:
        build_index(collection, folder, "m", **fields)


def draw_update(random, there, most, *kind):
    """Documents to give and ids to delete, and what the update counts; changes ``there``."""
    before = dict(there)
    deleted = random.sample(sorted(there), random.randint(0, min(most, len(there) // 3)))
    missing = [f"none{i}" for i in range(random.randint(0, 2))]
    old = random.sample(sorted(there.keys() - set(deleted)), random.randint(0, min(most, len(there) // 3)))
    same = [docid for docid in old if random.random() < 0.4]
    new = [f"d{random.randrange(10_000):04}" for _ in range(random.randint(1, most))]
    new = [docid for docid in dict.fromkeys(new) if docid not in before]
    given = {docid: before[docid] if docid in same else draw_document(random, docid, *kind) for docid in [*old, *new]}
    there |= given
    for docid in deleted:
        del there[docid]
    counts = (len(new), len(old) - len(same), len(same), len(deleted), len(missing))
    return list(given.values()), [*deleted, *missing], counts


def has_block_maxima(index):
    """Whether the block maxima are of a segment of the index. Lucene's id of the segment follows the file's header."""
    header = 4 + 1 + len("CompnegBlockMaxima") + 4
    segment = (index / "compneg.maxima").read_bytes()[header : header + 16]
    return any(segment in path.read_bytes() for path in index.glob("*.si"))


SIZES = {"words": 2, "overlap": 1}
FORMS = {
    "plain": (0, {}, 60),
    "pairs": (0, {"pair_terms": 4, "store_docvectors": True}, 60),
    "signed": (0, {"signed": True, "impact_scale": 51.2}, 60),
    "shards": (3, {}, 60),
    "shards with pairs": (2, {"pair_terms": 3, "signed": True}, 60),
    "reordered": (0, {"reorder": True}, 3000),
    "passages with pairs": (0, {"passages": SIZES, "pair_terms": 4, "signed": True}, 60),
    "passages in shards": (2, {"passages": SIZES}, 60),
}


@pytest.mark.parametrize(
    ("form", "seeds"),
    [
        *((form, 1) for form in FORMS),
        *(pytest.param(form, 2, marks=pytest.mark.slow, id=f"{form}-slow") for form in FORMS),
    ],
)
def test_updates_equal_a_new_index(form, seeds, tmp_path):
    shards, options, count = FORMS[form]
    kind = bool(options.get("signed")), 4 * ("passages" in options)
    for seed in range(seeds):
        random, folder = Random(f"{form} {seed}"), tmp_path / str(seed)
        folder.mkdir()
        there = {docid: draw_document(random, docid, *kind) for docid in (f"d{i:04}" for i in range(count))}
        build(folder / "updated", there.values(), shards, options)
        reader = open_reader(folder / "updated")
        for update in range(1, 4 if seeds == 1 else 12):
            documents, ids, counts = draw_update(random, there, 30, *kind)
            changes, deletes = write_jsonl(folder / "changes.jsonl", *documents), folder / "ids.txt"
            deletes.write_text("".join(f"{docid}\n" for docid in ids))
            last = update == (3 if seeds == 1 else 11)
            report = update_index(folder / "updated", changes, deletes, optimize=last, threads=random.choice([1, 3]))
            assert (report.inserted, report.replaced, report.unchanged, report.deleted, report.not_found) == counts
            merged = len(list((folder / "updated").rglob("*.si"))) == max(1, shards)
            assert merged or not last
            assert reader.reopen()
            assert reader.updates == update
            assert reader.manifest == report.manifest
            assert reader.document_count == len(there)
            lines = sum(len(one.get("vectors", "1")) for one in there.values())
            assert reader.manifest.documents == verify_index(folder / "updated") == lines
            if form == "reordered":
                assert has_block_maxima(folder / "updated")
            build(folder / f"new{update}", there.values(), 0, {**options, "reorder": False})
            with open_reader(folder / f"new{update}") as fresh:
                assert fresh.manifest == reader.manifest
                for hits in (1, 2, 10_000):
                    assert ranked(reader, hits) == ranked(fresh, hits)
        assert update_index(folder / "updated", changes, threads=1).changes == 0
        assert not reader.reopen()
        reader.close()
        assert hidden(folder / "updated") == []


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


def test_documents_of_earlier_releases_have_no_hash(tmp_path):
    """Stock Anserini writes none either; with a manifest its index is one of this package."""
    index = write_stock_index(tmp_path, {"a": {"t": 1}, "b": {"t": 2}, "c": {"t": 3}})
    changes = write_jsonl(tmp_path / "new.jsonl", {"id": "a", "vector": {"t": 1}}, {"id": "d", "vector": {"t": 9}})
    text = refusal(update_index, index, changes, error=IndexFormatError)
    why = "has no compneg.json (stock Anserini built it), so its encoder and settings are unknown"
    assert text == f"{index}: {why}; build an index of its documents with index"
    Manifest("m", documents=3).write(index)
    assert (update_index(index, changes).replaced, update_index(index, changes).unchanged) == (1, 2)
    assert postings(index, "t") == {"d": 9, "c": 3, "b": 2, "a": 1}


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
    ([{"id": "d1", "vector": {"t": 7}}] * 2, "", "{new}:2: the id of this document was given before in this update"),
    ([{"id": "n", "vector": {"t": 7}}] * 2, "", "{new}:2: the id of this document was given before in this update"),
    ([{"id": "d1", "vector": {"t": 7}}], "d1", "{new}:1: the id of this document was given before in this update"),
    ([{"id": "n", "vector": {"t": 0.5}}], "", "{new}:1: the weight of 't' must be a whole number, got 0.5; for "),
    ([{"id": "n", "vector": {"t": 1}, "year": {}}], "", "{new}:1: the field 'year' must be a text of at most"),
    ([{"id": "n", "vector": {"t": -1}}], "", "{new}:1: the weight of 't' is negative, -1; to index negative weights"),
    ([{"id": "d1", "vector": {"t": 7}}, "{"], "", "{new}:2: not valid JSON"),
    ([{"id": "n", "contents": "x"}], "", "the index was built from vectors of 'm', and these documents have texts; "),
    ([""], "", "{new}: no documents"),
    ([{"id": "n", "vector": {}}], "d0 d1 d2 d3 d4 d5", "{index}: the update would leave no document with a term"),
]


@pytest.mark.parametrize(("lines", "ids", "said"), REFUSED)
def test_a_refused_update_changes_nothing(lines, ids, said, index, tmp_path):
    new = write_jsonl(tmp_path / "new.jsonl", *lines)
    (tmp_path / "ids.txt").write_text(ids.replace(" ", "\n"))
    with open_reader(index) as reader:
        before = reader.search(['{"vector": {"t": 1}}'], 100)
        text = refusal(update_index, index, new, tmp_path / "ids.txt" if ids else None)
        assert text.startswith(said.format(new=new, index=index))
        assert not reader.reopen()
    with open_reader(index) as reader:
        assert reader.search(['{"vector": {"t": 1}}'], 100) == before
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


def test_a_full_disk(index, tmp_path):
    """One line, and the old index; what was written stays unseen, and the update can be given again."""
    new = write_jsonl(tmp_path / "new.jsonl", *({"id": f"n{i}", "vector": {f"t{i}": 7, "t": 1}} for i in range(500)))
    no_file_may_grow_further = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    told = ["--index", index, "--collection", new]
    with start(*told, module="pyserini_compneg.update", preexec_fn=no_file_may_grow_further) as process:
        said = process.communicate()[1]
    assert process.returncode == 1
    assert said.startswith(f"error: {index}: the index cannot be written: ")
    assert said.count("\n") == 1
    assert verify_index(index) == 6
    assert update_index(index, new).inserted == 500
    assert verify_index(index) == 506


def test_the_ordered_segment_survives_small_updates(tmp_path):
    """Until half of its documents are deleted."""
    random = Random(5)
    documents = [draw_document(random, f"d{i:04}", False) for i in range(3000)]
    build(tmp_path / "index", documents, 0, {"reorder": True})
    for update in range(50):
        with ImpactUpdater(tmp_path / "index", 1) as updater:
            for docid in (*(f"d{i:04}" for i in range(28 * update, 28 * update + 28)), f"n{update}"):
                updater.add(docid, {"t1": 1 + update})
        assert has_block_maxima(tmp_path / "index")
    assert len(list((tmp_path / "index").glob("*.si"))) < 20
    with ImpactUpdater(tmp_path / "index", 1) as updater:
        updater.delete(f"d{i:04}" for i in range(2000))
    assert not has_block_maxima(tmp_path / "index")
    assert verify_index(tmp_path / "index") == 1050


def are_ordered(index):
    """Whether each commit that a search opens has block maxima of one of its segments."""
    commits = [shard_commit(index / entry.path, entry) for entry in read_shards(index)]
    header = 4 + 1 + len("CompnegBlockMaxima") + 4
    return [
        any(file.read_bytes()[header : header + 16] in commit.read_bytes() for file in commit.parent.glob("*.maxima*"))
        for commit in commits
    ]


def test_a_killed_merge_loses_no_order(tmp_path, monkeypatch):
    """After each step of a merge of two shards."""
    random, index, killed = Random(6), tmp_path / "index", []
    build(index, [draw_document(random, f"d{i:04}", False) for i in range(200)], 2, {"reorder": True})
    methods = {name: getattr(ImpactWriter, name) for name in ("optimize", "commit", "release")}
    for name in methods:

        def stepping(*given, name=name, **options):
            result = methods[name](*given, **options)
            killed.append(tmp_path / f"killed{len(killed)}")
            copied(index, killed[-1])
            return result

        monkeypatch.setattr(ImpactWriter, name, stepping)
    change = write_jsonl(tmp_path / "change.jsonl", {"id": "n", "vector": {"t1": 7}, "year": 3})
    with ImpactUpdater(index, 1) as updater:
        updater.add("n", {"t1": 7})
        updater.optimize()
    monkeypatch.undo()
    assert len(killed) == 6
    for folder in [*killed, index]:
        assert are_ordered(folder) == [True, True]
        update_index(folder, change, threads=1)
        assert are_ordered(folder) == [True, True]
        assert verify_index(folder) == 201
    assert [path.name for path in index.rglob("*.maxima.*")] == []


@pytest.mark.parametrize(("shards", "every"), [(0, 2), (2, 5), pytest.param(2, 1, marks=pytest.mark.slow)])
def test_a_killed_update_shows_nothing_and_can_be_given_again(shards, every, tmp_path, monkeypatch):
    """The folder is copied at each step, as a killed process would leave it, and the update is given to the copy."""
    random = Random(7)
    there = {docid: draw_document(random, docid, False) for docid in (f"d{i:04}" for i in range(40))}
    build(tmp_path / "index", there.values(), shards, {})
    documents, ids, _ = draw_update(random, there, 12, False)
    changes, deletes = write_jsonl(tmp_path / "changes.jsonl", *documents), tmp_path / "ids.txt"
    deletes.write_text("\n".join(ids))
    as_steps(monkeypatch, ImpactWriter, "add_lines", "remove", "settle", "commit", "release")

    def content(folder):
        with open_reader(folder) as reader:
            return [pairs(ranking) for ranking in search(reader, NODES, 100)], reader.manifest

    steps, states = 1, [content(tmp_path / "index")]
    while True:
        folder, killed = tmp_path / f"work{steps}", tmp_path / f"killed{steps}"
        shutil.copytree(tmp_path / "index", folder / "index")
        with at_step(folder, steps, lambda _, folder=folder, killed=killed: copied(folder, killed)) as seen:
            update_index(folder / "index", changes, deletes, threads=1)
        if len(seen) < steps:
            break
        if (state := content(killed / "index")) != states[-1]:
            states.append(state)
        update_index(killed / "index", changes, deletes, threads=1)
        assert content(killed / "index") == content(folder / "index")
        shutil.rmtree(folder)
        steps += every
    assert verify_index(folder / "index") == len(there)
    assert states[1:] in ([], [content(folder / "index")])
    assert len(seen) > 8
