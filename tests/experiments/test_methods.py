"""The methods that are compared, on a small index, against the definitions and all documents."""

import random

import pytest
from lookup_encoder import LookupEncoder
from pair_index import write
from refusals import refusal

from pyserini_compneg.compose import Operators, evaluate
from pyserini_compneg.errors import CompositionError, ProtocolError
from pyserini_compneg.experiments.dense import DENSE_OPERATORS
from pyserini_compneg.experiments.methods import METHODS, ComposingMethod, Context, make_method
from pyserini_compneg.expression import parse
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.lucene.manifest import MANIFEST_NAME
from pyserini_compneg.search import SignedImpactSearcher

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
TOPICS = [Topic(qid, text, parse(text)) for qid, text in QUERIES.items()]


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
def context(index):
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        yield Context(searcher, threads=2)


def ranked(scores):
    """The documents with a score, best first, equal ones by docid."""
    return sorted(((d, s) for d, s in scores.items() if s is not None), key=lambda hit: (-hit[1], hit[0]))


def search(context, name, k=HITS, topics=TOPICS, **settings):
    found = make_method(name, settings).search(context, topics, k)
    assert list(found) == [topic.qid for topic in topics]
    return {qid: [(hit.docid, hit.score) for hit in hits] for qid, hits in found.items()}


def test_the_registry():
    assert [*METHODS] == [
        "operators",
        "score-fusion",
        "score-fusion-scaled",
        "filtering",
        "two-step",
        "dense",
    ]
    shown = [name for name in METHODS if isinstance(make_method(name, {}), ComposingMethod)]
    assert shown == ["operators", "two-step"]


@pytest.mark.parametrize("name", ["operators", "two-step"])
def test_what_is_composed_is_what_is_searched(context, name):
    method = make_method(name, {})
    for qid, hits in method.search(context, TOPICS, 5).items():
        (topic,) = (topic for topic in TOPICS if topic.qid == qid)
        node = method.compose(context, topic)
        for hit in hits:
            assert hit.score == pytest.approx(evaluate(node, IMPACTS[hit.docid]), rel=1e-6)


def test_operators(context):
    found = search(context, "operators", intersection="cpt-l2", difference="nrf", difference_weight=0.5)
    for qid, text in QUERIES.items():
        (node,) = context.searcher.compose(
            [text], Operators(intersection="cpt-l2", difference="nrf", difference_weight=0.5)
        )
        assert [(hit.docid, hit.score) for hit in context.searcher.search(node, HITS)] == found[qid]
    assert context.searcher.operators is None


def atom_scores(impacts):
    """The scores of the atoms in the model's own unit."""
    vectors = {**ATOMS, "nothing": {}}
    return {name: sum(w * impacts.get(t, 0) for t, w in vectors[name].items()) / SCALE for name in vectors}


FUSED = {
    "atom": lambda s: (s["A"], s["A"]),
    "union": lambda s: (s["A"] + s["B"] + s["C"], s["A"] + s["B"] + s["C"]),
    "intersection": lambda s: (s["A"] * s["B"], s["A"] * s["B"]),
    "three": lambda s: (s["A"] * s["B"] * s["C"], s["A"] * s["B"] * s["C"]),
    "difference": lambda s: (s["A"], s["A"] - s["B"]),
    "both": lambda s: (s["A"] * s["B"], s["A"] * s["B"] - s["C"]),
    "nested": lambda s: (s["A"] * (s["B"] + s["C"]), s["A"] * (s["B"] + s["C"]) - s["D"]),
    "unknown": lambda s: (0.0, 0.0),
    "unknown too": lambda s: (s["A"], s["A"]),
}
"""What makes a document a candidate, and its score."""


@pytest.mark.parametrize("name", ["score-fusion", "score-fusion-scaled"])
def test_score_fusion_ranks_by_the_models_own_scores(context, name):
    scores = {docid: atom_scores(impacts) for docid, impacts in IMPACTS.items()}
    if name == "score-fusion-scaled":
        best = {text: max(own[text] for own in scores.values()) or 1.0 for text in (*ATOMS, "nothing")}
        scores = {docid: {text: own[text] / best[text] for text in own} for docid, own in scores.items()}
    found = search(context, name)
    for qid, fuse in FUSED.items():
        expected = {docid: fuse(own)[1] for docid, own in scores.items() if fuse(own)[0] > 0}
        assert {docid for docid, _ in found[qid]} == expected.keys()
        ours = [expected[docid] for docid, _ in found[qid]]
        for better, worse in zip(ours, ours[1:], strict=False):
            assert better >= worse - 2e-3 * max(map(abs, ours)) * (name == "score-fusion-scaled") - 1e-6
    assert found["unknown"] == []


def test_score_fusion_finds_documents_of_a_term_that_is_lowered(context):
    """Where vectors are subtracted, a term may cancel, and with it documents that have no other."""
    encoder = LookupEncoder({"x": {"p": 1.0, "q": 0.5}, "y": {"p": 1.0, "q": 1.5}})
    inner = Context(SignedImpactSearcher(context.searcher.reader.folder, encoder))
    topics = [Topic("1", "x NOT y", parse("x NOT y"))]
    fused_docids = dict(search(inner, "score-fusion", topics=topics)["1"]).keys()
    assert fused_docids == {docid for docid, impacts in IMPACTS.items() if "p" in impacts or "q" in impacts}
    assert search(inner, "operators", topics=topics, difference="subtraction") == {"1": []}
    inner.searcher.close()


def negated(qid, top):
    """Terms that the negated atoms of a query have and the wanted ones lack, by hand."""
    wanted, unwanted = {"difference": ("A", "B"), "both": ("AB", "C"), "nested": ("ABC", "D")}.get(qid, ("", ""))
    support = {term for name in wanted for term in ATOMS[name]}
    return {
        term
        for name in unwanted
        for term in sorted(ATOMS[name].keys() - support, key=lambda term: (-ATOMS[name][term], term))[:top]
    }


@pytest.mark.parametrize("intersection", ["cpt+maxpool", "cpt", "cpt-l2", "addition"])
@pytest.mark.parametrize("union", ["dismax", "maxpool"])
@pytest.mark.parametrize("top", [1, 2, 100])
def test_filtering_drops_what_holds_a_negated_term(context, union, intersection, top):
    wanted = {qid: text.split(" NOT ")[0] for qid, text in QUERIES.items()}
    found = search(context, "filtering", union=union, intersection=intersection, cpt_terms=top)
    few = search(context, "filtering", k=7, union=union, intersection=intersection, cpt_terms=top)
    assert negated("both", top)
    for qid, text in wanted.items():
        (node,) = context.searcher.compose([text], Operators(union, intersection, cpt_terms=top))
        whole = [(hit.docid, hit.score) for hit in context.searcher.search(node, HITS)]
        expected = [hit for hit in whole if IMPACTS[hit[0]].keys().isdisjoint(negated(qid, top))]
        assert found[qid] == expected
        assert few[qid] == expected[:7]
        assert (len(expected) < len(whole)) == bool(negated(qid, top))


@pytest.mark.parametrize("intersection", ["cpt", "cpt-l2", "cpt+maxpool"])
def test_two_steps_over_all_documents_are_one(context, intersection):
    settings = {"intersection": intersection, "union": "maxpool"}
    one = search(context, "operators", **settings)
    assert search(context, "two-step", subset=HITS, **settings) == one
    assert search(context, "two-step", subset=HITS, k=3, **settings) == {qid: hits[:3] for qid, hits in one.items()}


def test_two_steps_rank_the_subset_anew(context):
    found = search(context, "two-step", subset=20)
    plain = search(context, "operators", k=20, intersection="maxpool")
    exact = search(context, "operators", intersection="cpt")
    for qid, hits in found.items():
        subset = dict(plain[qid])
        assert hits == [hit for hit in exact[qid] if hit[0] in subset]
    assert 0 < len(found["three"]) < 20


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("fusion", {}, f"no method 'fusion'; expected one of {', '.join(METHODS)}"),
        ("operators", {"top": 1}, "method operators: unknown setting 'top'; expected one of union, intersection, "),
        ("score-fusion", {"scaled": True}, "method score-fusion: unknown setting 'scaled'; it has none"),
        ("score-fusion-scaled", {"a": 1}, "method score-fusion-scaled: unknown setting 'a'; it has none"),
        (
            "filtering",
            {"difference": "nrf"},
            "method filtering: unknown setting 'difference'; expected one of union, intersection, cpt_terms",
        ),
        ("filtering", {"cpt_terms": 0}, "cpt_terms must be a whole number from 1, got 0"),
        ("filtering", {"union": "max"}, "union must be one of maxpool, addition, dismax, vanilla, got 'max'"),
        ("two-step", {"union": "max"}, "union must be one of maxpool, addition, dismax, vanilla, got 'max'"),
        ("two-step", {"subset": True}, "subset must be a whole number from 1, got True"),
        ("two-step", {"hits": 9}, "method two-step: unknown setting 'hits'; expected one of subset, union, "),
        ("dense", {"unoin": "addition"}, "method dense: unknown setting 'unoin'; expected one of union, "),
        *(
            ("dense", {kind: "cpt"}, f"{kind} of dense vectors must be one of {', '.join(names)}, got 'cpt'")
            for kind, names in DENSE_OPERATORS.items()
        ),
    ],
)
def test_settings_that_a_method_does_not_have(name, settings, message):
    refused = refusal(make_method, name, settings, error=(ProtocolError, CompositionError))
    assert refused.startswith(message)


@pytest.mark.parametrize("name", ["score-fusion", "score-fusion-scaled", "filtering", "two-step"])
def test_composed_queries_have_no_atoms(context, name):
    composed = Topic("7", "", composed={"vector": {"p": 1}})
    message = refusal(make_method(name, {}).search, context, [composed], 10, error=ProtocolError)
    assert message == "query 7 is composed already; only the method operators runs it"


def test_a_query_that_a_method_cannot_answer_is_named(context):
    for name, text, reason in (
        (
            "score-fusion",
            "A NOT (B AND C)",
            "score fusion cannot subtract 'B AND C', only atoms and unions of atoms; use operators",
        ),
        ("score-fusion", "A NOT! B", "score fusion cannot leave documents out, as NOT! does; use operators"),
        (
            "filtering",
            "A NOT (B NOT C)",
            "NOT! excludes what matches, and 'B NOT C' takes a part of that back; leave out that part, or unite what "
            "is kept by OR outside",
        ),
    ):
        topic = Topic("q7", text, parse(text))
        message = refusal(make_method(name, {}).search, context, [topic], 10, error=CompositionError)
        assert message == f"query q7: {reason}"


@pytest.mark.parametrize("name", ["score-fusion", "score-fusion-scaled"])
def test_signed_documents(tmp_path, name):
    index = write(tmp_path / "index", {"d": {"p": 1.0, "q": -1.0}}, signed=True)
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        message = refusal(make_method(name, {}).search, Context(searcher), TOPICS, 1, error=ProtocolError)
    assert message.startswith(f"{index} holds negative weights of documents, for which ")


def test_an_index_that_does_not_say_its_impact_scale(tmp_path):
    index = write(tmp_path / "index", DOCUMENTS, impact_scale=SCALE)
    (index / MANIFEST_NAME).unlink()
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        context = Context(searcher)
        message = refusal(search, context, "score-fusion", error=CompositionError)
        assert message.startswith("query both: scores can be added to products of scores only if the index")
        assert search(context, "score-fusion-scaled")["both"] != []
