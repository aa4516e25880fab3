import re
from itertools import product

import pytest
from expression_strategies import HARD, TEXTS, expressions
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.expression import (
    Atom,
    Difference,
    Exclusion,
    Intersection,
    Union,
    atoms,
    format_expression,
    leaves,
    parse,
)
from pyserini_compneg.support.errors import ArgumentError, QueryError

A, B, C, D = map(Atom, "abcd")


def strict(*operands):
    return Intersection(operands, strict=True)


LOWER_OR_REMOVE = "write A NOT B to lower documents, A NOT! B to remove them"
ALTERNATIVES = "alternatives of plain words, as in: (French OR Italian) comedies"
BLANK = "or a blank between words and the alternatives that they join"
CONDITIONS = "conditions are NOT! FIELD=VALUE, and --filter FIELD=VALUE"
EXPECTED = "expected AND, OR or NOT"
PLAIN = "for plain words, use quotes or --read plain (read=plain)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("  birds   of\n Colombia OR a", Union((Atom("birds of Colombia"), A))),
        ("a AND b AND c", Intersection((A, B, C))),
        ("a OR b OR c", Union((A, B, C))),
        ("a AND (b AND c)", Intersection((A, Intersection((B, C))))),
        ("(a OR b) OR c", Union((Union((A, B)), C))),
        ("((a AND b))", Intersection((A, B))),
        ("((a)) AND (b)", Intersection((A, B))),
        ("a NOT b", Difference(A, B)),
        ("a AND NOT b", Difference(A, B)),
        ("a NOT b NOT c", Difference(Difference(A, B), C)),
        ("a OR b NOT c", Union((A, Difference(B, C)))),
        ("a NOT b AND c", Intersection((Difference(A, B), C))),
        ("a AND b NOT c AND d", Intersection((Difference(Intersection((A, B)), C), D))),
        ("a NOT (b OR c)", Difference(A, Union((B, C)))),
        ("a AND! b AND! c", strict(A, B, C)),
        ("a AND b AND! c", strict(Intersection((A, B)), C)),
        ("a AND! b AND c", Intersection((strict(A, B), C))),
        ("(a AND! b) AND! c", strict(strict(A, B), C)),
        ("a AND! b NOT c AND! d", strict(Difference(strict(A, B), C), D)),
        ("a NOT! b AND! c", strict(Exclusion(A, B), C)),
        ("a AND! (b OR c)", strict(A, Union((B, C)))),
        ("a OR b AND! c", Union((A, strict(B, C)))),
        ("a AND! (b OR c) d", strict(A, Union((Atom("b d"), Atom("c d"))))),
        ("a∩b∪c \\ d", Union((Intersection((A, B)), Difference(C, D)))),
        ("a∩\\ b", Difference(A, B)),
        ("(a)\\(b)", Difference(A, B)),
        *[
            (text, Union(tuple(map(Atom, atoms.split(", ")))))
            for text, atoms in {
                "(French OR Italian) comedies": "French comedies, Italian comedies",
                "comedies from  (France ∪ Italy)": "comedies from France, comedies from Italy",
                "new (French OR Italian) comedies": "new French comedies, new Italian comedies",
                "((a) OR b) (c OR d)": "a c, a d, b c, b d",
                "(a OR (b OR c)) d e": "a d e, b d e, c d e",
                "((a OR b) c OR d) e": "a c e, b c e, d e",
                "war and peace (film OR book)": "war and peace film, war and peace book",
                "rock and (roll OR pop)": "rock and roll, rock and pop",
                '("New York" OR Oslo) "AND" maps': "New York AND maps, Oslo AND maps",
                "(spy OR war) films (in colour)": "spy films (in colour), war films (in colour)",
                "(a OR b) (c)": "a (c), b (c)",
                "AND (a OR b)": "AND a, AND b",
            }.items()
        ],
        ("x NOT (a OR b) c AND d", Intersection((Difference(Atom("x"), Union((Atom("a c"), Atom("b c")))), D))),
        ("a (b OR c) OR d", Union((Union((Atom("a b"), Atom("a c"))), D))),
    ],
)
def test_operators(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "this and that or not those",
        "ANDROID NOTES ORAND",
        "Schindler's List",
        "A-AND-B R&B, C#!",
        "a and! b AND!c",
        "birds   of\n Colombia",
        "field=value",
        "IL-6 (interleukin 6)",
        "(spy films)",
        "((a)) [b] {c}",
        "()",
        ":-) (",
        "f(x) = y)",
        *['5" pipe', "6'2\"", '"', '""', 'the "Great Gatsby" film', '"a" "b"', '"Anna', '" a ""b"c', 'say "(a)"'],
        *[r"\alpha particles", r"C:\dir", "\\", r"a\"b", "a \\"],
        *["∩", "AND", "AND OR NOT", "NOT gate", "AND gate truth table", "NOT! parrots", "A NOT", "OR a AND", "∪ a"],
        *["(NOT a)", "(NOT a) b", "NOT (NOT a)", "smile :( AND frown :)"],
        *["(a AND b) c", "c (a OR b NOT d)", "patients (men AND women) over 65", "(a AND b) || (c OR d)"],
        *["(a OR genre=b) c", "genre=x (a OR b)", "film(s OR z)", "(a OR b)^2", "title:(a OR b)", "a -(b OR c)"],
        "(" * 2000 + "a" + ")" * 2000,
        "NOT " * 2000 + "a",
    ],
)
def test_a_text_without_an_operator_between_operands_is_one_atom(text):
    assert parse(f" {text}\n") == Atom(text)
    assert parse(format_expression(Atom(text))) == Atom(text)


@pytest.mark.parametrize(
    ("text", "atom"),
    [
        ('"in AND out"', "in AND out"),
        ('"a AND! b"', "a AND! b"),
        ('"Skyfall (film)"', "Skyfall (film)"),
        ('"war and peace"', "war and peace"),
        (r'"12\" of a\\b"', r'12" of a\b'),
        (r'"a\b"', r"a\b"),
        ('"two  blanks"', "two  blanks"),
        ('films by "AND ONE" in   "(1)"', "films by AND ONE in (1)"),
        ('title:"a OR b", c', "title:a OR b, c"),
    ],
)
def test_quotes_protect_operators(text, atom):
    assert parse(text) == Atom(atom)


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        ("TNF (tumour  necrosis factor)", "TNF (tumour necrosis factor)"),
        ("f(x) = y", "f(x) = y"),
        ("f() [MASK]", "f() [MASK]"),
        (":-)", ":-)"),
        ("b)", "b)"),
        ('5" pipe', '5" pipe'),
        ('"unclosed', '"unclosed'),
        ('"" "New  York", "" (city)', "New  York, (city)"),
        ("rock 'n' roll", "rock 'n' roll"),
        (r"C:\dir \alpha", r"C:\dir \alpha"),
        ("a (OR) (NOT b)", "a (OR) (NOT b)"),
        ("((b) c)", "(b) c"),
        ('"(b OR c)"', "(b OR c)"),
    ],
)
def test_brackets_and_quotes_inside_an_operand_are_words(operand, text):
    assert parse(f"{operand} AND x") == Intersection((Atom(text), Atom("x")))
    assert parse(f"x OR {operand} NOT a") == Union((Atom("x"), Difference(Atom(text), A)))


@pytest.mark.parametrize("text", ["find \\ frac { 1 } { 2 }", r"$ su ( 2 ) \ times su ( 2 ) $"])
def test_a_backslash_of_latex_is_a_word(text):
    assert parse(text) == Atom(text)
    assert parse(f"{text} NOT b") == Difference(Atom(text), Atom("b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AND gate OR NAND gate", '"AND gate" OR NAND gate'),
        ("a OR b AND", 'a OR "b AND"'),
        ("(a NOT) AND b", '"a NOT" AND b'),
        ("a AND (OR)", 'a AND "OR"'),
        ("∪ a ∩ b ∪", '"∪ a" AND "b ∪"'),
        ('spy NOT"war film"', "spy NOT war film"),
    ],
)
def test_an_operator_at_an_edge_is_a_word(text, expected):
    assert format_expression(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(NOT a) AND b", "b NOT a"),
        ("NOT a AND b AND c", "b AND c NOT a"),
        ("a AND (NOT b)", "a NOT b"),
        ("x AND (NOT (NOT a))", "x AND a"),
        ("a NOT NOT b", "a AND b"),
        ("NOT (a OR NOT b)", "b NOT a"),
        ("a AND (NOT b OR NOT c)", "a NOT (b AND c)"),
        ("a AND (b OR NOT c)", "a AND b OR a NOT c"),
        ("(b OR NOT c) AND a", "a AND b OR a NOT c"),
        ("a NOT (b AND NOT c)", "a NOT (b NOT c)"),
    ],
)
def test_complements_become_differences(text, expected):
    assert format_expression(parse(text)) == expected


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Union((Intersection((A, B)), Difference(C, D))), "a AND b OR c NOT d"),
        (Intersection((Union((A, B)), C)), "(a OR b) AND c"),
        (Intersection((Intersection((A, B)), C)), "(a AND b) AND c"),
        (Intersection((A, Difference(B, C))), "a AND (b NOT c)"),
        (strict(Intersection((A, B)), Intersection((C, D))), "a AND b AND! (c AND d)"),
        (Intersection((strict(A, B), strict(C, D))), "a AND! b AND (c AND! d)"),
        (strict(strict(A, B), Union((C, D))), "(a AND! b) AND! (c OR d)"),
        (Atom("AND!"), '"AND!"'),
        (Difference(Intersection((A, B)), Difference(C, D)), "a AND b NOT (c NOT d)"),
        (Atom("NOT"), '"NOT"'),
        (Atom("a  (b)"), "a  (b)"),
        (Intersection((Atom("a  b"), Atom("(c)"))), '"a  b" AND "(c)"'),
        (Atom('"\\'), '"\\'),
        (Atom('"a"'), r'"\"a\""'),
        (Union((A, Atom('"\\'))), r'a OR "\"\\"'),
    ],
)
def test_format_uses_as_few_parentheses_and_quotes_as_it_can(expression, text):
    assert format_expression(expression) == text
    assert parse(text) == expression


PLAIN_WORDS = st.lists(st.sampled_from(["French", "Italian", "films", "of", "NOTES"]), min_size=1, max_size=2)
GROUPS = st.recursive(
    PLAIN_WORDS.map(" ".join).map(lambda words: (words, [words])),
    lambda inner: st.lists(inner, min_size=2, max_size=3).map(
        lambda members: (
            f"({' OR '.join(text for text, _ in members)})",
            [phrase for _, phrases in members for phrase in phrases],
        )
    ),
    max_leaves=5,
)


@given(st.lists(GROUPS, min_size=1, max_size=4))
def test_words_join_each_of_the_alternatives_beside_them(parts):
    text, choices = " ".join(text for text, _ in parts), [phrases for _, phrases in parts]
    expression, phrases = parse(text), [" ".join(choice) for choice in product(*choices)]
    assert [atom.text for atom in leaves(expression)] == phrases
    assert parse(format_expression(expression)) == expression
    assert expression == parse(" OR ".join(phrases)) or len(parts) == 1


@given(expressions(exclusions=True))
def test_parse_reads_what_format_writes(expression):
    assert parse(format_expression(expression)) == expression


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        *[
            (text, f'{what}; expected a phrase or "("', caret)
            for text, what, caret in [
                ("a AND OR b", "unexpected OR after AND", 6),
                ("a OR b AND ∪ c", "unexpected ∪ after AND", 11),
                ("a NOT NOT! b", "unexpected NOT! after NOT", 6),
                ("a AND! NOT! b", "unexpected NOT! after AND!", 7),
                ("a AND ()", "the parentheses are empty", 7),
                ("() OR é∩Ａ", "the parentheses are empty", 1),
            ]
        ],
        *[
            (text, '"(" is not closed; expected ")"', caret)
            for text, caret in [("a AND (b", 6), ("(a) AND (b OR (c)", 8), ("a AND (", 6), ("a (b AND ((c)", 9)]
        ],
        ('a AND ""', "the quotes are empty; expected a phrase between them", 6),
        *[
            (
                text,
                f"an operator is missing before {this}; {EXPECTED}; words join only {ALTERNATIVES}",
                caret,
            )
            for text, this, caret in [
                ("(a AND b) c OR d", "this phrase", 10),
                ("x AND c (a OR b NOT d)", '"("', 8),
                ("x NOT (e (a OR (NOT b)))", '"("', 9),
                ("(a OR genre=b) c OR d", "this phrase", 15),
                ("d OR genre=x (a OR b)", '"("', 13),
            ]
        ],
        ("film(s OR z) AND a", f'an operator is missing before "("; {EXPECTED}, {BLANK}', 4),
        (
            "a AND (a OR b)^2",
            f"an operator is missing before this phrase; {EXPECTED}, {BLANK}",
            14,
        ),
        (
            "title:(a OR b) NOT c",
            f'an operator is missing before "("; title: searches no field; {CONDITIONS}',
            6,
        ),
        (
            "a NOT! g=(b OR c)",
            'an operator is missing before "("; a condition has one value; write NOT! g=VALUE for each',
            9,
        ),
        (
            " ".join([f"({'∪'.join('abcdefgh')})"] * 3 + ["(a∪b)"]),
            "groups beside each other make more than 1,000 phrases; write AND between them",
            0,
        ),
        *[
            (text, "NOT! has no positive part before it; put one there, as in: birds NOT! parrots", caret)
            for text, caret in [("NOT! a AND b", 0), ("b AND (NOT! a)", 7), ("a OR NOT! b", 5)]
        ],
        *[
            (text, f"an operand of AND! needs a positive part; {LOWER_OR_REMOVE}", caret)
            for text, caret in [("a AND! NOT b", 2), ("NOT a AND! b", 6), ("c AND (a AND! (b OR NOT c))", 9)]
        ],
    ],
)
def test_a_fault_is_named_and_pointed_at(text, message, caret):
    assert refusal(parse, text, error=QueryError) == f"{message}; {PLAIN}\n  {text}\n  {' ' * caret}^"


@pytest.mark.parametrize("value", [None, 1, b"birds", ["birds"]])
def test_other_values_are_refused(value):
    assert refusal(parse, value, error=ArgumentError) == f"an expression must be a text, got {value!r}"


def test_a_blank_text_is_refused():
    assert refusal(parse, " ", error=QueryError) == "the text is blank; expected words\n   \n  ^"


def test_the_text_is_shown_on_one_line():
    message = refusal(parse, "a\tOR\nb\x1b\u2028AND (", error=QueryError)
    assert message.splitlines()[1:] == ["  a OR b  AND (", "              ^"]


@pytest.mark.parametrize(
    ("text", "shown", "caret"),
    [
        ("x" * 50 + " AND OR " + "y" * 50, "..." + "x" * 31 + " AND OR " + "y" * 33 + "...", 39),
        ("NOT! " + "y" * 100 + " AND a", "NOT! " + "y" * 67 + "...", 0),
        ("x" * 100 + " OR (", "..." + "x" * 67 + " OR (", 74),
    ],
)
def test_a_long_text_is_shown_around_the_fault(text, shown, caret):
    assert refusal(parse, text, error=QueryError).splitlines()[1:] == [f"  {shown}", f"  {' ' * caret}^"]


@pytest.mark.parametrize("text", ["a NOT " * 101 + "b", "a AND (b OR (" * 60 + "c" + "))" * 60])
def test_nesting_is_limited(text):
    with pytest.raises(QueryError) as error:
        parse(text)
    message, shown, caret = str(error.value).splitlines()
    assert message == f"an expression may be 100 levels deep, this one is deeper; flatten it; {PLAIN}"
    assert shown[caret.index("^") :].startswith(("NOT", "AND", "OR"))


def test_long_texts_are_read():
    words = [f"w{i}" for i in range(2000)]
    assert parse(" ".join(words)) == Atom(" ".join(words))
    assert atoms(parse(" AND ".join(words))) == words
    assert parse("(" * 2000 + "a OR b" + ")" * 2000) == Union((A, B))
    assert parse("b AND " + "NOT " * 2000 + "a") == Intersection((B, A))


def test_very_many_groups_are_refused():
    with pytest.raises(QueryError, match="^groups beside each other make more than 1,000 phrases; "):
        parse(" ".join(["(a OR b)"] * 1000))


def test_groups_in_groups_are_bounded():
    text = " ".join([f"({' OR '.join('abcdefghij')})"] * 3)
    for _ in range(80):
        text = f"(w {text})" if text.startswith("(w") else f"w ({text})"
    with pytest.raises(QueryError):
        parse(f"({text}) z")


HARD_WORDS = st.sampled_from([*HARD, "OR", '5"', "(b)", ":-)", "x y", "\\alpha", "b=c"])


@given(st.lists(HARD_WORDS, max_size=12).map(" ".join) | TEXTS)
def test_any_text_is_an_atom_or_an_expression_or_has_a_named_fault(text):
    """A text without an operator between words is one atom with this text, whatever else it holds."""
    try:
        expression = parse(text)
    except QueryError as error:
        assert not text.strip() or re.search(r"AND|OR|NOT|[∩∪\\]", text), error
        return
    assert parse(format_expression(expression)) == expression
    if not re.search(r"\S.*(AND|OR|NOT|[∩∪\\]).*\S", text.strip(), re.DOTALL) and not re.match(r'\s*".*"\s*$', text):
        assert expression == Atom(text)
