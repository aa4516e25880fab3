import pytest

from pyserini_compneg.expression import atoms, format_expression, parse, parse_cisi
from pyserini_compneg.support.errors import QueryError

EXPECTED = "expected statements such as #q1= #and ('titles', #not ('articles'));"
NO_POSITIVE_PART = "NOT has nothing to take away from; a query needs a positive part, as in: birds NOT parrots"

Q2 = """#q2= #and (#or('data', 'information'),
           #or('automatically', 'retrieved',
\t\t#not (#or ('articles', 'references')) ) );
"""


def test_operators_settings_and_ids():
    text = "#default_ct = 3;\n#q7= #or ('a b', #and('c', #or('d')));\n#q2='e';\n#endcoll;\n"
    assert parse_cisi(text) == {"7": parse("a b OR c AND d"), "2": parse("e")}
    assert list(parse_cisi(text)) == ["7", "2"]


def test_a_complement_inside_a_union_is_moved_up():
    base, others = "(data OR information)", "(automatically OR retrieved)"
    assert parse_cisi(Q2) == {"2": parse(f"{base} AND {others} OR {base} NOT (articles OR references)")}


def test_several_complements_are_taken_away_together():
    text = "#q1= #and (#not ('a'), 'b', #not ('c'), 'd');"
    assert format_expression(parse_cisi(text)["1"]) == "b AND d NOT (a OR c)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#q1= 'a';\n#q2= #xor ('a');", f"line 2: unexpected '#xor'; {EXPECTED}"),
        ("#q1= 'a';\n\n#q2= #or ('a',\n'b'\n", f"line 4: unexpected end of the file; {EXPECTED}"),
        ("#q1= 'a", f"""line 1: unexpected "'a"; {EXPECTED}"""),
        ("#q1= #and ();", f"line 1: unexpected ');'; {EXPECTED}"),
        ("birds", f"line 1: unexpected 'birds'; {EXPECTED}"),
        ("#q1=\n' ';", "line 2: the text of an atom must not be blank, got ' '"),
        ("#q1= 'a';\n#q1= 'b';", "line 2: query #q1 is given twice; an id stands for one query"),
        ("#q1= 'a';\n#q2= #or ('a',\n #not ('b'));", f"line 3: query #q2: {NO_POSITIVE_PART}"),
        (
            "#q1=\n" + "#or ('a', " * 100 + "'b'" + ")" * 100 + ";",
            "line 2: an expression may be 100 levels deep, this one is deeper; flatten it",
        ),
    ],
)
def test_faults_are_named_with_their_line(text, message):
    with pytest.raises(QueryError) as error:
        parse_cisi(text, "some/CISI.BLN")
    assert str(error.value) == f"some/CISI.BLN, {message}"


def test_real_queries(shared_data):
    queries = parse_cisi((shared_data / "cisi" / "CISI.BLN").read_text(encoding="utf-8"))
    assert list(queries) == [str(number) for number in range(1, 36)]
    assert format_expression(queries["3"]) == "information AND (science OR definition)"
    assert atoms(queries["2"])[-2:] == ["articles", "references"]
