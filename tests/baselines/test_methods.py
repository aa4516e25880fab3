"""The methods beside operators, on a small index, against the definitions and all documents."""

import random

import pytest
from lookup_encoder import LookupEncoder
from pair_index import write
from refusals import refusal
from score_oracle import evaluate, fused_score

from pyserini_compneg.baselines import METHODS, Filtering, Reranked, ScoreFusion, TwoStep, make_method
from pyserini_compneg.compose import Operators
from pyserini_compneg.expression import Filter, parse
from pyserini_compneg.lucene.manifest import MANIFEST_NAME
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, QueryError

TERMS = "pqrstuvwxyz"
SCALE = 51.2
HITS = 1000
QUERIES = {
    "atom": "A",
    "union": "A OR B OR C",
    "intersection": "A AND B",
    "three": "A AND B AND C",
    "difference": "A NOT B",
    "both": "A AND B NOT C",
    "nested": "A AND (B OR C) NOT D",
    "unknown": "nothing",
    "unknown too": "A NOT nothing",
}


def make_vector(choice, terms):
    return {term: round(choice.uniform(0.1, 3), 2) for term in choice.sample(TERMS, terms)}


CHOICE = random.Random(1)
ATOMS = {name: make_vector(CHOICE, 3) for name in "ABCD"}
DOCUMENTS = {f"d{i:03}": make_vector(CHOICE, CHOICE.randint(0, 6)) for i in range(400)}
IMPACTS = {docid: {t: round(w * SCALE) for t, w in vector.items()} for docid, vector in DOCUMENTS.items()}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return write(tmp_path_factory.mktemp("methods") / "index", DOCUMENTS, impact_scale=SCALE)


@pytest.fixture(scope="module")
def searcher(index):
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as opened:
        yield opened


def search(searcher, name, k=HITS, queries=QUERIES, filter=None, **settings):
    """The rankings of a method, checked to be in order."""
    method = make_method(METHODS, name, settings)
    found = searcher.batch_search([*queries.values()], [*queries], k, threads=2, filter=filter, method=method)
    assert list(found) == list(queries)
    for hits in found.values():
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.docid))
    return {qid: [(hit.docid, hit.score) for hit in hits] for qid, hits in found.items()}


@pytest.mark.parametrize("name", ["operators", "filtering", "two-step"])
def test_what_is_composed_is_what_is_searched(searcher, name):
    method = make_method(METHODS, name, {})
    for query in QUERIES.values():
        (node,) = method.compose(searcher, [query])
        for hit in searcher.search(query, 5, method=method):
            assert hit.score == pytest.approx(evaluate(node, IMPACTS[hit.docid]), rel=1e-6)


def atom_scores(impacts):
    """The scores of the atoms in the model's own unit."""
    vectors = {**ATOMS, "nothing": {}}
    return {name: sum(w * impacts.get(t, 0) for t, w in vectors[name].items()) / SCALE for name in vectors}


@pytest.mark.parametrize("name", ["score-fusion", "score-fusion-scaled"])
def test_score_fusion_ranks_by_the_models_own_scores(searcher, name):
    scores = {docid: atom_scores(impacts) for docid, impacts in IMPACTS.items()}
    if name == "score-fusion-scaled":
        best = {text: max(own[text] for own in scores.values()) or 1.0 for text in (*ATOMS, "nothing")}
        scores = {docid: {text: own[text] / best[text] for text in own} for docid, own in scores.items()}
    found = search(searcher, name)
    for qid, text in QUERIES.items():
        fused = {docid: fused_score(parse(text), own) for docid, own in scores.items()}
        expected = {docid: plus - minus for docid, (plus, minus, _) in fused.items() if plus > 0}
        assert {docid for docid, _ in found[qid]} == expected.keys()
        ours = [expected[docid] for docid, _ in found[qid]]
        for better, worse in zip(ours, ours[1:], strict=False):
            assert better >= worse - 2e-3 * max(map(abs, ours)) * (name == "score-fusion-scaled") - 1e-6
    assert found["unknown"] == []


def list_scores(depth, scaled):
    """The scores of documents in the list of each atom, by hand: weights are whole here after rounding."""
    lists = {"nothing": {}}
    for name, vector in ATOMS.items():
        scores = {d: sum(round(100 * w) * i.get(t, 0) for t, w in vector.items()) for d, i in IMPACTS.items()}
        best = sorted(((d, s) for d, s in scores.items() if s > 0), key=lambda hit: (-hit[1], hit[0]))[:depth]
        high, low = best[0][1], best[-1][1]
        unit = 100 * SCALE
        lists[name] = {d: (s - low) / (high - low) if scaled else s / unit for d, s in best}
    return lists


@pytest.mark.parametrize("depth", [1, 20, 120])
@pytest.mark.parametrize("name", ["score-fusion", "score-fusion-scaled"])
def test_lists_are_fused_by_the_scores_that_they_have(searcher, name, depth):
    scaled = name.endswith("scaled") and depth > 1
    lists = (
        list_scores(depth, scaled)
        if depth > 1
        else {name: dict.fromkeys(own, 1.0) for name, own in list_scores(1, False).items()}
    )
    found = search(searcher, name, depth=depth)
    for qid, text in QUERIES.items():
        has = {d: {name: float(d in own) for name, own in lists.items()} for d in IMPACTS}
        docids = {d for d in IMPACTS if fused_score(parse(text), has[d])[0] > 0}
        assert {docid for docid, _ in found[qid]} == docids
        if depth == 1 and not name.endswith("scaled"):
            continue
        fused = {d: fused_score(parse(text), {name: own.get(d, 0.0) for name, own in lists.items()}) for d in docids}
        expected = {d: plus - minus for d, (plus, minus, _) in fused.items()}
        ours = [expected[docid] for docid, _ in found[qid]]
        assert all(better >= worse - 1e-9 for better, worse in zip(ours, ours[1:], strict=False))


def test_lists_are_of_documents_that_the_filter_lets_through(searcher):
    allowed = sorted(IMPACTS)[:50]
    found = search(searcher, "score-fusion", depth=5, filter=Filter({"id": allowed}))
    assert {docid for hits in found.values() for docid, _ in hits} <= set(allowed)
    assert len(found["atom"]) == 5
    whole = search(searcher, "score-fusion", depth=HITS)
    assert found["atom"] == [hit for hit in whole["atom"] if hit[0] in allowed][:5]
    filters = [None, *[Filter({"id": allowed})] * (len(QUERIES) - 1)]
    mixed = search(searcher, "score-fusion", depth=5, filter=filters)
    assert mixed == {**found, "atom": whole["atom"][:5]}


def negated(qid, top):
    """Terms that the negated atoms of a query have and the wanted ones lack, by hand."""
    wanted, unwanted = {"difference": ("A", "B"), "both": ("AB", "C"), "nested": ("ABC", "D")}.get(qid, ("", ""))
    support = {term for name in wanted for term in ATOMS[name]}
    return {
        term
        for name in unwanted
        for term in sorted(ATOMS[name].keys() - support, key=lambda term: (-ATOMS[name][term], term))[:top]
    }


@pytest.mark.parametrize(("union", "intersection"), [("dismax", "cpt-maxpool"), ("maxpool", "cpt-l2")])
@pytest.mark.parametrize("top", [1, 2, 100])
def test_filtering_drops_what_holds_a_negated_term(searcher, union, intersection, top):
    wanted = {qid: text.split(" NOT ")[0] for qid, text in QUERIES.items()}
    found = search(searcher, "filtering", union=union, intersection=intersection, cpt_terms=top)
    few = search(searcher, "filtering", k=7, union=union, intersection=intersection, cpt_terms=top)
    assert negated("both", top)
    for qid, text in wanted.items():
        (node,) = searcher.compose([text], Operators(union, intersection, cpt_terms=top))
        whole = [(hit.docid, hit.score) for hit in searcher.search(node, HITS)]
        expected = [hit for hit in whole if IMPACTS[hit[0]].keys().isdisjoint(negated(qid, top))]
        assert found[qid] == expected
        assert few[qid] == expected[:7]
        assert (len(expected) < len(whole)) == bool(negated(qid, top))


@pytest.mark.parametrize("intersection", ["cpt", "cpt-maxpool"])
def test_two_steps_over_all_documents_are_one(searcher, intersection):
    settings = {"intersection": intersection, "union": "maxpool"}
    one = search(searcher, "operators", **settings)
    assert search(searcher, "two-step", depth=HITS, **settings) == one
    assert search(searcher, "two-step", depth=HITS, k=3, **settings) == {qid: hits[:3] for qid, hits in one.items()}


def test_two_steps_rank_the_subset_anew(searcher):
    found = search(searcher, "two-step", depth=20)
    plain = search(searcher, "operators", k=20, intersection="maxpool")
    exact = search(searcher, "operators", intersection="cpt")
    for qid, hits in found.items():
        subset = dict(plain[qid])
        assert hits == [hit for hit in exact[qid] if hit[0] in subset]
    assert 0 < len(found["three"]) < 20


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("fusion", {}, f"no method 'fusion'; expected one of {', '.join(METHODS)}"),
        ("operators", {"top": 1}, "method operators: unknown setting 'top'; expected one of union, intersection, "),
        ("score-fusion", {"scaled": True}, "method score-fusion: unknown setting 'scaled'; expected one of depth"),
        ("score-fusion-scaled", {"depth": 0}, "depth must be a whole number from 1, got 0"),
        (
            "filtering",
            {"difference": "nrf"},
            "method filtering: unknown setting 'difference'; expected one of union, intersection, "
            "cpt_terms, cpt_weight",
        ),
        ("filtering", {"cpt_terms": 0}, "cpt_terms must be a whole number from 1, got 0"),
        ("two-step", {"union": "max"}, "union must be one of maxpool, addition, dismax, vanilla, got 'max'"),
        ("two-step", {"depth": True}, "depth must be a whole number from 1, got True"),
        ("two-step", {"hits": 9}, "method two-step: unknown setting 'hits'; expected one of depth, union, "),
    ],
)
def test_settings_that_a_method_does_not_have(name, settings, message):
    refused = refusal(make_method, METHODS, name, settings, error=(ArgumentError, QueryError))
    assert refused.startswith(message)


@pytest.mark.parametrize("method", [ScoreFusion(), ScoreFusion(depth=9), Filtering(), TwoStep(), Reranked(None)])
def test_composed_queries_have_no_atoms(searcher, method):
    (node,) = searcher.compose(["A NOT B"])
    message = refusal(searcher.search, node, method=method, error=QueryError)
    assert message == "a composed query has no atoms any more, so only operators run it; leave out the method"


def test_what_is_no_method(searcher):
    def refused(**settings):
        return refusal(searcher.search, "A", error=ArgumentError, **settings)

    assert refused(method="two-step") == "method must be an object such as ScoreFusion(), got 'two-step'"
    both = "a method brings its own operators; leave out operators, or method"
    assert refused(method=TwoStep(), operators=Operators()) == both
    assert refused(method=TwoStep(), k=0) == "k must be a whole number from 1, got 0"


@pytest.mark.parametrize(
    ("method", "text", "reason"),
    [
        (ScoreFusion(), "A NOT (B AND C)", "score fusion cannot subtract 'B AND C', only atoms and unions of atoms;"),
        (ScoreFusion(depth=5), "A NOT! B", "score fusion cannot leave documents out, as NOT! does; use operators"),
        (ScoreFusion(), "A AND! B", "score fusion cannot require every operand, as AND! does; use operators"),
        (Filtering(), "A NOT (B NOT C)", "NOT! excludes what matches, and 'B NOT C' takes a part of that back;"),
    ],
)
def test_a_query_that_a_method_cannot_answer(searcher, method, text, reason):
    assert refusal(searcher.search, text, method=method, error=QueryError).startswith(reason)


@pytest.mark.parametrize("method", [ScoreFusion(), ScoreFusion(scaled=True), ScoreFusion(depth=5)])
def test_signed_documents(tmp_path, method):
    index = write(tmp_path / "index", {"d": {"p": 1.0, "q": -1.0}}, signed=True)
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        message = refusal(searcher.search, "A", method=method, error=IndexFormatError)
    assert message == f"{index} holds negative weights of documents, for which score fusion is not defined"


def test_an_index_that_does_not_say_its_impact_scale(tmp_path):
    index = write(tmp_path / "index", DOCUMENTS, impact_scale=SCALE)
    (index / MANIFEST_NAME).unlink()
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        for depth in (None, 200):
            message = refusal(search, searcher, "score-fusion", depth=depth, error=QueryError)
            assert message.startswith("scores can be added to products of scores only if the index gives its impact")
            assert search(searcher, "score-fusion-scaled", depth=depth)["both"] != []


def test_scores_of_a_list_that_are_all_equal_count_one(searcher):
    """A list of one document is such a list."""
    (hit,) = searcher.search("A", 1, method=ScoreFusion(scaled=True, depth=1))
    assert hit.score == 1.0
