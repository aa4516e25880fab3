"""NOT!: what it excludes, where it and AND! may stand, and how it is shown."""

from itertools import combinations

import pytest
from lookup_encoder import LookupEncoder
from refusals import refusal
from score_oracle import evaluate

from pyserini_compneg.compose import (
    Excluding,
    Linear,
    Operators,
    Product,
    compose_query,
    from_json,
    query_terms,
    to_json,
)
from pyserini_compneg.expression import Filter
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.topics.token_form import stock_obstacle

ATOMS = {
    "A": {"p": 2.0, "q": 1.0},
    "B": {"q": 3.0, "r": 2.0, "s": 1.0},
    "C": {"t": 1.0},
    "D": {"q": 1.0},
    "none": {},
} | {letter: {letter: 1.0} for letter in "abcdefgh"}
ENCODER = LookupEncoder(ATOMS)
A = Linear({"p": 200.0, "q": 100.0})
TOP_SCORES = {"top_scores": lambda nodes, k: [[1000.0]] * len(nodes)}


def compose(text, **operators):
    return compose_query(text, ENCODER, Operators(**operators), **TOP_SCORES)


@pytest.mark.parametrize(
    ("text", "operators", "excluded", "above"),
    [
        ("A NOT! B", {"exclusion": "any"}, [Linear({"r": 100.0, "s": 100.0})], [0]),
        ("A NOT! B", {"exclusion": "any", "cpt_terms": 1}, [Linear({"r": 100.0})], [0]),
        ("A NOT! B", {"exclusion": "score"}, [Linear({"r": 200.0, "s": 100.0})], [500]),
        ("A NOT! B", {"exclusion": 0.25}, [Linear({"r": 200.0, "s": 100.0})], [250]),
        ("A NOT! (B OR C)", {"exclusion": "any"}, [Linear({"r": 100.0, "s": 100.0}), Linear({"t": 100.0})], [0, 0]),
        ("A NOT! B NOT! C", {"exclusion": "any"}, [Linear({"r": 100.0, "s": 100.0}), Linear({"t": 100.0})], [0, 0]),
        ("A NOT! (B AND C)", {"exclusion": "any"}, [Product(({"r": 100.0, "s": 100.0}, {"t": 100.0}))], [0]),
        ("A NOT! (B AND D)", {"exclusion": "any"}, [Linear({"r": 100.0, "s": 100.0})], [0]),
        ("A NOT! (B AND C)", {"exclusion": 0.5}, [Product(({"r": 200.0, "s": 100.0}, {"t": 100.0}))], [500]),
        ("A NOT! genre=War NOT! C", {"exclusion": "any"}, [Filter({"genre": "War"}), Linear({"t": 100.0})], [0, 0]),
    ],
)
def test_what_is_excluded(text, operators, excluded, above):
    node = compose(text, **operators)
    assert node == Excluding(A, tuple(excluded), tuple(map(float, above)))
    assert from_json(to_json(node)["score"], "here") == node
    assert dict(query_terms(node)) == ATOMS["A"]
    assert stock_obstacle(node) == (None, "NOT!")


HAS = [
    ("one word", "spy NOT! comedy", "comedi"),
    ("a phrase", "spy NOT! war films", "war&film"),
    ("words of the wanted part count", "spy films NOT! war films", "war&film"),
    ("expansions do not", "spy NOT! funny", "funni"),
    ("OR", "spy NOT! (comedy OR war films)", "comedi war&film"),
    ("OR within OR", "spy NOT! (comedy OR (war films OR spy))", "comedi spi war&film"),
    ("two NOT!", "spy NOT! comedy NOT! funny", "comedi funni"),
    ("AND", "spy NOT! (comedy AND war films)", "comedi&war&film"),
    ("AND of OR", "spy NOT! (comedy AND (war films OR funny))", "comedi&war&film comedi&funni"),
    ("what a single word says already", "spy NOT! (war OR war films)", "war"),
    ("an unknown word", "spy NOT! zebra", ""),
    ("an unknown word of OR", "spy NOT! (zebra OR comedy)", "comedi"),
    ("an unknown word of AND", "spy NOT! (zebra AND comedy)", ""),
    ("an unknown word beside a known one", "spy NOT! a comedy", ""),
    ("all words of the wanted part", "spy films NOT! spy films", "spi&film"),
    ("an unknown tokenizer: as many as the text has", "spy NOT! elsewhere", "far"),
    ("an unknown tokenizer, two words", "spy NOT! elsewhere too", "far off"),
]


class _WordEncoder:
    """An encoder whose vectors have expansions, and which knows the words of most texts."""

    vectors = {
        "spy": {"spi": 2.0, "agent": 1.0},
        "spy films": {"spi": 2.0, "film": 1.0, "movi": 0.5},
        "comedy": {"comedi": 2.0, "funni": 1.0},
        "a comedy": {"comedi": 2.0, "funni": 1.0},
        "funny": {"comedi": 2.0, "funni": 1.0, "war": -1.0},
        "war": {"war": 1.0, "soldier": 2.0},
        "war films": {"war": 2.0, "film": 1.0, "soldier": 2.0},
        "zebra": {},
        "elsewhere": {"far": 3.0, "off": 2.0, "away": 1.0},
        "elsewhere too": {"far": 3.0, "off": 2.0, "away": 1.0},
    }
    stems = {"spy": "spi", "comedy": "comedi", "funny": "funni", "films": "film"}

    def encode_batch(self, texts):
        return [dict(self.vectors[text]) for text in texts]

    def words(self, texts):
        known = [None if "elsewhere" in text else text.split() for text in texts]
        return [own and [self.stems.get(word, word) for word in own] for own in known]


@pytest.mark.parametrize(("text", "ways"), [row[1:] for row in HAS], ids=[row[0] for row in HAS])
def test_a_document_is_excluded_if_it_has_all_words_of_an_atom(text, ways):
    node = compose_query(text, _WordEncoder(), Operators(difference="ignore"))
    wanted = [set(way.split("&")) for way in ways.replace("far off", "far&off").split()]
    every = {"spi", "film", "comedi", "funni", "war", "soldier", "movi", "agent", "far", "off", "away"}
    for size in (1, 2, 3):
        for some in combinations(sorted(every - {"spi"}), size):
            document = {"spi", *some}
            excluded = any(way <= document for way in wanted)
            assert (evaluate(node, dict.fromkeys(document, 1.0)) is None) == excluded, document


def test_too_many_combinations_are_refused():
    encoder = LookupEncoder({f"{part}{number}": {f"{part}{number}": 1.0} for part in "abc" for number in range(30)})
    ors = [" OR ".join(f"{part}{number}" for number in range(30)) for part in "abc"]
    message = refusal(compose_query, f"a0 NOT! (({') AND ('.join(ors)}))", encoder, error=QueryError)
    assert message.startswith("NOT! takes up to 10,000 combinations of alternatives, and ")
    assert message.endswith(" has more; exclude fewer alternatives")
    compose_query(f"a0 NOT! (({') AND ('.join(ors[:2])}))", encoder)


@pytest.mark.parametrize(("right", "warned"), [("D", True), ("none", True), ("(D OR none)", True), ("(B OR D)", True)])
def test_what_excludes_nothing(right, warned, caplog):
    node = compose(f"A NOT! {right}", exclusion="any")
    assert node == (A if right != "(B OR D)" else Excluding(A, (Linear({"r": 100.0, "s": 100.0}),), (0.0,)))
    assert bool(caplog.records) == warned
    if right == "D":
        said = "part 'D': the wanted part has all its terms, so NOT! excludes nothing by it"
        assert [record.getMessage() for record in caplog.records] == [said]


def test_an_unknown_word_is_named(caplog):
    compose_query("spy NOT! (a comedy OR comedy)", _WordEncoder())
    said = "atom 'a comedy' (the index lacks a): no document has all its words, so NOT! removes nothing by it"
    assert [record.getMessage() for record in caplog.records] == [said]


BESIDE_OR = "cannot stand in an OR that is an operand of AND; write out the OR"
IN_NOT = "cannot stand in what NOT takes away; write"
AS_TEXT = "cannot be encoded as text, as vanilla does; choose other operators"


@pytest.mark.parametrize(
    ("text", "operators", "message"),
    [
        ("(A NOT! B OR C) AND D", {}, f"'A NOT! B' {BESIDE_OR}"),
        ("D AND (C OR (A AND C) NOT! genre=War)", {}, f"'A AND C NOT! genre=War' {BESIDE_OR}"),
        ("(a AND! b OR c) AND d", {}, f"'a AND! b' {BESIDE_OR}, or write AND there"),
        ("d AND! (c OR a AND! b)", {}, f"'a AND! b' {BESIDE_OR}, or write AND there"),
        ("A NOT (B NOT! C)", {}, f"'B NOT! C' {IN_NOT} NOT! outside of it"),
        ("A NOT (C AND (B NOT! C))", {}, f"'B NOT! C' {IN_NOT} NOT! outside of it"),
        ("a NOT (b AND! c)", {}, f"'b AND! c' {IN_NOT} AND there, where only scores count"),
        (
            "a NOT! (d OR b AND! c)",
            {},
            "'b AND! c' cannot stand in what NOT! excludes; write AND there, which excludes what has all operands",
        ),
        (
            "A NOT! (B NOT C)",
            {},
            "NOT! excludes what matches, and 'B NOT C' takes a part of that back; leave out that part, or write it as "
            "an alternative of an OR outside",
        ),
        ("A NOT! B OR C", {"union": "vanilla"}, f"NOT! {AS_TEXT}"),
        ("a AND! b", {"intersection": "vanilla"}, f"AND! {AS_TEXT}, or AND"),
        ("(a AND! b) AND c", {"intersection": "vanilla"}, f"AND! {AS_TEXT}, or AND"),
        ("a AND! b NOT c", {"difference": "vanilla"}, f"AND! {AS_TEXT}, or AND"),
        ("a AND! b OR c", {"union": "vanilla"}, f"AND! {AS_TEXT}, or AND"),
    ],
)
def test_where_they_cannot_stand(text, operators, message):
    assert refusal(compose, text, error=QueryError, **operators) == message


def test_a_share_needs_an_index():
    said = "NOT! by scores needs an index; name one (--index), or --exclusion words or any"
    refused = refusal(compose_query, "A NOT! B", ENCODER, Operators(exclusion=0.5), error=QueryError)
    assert refused == said


@pytest.mark.parametrize("exclusion", ["some", 0, 1, -0.5, True, None, float("nan")])
def test_a_wrong_way_to_exclude(exclusion):
    message = refusal(Operators, exclusion=exclusion, error=QueryError)
    assert message == f"exclusion must be one of words, score, any, or a number above 0 and below 1, got {exclusion!r}"


def test_a_way_to_exclude_of_an_earlier_release():
    said = "exclusion must be one of words, score, any, or a number above 0 and below 1, got 'all'; words replaces it"
    assert refusal(Operators, exclusion="all", error=QueryError) == said


def test_words_are_asked_for_only_where_they_matter():
    """An encoder may have to load a model to know them."""

    class Encoder(LookupEncoder):
        def words(self, texts):
            asked.append(list(texts))
            return [None] * len(texts)

    asked = []
    for text in ("a OR b", "a AND b NOT c", "a NOT! b"):
        compose_query(text, Encoder(ATOMS), **TOP_SCORES)
    assert asked == [["b"]]
