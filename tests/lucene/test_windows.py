"""What reading by windows, in bulk and from tables could get wrong: borders of windows and of tables, huge trees."""

import itertools
import math
import os
import signal
import threading

import numpy as np
import pytest
from impact_indexes import pairs, write_index
from score_oracle import check_ranking

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, Sum
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene import ImpactReader, java_class
from pyserini_compneg.lucene.rankings import packed_ids, packed_queries, unpack_rankings
from pyserini_compneg.lucene.reader import QueryFailure
from pyserini_compneg.support.errors import CompNegError

BOTH = {"a": 3.0, "b": 2.0}
SHAPES = [
    Linear({"a": 1.0}),
    Linear({"a": 1.0, "b": -2.0}),
    Max((Linear(BOTH), Linear({"a": 4.0}))),
    Sum((Product(({"a": 1.0}, BOTH)), Linear({"b": -1.0}))),
    *(Product((BOTH, {"a": 1.0}), power, root) for power, root in [(None, 1), (1.0, 1), (1.0, 2), (0.7, 1), (0.3, 3)]),
    Sum((Linear({"a": 5.0}), Product((BOTH, {"b": 1.0}), weight=-0.5))),
    Damped(Linear({"a": 1.0}), (Linear({"b": 1.0}),), (2.0**20,), 0.5),
]


def check_every_way(reader, live, nodes=SHAPES):
    """Rankings are those of the definitions, and their scores those that documents get one by one, bit by bit."""
    for node, ranking in zip(nodes, reader.search(nodes, len(live) + 1), strict=True):
        check_ranking(node, live, ranking, len(live) + 1)
        [one_by_one] = reader.score([node], [ranking.docids])
        assert one_by_one == list(ranking.scores), node
        for hits in (1, 3, 10):
            assert pairs(reader.search([node], hits)[0]) == pairs(ranking)[:hits], node


def test_impacts_around_the_ends_of_the_tables(tmp_path):
    impacts = [1, 2, 254, 255, 256, 257, 65534, 65535, 65536, 65537, 2**20 - 1, 2**20]
    vectors = [{"a": a, "b": b} for a, b in itertools.product(impacts, impacts)] * 3  # so many that there are tables
    documents = {f"d{number:03}": vector for number, vector in enumerate(vectors)}
    documents |= {"only-a": {"a": 256}, "only-b": {"b": 256}}
    with ImpactReader(write_index(tmp_path / "index", documents)) as reader:
        check_every_way(reader, documents)


@pytest.mark.parametrize("count", [255, 256, 257, 8_961])
def test_documents_at_the_borders_of_windows(tmp_path, count):
    """Windows have 256 documents at first, then twice as many, up to 4,096; those of a second segment go on."""
    edges = {0, *(edge + step for edge in (256, 768, 1792, 3840, 7936) for step in (-1, 0)), count - 1}
    rng = np.random.default_rng(count)
    vectors = [
        {"c": int(rng.integers(1, 4))} | ({"a": int(rng.integers(1, 9)), "b": 300} if number in edges else {})
        for number in range(count)
    ]
    first = {f"d{number:05}": vector for number, vector in enumerate(vectors)}
    second = {f"e{number:05}": vector for number, vector in enumerate(vectors[:700])}
    deleted = ["d00000", "d00255", "e00256", "e00699"]
    deleted = [docid for docid in deleted if docid in first | second]
    live = {docid: vector for docid, vector in (first | second).items() if docid not in deleted}
    with ImpactReader(write_index(tmp_path / "index", first, second, deleted=deleted)) as reader:
        check_every_way(reader, live, [*SHAPES, Linear({"c": 1.0, "a": 1.0}), Sum((Linear({"c": 1.0}), *SHAPES[3:5]))])


def test_impacts_that_no_float_holds(tmp_path):
    """Bulk reading gives impacts as floats. Our indexer writes none above 2**20, but another program may."""
    builder = java_class("org.apache.lucene.analysis.custom.CustomAnalyzer").builder()
    analyzer = builder.withTokenizer("whitespace").addTokenFilter("delimitedTermFrequency").build()
    folder = java_class("java.io.File")(str(tmp_path)).toPath()
    writer = java_class("org.apache.lucene.index.IndexWriter")(
        java_class("org.apache.lucene.store.FSDirectory").open(folder),
        java_class("org.apache.lucene.index.IndexWriterConfig")(analyzer),
    )
    frequencies = java_class("org.apache.lucene.document.FieldType")()
    frequencies.setIndexOptions(java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    stored = java_class("org.apache.lucene.document.Field$Store").YES
    from jnius import cast  # starts Java, so it comes after the first class of the gate

    for extra in range(300):  # more than a block of postings has
        document = java_class("org.apache.lucene.document.Document")()
        document.add(java_class("org.apache.lucene.document.StringField")("id", f"d{extra:03}", stored))
        docid = java_class("org.apache.lucene.util.BytesRef")(list(f"d{extra:03}".encode()))
        document.add(java_class("org.apache.lucene.document.BinaryDocValuesField")("id", docid))
        text = cast("java.io.Reader", java_class("java.io.StringReader")(f"a|{2**24 + extra} b|{2**24}"))
        document.add(java_class("org.apache.lucene.document.Field")("contents", text, frequencies))
        writer.addDocument(document)
    writer.close()
    a, both = Linear({"a": 1.0}), Linear({"a": 1.0, "b": -1.0})  # read into sums, and with two leaves into arrays
    with ImpactReader(tmp_path) as reader:
        for node, factor in ((both, 1), (Sum((both, a, Linear({"b": -1.0}))), 2)):
            [ranking] = reader.search([node], 10)
            assert pairs(ranking) == [(f"d{extra:03}", factor * extra) for extra in reversed(range(290, 300))]


def test_a_tree_of_thousands_of_nodes(tmp_path):
    """Its windows are the smallest, and all its terms essential."""
    rng = np.random.default_rng(5)
    terms = [f"t{number}" for number in range(300)]

    def vector(count):
        return {terms[term]: float(rng.integers(1, 9)) for term in rng.choice(len(terms), count, replace=False)}

    documents = {f"d{number:03}": vector(20) for number in range(120)}
    parts = [Product((vector(3), vector(2))) for _ in range(1200)]
    lowering = [Product((vector(3), vector(2)), weight=-0.1) for _ in range(300)]
    nodes = [Max(tuple(parts)), Sum((*parts[:900], *lowering, *map(Linear, map(vector, [3] * 100))))]
    segments = [dict(list(documents.items())[start::2]) for start in (0, 1)]
    live = {docid: vector for docid, vector in documents.items() if docid != "d007"}
    whole = {docid: {term: int(impact) for term, impact in vector.items()} for docid, vector in live.items()}
    segments = [{docid: {t: int(w) for t, w in v.items()} for docid, v in segment.items()} for segment in segments]
    with ImpactReader(write_index(tmp_path / "index", *segments, deleted=["d007"])) as reader:
        check_every_way(reader, whole, nodes)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_is_heard_during_a_search(tmp_path, threads):
    """The rest of the batch is not searched, and the reader stays usable."""
    documents = {f"d{number}": {f"t{term}": 1 + number % 7 for term in range(20)} for number in range(2000)}
    nodes = [Linear({f"t{term}": 1.0 for term in range(20)})] * 20_000

    def give_up(*_):
        raise TimeoutError

    def interrupt():
        while reader.work_done().documents_scored == once:
            pass
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        with ImpactReader(write_index(tmp_path / "index", documents)) as reader:
            reader.search(nodes[:1], 10)
            once = reader.work_done().documents_scored
            watcher = threading.Thread(target=interrupt)
            watcher.start()
            with pytest.raises(TimeoutError):
                reader.search(nodes, 10, threads)
            watcher.join()
            assert reader.work_done().documents_scored < once * len(nodes)
            assert len(reader.search(nodes[:1], 10)[0].docids) == 10
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_score_below_all_floats_fails_a_query_only_where_it_ranks(tmp_path, small_parts):
    """Else it would depend on what is pruned, and so on the threads."""
    high = {f"a{number:05}": {"a": 100} for number in range(3000)}
    low = {f"b{number:05}": {"a": 1, "b": 1, "c": 1, "d": 1} for number in range(3000)}
    node = Sum((Linear({"a": 1.0}), Product(({"b": 1e18}, {"c": 1e18}, {"d": 1e18}), 1.0, weight=-1.0)))
    with ImpactReader(write_index(tmp_path / "index", low | high)) as reader:
        for threads in (1, 2, 3, 8):
            for hits in (1, 3000):
                assert reader.search([node], hits, threads)[0].docids == sorted(high)[:hits]
            with pytest.raises(QueryFailure, match="a score is beyond 3.4e38"):
                reader.search([node], 3001, threads)


@pytest.mark.parametrize("threads", [1, 2, 40])
def test_searches_that_are_left_after_every_window_find_the_same(tmp_path, threads):
    rng = np.random.default_rng(3)
    documents = {
        f"d{number:04}": {term: int(rng.integers(1, 99)) for term in "abc"[: rng.integers(1, 4)]}
        for number in range(9000)
    }
    first, second = (dict(list(documents.items())[part]) for part in (slice(8000), slice(8000, None)))
    with ImpactReader(write_index(tmp_path / "index", first, second, deleted=["d0255", "d8000"])) as reader:
        whole = reader.search(SHAPES, 10)
        filter_of, thresholds = [-1] * len(SHAPES), [-math.inf] * len(SHAPES)
        nowhere = [math.nan] * len(SHAPES), packed_ids([[""] * len(SHAPES)])
        batch = reader._opened.java.search(
            packed_queries(SHAPES), [], filter_of, thresholds, *nowhere, 10, threads, 100
        )
        slices = 1
        while (answer := batch.proceed(0)) is None:
            slices += 1
        assert unpack_rankings(bytes(answer.tostring()), len(SHAPES)) == whole
    assert slices >= 7 * len(SHAPES) / threads  # 5 windows that grow, one or two of 4,096 documents, the second segment


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_the_first_query_that_fails_is_named_though_another_one_fails_sooner(
    tmp_path, monkeypatch, small_parts, threads
):
    monkeypatch.setattr("pyserini_compneg.lucene.reader._SLICE_MS", 0)
    documents = {f"d{number:04}": {"a": 1} for number in range(5000)} | {"last": {"b": 1}}
    nowhere, too_large = Linear({"nowhere": 1.0}), Product(({"b": 1e18},) * 3, 1.0)
    fails_at_once = Excluding(Linear({"a": 1.0}), (Filter({"unknown": "x"}),), (0.0,))
    nodes = [nowhere, too_large, fails_at_once, too_large]
    with ImpactReader(write_index(tmp_path / "index", documents)) as reader:
        with pytest.raises(QueryFailure, match="a score is beyond 3.4e38") as raised:
            reader.search(nodes, 10, threads)
        assert raised.value.position == 1
        assert [ranking.docids for ranking in reader.search(nodes[:1] * 2, 10, threads)] == [[], []]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_index_that_is_closed_during_a_search(tmp_path, threads):
    """No thread reads what is closed: the search goes on to the end of its time, and says then why it ends."""
    documents = {f"d{number}": {f"t{term}": 1 + number % 7 for term in range(20)} for number in range(2000)}
    nodes = [Linear({f"t{term}": 1.0 for term in range(20)})] * 100_000
    reader = ImpactReader(write_index(tmp_path / "index", documents))
    reader.search(nodes[:1], 10)
    once = reader.work_done().documents_scored

    def close():
        while reader.work_done().documents_scored == once:
            pass
        reader.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(CompNegError, match="closed") as raised:
        reader.search(nodes, 10, threads)
    closer.join()
    assert not isinstance(raised.value, QueryFailure)
