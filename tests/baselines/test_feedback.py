"""Rocchio's feedback on a small index, against its definition."""

import math
import random

import pytest
from film_index import build
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from pair_index import write
from refusals import refusal
from score_oracle import score

from pyserini_compneg.baselines import METHODS, Rocchio, make_method
from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.trees import positive_weights
from pyserini_compneg.encode.bm25 import lucene_idf
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.rows import ROW_METHODS
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, InputError

SCALE = 51.2
CHOICE = random.Random(7)
TERMS = "pqrstuvwxyz"
ATOMS = {name: {term: CHOICE.uniform(0.1, 3) for term in CHOICE.sample(TERMS, 3)} for name in "ABC"}
DOCUMENTS = {f"d{n:02}": {t: CHOICE.uniform(0.1, 3) for t in CHOICE.sample(TERMS, n % 7)} for n in range(60)}
IMPACTS = {docid: {t: round(w * SCALE) for t, w in vector.items()} for docid, vector in DOCUMENTS.items()}
QUERIES = {"atom": "A", "difference": "A NOT B", "intersection": "A AND B AND C", "unjudged": "B", "unknown": "nothing"}
JUDGED = {qid: {"d04": 1, "d12": 2, "d00": 1, "d09": 0, "d20": 0} for qid in QUERIES if qid != "unjudged"}
OPERATORS = Operators(difference="disentangled", intersection="maxpool")


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("feedback") / "index", DOCUMENTS, impact_scale=SCALE)
    with SignedImpactSearcher(folder, LookupEncoder(ATOMS), OPERATORS) as opened:
        yield opened


def length(vector):
    return math.sqrt(sum(weight * weight for weight in vector.values()))


def moved_by(judged, beta, gamma):
    """β · mean(d / |d|) − γ · mean(e / |e|), of documents without terms, too."""
    total = dict.fromkeys(TERMS, 0.0)
    for docids, share in (
        ([docid for docid, grade in judged.items() if grade > 0], beta),
        ([docid for docid, grade in judged.items() if grade <= 0], -gamma),
    ):
        for docid in docids:
            for term, impact in IMPACTS[docid].items():
                total[term] += share / len(docids) * impact / length(IMPACTS[docid])
    return total


@pytest.mark.parametrize(
    ("beta", "gamma", "terms"), [(0.75, 0.25, 100), (2.0, 0.0, 100), (0.0, 1.5, 100), (1.0, 1.0, 2)]
)
def test_the_scores_are_those_of_the_formula(searcher, beta, gamma, terms):
    method = Rocchio(JUDGED, beta, gamma, terms, OPERATORS)
    found = searcher.batch_search([*QUERIES.values()], [*QUERIES], 1000, threads=2, method=method)
    for qid, query in QUERIES.items():
        (node,) = searcher.compose([query])
        size = length(positive_weights(node))
        move = moved_by(JUDGED.get(qid, {}), beta, gamma)
        kept = sorted(move, key=lambda term: (-abs(move[term]), term))[:terms]
        weights = {term: round(size * move[term]) for term in kept}
        expected = {}
        for docid, impacts in IMPACTS.items():
            is_added = any(weight > 0 and term in impacts for term, weight in weights.items())
            base = score(node, impacts)
            if is_added or base.matched:
                expected[docid] = base.value + sum(weights.get(term, 0) * impact for term, impact in impacts.items())
        assert {hit.docid: hit.score for hit in found[qid]} == pytest.approx(expected, rel=1e-6, abs=1e-3)
        assert [hit.docid for hit in found[qid]] == sorted(expected, key=lambda docid: (-expected[docid], docid))
    if beta > 0:
        plain = {hit.docid for hit in searcher.search("A", 1000)}
        assert plain < {hit.docid for hit in found["atom"]}  # also documents without a term of the query


def test_terms_of_bm25_count_as_in_a_query(tmp_path):
    with SignedImpactSearcher(build(tmp_path)) as searcher:
        judged = Rocchio({"q": {"d5": 1}}, beta=1.0, gamma=0.0)
        query = judged.compose(searcher, ["western"], ["q"])[0]
        added = query.children[1].weights
        (western,) = searcher.encoder.encode_batch(["western"])
        idf = {term: searcher.encoder.encode_batch([term])[0][term] for term in added}
        vector = {term: impact * idf[term] for term, impact in searcher.reader.vector("d5").items()}
        share = 100 * length(western) / length(vector)
        assert added == pytest.approx({term: weight * share for term, weight in vector.items()}, abs=0.51)
        hits = searcher.batch_search(["western"], ["q"], 3, method=judged)["q"]
        assert [hit.docid for hit in hits] == ["d5", "d4", "d1"]
        hits = searcher.search("western", 3, method=Rocchio({"western": {"d5": 1}}))  # the text is its id
        assert [hit.docid for hit in hits] == ["d5", "d4", "d1"]


def test_latents_count_as_in_a_query(tmp_path):
    """By their idf: a latent of all documents adds less than another one of the same impact."""
    vectors = [{"~0": 8, "~1": 8}, {"~0": 8}, {"~0": 8}, {"~0": 8}]
    lines = [{"id": f"d{number}", "vector": vector} for number, vector in enumerate(vectors)]
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "i", "latent:m")
    with SignedImpactSearcher(tmp_path / "i", LookupEncoder({"a": {"~0": 1.0}})) as searcher:
        (query,) = Rocchio({"q": {"d0": 1}}, gamma=0.0).compose(searcher, ["a"], ["q"])
    added = query.children[1].weights
    assert added["~1"] / added["~0"] == pytest.approx(lucene_idf(1, 4) / lucene_idf(4, 4), rel=0.1)


def test_what_is_refused(searcher, tmp_path):
    assert "rocchio" not in ROW_METHODS
    assert refusal(Rocchio, {}, gamma=-1.0, error=ArgumentError) == "gamma must be a finite number from 0, got -1.0"
    assert refusal(Rocchio, {}, terms=0, error=ArgumentError) == "terms must be a whole number from 1, got 0"
    message = refusal(make_method, METHODS, "rocchio", {}, error=ArgumentError)
    assert message.startswith("method rocchio has no judged documents; give judged=FILE, lines of `qid 0 docid")
    message = refusal(searcher.search, "A", method=Rocchio({"A": {"d99": 1}}), error=InputError)
    assert "'d99'" in message
    (tmp_path / "judged.txt").write_text("q 0 d1 1\nq 0 d2 0\n")
    made = make_method(METHODS, "rocchio", {"judged": str(tmp_path / "judged.txt"), "beta": 1})
    assert made == Rocchio({"q": {"d1": 1, "d2": 0}}, beta=1) and isinstance(hash(made), int)
    assert made == make_method(METHODS, "rocchio", {"judged": tmp_path / "judged.txt", "beta": 1})


def test_negative_weights_of_documents_are_refused(tmp_path):
    folder = write(tmp_path / "index", {"d1": {"p": 1.0, "q": -1.0}}, impact_scale=SCALE, signed=True)
    with SignedImpactSearcher(folder, LookupEncoder(ATOMS)) as searcher, pytest.raises(ArgumentError, match="negative"):
        searcher.search("A", method=Rocchio({"A": {"d1": 1}}))
