"""The dense baseline: its algebra against least squares, its rankings against brute force, its rows in protocols."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
from checkpoints import edit_json, needs_sentence_transformers, write_dense
from dense_stand_in import DenseStandIn, direction
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.baselines import DenseEncoder, check_dense_model, dense_model_hash
from pyserini_compneg.documents.source_documents import SourceDocument
from pyserini_compneg.expression import parse
from pyserini_compneg.lab.experiments import dense
from pyserini_compneg.lab.experiments.dense import DenseMethod, dense_index
from pyserini_compneg.support.errors import EncodingError, InputError, install_hint
from pyserini_compneg.topics.topics import Topic

pytestmark = pytest.mark.usefixtures("cache")

A, B, C, D = np.eye(4)
AB = (A + B) / np.sqrt(2)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dense"


def films(*texts):
    return lambda: [SourceDocument(text, text.rstrip("'"), f"films.jsonl:{text}") for text in texts]


def projection(vector, others):
    return others.T @ np.linalg.lstsq(others.T, vector, rcond=1e-6)[0]


def rows(least, most):
    number = st.floats(-10, 10, allow_subnormal=False).map(lambda number: round(number, 3))
    vector = st.lists(number, min_size=5, max_size=5).filter(any)
    return st.lists(vector, min_size=least, max_size=most).map(np.array)


@given(rows(1, 1), rows(1, 4))
def test_orthogonal_is_what_least_squares_leave(a, negatives):
    expected = a[0] - projection(a[0], negatives)
    found = dense.orthogonal(a, negatives)
    if np.linalg.norm(expected) > 1e-4 * np.linalg.norm(a):
        np.testing.assert_allclose(found, [expected], atol=1e-6 * np.linalg.norm(a))
    else:
        assert len(found) <= 1


@given(rows(1, 4))
def test_orthonormal_spans_the_same(vectors):
    basis = dense.orthonormal(vectors)
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-9)
    largest = np.linalg.norm(vectors, axis=1).max()
    np.testing.assert_allclose(vectors @ basis.T @ basis, vectors, atol=2e-5 * largest)
    if len(vectors) == 1:
        np.testing.assert_allclose(basis, vectors / largest, atol=1e-12)  # with its sign


def test_rounding_of_32_bits_is_nothing():
    a = np.float32([[0.1, 0.2, 0.3]]).astype(np.float64)
    assert dense.orthogonal(a, a * (1 + 1e-7)).shape == dense.subtraction(a, a).shape == (0, 3)
    assert len(dense.orthonormal(np.concatenate([a, a + [[0.0, 3e-8, -3e-8]]]))) == 1


@pytest.mark.parametrize(
    ("text", "operators", "vectors"),
    [
        ("a", {}, [A]),
        ("a OR b OR c", {}, [A, B, C]),
        ("a OR b", {"union": "addition"}, [A + B]),
        ("a OR a", {}, [A]),
        ("a AND b", {}, [A + B]),
        ("ab NOT b", {}, [A]),
        ("ab NOT b", {"difference": "subtraction"}, [AB - B]),
        ("ab NOT b", {"difference": "ignore"}, [AB]),
        ("a NOT (b OR c)", {"difference": "subtraction"}, [A - B - C]),
        ("(a AND c) NOT ab", {}, [A + C - AB / np.sqrt(2)]),
        ("(a NOT b) AND c", {"difference": "subtraction"}, [A + C - B]),
        ("(ab OR c) NOT b", {}, [A, C]),
        ("(a OR b) NOT b", {}, [A]),
        ("(a OR b) AND c", {}, [A + B + C]),
        ("(ab NOT b) OR c", {}, [A, C]),
        ("a NOT (ab AND c)", {}, [A - (AB + C) / np.sqrt(2) / 2]),
        ("a NOT (a OR b)", {}, []),
        ("a OR b", {"union": "vanilla"}, [D]),
        ("a AND b", {"intersection": "vanilla"}, [D]),
        ("a NOT b", {"difference": "vanilla"}, [D]),
        ("c NOT (a OR b)", {"union": "vanilla", "difference": "subtraction"}, [C - D]),
    ],
)
@pytest.mark.parametrize("k", [1, 7, 100])
def test_rankings_are_those_of_brute_force(text, operators, vectors, k):
    """All documents are scored; equal ones, of which there are pairs, rank by docid at the last place too."""
    wordings = dict.fromkeys(["a or b", "a that are also b", "a that are not b"], D)
    documents = {f"film {i}": direction(f"film {i}", 4) for i in range(30)}
    encoder = DenseStandIn(a=A, b=B, c=C, ab=AB, **wordings, **documents)
    index = dense_index(films(*documents, *(f"{text}'" for text in documents)), encoder)
    scores = {}
    for film, document in documents.items():
        if len(vectors) == 1:
            cosine = vectors[0] @ document / np.linalg.norm(vectors[0])
        elif vectors:
            cosine = np.linalg.norm(projection(document, np.array(vectors)))
        scores |= {film: (1 + cosine) / 2, f"{film}'": (1 + cosine) / 2} if vectors else {}
    expected = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
    hits = DenseMethod(**operators).search(lambda: index, [Topic("q", text, parse(text))], k)["q"]
    assert [hit.docid for hit in hits] == [docid for docid, _ in expected]
    np.testing.assert_allclose([hit.score for hit in hits], [score for _, score in expected], atol=3e-7)


@pytest.mark.parametrize("text", ["a", "ab NOT b", "a OR b"])
def test_dot_products_are_not_those_of_length_1(text):
    """Vectors keep their lengths, and a score is the product with the query's direction, below 0 if it is so."""
    documents = {f"film {i}": (i + 1) * direction(f"film {i}", 4) for i in range(30)}
    encoder = DenseStandIn(a=3 * A, b=2 * B, ab=5 * AB, **documents)
    encoder.similarity = "dot"
    hits = DenseMethod().search(lambda: dense_index(films(*documents), encoder), [Topic("q", text, parse(text))], 30)[
        "q"
    ]
    if text == "a OR b":
        expected = {film: np.linalg.norm(vector[:2]) for film, vector in documents.items()}
    else:
        expected = {film: vector[0] for film, vector in documents.items()}
    assert [hit.docid for hit in hits] == sorted(documents, key=lambda film: -expected[film])
    np.testing.assert_allclose([hit.score for hit in hits], sorted(expected.values(), reverse=True), atol=1e-5)
    assert text == "a OR b" or hits[-1].score < 0


def test_the_texts_of_all_topics_are_encoded_once_and_in_one_batch():
    encoder = DenseStandIn()
    index = dense_index(films("x"), encoder)
    texts = ("a AND b", "b NOT c", "a")
    topics = [Topic(text, text, parse(text)) for text in texts]
    assert [*DenseMethod().search(lambda: index, topics, 1)] == [*texts]
    assert encoder.batches == [["x"], ["a", "b", "c"]]
    assert DenseMethod().search(lambda: index, [], 3) == {}


def test_composed_queries_are_refused():
    composed = Topic("q9", "", composed={"vector": {"a": 1}})
    message = refusal(DenseMethod().search, None, [composed], 3, error=InputError)
    assert message == "query q9 is composed of terms already; dense vectors have no terms"


def test_documents_are_encoded_once_and_in_parts(cache, monkeypatch):
    monkeypatch.setattr(dense, "_PART_DOCUMENTS", 2)
    killed, again, same = DenseStandIn(), DenseStandIn(), DenseStandIn()
    killed.encode_documents = lambda texts: killed.encode_queries(texts) if not killed.batches else 1 / 0
    with pytest.raises(ZeroDivisionError):
        dense_index(films(*"edcba"), killed)
    found = [dense_index(films(*"edcba"), encoder).search([direction("c")[None]], 1) for encoder in (again, same)]
    assert (killed.batches, again.batches, same.batches) == ([["e", "d"]], [["c", "b"], ["a"]], [])
    assert [hits[0][0].docid for hits in found] == ["c", "c"]
    other = DenseStandIn()
    other.model_hash = "fedcba9876543210"
    for texts, encoder in (("edcab", again), ("edcb", again), ("edcba", other)):
        dense_index(films(*texts), encoder)
    assert len(list(cache.iterdir())) == 4
    assert {path.name for path in cache.glob("*/*")} == {"000000000.npy", "000000002.npy", "000000004.npy"}


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (films(), "there are no documents to encode"),
        (films("a", "b", "a"), "films.jsonl:a: document id 'a' was given already"),
        (lambda: [SourceDocument("d", None, "f:1")], "f:1: only a `vector`, where texts are encoded"),
    ],
)
def test_bad_documents_are_refused_before_any_is_encoded(documents, message):
    assert refusal(dense_index, documents, DenseStandIn()) == message


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("torch", reason="sentence-transformers runs on torch")
    return needs_sentence_transformers()


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory):
    """A model with a pooling, prompts and a longest text of its own, whose vectors it does not normalise."""
    return write_dense(tmp_path_factory.mktemp("dense") / "model", "cls")


@pytest.mark.slow
def test_vectors_are_those_of_the_library_at_length_1(library, folder):
    encoder, model = DenseEncoder(str(folder)), library.SentenceTransformer(str(folder), device="cpu")
    texts = ["spy films", "films starring Brian Cox", "", "comedies set in Japan", "x" * 3000]
    for ours, theirs in (
        (encoder.encode_queries, model.encode_query),
        (encoder.encode_documents, model.encode_document),
    ):
        expected = theirs(texts, normalize_embeddings=True, show_progress_bar=False)
        np.testing.assert_allclose(ours(texts), expected, atol=1e-6)
    assert np.abs(encoder.encode_queries(texts) - encoder.encode_documents(texts)).max() > 0.01
    assert encoder.encode_documents(["half a pair: \ud83d"]).dtype == np.float32
    a, b, _, c, _ = encoder.encode_queries(texts)
    found = dense.similarities(encoder, [(texts[0], texts[1]), (texts[3], texts[0]), (texts[0], texts[0])])
    assert found == pytest.approx([a @ b, c @ a, 1.0], abs=1e-6) and max(found) <= 1


@pytest.mark.slow
def test_a_model_of_the_dot_product_keeps_lengths(library, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    edit_json(copy / "config_sentence_transformers.json", similarity_fn_name="dot")
    encoder, model = DenseEncoder(str(copy)), library.SentenceTransformer(str(folder), device="cpu")
    texts = ["spy films", "comedies set in Japan"]
    np.testing.assert_allclose(
        encoder.encode_documents(texts), model.encode_document(texts, show_progress_bar=False), atol=1e-5
    )
    assert dense_model_hash(str(copy)) != dense_model_hash(str(folder))
    cosine = dense.similarities(DenseEncoder(str(folder)), [tuple(texts)])
    assert dense.similarities(encoder, [tuple(texts)]) == pytest.approx(cosine, abs=1e-6)


@pytest.mark.slow
def test_a_model_is_known_by_its_content(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "README.md").write_text("says nothing of the vectors")
    assert dense_model_hash(str(copy)) == dense_model_hash(str(folder))
    pooling = next(copy.glob("*_Pooling/config.json"))
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | {"pooling_mode": "mean"}))
    assert dense_model_hash(str(copy)) != dense_model_hash(str(folder))


@pytest.mark.slow
def test_what_is_no_usable_model_is_said_in_one_line(library, folder, tmp_path, monkeypatch):
    with pytest.raises(EncodingError, match=f"^{re.escape(str(tmp_path))}: the model cannot be loaded: [^\n]*$"):
        DenseEncoder(str(tmp_path))
    message = refusal(check_dense_model, "bm25", error=EncodingError)
    remedy = "expected a folder, or owner/name on the Hugging Face hub"
    assert message == f"no model of sentence-transformers 'bm25'; {remedy}"
    encoder = DenseEncoder(str(folder))
    monkeypatch.setattr(encoder, "_model", type("Damaged", (), {"encode_query": lambda *_, **__: [[0.0, np.nan]]})())
    message = refusal(encoder.encode_queries, ["a"], error=EncodingError)
    assert message == f"{folder}: gives vectors that are 0 or not finite numbers; its weights are damaged"
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    message = refusal(DenseEncoder, str(folder), error=EncodingError)
    assert message == f"dense models need sentence-transformers; {install_hint('dense')}"
