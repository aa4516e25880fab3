"""The dense method: topics through every choice of operators, against scores by brute force."""

import numpy as np
import pytest
from dense_encoder import StandInDenseEncoder, direction, projection_score

from pyserini_compneg.algebra.dense import orthogonal
from pyserini_compneg.datasets.collection import SourceDocument
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import CompositionError, ProtocolError
from pyserini_compneg.expression import parse
from pyserini_compneg.index.dense import dense_index
from pyserini_compneg.lucene.dense import DenseReader
from pyserini_compneg.reproduce.methods import DenseContext, make_method
from pyserini_compneg.reproduce.methods.method import DenseEngine

FILMS = [f"film {i}" for i in range(60)]
QUERIES = ("a", "a OR b", "a AND b", "a NOT b", "a AND b NOT c")
TOPICS = [Topic(f"q{i}", text, parse(text)) for i, text in enumerate(QUERIES)]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    films = [SourceDocument(film, film, None, "films.jsonl") for film in FILMS]
    encoder = StandInDenseEncoder()
    with DenseReader(dense_index(lambda: films, encoder, tmp_path_factory.mktemp("cache"))) as reader:
        yield DenseContext(lambda: DenseEngine(encoder, reader), 2)


def cosine_ranking(vector):
    unit = vector / np.linalg.norm(vector)
    return ranking({film: (1 + unit @ direction(film)) / 2 for film in FILMS})


def ranking(scores):
    return sorted(scores.items(), key=lambda item: -item[1])


def assert_ranked(hits, expected):
    assert [hit.docid for hit in hits] == [docid for docid, _ in expected[: len(hits)]]
    np.testing.assert_allclose([hit.score for hit in hits], [score for _, score in expected[: len(hits)]], atol=1e-6)


@pytest.mark.parametrize("k", [1, 10, 60])
def test_topics_are_ranked_by_what_is_composed(context, k):
    a, b, c = (direction(text).astype(np.float64) for text in "abc")
    found = make_method("dense", {}, context).search(TOPICS, k)
    assert list(found) == [topic.qid for topic in TOPICS]
    assert {len(hits) for hits in found.values()} == {k}
    assert_ranked(found["q0"], cosine_ranking(a))
    assert_ranked(found["q1"], ranking({film: projection_score(direction(film), [a, b]) for film in FILMS}))
    assert_ranked(found["q2"], cosine_ranking(a + b))
    assert_ranked(found["q3"], cosine_ranking(a - (a @ b) / (b @ b) * b))
    assert_ranked(found["q4"], cosine_ranking(orthogonal((a + b)[None], c[None])[0]))


def test_settings_choose_the_operators(context):
    a, b, c = (direction(text).astype(np.float64) for text in "abc")
    settings = {"union": "addition", "difference": "subtraction", "intersection": "vanilla"}
    found = make_method("dense", settings, context).search(TOPICS, 5)
    assert_ranked(found["q1"], cosine_ranking(a + b))
    assert_ranked(found["q2"], cosine_ranking(direction("a that are also b")))
    assert_ranked(found["q3"], cosine_ranking(a - b))
    ignored = make_method("dense", {"difference": "ignore"}, context).search(TOPICS, 5)
    assert ignored["q3"] == ignored["q0"]
    assert_ranked(ignored["q4"], cosine_ranking(a + b))


def test_no_topics_are_no_rankings(context):
    assert make_method("dense", {}, context).search([], 3) == {}


def test_unknown_settings_are_refused(context):
    with pytest.raises(ProtocolError) as error:
        make_method("dense", {"unoin": "addition"}, context)
    assert str(error.value) == (
        "method dense: unknown setting 'unoin'; expected one of union, intersection, difference"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"union": "maxpool"}, "union of dense vectors must be one of disjunction, addition, vanilla, got 'maxpool'"),
        (
            {"difference": None},
            "difference of dense vectors must be one of orthogonal, subtraction, ignore, vanilla, got None",
        ),
    ],
)
def test_unknown_operators_are_refused(context, settings, message):
    with pytest.raises(CompositionError) as error:
        make_method("dense", settings, context)
    assert str(error.value) == message


def test_a_topic_of_terms_has_no_dense_vector(context):
    with pytest.raises(ProtocolError) as error:
        make_method("dense", {}, context).search([Topic("q9", "", composed={"vector": {"a": 1}})], 3)
    assert str(error.value) == "query q9 is composed of terms already, which dense vectors have not"
