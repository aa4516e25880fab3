"""Conjunctions over the pairs of an index, and signed documents, against the definitions."""

import random
from itertools import product

import pytest
from lookup_encoder import LookupEncoder
from pair_index import document_pairs, with_pairs, write, write_atoms
from refusals import refusal
from score_oracle import evaluate

from pyserini_compneg.compose import Linear, Operators, query_pairs
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.lucene import Manifest
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError
from pyserini_compneg.support.vectors import PAIR_SCALE, is_pair

TERMS = "pqrstuvw"
QUERIES = ["a AND b", "b AND c NOT d", "a AND b OR c", "a OR b AND d", "(a OR b) AND d NOT c", "(a AND b NOT c) OR d"]
NO_PAIRS = "build it with compneg index --pairs-from TOPICS or --pair-terms N, or use --cpt factored, which needs none"


def squares(choice, most):
    return {term: choice.choice([1, 4, 9, 25]) for term in choice.sample(TERMS, choice.randint(1, most))}


def make_documents():
    """Impacts whose pairs are whole numbers, and many ties."""
    choice = random.Random(5)
    return {f"d{i:03}": squares(choice, 5) for i in range(300)}


def make_atoms():
    choice = random.Random(6)
    return {name: squares(choice, 4) for name in "abcd"}


PAPER = Operators(intersection="cpt", difference="disentangled")
DOCUMENTS, ATOMS = make_documents(), make_atoms()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    write_atoms(folder / "atoms.jsonl", ATOMS)
    write(folder / "plain", DOCUMENTS)
    write(folder / "pairs", DOCUMENTS, pair_terms=5)
    write(folder / "chosen", DOCUMENTS, pairs=query_pairs(QUERIES, LookupEncoder(ATOMS)))
    return folder


def ranked(hits):
    return [(hit.docid, hit.score) for hit in hits]


def oracle(node, stored):
    """The ranking of all documents, by the definition of the tree."""
    scores = {docid: evaluate(node, impacts) for docid, impacts in stored.items()}
    found = [(docid, score) for docid, score in scores.items() if score is not None]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize("intersection", ["cpt", "cpt-maxpool"])
@pytest.mark.parametrize("pairs", ["pairs", "chosen"])
def test_both_forms_rank_alike_where_nothing_is_rounded(folder, intersection, pairs):
    for union, difference in product(("dismax", "maxpool", "addition"), ("disentangled", "subtraction", "nrf")):
        settings = folder / "atoms.jsonl", Operators(union, intersection, difference)
        with (
            SignedImpactSearcher(folder / "plain", *settings) as plain,
            SignedImpactSearcher(folder / pairs, *settings, cpt="materialised") as materialised,
        ):
            for text in QUERIES:
                hits = ranked(plain.search(text, 400))
                assert ranked(materialised.search(text, 400)) == hits != []
                assert ranked(materialised.search(text, 7)) == hits[:7]


def test_the_factored_form_runs_on_an_index_with_pairs(folder):
    with (
        SignedImpactSearcher(folder / "plain", folder / "atoms.jsonl") as plain,
        SignedImpactSearcher(folder / "pairs", folder / "atoms.jsonl") as pairs,
    ):
        for text in QUERIES:
            assert pairs.search(text, 400) == plain.search(text, 400)


def test_pairs_that_were_not_chosen_are_warned_of(folder, caplog):
    atoms, operators = folder / "atoms.jsonl", Operators(intersection="cpt")
    with SignedImpactSearcher(folder / "chosen", atoms, operators, cpt="materialised") as searcher:
        searcher.search("a AND b", 400)
        assert caplog.messages == []
        (node,) = searcher.compose(["c AND d"])
        lacking = sorted(pair for pair in node.weights.keys() - searcher.reader.manifest.pairs if is_pair(pair))
        (message,) = caplog.messages
        assert message == (
            f"query 'c AND d' ({len(lacking)} of {sum(map(is_pair, node.weights))} pairs, such as {lacking[0]}): the "
            "index was built without pairs of it, so documents are missed; use --cpt factored, which misses none"
        )


def any_impacts():
    choice = random.Random(7)
    return {f"d{i:03}": {term: choice.randint(1, 300) for term in choice.sample(TERMS, 6)} for i in range(200)}


def write_sevenths(folder):
    """Atoms whose weights are not whole numbers, also when they are multiplied by 100."""
    return write_atoms(folder / "atoms.jsonl", {name: {t: w / 7 for t, w in ATOMS[name].items()} for name in ATOMS})


@pytest.mark.parametrize("scale", [PAIR_SCALE, 1])
def test_rounded_pairs_of_the_heaviest_terms_are_what_is_scored(tmp_path, scale):
    documents = any_impacts()
    stored = with_pairs(documents, 4, scale)
    write(tmp_path / "index", documents, pair_terms=4, pair_scale=scale)
    with SignedImpactSearcher(tmp_path / "index", write_sevenths(tmp_path), PAPER, cpt="materialised") as searcher:
        for text, node in zip(QUERIES, searcher.compose(QUERIES), strict=True):
            assert ranked(searcher.search(text, 400)) == oracle(node, stored)


@pytest.mark.parametrize("options", [{}, {"pairs": True}, {"pair_scale": 1}, {"pair_scale": 64}])
@pytest.mark.parametrize("intersection", ["cpt", "cpt-maxpool"])
def test_both_forms_differ_by_the_rounding_of_pairs_alone(tmp_path, options, intersection):
    """The impacts and the weights of pairs differ by ½ / scale at most; for a term with itself they differ less."""
    documents, atoms = any_impacts(), write_sevenths(tmp_path)
    operators = Operators("maxpool", intersection, "disentangled")
    chosen = query_pairs(QUERIES, LookupEncoder(ATOMS))
    options = {"pairs": chosen} if "pairs" in options else {"pair_terms": 6, **options}
    write(tmp_path / "plain", documents)
    write(tmp_path / "pairs", documents, **options)
    manifest = Manifest.read(tmp_path / "pairs")
    assert manifest.pair_scale == options.get("pair_scale", 8)
    with (
        SignedImpactSearcher(tmp_path / "plain", atoms, operators) as plain,
        SignedImpactSearcher(tmp_path / "pairs", atoms, operators, cpt="materialised") as materialised,
    ):
        errors = []
        for text, node in zip(QUERIES, materialised.compose(QUERIES), strict=True):
            exact = dict(ranked(plain.search(text, 400)))
            found = dict(ranked(materialised.search(text, 400)))
            assert found.keys() == exact.keys() != set()
            weights = {
                term: abs(weight) * (manifest.pair_scale if is_pair(term) else 1)
                for leaf in leaf_vectors(node)
                for term, weight in leaf.items()
            }
            for docid, score in found.items():
                impacts = document_pairs(documents[docid], 6)
                bound = sum((impacts[term] + weights[term]) / 2 for term in impacts.keys() & weights)
                errors.append(abs(score - exact[docid]) / bound)
        assert 0.1 / manifest.pair_scale < max(errors) < 1 / manifest.pair_scale


def test_an_index_without_pairs_is_refused_before_any_search(folder, tmp_path):
    (tmp_path / "stock").mkdir()
    for path in (folder / "pairs").iterdir():
        if path.name not in ("compneg.json", "write.lock"):
            (tmp_path / "stock" / path.name).write_bytes(path.read_bytes())
    for index in (folder / "plain", tmp_path / "stock"):
        message = refusal(
            SignedImpactSearcher, index, folder / "atoms.jsonl", cpt="materialised", error=IndexFormatError
        )
        assert message == f"{index} holds no pairs of terms; {NO_PAIRS}"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cpt": "pairs"}, "cpt must be one of factored, materialised, got 'pairs'"),
        ({"weight_scale": 0}, "weight_scale must be a finite number above 0, got 0"),
    ],
)
def test_wrong_settings_are_known_before_the_index_is_opened(settings, said):
    assert refusal(SignedImpactSearcher, "none", **settings, error=ArgumentError) == said


def test_composed_queries_ask_a_signed_index_for_just_what_they_say(tmp_path):
    write(tmp_path / "index", {"d1": {"p": 2}, "d2": {"p": -1, "q": 1}, "d3": {"p": 1, "q": -3}}, signed=True)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert ranked(searcher.search(Linear({"p": 1.0}))) == [("d1", 2.0), ("d3", 1.0)]
