import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from impact_indexes import pairs, write_index
from random_searches import Collection, collections, trees
from score_oracle import check_ranking

from pyserini_compneg.compose import Linear, Max, Product, Sum
from pyserini_compneg.lucene import ImpactReader

few = settings(
    max_examples=settings.default.max_examples * 3 // 10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("index", numbered=True)


def check(folder, collection: Collection, nodes):
    """Every k against the oracle, and every small k against the large one, bit by bit."""
    live = collection.live
    with ImpactReader(write_index(folder, *collection.segments, deleted=collection.deleted)) as reader:
        assert reader.document_count == len(live)
        complete = reader.search(nodes, len(live) + 10)
        for hits in (1, 3, max(1, len(live))):
            for node, ranking, whole in zip(nodes, reader.search(nodes, hits), complete, strict=True):
                check_ranking(node, live, ranking, hits)
                assert pairs(ranking) == pairs(whole)[:hits]
        for node, whole in zip(nodes, complete, strict=True):
            check_ranking(node, live, whole, len(live) + 10)


SHAPES = [
    Linear({}),
    Linear({"a": -1.0}),
    Linear({"a": 1.0, "b": -1.0}),
    Linear({"a": 1.0, "b": -2.0}),
    Linear({"a": 1e18, "b": 1e-18}),
    Linear({"nowhere": 1.0}),
    Product(({"a": 1.0}, {"a": 1.0})),
    Product(({"a": 1.0, "b": 2.0}, {"b": 1.0, "nowhere": 3.0})),
    Product(({"a": 1.0}, {"nowhere": 1.0})),
    Product(({"a": 1.0, "b": 2.0}, {"b": 1.0}), 1.0),
    Product(({"a": 1.0, "b": 2.0}, {"b": 1.0}, {"c": 1e18}), 2 / 3, root=2),
    Product(({"a": 1e-18},) * 16, 1.0, root=16),
    Sum((Product(({"a": 4.0}, {"b": 4.0})), Linear({"a": -2.0, "b": -2.0}))),
    Sum((Linear({"a": 1.0}), Linear({"a": -1.0}))),
    Max((Linear({"a": 1.0, "b": -9.0}), Linear({"b": 1.0}), Linear({"c": -1.0}))),
    Max((Linear({"a": -1.0}),)),
    Sum((Max((Product(({"a": 1.0}, {"b": 1.0}, {"c": 1.0})), Linear({"c": 2.0}))), Linear({"b": -1.0}))),
    Product(({"a": 1.0}, {"b": 1.0}), weight=-1.0),
    Max((Product(({"a": 1.0}, {"b": 1.0}), weight=-1.0), Linear({"b": 1.0}))),
    Sum((Linear({"a": 2.0}), Product(({"a": 2.0}, {"b": 1.0}, {"b": 1.0}), 1.0, weight=-0.1))),
    Sum((Linear({"a": 2.0}), Product(({"a": 1.0},) * 2, weight=-2.0))),
    Sum((Linear({"a": 2.0, "b": 1.0}), Product(({"a": 1e18}, {"b": 1e18}) * 8, 1.0, weight=-1e-288))),
    Product(({"a": 1e-18},) * 16, 1.0, weight=1e-288),
]
PINNED = Collection(
    [
        {"d1": {"a": 3}, "d2": {"a": 3, "b": 3}, "d3": {"b": 9}, "empty": {}},
        {"d0": {"a": 3}, "d9": {"a": 1, "b": 1, "c": 1 << 20}, "d5": {"c": 2}, "gone": {"a": 9, "b": 9, "c": 9}},
    ],
    ["gone"],
)


@few
@example(PINNED, SHAPES)
@given(collections(), st.lists(trees(), min_size=1, max_size=12))
def test_rankings_are_those_of_an_exhaustive_scan(folders, collection, nodes):
    check(folders(), collection, nodes)


def test_an_index_without_documents_that_are_left(tmp_path):
    index = write_index(tmp_path / "index", {"d1": {"a": 1}, "d2": {"b": 1}}, deleted=["d1", "d2"])
    with ImpactReader(index) as reader:
        assert reader.document_count == 0
        assert pairs(reader.search([Linear({"a": 1.0})], 10)[0]) == []


def test_ties_are_in_the_order_of_utf8_bytes_at_every_cut(tmp_path):
    docids = ["é", "z", "😀", "\uffee", "a", "Z", "aa", "0", "10", "9", "é1", "ze", "中"]
    index = write_index(tmp_path / "i", dict.fromkeys(docids[:6], {"a": 2}), dict.fromkeys(docids[6:], {"a": 2}))
    expected = sorted(docids, key=str.encode)
    with ImpactReader(index) as reader:
        for hits in range(1, len(docids) + 2):
            assert reader.search([Linear({"a": 1.5})], hits)[0].docids == expected[:hits]


def test_more_ties_than_are_kept(tmp_path, small_parts):
    """Of the documents with the last score those stay whose ids come first, wherever they are in the index."""
    docids = [f"d{number:05}" for number in np.random.default_rng(4).permutation(30_000)]
    impacts = {docid: {"a": 2 if number % 1000 == 999 else 1} for number, docid in enumerate(docids)}
    first, second = (dict(list(impacts.items())[part]) for part in (slice(17_000), slice(17_000, None)))
    deleted = sorted(docids)[:100:3]
    best = sorted(docid for docid in impacts if impacts[docid]["a"] == 2)
    expected = [docid for docid in [*best, *sorted(set(docids) - set(best))] if docid not in deleted]
    with ImpactReader(write_index(tmp_path / "i", first, second, deleted=deleted)) as reader:
        for hits in (1, 20, 40, 1000, 9000, 30_000):
            for threads in (1, 5):
                assert reader.search([Linear({"a": 1.0})], hits, threads)[0].docids == expected[:hits]


@pytest.mark.parametrize("largest", [255, 256])
def test_terms_of_most_documents(tmp_path, largest):
    """Their impacts are kept one a document, if they fit in a byte; all others are found by their postings."""
    draw = np.random.default_rng(largest)
    documents = {
        f"d{number:03d}": {
            term: int(impact)
            for term, impact, chance in zip("abc", draw.integers(1, largest + 1, 3), draw.random(3), strict=True)
            if chance < share
        }
        | {"a": largest}
        for number, share in enumerate(draw.random(900))
    }
    nodes = [
        Linear({"a": 1.0, "b": 0.5, "c": 3.0}),
        Linear({"b": 2.0, "c": -1.5}),
        Product(({"a": 1.0, "b": 2.0}, {"c": 1.0})),
        Product(({"b": 1.0}, {"c": 2.0}), 0.5),
    ]
    check(tmp_path, Collection([documents], ["d007"]), nodes)


@pytest.mark.parametrize("weight", [3, 16_449, 16_452, 50_001, 700_001, 2**24 - 1])
def test_terms_of_most_documents_are_added_together(tmp_path, weight):
    """Four at once, in floats where their sum is at most 2^24. Beyond it, floats would lose units."""
    draw = np.random.default_rng(4)
    shares = dict(zip("abcdefg", (1, 1, 1, 1, 0.9, 0.5, 0.1), strict=True))
    documents = {
        f"d{number:04d}": {
            term: int(draw.integers(128, 256)) for term, share in shares.items() if number < 2 or draw.random() < share
        }
        for number in range(5_000)
    }
    documents["d0002"] = dict.fromkeys(shares, 255)
    weights = {term: weight - number for number, term in enumerate(shares)}
    with ImpactReader(write_index(tmp_path, documents)) as reader:
        for count in range(1, len(shares) + 1):
            some = dict(list(weights.items())[:count])
            (ranking,) = reader.search([Linear(some)], 5_000)
            exact = [sum(some.get(term, 0) * impact for term, impact in documents[d].items()) for d in ranking.docids]
            assert list(ranking.scores) == [float(np.float32(score)) for score in exact]
