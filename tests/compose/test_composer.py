import math
from collections import Counter

import pytest
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg.compose import Linear, Max, Operators, Product, Sum, compose_query, is_empty
from pyserini_compneg.compose.queries import MOST_ATOMS, ParsedQuery, parsed_queries, scoring_trees
from pyserini_compneg.expression import Atom, Union, parse
from pyserini_compneg.support.errors import ArgumentError, EncodingError, QueryError

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
PARROTS = {"birds": 1.0, "parrot": 2.0}
POOLED = {**COLOMBIA, "venezuela": 1.0}
WORDS = {"colombia": COLOMBIA, "venezuela": VENEZUELA, "parrots": PARROTS}
NAMES = "p q r x px sx pps pqq pxx ppp pppp xxx qqxx qrrr xrrrrr"
VECTORS = WORDS | {name: dict(Counter(name)) for name in NAMES.split()}  # noqa: SIM905
VECTORS |= {"-p": {"p": -1.0}, "-x": {"x": -2.0}, "signed": {"q": -3.0, "r": 1.0}}
"""Atoms that are no words are named by their terms: ``pxx`` has the weight 1 for p, and 2 for x."""

P, Q, R, X = ({term: 1.0} for term in "pqrx")
MINUS_X = Linear({"x": -1.0})


def composed(text, vectors=VECTORS, **operators):
    chosen = Operators(**{"difference": "disentangled", **operators})
    return scoring_trees(parsed_queries([text]), LookupEncoder(vectors), chosen)[0]


def differing(**changes):
    return Linear({**POOLED, **changes})


CPT = {"intersection": "cpt"}
HEAVIEST = [(a, b) for a in sorted(COLOMBIA) for b in sorted(VENEZUELA)][:5]  # all weights are 1
PAIRS = Sum(tuple(Product(({a: 1.0}, {b: 1.0})) for a, b in HEAVIEST))
BOTH = "colombia AND venezuela"


@pytest.mark.parametrize(
    ("text", "operators", "node"),
    [
        ("colombia", {}, Linear(COLOMBIA)),
        # Unions
        ("colombia OR venezuela", {"union": "maxpool"}, Linear(POOLED)),
        ("colombia OR venezuela", {"union": "addition"}, differing(birds=2.0, fly=2.0, andes=2.0)),
        (
            "colombia OR venezuela",
            {},
            Sum((Max((Linear(COLOMBIA), Linear(VENEZUELA))), Linear(dict.fromkeys(POOLED, 0.25)))),
        ),
        ("p AND q OR r", {**CPT, "union": "addition"}, Sum((Product((P, Q)), Linear(R)))),
        # Intersections
        (BOTH, CPT, Product((COLOMBIA, VENEZUELA))),
        (f"{BOTH} AND parrots", {"intersection": "cpt-l2"}, Product((COLOMBIA, VENEZUELA, PARROTS), 2 / 3, 2)),
        (BOTH, {"intersection": "cpt-pairs"}, PAIRS),
        (
            f"{BOTH} AND parrots",
            {"intersection": "cpt-pairs", "cpt_terms": 1},
            Product(({"andes": 1.0}, {"andes": 1.0}, {"parrot": 2.0})),
        ),
        ("(p OR q NOT x) AND r", CPT, Product((P | Q, R))),
        # Differences of vectors
        ("colombia NOT venezuela", {}, Linear({**COLOMBIA, "venezuela": -1.0})),
        ("colombia NOT venezuela", {"difference": "subtraction"}, Linear({"colombia": 1.0, "venezuela": -1.0})),
        *(
            (
                "colombia NOT venezuela",
                {"difference": name, "difference_weight": given},
                differing(birds=1 - weight, fly=1 - weight, andes=1 - weight, venezuela=-weight),
            )
            for name, given, weight in [
                *(("nrf", None, 0.25), ("nrf", 0.5, 0.5), ("constant", None, 0.75), ("orthogonal", None, 0.75)),
            ]
        ),
        # What is excluded does not count by what it excludes itself: nothing of it is ever wanted.
        ("p NOT (qqxx NOT xrrrrr)", {}, Linear({"p": 1.0, "q": -2.0, "x": -2.0})),
        # A negation in a conjunction reaches the whole, whose terms are all protected.
        *((text, CPT, Sum((Product((P, Q)), MINUS_X))) for text in ("p AND q NOT x", "(p NOT x) AND q")),
        ("p AND q NOT pxx", CPT, Sum((Product((P, Q)), Linear({"x": -2.0})))),
        # Documents about all of an excluded conjunction are lowered; every document about p has the p of ppp.
        ("p NOT (pqq AND ppp)", {}, Linear({"p": 1.0, "q": -2.0})),
        ("p NOT (pqq AND x)", CPT, Sum((Linear(P), Product(({"q": 2.0}, X), weight=-1.0)))),
    ],
)
def test_trees_by_hand(text, operators, node):
    assert composed(text, **operators) == node


def test_the_most_atoms_of_an_expression():
    birds, bats = Atom("birds"), Atom("bats")
    queries = parsed_queries([Union((birds, Union((bats,) * MOST_ATOMS)))])
    message = refusal(scoring_trees, queries, LookupEncoder({}), error=QueryError)
    assert message == "an expression may have 20,000 atoms, this one has 20,001; split it into several queries"
    encoder = LookupEncoder({"bats": {"bat": 2.0}})
    queries = parsed_queries([Union((bats,) * MOST_ATOMS)])
    assert scoring_trees(queries, encoder, Operators("maxpool")) == [Linear({"bat": 2.0})]


def test_cpt_beside_maxpool_pairs_the_terms_that_one_operand_has():
    vectors = {"a": {"x": 4.0, "p": 1.0}, "b": {"x": 9.0, "q": 2.0}, "c": {"r": 3.0}, "d": {"x": 1.0}, "e": {}}
    both = Sum((Product(({"p": 1.0}, {"q": 2.0}), weight=0.5), Linear({"x": 9.0, "p": 1.0, "q": 2.0})))
    assert [composed(text, vectors) for text in ("a AND b", "a AND b AND d", "a AND b AND e")] == [both] * 3
    assert composed("a AND d", vectors) == Linear({"x": 4.0, "p": 1.0})
    assert composed("a AND b AND c", vectors, cpt_weight=1.0).children[:2] == (
        Product(({"q": 2.0}, {"r": 3.0}), weight=0.5),
        Product(({"p": 1.0}, {"q": 2.0, "r": 3.0}), weight=0.5),
    )


@pytest.mark.parametrize("difference", ["disentangled", "damped", "subtraction"])
@pytest.mark.parametrize(("excluded", "lowers"), [("b", False), ("c", True), ("b AND d", False), ("e", True)])
def test_an_exclusion_without_a_term_of_its_own_is_told(difference, excluded, lowers, caplog):
    vectors = {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0}, "c": {"x": 1.0, "z": 1.0}, "d": {"y": 2.0}, "e": {}}
    ask = lambda nodes, _: [[9.0]] * len(nodes)  # noqa: E731
    compose_query(f"a NOT ({excluded})", LookupEncoder(vectors), Operators(difference=difference), top_scores=ask)
    said = f"part '{excluded}': the wanted part has all its terms, so NOT lowers nothing by it"
    assert (said in caplog.messages) == (not lowers and difference != "subtraction")


def test_a_negation_that_takes_everything_away_says_so(caplog):
    assert is_empty(composed("colombia NOT colombia", difference="orthogonal"))
    assert not is_empty(composed("colombia NOT (colombia NOT parrots)", difference="subtraction"))
    assert is_empty(composed("moon NOT parrots"))
    assert caplog.messages == [
        "query 'colombia NOT colombia': NOT (orthogonal) removes all its positive terms; choose another --difference"
    ]


def test_vanilla_encodes_the_wording():
    vectors = {"birds or bats": {"w": 1.0}, "parrots": {"p": 1.0}, "birds or bats that are not parrots": {"v": 1.0}}
    text = "(birds OR bats) NOT parrots"
    assert composed(text, vectors, union="vanilla") == Linear({"w": 1.0, "p": -1.0})
    encoder = LookupEncoder(vectors)
    scoring_trees(parsed_queries([text]), encoder, Operators(difference="vanilla"))
    assert encoder.batches == [["(birds or bats) that are not parrots"]]


def test_each_distinct_text_is_encoded_once_in_one_batch():
    encoder = LookupEncoder({})
    queries = parsed_queries(["a OR b", "b NOT (a AND c)", "a"])
    assert len(scoring_trees(queries, encoder, Operators(intersection="vanilla"))) == 3
    assert scoring_trees([], encoder) == []
    assert encoder.batches == [["a", "b", "a that are also c"]]


@pytest.mark.parametrize(
    "fields", [{}, {"expression": parse("a"), "composed": Linear({"a": 1.0})}, {"expression": "a"}]
)
def test_a_parsed_query_is_an_expression_or_a_composed_query(fields):
    said = refusal(lambda: ParsedQuery(**fields), error=ArgumentError)
    assert said.startswith("a ParsedQuery has either an expression or a composed query, got ")


def test_vectors_that_an_encoder_may_not_give():
    message = refusal(composed, "colombia AND a b", {"a b": {"t": math.nan}}, error=EncodingError)
    assert message == "atom 'a b': the weight of 't' must be a finite number, got nan"
    encoder = LookupEncoder({})
    encoder.encode_batch = lambda texts: [{}]
    message = refusal(scoring_trees, parsed_queries(["a AND b"]), encoder, error=EncodingError)
    assert message == "the encoder must give a vector for each text, got 1 for 2 texts"
    for given in (None, {}, [None], iter([{}])):
        encoder.encode_batch = lambda texts, given=given: given
        message = refusal(scoring_trees, parsed_queries(["a"]), encoder, error=EncodingError)
        assert message.startswith("the encoder must give a list of mappings of terms to weights, got ")
