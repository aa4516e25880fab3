import pytest
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg.compose import (
    Damped,
    Linear,
    Max,
    Operators,
    Product,
    Sum,
    compose_queries,
    compose_query,
    from_json,
    to_json,
)
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.expression import parse
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import QueryError

BEST = 1000.0
WEIGHT = 0.5
BIRDS = {"birds": {"bird": 3.0, "fly": 1.0}, "parrots": {"bird": 1.0, "parrot": 2.0}, "bats": {"bat": 1.0, "fly": 1.0}}
ENCODER = LookupEncoder(BIRDS | {name: {name: 1.0} for name in "abcd"} | {"signed": {"a": 1.0, "x": -1.0}})


def composed(query, questions=None, encoder=ENCODER, scores=(BEST,) * 10, **settings):
    def ask(nodes, k):
        if questions is not None:
            questions.append(nodes)
        return [scores[:k]] * len(nodes)

    return compose_query(query, encoder, Operators(difference="damped", **settings), top_scores=ask)


def whole(**weights):
    return {term: 100 * weight for term, weight in weights.items()}


BIRD, PARROT = Linear(whole(bird=3, fly=1)), Linear(whole(parrot=2))
B_AND_C = Linear(whole(b=1)), Product((whole(c=1), whole(d=1)))
NESTED = Damped(Linear(whole(b=1)), (Linear(whole(c=1)),), (BEST,), WEIGHT)


@pytest.mark.parametrize(
    ("text", "settings", "node"),
    [
        ("birds NOT parrots", {}, Damped(BIRD, (PARROT,), (BEST,), WEIGHT)),  # by the terms that it lacks
        ("(birds AND bats) NOT parrots", {}, Damped(composed("birds AND bats"), (PARROT,), (BEST,), WEIGHT)),
        ("a NOT b NOT (c AND d)", {}, Damped(Linear(whole(a=1)), B_AND_C, (BEST, BEST), WEIGHT)),
        ("a NOT (b NOT c)", {}, Damped(Linear(whole(a=1)), (NESTED,), (BEST,), WEIGHT)),
        # Nothing is damped by what has no term of its own, by what no document has, or by what scores 0 everywhere.
        ("birds NOT birds", {}, BIRD),
        ("birds NOT parrots", {"difference_weight": 0}, BIRD),
        ("birds NOT parrots", {"scores": ()}, BIRD),
        ("birds NOT (parrots NOT bats)", {"scores": (0.0,)}, BIRD),
    ],
)
def test_damped_by_hand(text, settings, node):
    assert composed(text, **settings) == node
    fields = to_json(node)
    assert from_json(fields.get("score", fields), "here") == node


def test_without_an_index():
    message = refusal(compose_query, "birds NOT parrots", ENCODER, Operators(difference="damped"), error=QueryError)
    remedy = "name one (--index), or choose another --difference, such as disentangled"
    assert message == f"damped needs an index, for the best score of the excluded part; {remedy}"


SPECIFIC = (BEST, 900.0, 800.0, 799.5, *(799.0,) * 6)


@pytest.mark.parametrize(
    ("scores", "floor"),
    [
        (SPECIFIC, 799.5),
        (SPECIFIC[:3], 0.0),  # fewer than four documents match what is wanted
        ((BEST,) * 9, BEST),  # no class: fewer than ten documents
        ((BEST,) * 9 + (800.0,), 0.0),  # a class of documents
    ],
)
def test_a_specific_exclusion_leaves_the_best_documents_about_the_score_of_the_fourth(scores, floor):
    questions = []
    assert composed("birds NOT parrots", questions, scores=scores).floor == floor
    asked = [[Linear(whole(parrot=2))], [Linear(whole(bird=3, fly=1))]]
    assert questions == (asked if scores[-1] < 800 or len(scores) < 10 else asked[:1])


@pytest.mark.parametrize(("scores", "share"), [(SPECIFIC, 0.25), ((BEST,) * 10, 0.1)])
def test_the_parts_of_a_text_that_was_read_are_context(scores, share):
    reading = Decomposition("birds, except parrots", parse("birds NOT parrots"), (), 0.9)
    node = composed(reading, scores=scores)
    parts = compose_query("birds OR parrots", ENCODER, Operators(union="maxpool"))
    context = Linear({term: round(share * weight) for term, weight in parts.weights.items()})
    assert node.child == Sum((Linear(whole(bird=3, fly=1)), context))
    assert node.excluded == (Linear(whole(parrot=2)),)
    assert composed("birds NOT parrots", scores=scores).child == Linear(whole(bird=3, fly=1))
    subtracted = Operators(difference="disentangled")
    assert compose_query(reading, ENCODER, subtracted) == compose_query("birds NOT parrots", ENCODER, subtracted)


@pytest.mark.parametrize("query", ["a OR (b NOT c)", "(a OR (b NOT c)) AND b", "a"])
def test_context_counts_only_where_something_is_excluded_from_the_whole(query):
    assert composed(Decomposition("text", parse(query), (), 0.9)) == composed(query)


def test_context_counts_once():
    node = composed(Decomposition("text", parse("(a OR (b NOT d)) NOT c"), (), 0.9))
    assert sum("b" in weights and "c" in weights for weights in leaf_vectors(node)) == 1


def test_all_queries_ask_the_index_at_once():
    counts = []
    ask = lambda nodes, _: counts.append(len(nodes)) or [SPECIFIC] * len(nodes)  # noqa: E731
    compose_queries(["birds NOT parrots", "bats NOT parrots", "bats NOT birds"], ENCODER, top_scores=ask)
    assert counts == [3, 3]  # what is excluded, then what is wanted


def test_only_in_what_is_wanted_negative_weights_of_documents_count():
    questions = []
    ask = lambda nodes, _: questions.append(nodes) or [SPECIFIC] * len(nodes)  # noqa: E731
    compose_query("a NOT (b NOT c)", ENCODER, signed=True, top_scores=ask)
    assert questions[1] == [Linear(whole(b=1))]  # wanted in what is excluded
    assert questions[3] == [Linear({"a": 100.0, "¬a": -100.0})]


def test_an_open_query_has_no_json():
    node = Damped(BIRD, (PARROT,), (), WEIGHT)
    message = refusal(to_json, Max((node, BIRD)), error=QueryError)
    assert message == "lacks the best scores of what it excludes; compose it for an index"


def test_all_alternatives_ask_the_index_at_once():
    """So the time of a query grows with its length, no faster."""
    counts = []
    ask = lambda nodes, _: counts.append(len(nodes)) or [SPECIFIC] * len(nodes)  # noqa: E731
    names = [f"{letter}{i}" for i in range(50) for letter in "ab"]
    text = " OR ".join(f"a{i} NOT (b{i} NOT a{(i + 1) % 50})" for i in range(50))
    compose_query(text, LookupEncoder({name: {name: 1.0} for name in names}), top_scores=ask)
    assert len(counts) < 6


A = Linear({"a": 1.0})
PARTS = "excluded: each part must be a vector or a product, of positive weights"


BEST_EACH = "best: a damped score needs excluded parts and a best score for each, got"
SHARE = "weight: the weight of a damped score must be above 0 and at most 1, got"


@pytest.mark.parametrize(
    ("excluded", "best", "others", "message"),
    [
        ((), (), (0.5,), f"{BEST_EACH} 0 and 0"),
        ((A,), (1.0, 2.0), (0.5,), f"{BEST_EACH} 1 and 2"),
        ((Linear({}),), (1.0,), (0.5,), PARTS),
        ((Max((A,)),), (1.0,), (0.5,), PARTS),
        ((Linear({"a": -1.0}),), (1.0,), (0.5,), PARTS),
        ((Product(({"a": 1.0}, {"b": 1.0}), weight=-1.0),), (1.0,), (0.5,), PARTS),
        ((A,), (0.0,), (0.5,), "best: the best of a damped score must be a finite number above 0, got 0.0"),
        ((A,), (1,), (True,), f"{SHARE} True"),
        ((A,), (1,), (1.5,), f"{SHARE} 1.5"),
        *(
            (
                (A,),
                (1,),
                (0.5, floor),
                f"floor: the floor of a damped score must be a finite number, 0 or more, got {floor!r}",
            )
            for floor in (-1.0, float("inf"), True, "1")
        ),
    ],
)
def test_refusals(excluded, best, others, message):
    assert refusal(Damped, A, excluded, best, *others, error=QueryError) == message


@pytest.mark.parametrize("union", ["dismax", "maxpool", "addition"])
@pytest.mark.parametrize("query", ["a OR (b{} c)", "((a OR (b{} c)) AND (a OR (b{} c))) OR d", "(a OR (b{} c)) NOT d"])
def test_a_union_is_composed_as_if_a_not_were_not_there_that_no_document_has(query, union):
    fell_away = composed(query.replace("{}", " NOT"), scores=(), union=union)
    plain = query.replace("{} c", "").replace(" NOT d", "")
    assert fell_away == composed(plain, union=union)
