"""``SearchCollection`` with our jar beside Anserini's ranks composed queries as our own search does."""

import gzip
import random

import numpy as np
import pytest
from anserini_runs import COMPOSED, lucene_search, open_searcher, search_collection, search_collection_process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from impact_indexes import pairs, write_index
from random_searches import collections, trees
from test_pruning import TERMS, random_node

from pyserini_compneg.compose import composed_line
from pyserini_compneg.lucene import ImpactReader, java_class

few = settings(
    max_examples=settings.default.max_examples // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


pytestmark = pytest.mark.usefixtures("anserini")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("index", numbered=True)


def check(folder, index, nodes, hits):
    """Runs the queries three ways: with our search, with Lucene's own searcher, bit by bit, and with Anserini's."""
    lines = {f"q{i:04}": composed_line(f"q{i:04}", "", node) for i, node in enumerate(nodes)}
    with ImpactReader(index) as reader:
        expected = dict(zip(lines, reader.search(nodes, hits), strict=True))
    assert lucene_search(index, lines.values(), hits) == [pairs(ranking) for ranking in expected.values()]
    topics = folder / "queries.jsonl"
    topics.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    found = search_collection(index, topics, folder / "run.txt", hits, *COMPOSED)
    assert found == {qid: ranking.docids for qid, ranking in expected.items() if ranking.docids}


@few
@given(collections(), st.lists(trees(), min_size=1, max_size=12), st.integers(1, 70))
def test_random_queries_rank_alike(folders, collection, nodes, hits):
    folder = folders()
    check(folder, write_index(folder / "index", *collection.segments, deleted=collection.deleted), nodes, hits)


@pytest.fixture(scope="module")
def large_index(tmp_path_factory):
    """Several windows a segment and several thousand matches a query, most of them tied, so that Lucene prunes."""
    choice = random.Random(5)
    vectors = [{term: choice.randint(1, 3) for term in choice.sample(TERMS, choice.randint(1, 4))} for _ in range(300)]
    docids = [f"d{i:05}" for i in range(24_000)]
    choice.shuffle(docids)
    parts = docids[:15_000], docids[15_000:23_900], docids[23_900:]
    segments = [{docid: choice.choice(vectors) for docid in part} for part in parts]
    return write_index(tmp_path_factory.mktemp("large"), *segments, deleted=choice.sample(docids, 2000))


@pytest.mark.slow
@pytest.mark.parametrize("hits", [1, 10, 1200])
def test_large_indexes_with_ties_rank_alike(tmp_path, large_index, hits):
    rng = np.random.default_rng(hits)
    check(tmp_path, large_index, [random_node(rng) for _ in range(30)], hits)


INDEX = {"d1": {"a": 3, "b": 1}, "d2": {"a": 3}, "d3": {"b": 2}}


def test_lucene_explains_the_score(tmp_path):
    with open_searcher(write_index(tmp_path / "i", INDEX)) as searcher:
        from jnius import cast  # once the machine runs

        composed = java_class("io.compneg.ComposedQuery")("contents", '{"vector": {"a": 1, "b": -5}}')
        query = cast("org.apache.lucene.search.Query", composed)
        explanations = [searcher.explain(query, doc) for doc in range(3)]
        assert [explained.isMatch() for explained in explanations] == [True, True, False]
        assert [explained.getValue().floatValue() for explained in explanations] == [-2.0, 3.0, 0.0]


def test_lines_packed_with_gzip_and_sorted_by_id(tmp_path):
    topics = tmp_path / "queries.jsonl.gz"
    lines = ['{"id": 7, "vector": {"b": 1}}', "", '{"id": "10", "vector": {"a": 1, "b": -9}, "contents": "a NOT b"}']
    topics.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = search_collection(write_index(tmp_path / "i", INDEX), topics, tmp_path / "run", 10, *COMPOSED)
    assert list(found.items()) == [("10", ["d2", "d1"]), ("7", ["d3", "d1"])]


GOOD = '{"id": "1", "vector": {"a": 1}}'
B = '{"vector": {"b": 1}}'
PRODUCT = f'{{"id": "2", "score": {{"product": [{B}, {B}], '
KINDS = "a score must be one of vector, product, max, sum, damped, excluding"
POWER = "a power of 2 operands must be above 0 and at most 1.0"
ROOT = "a root must be a whole number from 1 to 16"
REQUIRING = f'{{"id": "2", "score": {{"excluding": {B}, "required": ['
NO_ID = 'expected an "id" without white space, got '


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "2", "vector": {"a": "x"}}', "the weight of 'a' must be a number from -1e18 to 1e18, got \"x\""),
        ('{"id": "2"}', f'{KINDS}; got {{"id":"2"}}'),
        ('{"id": "2", "score": {"max": [], "x": 1}}', f'{KINDS}; got {{"max":[],"x":1}}'),
        (f'{PRODUCT}"p": 1}}}}', "a product has no 'p', only product, power, root, weight"),
        (f'{PRODUCT}"power": 0}}}}', f"{POWER}, got 0"),
        (f'{PRODUCT}"power": 1.5}}}}', f"{POWER}, got 1.5"),
        (f'{PRODUCT}"power": null}}}}', f"{POWER}, got null"),
        (f'{PRODUCT}"root": 17}}}}', f"{ROOT}, got 17"),
        (f'{PRODUCT}"root": 2.0}}}}', f"{ROOT}, got 2.0"),
        (
            f'{{"id": "2", "score": {{"product": [{B}, {{"vector": {{}}, "x": 1}}]}}}}',
            'an operand must be one vector, got {"vector":{},"x":1}',
        ),
        (
            f'{REQUIRING}{{"max": [{B}]}}]}}}}',
            'a required part must be a vector, got {"max":[{"vector":{"b":1}}]}',
        ),
        (
            f'{REQUIRING}{{"vector": {{"a": -1}}}}]}}}}',
            "an excluded or required part must be a vector or a product above 0",
        ),
        (f'{{"id": "2", "vector": {{}}, "score": {B}}}', "vector and score are two composed queries; leave out one"),
        ('{"id": "2", "vector": {}} {}', "a composed query is one JSON object, and more follows"),
        ('{"vector": {"a": 1}}', NO_ID),
        ('{"id": "a b", "vector": {"a": 1}}', f'{NO_ID}"a b"'),
        ('{"id": 1, "vector": {}}', "the id '1' was given before"),
        ('{"id": "2", ', "a composed query is no JSON: Unexpected end-of-input within/between Object entries"),
    ],
)
def test_a_line_that_is_no_composed_query_ends_the_search(tmp_path, content, message):
    topics = tmp_path / "queries.jsonl"
    topics.write_text(f"{GOOD}\n\n{content}\n")
    with pytest.raises(Exception) as raised:
        search_collection(write_index(tmp_path / "i", INDEX), topics, tmp_path / "run", 10, *COMPOSED)
    assert raised.value.innermessage == f"{topics}:3: {message}"
    assert not (tmp_path / "run").exists()


def test_a_file_without_queries_ends_the_search(tmp_path):
    topics = tmp_path / "queries.jsonl"
    topics.write_text("\n")
    with pytest.raises(Exception) as raised:
        search_collection(write_index(tmp_path / "i", INDEX), topics, tmp_path / "run", 10, *COMPOSED)
    wanted = "expected JSON lines with an id and a vector or a score"
    assert raised.value.innermessage == f"{topics}: no queries; {wanted}"


@pytest.mark.slow
def test_what_a_user_sees_of_a_bad_line(tmp_path, anserini):
    index, topics = write_index(tmp_path / "i", INDEX), tmp_path / "queries.jsonl"
    topics.write_text('{"id": "1", "vector": []}\n')
    ended = search_collection_process(index, topics, tmp_path / "run", *COMPOSED, environment=anserini)
    assert ended.returncode == 1
    assert ended.stderr.endswith(f'Exception in thread "main" {topics}:1: a vector must be an object, got []\n')
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_what_a_user_sees_of_the_wrong_topic_reader(tmp_path, anserini):
    index, topics = write_index(tmp_path / "i", INDEX), tmp_path / "queries.tsv"
    topics.write_text("1\tspy films\n")
    options = ("-topicReader", "TsvString", "-generator", "ComposedQueryGenerator")
    ended = search_collection_process(index, topics, tmp_path / "run", *options, environment=anserini)
    assert "Unrecognized token 'spy'" in ended.stderr
    assert "; read the topics with -topicReader ComposedQuery" in ended.stderr
