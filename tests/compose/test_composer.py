import math

import pytest
from lookup_encoder import LookupEncoder, letters

from pyserini_compneg.compose import Linear, Max, Operators, Product, Sum, compose_query, evaluate, is_empty
from pyserini_compneg.compose.composer import MOST_ATOMS, scoring_trees
from pyserini_compneg.expression import Atom, Union, parse
from pyserini_compneg.support.errors import EncodingError, QueryError

COLOMBIA = {"birds": 1.0, "fly": 1.0, "colombia": 1.0, "andes": 1.0}
VENEZUELA = {"birds": 1.0, "fly": 1.0, "venezuela": 1.0, "andes": 1.0}
PARROTS = {"birds": 1.0, "parrot": 2.0}
BIRDS = {"colombia": COLOMBIA, "venezuela": VENEZUELA, "parrots": PARROTS}


def composed(text, vectors=BIRDS, **operators):
    chosen = Operators(**{"difference": "disentangled", **operators})
    return scoring_trees([parse(text)], LookupEncoder(vectors), chosen)[0]


def test_an_atom_is_its_vector():
    assert composed("colombia") == Linear(COLOMBIA)


def test_the_most_atoms_of_an_expression():
    birds, bats = Atom("birds"), Atom("bats")
    with pytest.raises(QueryError) as error:
        scoring_trees([Union((birds, Union((bats,) * MOST_ATOMS)))], LookupEncoder({}))
    assert str(error.value) == (
        "an expression may have 20,000 atoms, this one has 20,001; split it into several queries"
    )
    assert scoring_trees(
        [Union((bats,) * MOST_ATOMS)], LookupEncoder({"bats": {"bat": 2.0}}), Operators("maxpool")
    ) == [Linear({"bat": 2.0})]


def test_unions_of_the_papers_birds():
    text = "colombia OR venezuela"
    assert composed(text, union="maxpool") == Linear({**COLOMBIA, "venezuela": 1.0})
    shared = {"birds": 2.0, "fly": 2.0, "andes": 2.0}
    assert composed(text, union="addition") == Linear({**shared, "colombia": 1.0, "venezuela": 1.0})
    pooled = {term: 0.25 for term in (*COLOMBIA, "venezuela")}
    assert composed(text) == Sum((Max((Linear(COLOMBIA), Linear(VENEZUELA))), Linear(pooled)))


def test_intersections_of_the_papers_birds():
    text = "colombia AND venezuela"
    pooled = {**COLOMBIA, "venezuela": 1.0}
    assert composed(text, intersection="maxpool") == Linear(pooled)
    assert composed(text, intersection="addition").weights["birds"] == 2.0
    assert composed(text, intersection="cpt") == Product((COLOMBIA, VENEZUELA))
    assert composed(text, intersection="cpt") == Product((COLOMBIA, VENEZUELA))
    assert composed(text, intersection="cpt-l2") == Product((COLOMBIA, VENEZUELA), 1.0, root=2)
    assert composed(f"{text} AND parrots", intersection="cpt-l2") == Product((COLOMBIA, VENEZUELA, PARROTS), 2 / 3, 2)
    assert composed("colombia AND moon", intersection="cpt-l2") == Linear({})
    heaviest = [(a, b) for a in sorted(COLOMBIA) for b in sorted(VENEZUELA)][:5]  # all weights are 1
    assert composed(text, intersection="cpt-pairs") == Sum(tuple(Product(({a: 1.0}, {b: 1.0})) for a, b in heaviest))
    one = Product(({"andes": 1.0}, {"andes": 1.0}, {"parrot": 2.0}))
    assert composed(f"{text} AND parrots", intersection="cpt-pairs", cpt_terms=1) == one
    assert composed("colombia AND moon", intersection="cpt-pairs") == Linear({})
    assert composed(text, intersection="cpt", cpt_terms=1) == Product(({"andes": 1.0}, {"andes": 1.0}))


def test_a_disentangled_conjunction_pairs_the_terms_that_one_operand_has():
    vectors = {"a": {"x": 4.0, "p": 1.0}, "b": {"x": 9.0, "q": 2.0}, "c": {"r": 3.0}, "d": {"x": 1.0}, "e": {}}
    pooled = Linear({"x": 9.0, "p": 1.0, "q": 2.0})
    pair = Product(({"p": 1.0}, {"q": 2.0}), weight=0.5)
    assert composed("a AND b", vectors, intersection="disentangled") == Sum((pair, pooled))
    three = composed("a AND b AND c", vectors, intersection="disentangled", cpt_weight=1.0)
    assert three.children[:2] == (
        Product(({"q": 2.0}, {"r": 3.0}), weight=0.5),
        Product(({"p": 1.0}, {"q": 2.0, "r": 3.0}), weight=0.5),
    )
    assert composed("a AND b AND d", vectors, intersection="disentangled") == Sum((pair, pooled))
    assert composed("a AND d", vectors, intersection="disentangled") == Linear({"x": 4.0, "p": 1.0})
    assert composed("a AND b AND e", vectors, intersection="disentangled") == Sum((pair, pooled))


@pytest.mark.parametrize("difference", ["disentangled", "damped", "subtraction"])
@pytest.mark.parametrize(("excluded", "lowers"), [("b", False), ("c", True), ("b AND d", False), ("e", True)])
def test_an_exclusion_without_a_term_of_its_own_is_told(difference, excluded, lowers, caplog):
    vectors = {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0}, "c": {"x": 1.0, "z": 1.0}, "d": {"y": 2.0}, "e": {}}
    ask = lambda nodes, _: [[9.0]] * len(nodes)  # noqa: E731
    compose_query(f"a NOT ({excluded})", LookupEncoder(vectors), Operators(difference=difference), top_scores=ask)
    said = f"part '{excluded}': what is wanted has all its terms, so NOT lowers nothing by it"
    assert (said in caplog.messages) == (not lowers and difference != "subtraction")


@pytest.mark.parametrize(
    ("operators", "birds", "venezuela"),
    [
        ({"difference": "disentangled"}, 1.0, -1.0),
        ({"difference": "subtraction"}, 0.0, -1.0),
        ({"difference": "nrf"}, 0.75, -0.25),
        ({"difference": "nrf", "difference_weight": 0.5}, 0.5, -0.5),
        ({"difference": "constant"}, 0.25, -0.75),
        ({"difference": "constant", "difference_weight": 0.5}, 0.5, -0.5),
        ({"difference": "orthogonal"}, 0.25, -0.75),
        ({"difference": "ignore"}, 1.0, 0.0),
    ],
)
def test_differences_of_the_papers_birds(operators, birds, venezuela):
    expected = {"birds": birds, "fly": birds, "colombia": 1.0, "andes": birds, "venezuela": venezuela}
    assert composed("colombia NOT venezuela", **operators) == Linear(expected)


@pytest.mark.parametrize("text", ["a NOT b NOT c", "a NOT (b OR c)", "a NOT (b OR (c OR b))"])
@pytest.mark.parametrize("union", ["maxpool", "dismax"])
def test_negatives_are_taken_away_together(text, union):
    vectors = {"a": {"t": 4.0}, "b": {"t": 1.0, "x": 1.0}, "c": {"x": 3.0}}
    assert composed(text, vectors, union=union) == Linear({"t": 4.0, "x": -3.0})


def test_a_negation_in_a_conjunction_reaches_the_whole():
    vectors = letters(a="p", b="q", c="xp")
    expected = Sum((Product(({"p": 1.0}, {"q": 1.0})), Linear({"x": -1.0})))
    for text in ("a AND b NOT c", "(a NOT c) AND b", "a AND (b NOT c)"):
        assert composed(text, vectors, intersection="cpt") == expected


@pytest.mark.parametrize(
    ("difference", "change"),
    [
        ("disentangled", {"x": -2.0}),
        ("subtraction", {"p": -1.0, "x": -2.0}),
        ("nrf", {"p": -0.25, "x": -0.5}),
        ("constant", {"p": -0.75, "x": -1.5}),
        ("orthogonal", {"p": -0.2, "x": -0.4}),  # (p + q)·(p + 2x) / |p + 2x|² = 1/5
    ],
)
def test_a_left_side_that_is_a_tree_stays_and_gains_a_linear_part(difference, change):
    vectors = {"a": {"p": 1.0}, "b": {"q": 1.0}, "c": {"p": 1.0, "x": 2.0}}
    for operator, left in (
        ("AND", Product(({"p": 1.0}, {"q": 1.0}))),
        ("OR", Max((Linear({"p": 1.0}), Linear({"q": 1.0})))),
    ):
        node = composed(f"(a {operator} b) NOT c", vectors, intersection="cpt", difference=difference)
        assert node.children[0] == left
        assert node.children[-1].weights == pytest.approx(change)


def test_ignoring_leaves_a_tree_alone():
    vectors = letters(a="p", b="q", c="px")
    assert composed("(a OR b) NOT c", vectors, difference="ignore") == composed("a OR b", vectors)


def test_sums_stay_flat():
    node = composed("colombia AND venezuela NOT parrots")
    assert [type(child) for child in node.children] == [Product, Linear, Linear]
    assert node.children[2] == Linear({"parrot": -2.0})


def test_nested_operators_of_a_kind_are_one_node():
    vectors = letters(a="p", b="q", c="r")
    assert composed("a AND (b AND c)", vectors, intersection="cpt") == Product(({"p": 1.0}, {"q": 1.0}, {"r": 1.0}))
    assert composed("a OR (b OR c)", vectors) == composed("a OR b OR c", vectors)
    assert composed("a OR b OR c", vectors).children[0] == Max(tuple(Linear({term: 1.0}) for term in "pqr"))


@pytest.mark.parametrize(("union", "node"), [("maxpool", Max), ("addition", Sum), ("dismax", Max)])
def test_a_union_over_a_tree_is_a_tree(union, node):
    vectors = letters(a="p", b="q", c="r")
    united = composed("a AND b OR c", vectors, union=union, intersection="cpt")
    assert united == node((Product(({"p": 1.0}, {"q": 1.0})), Linear({"r": 1.0})))


def test_a_conjunction_protects_all_terms_of_its_operands():
    vectors = {"a": {"p": 2.0, "s": 1.0}, "b": {"q": 1.0}, "c": {"s": 1.0, "x": 1.0}}
    node = composed("a AND b NOT c", vectors, intersection="cpt", cpt_terms=1)
    assert node == Sum((Product(({"p": 2.0}, {"q": 1.0})), Linear({"x": -1.0})))


@pytest.mark.parametrize("union", ["maxpool", "dismax"])
def test_a_union_is_an_operand_by_its_positive_weights(union):
    vectors = letters(a="p", b="q", c="r", d="x")
    node = composed("(a OR b NOT d) AND c", vectors, union=union, intersection="cpt")
    assert node == Product(({"p": 1.0, "q": 1.0}, {"r": 1.0}))
    assert composed("(a OR b) AND c", vectors, intersection="addition") == Linear({"p": 1.0, "q": 1.0, "r": 1.0})


DOCUMENTS = {"both": {"p": 1, "q": 1}, "all": {"p": 1, "q": 1, "r": 1}, "much": {"p": 5}, "other": {"r": 9}}


def scores(text, **operators):
    node = composed(text, letters(a="p", b="q", c="r", d="s"), **operators)
    return {name: evaluate(node, document) for name, document in DOCUMENTS.items()}


def test_what_is_excluded_does_not_count_by_what_it_excludes_itself():
    """To an operator on vectors, B NOT C is what remains of the weights of B; nothing of C is ever wanted."""
    vectors = {"a": {"p": 1.0}, "b": {"q": 2.0, "s": 2.0}, "c": {"s": 1.0, "r": 5.0}}
    assert composed("a NOT (b NOT c)", vectors) == Linear({"p": 1.0, "q": -2.0, "s": -2.0})
    subtracted = composed("a NOT (b NOT c)", vectors, difference="subtraction")
    assert subtracted == Linear({"p": 1.0, "q": -2.0, "s": -1.0})


def test_nothing_is_wanted_again_where_negatives_are_ignored():
    assert composed("a NOT (b NOT c)", letters(a="p", b="q", c="r"), difference="ignore") == Linear({"p": 1.0})


def test_an_excluded_conjunction_lowers_documents_about_all_of_it_only():
    assert scores("a NOT (b AND c)") == {"both": 1, "all": 0, "much": 5, "other": None}
    vectors = {"a": {"p": 1.0}, "b": {"p": 1.0, "q": 2.0}, "c": {"p": 3.0}, "d": {"s": 1.0}}
    assert composed("a NOT (b AND c)", vectors) == Linear({"p": 1.0, "q": -2.0})  # every document about a has c's p
    assert composed("a NOT (b AND moon)", vectors) == Linear({"p": 1.0})
    product = Product(({"q": 2.0, "p": 1.0}, {"p": 3.0}), weight=-1.0)
    linear = Linear({"p": 1.0, "s": -1.0})
    assert composed("a NOT (b AND c) NOT d", vectors, difference="nrf", difference_weight=1) == Sum((linear, product))
    for intersection in ("cpt", "cpt-l2", "cpt-pairs", "disentangled"):
        excluded = composed("a NOT (b AND d)", vectors, intersection=intersection).children[1]
        assert excluded == Product(({"q": 2.0}, {"s": 1.0}), weight=-1.0)
    assert composed("a NOT (b AND d)", vectors, intersection="maxpool") == Linear({"p": 1.0, "q": -2.0, "s": -1.0})


def test_each_difference_has_a_strength():
    for difference in ("disentangled", "subtraction", "nrf", "constant"):
        node = composed("colombia NOT parrots", difference=difference, difference_weight=3)
        assert node.weights["parrot"] == -6.0
    halves = [composed("colombia NOT parrots", difference="orthogonal", difference_weight=x) for x in (0, 0.5, 1)]
    for term in ("birds", "parrot"):
        none, half, full = (node.weights.get(term, 0.0) for node in halves)
        assert half == pytest.approx((none + full) / 2)


def test_negative_weights_of_atoms():
    """An alternative of negative weights alone finds signed documents, and an unknown negative changes nothing."""
    vectors = {
        "a": {"p": -1.0},
        "b": {"q": 1.0, "r": 3.0},
        "c": {"q": -3.0, "r": 1.0},
        "d": {"s": -2.0},
        "e": {"q": 5.0},
    }
    assert composed("a OR a", vectors) == Sum((Max((Linear({"p": -1.0}),) * 2), Linear({"p": -0.25})))
    assert composed("b NOT (d OR moon)", vectors) == composed("b NOT d", vectors)
    assert composed("moon NOT b", vectors) == Linear({})
    assert composed("b AND c NOT e", vectors, intersection="cpt") == composed("b AND c", vectors, intersection="cpt")


def test_a_negation_that_takes_everything_away_says_so(caplog):
    assert is_empty(composed("colombia NOT colombia", difference="orthogonal"))
    assert not is_empty(composed("colombia NOT (colombia NOT parrots)", difference="subtraction"))
    assert is_empty(composed("moon NOT parrots"))
    assert caplog.messages == [
        "query 'colombia NOT colombia': NOT (orthogonal) takes away all its positive terms; choose another --difference"
    ]


def test_vanilla_encodes_the_wording():
    vectors = {"birds or bats": {"w": 1.0}, "parrots": {"p": 1.0}, "birds or bats that are not parrots": {"v": 1.0}}
    text = "(birds OR bats) NOT parrots"
    assert composed(text, vectors, union="vanilla") == Linear({"w": 1.0, "p": -1.0})
    encoder = LookupEncoder(vectors)
    scoring_trees([parse(text)], encoder, Operators(difference="vanilla"))
    assert encoder.batches == [["(birds or bats) that are not parrots"]]


def test_each_distinct_text_is_encoded_once_in_one_batch():
    encoder = LookupEncoder({})
    expressions_ = [parse("a OR b"), parse("b NOT (a AND c)"), parse("a")]
    nodes = scoring_trees(expressions_, encoder, Operators(intersection="vanilla"))
    assert encoder.batches == [["a", "b", "a that are also c"]]
    assert len(nodes) == 3
    assert scoring_trees([], encoder) == []
    assert len(encoder.batches) == 1


def test_an_unknown_operand_empties_cpt_alone():
    assert composed("colombia AND moon", intersection="cpt") == Linear({})
    assert composed("colombia AND moon") == Linear(COLOMBIA)
    assert composed("colombia OR moon") == Linear(COLOMBIA)
    assert is_empty(composed("moon NOT parrots"))


def test_bad_vectors_name_their_atom():
    with pytest.raises(EncodingError) as error:
        composed("colombia AND a b", {"a b": {"t": math.nan}})
    assert str(error.value) == "atom 'a b': the weight of 't' must be a finite number, got nan"


def test_missing_vectors_are_noticed():
    encoder = LookupEncoder({})
    encoder.encode_batch = lambda texts: [{}]
    with pytest.raises(EncodingError) as error:
        scoring_trees([parse("a AND b")], encoder)
    assert str(error.value) == "the encoder must give a vector for each text, got 1 for 2 texts"
