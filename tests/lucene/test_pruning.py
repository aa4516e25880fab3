"""Pruned = exhaustive, on an index of several windows and segments, whose terms differ in how common they are."""

import numpy as np
import pytest
from impact_indexes import delete_documents, pairs, write_index
from score_oracle import check_ranking

from pyserini_compneg.compose import Damped, Linear, Max, Product, Sum
from pyserini_compneg.lucene import ImpactReader

pytestmark = pytest.mark.slow

N_DOCS = 20_000
SEGMENTS = (0, 11_000, 11_700, N_DOCS)
TERMS = [f"t{i:02}" for i in range(60)]
QUERIES = 200
CHECKED = 12  # of them against the definitions, the rest against these


@pytest.fixture(scope="module")
def impacts():
    """(docs, terms), Zipf-like: common terms with low impacts, rare ones with high impacts, some in one region only."""
    rng = np.random.default_rng(7)
    share = 0.5 / np.arange(1, len(TERMS) + 1)
    largest = np.minimum(2 + np.arange(len(TERMS)) ** 1.5, 255)
    matrix = np.ceil(rng.random((N_DOCS, len(TERMS))) ** 3 * largest).astype(np.int64)
    matrix *= rng.random((N_DOCS, len(TERMS))) < share
    for term in range(5, len(TERMS), 5):  # block maxima differ most where a term is at home somewhere
        start = int(rng.integers(0, N_DOCS - 3000))
        home = np.zeros(N_DOCS, bool)
        home[start : start + 3000] = True
        matrix[~home, term] = np.minimum(matrix[~home, term], 3)
        matrix[home, term] *= 4
    return matrix


@pytest.fixture(scope="module")
def live():
    return np.random.default_rng(8).random(N_DOCS) > 0.01


@pytest.fixture(scope="module")
def docids():
    """Ids whose order has nothing to do with that of the documents."""
    return [f"d{number:05}" for number in np.random.default_rng(9).permutation(N_DOCS)]


@pytest.fixture(scope="module")
def documents(impacts, docids):
    vectors = ({TERMS[t]: int(row[t]) for t in np.flatnonzero(row)} for row in impacts)
    return dict(zip(docids, vectors, strict=True))


@pytest.fixture(scope="module")
def reader(tmp_path_factory, documents, live, docids):
    parts = (docids[start:end] for start, end in zip(SEGMENTS, SEGMENTS[1:], strict=False))
    segments = ({docid: documents[docid] for docid in part} for part in parts)
    index = write_index(tmp_path_factory.mktemp("large") / "index", *segments)
    delete_documents(index, [docids[i] for i in np.flatnonzero(~live)])
    with ImpactReader(index) as opened:
        yield opened


def random_vector(rng, least, most, negative=0.0, whole=False):
    count = int(rng.integers(least, most + 1))
    terms = rng.choice(len(TERMS), count, replace=False)
    weights = rng.integers(1, 4, count) if whole else rng.gamma(1.5, 2.0, count) + 0.01
    signs = np.where(rng.random(count) < negative, -1, 1)
    return {TERMS[t]: float(weight) for t, weight in zip(terms, weights * signs, strict=True)}


def random_node(rng, depth=0):
    kind = rng.choice(["linear", "product", "max", "sum", "damped"] if depth < 2 else ["linear", "product"])
    whole = bool(rng.random() < 0.5)
    if kind == "linear":
        return Linear(random_vector(rng, 1, 15, rng.choice([0.0, 0.4]), whole))
    if kind == "product":
        operands = tuple(random_vector(rng, 1, 5, whole=whole) for _ in range(rng.integers(2, 5)))
        power, root = [(None, 1), (1.0, 1), (2 / len(operands), 2), (0.7, 3)][rng.choice(4, p=[0.4, 0.2, 0.2, 0.2])]
        weight = rng.choice([1.0, 0.3, -0.2, -1.0], p=[0.6, 0.1, 0.2, 0.1]) if depth else 1.0
        return Product(operands, power, root, float(weight))
    if kind == "damped":
        excluded = (Linear(random_vector(rng, 1, 4)), Product((random_vector(rng, 1, 3), random_vector(rng, 1, 3))))
        return Damped(random_node(rng, depth + 1), excluded, (40.0, 60.0), 0.75, float(rng.choice([0.0, 20.0])))
    children = tuple(random_node(rng, depth + 1) for _ in range(rng.integers(1, 4)))
    return Max(children) if kind == "max" else Sum(children)


@pytest.fixture(scope="module")
def nodes():
    rng = np.random.default_rng(10)
    return [random_node(rng) for _ in range(QUERIES)]


@pytest.fixture(scope="module")
def exhaustive(reader, nodes):
    """With k beyond the number of documents nothing can be left out."""
    return reader.search(nodes, N_DOCS + 1, threads=2)


@pytest.mark.parametrize("hits", [1, 10, 100, 1000])
def test_pruned_rankings_are_the_exhaustive_ones_bit_by_bit(reader, nodes, exhaustive, hits):
    for node, ranking, whole in zip(nodes, reader.search(nodes, hits), exhaustive, strict=True):
        assert pairs(ranking) == pairs(whole)[:hits], node


def test_small_k_takes_less_work(reader, nodes):
    def postings_read(hits):
        before = reader.work_done().postings_read
        reader.search(nodes, hits)
        return reader.work_done().postings_read - before

    assert postings_read(1) < postings_read(N_DOCS + 1)


@pytest.mark.parametrize("hits", [1, 10, 1000, N_DOCS + 1])
def test_parts_of_a_query_change_nothing(reader, nodes, exhaustive, small_parts, hits):
    """Up to eight threads search one query, in parts that begin and end anywhere in the segments."""
    rng = np.random.default_rng(11)
    for place in rng.choice(len(nodes), 60, replace=False):
        [ranking] = reader.search([nodes[place]], hits, threads=int(rng.integers(2, 9)))
        assert pairs(ranking) == pairs(exhaustive[place])[:hits], nodes[place]


def test_parts_are_searched(reader, nodes, small_parts):
    """Windows begin anew with each part, so other documents are scored in full."""

    def documents_scored(threads):
        before = reader.work_done().documents_scored
        for node in nodes[:20]:
            reader.search([node], 1, threads)
        return reader.work_done().documents_scored - before

    assert documents_scored(1) == documents_scored(1) != documents_scored(4)


def test_fewer_queries_than_threads(reader, nodes, exhaustive, small_parts):
    for count, threads in ((2, 3), (2, 5), (3, 10**12)):
        rankings = reader.search(nodes[:count], 50, threads)
        assert [pairs(one) for one in rankings] == [pairs(whole)[:50] for whole in exhaustive[:count]]


def test_exhaustive_rankings_are_right(documents, live, docids, nodes, exhaustive):
    kept = {docids[i]: documents[docids[i]] for i in np.flatnonzero(live)}
    for node, ranking in list(zip(nodes, exhaustive, strict=True))[:CHECKED]:
        check_ranking(node, kept, ranking, N_DOCS + 1)


def check_prefixes(index, nodes, count, *few):
    """Few hits are the first of all."""
    with ImpactReader(index) as opened:
        whole = opened.search(nodes, count + 1)
        for hits in few:
            for node, ranking, complete in zip(nodes, opened.search(nodes, hits), whole, strict=True):
                assert pairs(ranking) == pairs(complete)[:hits], node


def test_queries_of_hundreds_of_terms(tmp_path):
    rng = np.random.default_rng(11)
    terms = [f"w{i}" for i in range(800)]
    documents = {
        f"d{i}": {terms[t]: int(rng.geometric(0.02)) for t in rng.choice(len(terms), 60, replace=False)}
        for i in range(5_000)
    }
    wide = [dict(zip(terms, (rng.gamma(1.5, 2.0, len(terms)) + 0.01).tolist(), strict=True)) for _ in range(3)]
    signed = {term: weight * (-1) ** i for i, (term, weight) in enumerate(wide[0].items())}
    nodes = [Linear(wide[0]), Linear(signed), Product((wide[1], wide[2])), Sum((Linear(signed), Product(tuple(wide))))]
    check_prefixes(write_index(tmp_path / "index", documents), nodes, 5_000, 1, 10, 100)


COMMON, RARE = ("c0", "c1", "c2"), tuple(f"r{i}" for i in range(12))


@pytest.mark.parametrize("seed", range(3))
def test_frequent_terms_heavier_than_rare_ones(tmp_path, seed):
    """Frequent terms that must be read while rare ones may be left out; a window lacks some, and many scores tie."""
    rng = np.random.default_rng(seed)
    terms, count = COMMON + RARE, 10_000
    shares = np.array([0.9, 0.4, 0.15] + [0.03, 0.001] * (len(RARE) // 2))
    matrix = rng.integers(1, 6, (count, len(terms))) ** 2 * (rng.random((count, len(terms))) < shares)
    matrix[4096:8192, len(COMMON) : len(COMMON) + 6] = 0  # the second window
    documents = {f"d{i}": {terms[t]: int(row[t]) for t in np.flatnonzero(row)} for i, row in enumerate(matrix)}

    def operand():
        rare = rng.choice(RARE, int(rng.integers(1, 7)), replace=False)
        return {str(rng.choice(COMMON)): float(rng.integers(2, 9))} | {
            str(term): float(rng.integers(1, 3)) for term in rare
        }

    nodes = []
    for _ in range(12):
        a, b = operand(), operand()
        product = Product((a, b))
        nodes += [
            product,
            Sum((product, Linear(a | b))),
            Max((Linear(a), Linear(b))),
            Sum((product, Linear({"c1": -3.0}))),
        ]
    check_prefixes(write_index(tmp_path / "index", documents), nodes, count, 1, 10, 300)
