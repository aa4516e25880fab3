"""Words that look like operators and are read as words."""

import pytest

from pyserini_compneg.topics.topics import Topic, read_text
from pyserini_compneg.topics.unread import notes_on, unread_operators


@pytest.mark.parametrize(
    ("text", "parsed", "plain"),
    [
        ("spy films NOT comedies", [], ["capitals"]),
        ("spy films not comedies", ["case"], []),
        *[
            (text, ["edge"], ["capitals"])
            for text in (
                "NOT gate",
                "AND gate truth table",
                "spy AND",
                "OR spy AND war",
                "(spy AND war) films",
                "(NOT a) b",
            )
        ],
        *[(text, ["edge"], []) for text in ("∩", "∪ films", "films \\")],
        *[
            (text, ["edge"], ["capitals"])
            for text in ("a :-) AND b", "(NOT a) OR b c", "TO BE OR NOT TO BE", 'a NOT "b', "(a AND b) OR c)")
        ],
        *[(text, [], ["capitals"]) for text in ("a (b) AND c", 'a "b" NOT c', '5" a AND b')],
        ('"NOT a"', [], []),
        ("title:(spy OR war)", ["edge", "field"], ["capitals"]),
        ("(spy and comedies), Or westerns", ["case"], []),
        ("spy AND/OR comedies", ["case"], []),
        *[(f"spy {words} comedies", ["case"], []) for words in ("without", "(except,", "excluding", "but not")],
        ('Men Without Women NOT "men without women"', [], ["capitals"]),
        ("spy -comedies", ["minus"], ["minus"]),
        ("-comedies spy AND western", ["minus"], ["capitals", "minus"]),
        ("spy not -comedies", ["case", "minus"], ["minus"]),
        ('"war and peace" NOT "sons \\" or -lovers"', [], ["capitals", "minus"]),
        *[
            (text, ["signs"], [])
            for text in (
                "spy & comedies",
                "a && b",
                "a||b",
                "a | b",
                "+spy",
                "spy !comedies",
                "(!a)",
                "spy NOT!comedies",
                "spy AND!comedies",
            )
        ],
        ("AT&T, C++ and Mamma Mia! 1+1 R&B", ["case"], []),
        ('"Dungeons & Dragons" NOT "!a"', [], ["capitals"]),
        ("“war or peace” NOT films", ["case", "curly"], ["capitals"]),
        ("Schindler’s «List»", ["curly"], []),
        ("spy NOT! genre=war NOT! (year=1990) NOT! ((genre=science fiction))", [], ["capitals"]),
        ("spy NOT! brand=O'Neil & Sons OR films", [], ["capitals"]),
        ("spy NOT! (year=1990 OR spies)", ["condition"], ["capitals"]),
        ("spy NOT! (genre=war AND spies) genre=x", ["condition"], ["capitals"]),
        ("spy NOT! (spies AND genre=war)", ["condition"], ["capitals"]),
        ("spy NOT! genre = war", ["condition"], ["capitals"]),
        ("spy NOT! year>1990", ["condition"], ["capitals"]),
        ("spy NOT! war", [], ["capitals"]),
        ("spy AND! war", [], ["capitals"]),
        ("spy and! war", ["case"], []),
        ("spy AND! year=1990", ["condition"], ["capitals"]),
        *[(text, ["language"], []) for text in ("Spione UND Krieg", "Spione NICHT Krieg", "(guerre) SAUF espions")],
        ("Krieg und Spione ODERBRUCH", [], []),
        ("SPIONE UND KRIEG", [], []),
        ('spy -"Get Smart"', ["minus"], ["minus"]),
        ('spy +"Get Smart"', ["signs"], []),
        *[
            (text, ["other"], ["capitals"] if "NOT" in text.split() else [])
            for text in (
                "spy ANDNOT war",
                "spy BUT NOT war",
                "spy (WITHOUT war)",
                "spy XOR war",
                "spy EXCEPT war",
                "spy EXCLUDING war",
                "spy NEAR/3 war",
            )
        ],
        ("war films MINUSCULE WITHOUTEN nearby ADJACENT", [], []),
        ("A ROOM WITHOUT A VIEW", [], []),
        *[
            (text, ["field"], [])
            for text in (
                "title:Brie",
                'spy title:"Brie de Meaux"',
                "(site:imdb.com)",
                "year:[1990",
                "cancer[tiab]",
                "spy films 1990..1999",
            )
        ],
        *[
            (text, ["patterns"], [])
            for text in ("comed*", "brie~", 'spy~0.8 "war film"', '"war film"~5', "spy^2 films")
        ],
        ('"title:Brie" NOT "comed*"', [], ["capitals"]),
        (
            "Alien: Covenant at 12:30 re:Zero std::vector https://a.b/c doi:10.1/2 ratio a:b M*A*S*H ~5 x^2 a[0] C:",
            [],
            [],
        ),
        ("andes northern nottingham ANDES well-known -5 a - b", [], []),
    ],
)
def test_what_looks_like_an_operator(text, parsed, plain):
    assert unread_operators(text, parsed=True) == parsed
    assert unread_operators(text, parsed=False) == plain


def test_one_note_for_all_queries():
    texts = ["spy", "spy not comedies", "spy and comedies"]
    topics = [read_text(f"q{number}", text, "expression") for number, text in enumerate(texts)]
    said = (
        "'and', 'or', 'not', 'without', 'except', 'excluding' are words: write AND, OR, NOT for operators, or put the "
        "phrase in quotes; --read model (read=model) parses plain English"
    )
    assert notes_on(topics) == [f"in 2 of 3 queries, such as q1 ('spy not comedies'), {said}"]
    assert notes_on(topics[1:2]) == [f"in 'spy not comedies', {said}"]
    said = "AND, OR, NOT are words, because plain text is not parsed; --read expression makes them operators"
    assert notes_on([read_text("1", "spy NOT comedies", "plain")]) == [f"in 'spy NOT comedies', {said}"]


def test_trees_marks_and_composed_queries_have_no_words_to_note():
    assert notes_on([Topic("1", "films that are not spy", composed={"vector": {"a": 1}})]) == []
