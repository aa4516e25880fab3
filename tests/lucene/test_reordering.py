"""Documents in an order in which those that share terms stand together: another order, and the same answers."""

import logging
import random
from types import SimpleNamespace

import pytest
from impact_indexes import add_documents
from json_lines import write_jsonl

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import build_index, indexer
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, java_class, writer
from pyserini_compneg.support.progress import progress

GROUPS, SIZE, TERMS = 8, 100, 12


def grouped(count=GROUPS * SIZE):
    """Documents of groups that share no term, one of each group after the other, and some without terms."""
    choice = random.Random(1)
    for number in range(count):
        group = number % GROUPS
        terms = choice.sample(range(TERMS), 6) if number % 50 else []
        yield f"d{number}", {f"g{group}t{term}": choice.randint(1, 99) for term in terms}


def written(folder, reorder, threads=1, count=GROUPS * SIZE):
    folder.mkdir()
    with ImpactWriter(folder, threads=threads) as writer:
        add_documents(writer, dict(grouped(count)))
        writer.optimize(reorder)
        writer.commit()
    return folder


def segment(folder):
    """The index as Lucene reads it, and its one segment."""
    paths = java_class("java.nio.file.Paths")
    directory = java_class("org.apache.lucene.store.FSDirectory").open(paths.get(str(folder)))
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    assert reader.leaves().size() == 1
    return reader, reader.leaves().get(0).reader()


def ids(folder):
    """The documents' ids, in the order of the index."""
    reader, one = segment(folder)
    try:
        return [one.storedFields().document(number).get("id") for number in range(one.maxDoc())]
    finally:
        reader.close()


def changes(docids):
    """How often a document and the next one are of two groups."""
    groups = [int(docid[1:]) % GROUPS for docid in docids if int(docid[1:]) % 50]
    return sum(one != other for one, other in zip(groups, groups[1:], strict=False))


def test_documents_that_share_terms_stand_together(tmp_path):
    plain, reordered = ids(written(tmp_path / "plain", False)), ids(written(tmp_path / "reordered", True))
    assert sorted(plain) == sorted(reordered)
    assert changes(plain) > 0.9 * GROUPS * SIZE
    assert changes(reordered) <= 2 * GROUPS


def test_the_order_does_not_depend_on_threads(tmp_path):
    folder = written(tmp_path / "index", False, count=20_000)  # so that threads share a range
    reader, one = segment(folder)
    bisection, counter, most = (
        java_class("io.compneg.blocks.GraphBisection"),
        java_class("java.util.concurrent.atomic.LongAdder"),
        2**30,
    )

    def order(*arguments):
        return bisection.order(*arguments, counter())

    alone = list(order(one, "contents", 1, most))
    assert list(order(one, "contents", 4, most)) == alone != list(range(one.maxDoc()))
    assert sorted(alone) == list(range(one.maxDoc()))
    assert list(order(one, "contents", 1, 0)) == list(range(one.maxDoc()))  # no memory for any term
    assert list(order(one, "none", 1, most)) == list(range(one.maxDoc()))
    few = list(order(one, "contents", 1, 4 * 2000))  # frequent terms are left out
    assert sorted(few) == list(range(one.maxDoc()))
    assert few != alone
    reader.close()


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_the_same_is_found_and_shown(tmp_path, on_error):
    """With filters, sources and vectors of documents, and where documents were deleted."""
    records = [{"id": docid, "vector": vector, "kind": f"k{len(vector)}"} for docid, vector in grouped()]
    if on_error == "skip":
        records += [{**record, "kind": "again"} for record in records[:90]]
    collection = write_jsonl(tmp_path / "films.jsonl", *records)
    options = {"store_raw": True, "store_docvectors": True, "filter_fields": ["kind"], "on_error": on_error}
    plain = build_index(collection, tmp_path / "plain", "m", optimize=True, **options)
    assert build_index(collection, tmp_path / "reordered", "m", reorder=True, **options) == plain
    assert ids(tmp_path / "plain") != ids(tmp_path / "reordered")
    queries = [Linear({f"g{g}t{t}": 3 - t for t in range(TERMS)} | {f"g{7 - g}t0": 2}) for g in range(GROUPS)]
    with ImpactReader(tmp_path / "plain") as one, ImpactReader(tmp_path / "reordered") as other:
        for k in (1, 10, 1000):
            assert one.search(queries, k) == other.search(queries, k)
        docids = [docid for docid, _ in grouped()]
        assert one.raws(docids) == other.raws(docids)
        found = one.search(queries, 3)
        assert [one.explain(query, ranking.docids[0]) for query, ranking in zip(queries, found, strict=True)] == [
            other.explain(query, ranking.docids[0]) for query, ranking in zip(queries, found, strict=True)
        ]


def test_an_index_without_terms_or_documents(tmp_path):
    for name, documents in (("empty", {}), ("one", {"d": {"a": 1}})):
        (tmp_path / name).mkdir()
        with ImpactWriter(tmp_path / name, threads=1) as writer:
            add_documents(writer, documents)
            writer.optimize(True)
            writer.commit()
        with ImpactReader(tmp_path / name) as reader:
            assert reader.document_count == len(documents)


@pytest.mark.parametrize(
    ("documents", "options", "reordered"),
    [
        (1_000, {}, True),
        (999, {}, False),
        (1_000, {"reorder": False}, False),
        (1_000, {"pair_terms": 2}, False),
        (40, {"reorder": True}, True),
    ],
)
def test_large_indexes_are_reordered_unless_told_otherwise(tmp_path, documents, options, reordered):
    vectors = ({"id": f"d{n}", "vector": {"a": 1 + n % 3, f"b{n % 7}": 1}} for n in range(documents))
    index = tmp_path / "index"
    build_index(write_jsonl(tmp_path / "films.jsonl", *vectors), index, "m", **options)
    assert (index / "compneg.maxima").exists() == reordered


class TooLittleMemory:
    """What the companion does where its heap has no room for another order."""

    def __init__(self):
        self.asked, self.states = [], iter([("merging", 0.0), ("reordering", 0.25), ("reordering", 0.5)])

    def __call__(self, work):
        return work(self)

    def optimize(self, *asked):
        self.asked.append(asked)

    def optimized(self, milliseconds):
        self.state = next(self.states, None)
        return self.state is None

    def stage(self):
        return self.state[0]

    def ordered(self):
        return self.state[1]

    def reordered(self):
        return False


@pytest.mark.parametrize("asked", [None, True])
def test_a_heap_without_room_for_another_order(tmp_path, monkeypatch, caplog, asked):
    java, bars = TooLittleMemory(), []

    def bar(iterable, total, unit, description):
        bars.append((description, total, progress(iterable, total, unit, description)))
        return bars[-1][-1]

    monkeypatch.setattr(indexer, "LEAST_REORDERED", 2)
    monkeypatch.setattr(writer, "progress", bar)
    optimize = ImpactWriter.optimize
    monkeypatch.setattr(ImpactWriter, "optimize", lambda _, *a, **b: optimize(SimpleNamespace(_call=java), *a, **b))
    build_index(
        write_jsonl(tmp_path / "films.jsonl", *({"id": f"d{n}", "vector": {"a": n + 1}} for n in range(3))),
        tmp_path / "index",
        "m",
        reorder=asked,
    )
    assert java.asked == [(True, asked is True)]  # who asks for another order gets an error
    assert [(*said, shown.n) for *said, shown in bars] == [("merging", None, 0), ("reordering", 100, 50)]
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [
        f"{tmp_path / 'index'}: is not reordered: Java's heap is too small; JAVA_TOOL_OPTIONS=-Xmx8g makes it 8 GB"
    ]
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_count == 3
