"""Every rewrite keeps the Boolean meaning, checked on all documents that four atoms can tell apart."""

from expression_strategies import DOCUMENTS, contains
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.expression import Atom, Difference, leaves, parse


def formulas():
    """Boolean formulas with free complements, as nested tuples."""

    def above(children):
        several = st.lists(children, min_size=1, max_size=3)
        return (
            st.tuples(st.just("not"), children)
            | st.builds(lambda kind, members: (kind, *members), st.sampled_from(["and", "or"]), several)
            | st.builds(lambda left, right: ("and", left, ("not", right)), children, children)
        )

    return st.recursive(st.sampled_from("abcd"), above, max_leaves=10)


def holds(formula, document):
    match formula:
        case "not", operand:
            return not holds(operand, document)
        case "and", *operands:
            return all(holds(operand, document) for operand in operands)
        case "or", *operands:
            return any(holds(operand, document) for operand in operands)
    return formula in document


def as_text(formula):
    match formula:
        case "not", operand:
            return f"(NOT {as_text(operand)})"
        case kind, *operands:
            return f"({f' {kind.upper()} '.join(map(as_text, operands))})"
    return formula


@given(formula=formulas())
def test_the_meaning_is_kept_and_complements_are_words(formula):
    if not any(f" {operator} " in as_text(formula) for operator in ("AND", "OR")):
        assert parse(as_text(formula)) == Atom(as_text(formula))  # NOT alone is a word
    elif holds(formula, frozenset()):
        assert parse(as_text(formula)) == Atom(as_text(formula))  # so is an expression without a positive part
    else:
        expression = parse(as_text(formula))
        assert [contains(expression, document) for document in DOCUMENTS] == [
            holds(formula, document) for document in DOCUMENTS
        ]


@given(st.lists(st.sampled_from(["AND", "NOT", "AND NOT"]), max_size=5), st.lists(st.sampled_from("abcd"), min_size=6))
def test_chains_mean_what_they_say_from_left_to_right(operators, names):
    text, members = names[0], {document for document in DOCUMENTS if names[0] in document}
    for operator, name in zip(operators, names[1:], strict=False):
        text = f"{text} {operator} {name}"
        members = {document for document in members if (name in document) == (operator == "AND")}
    assert {document for document in DOCUMENTS if contains(parse(text), document)} == members


def test_size_stays_linear():
    clauses = 40
    expression = parse("a" + " AND (b OR NOT c)" * clauses)
    assert len(list(leaves(expression))) < 40 * clauses
    assert [contains(expression, document) for document in DOCUMENTS] == [
        "a" in document and ("b" in document or "c" not in document) for document in DOCUMENTS
    ]


def test_a_large_base_is_not_copied():
    base = " OR ".join(f"w{i}" for i in range(33))
    assert parse(f"({base}) AND (b OR NOT c)") == Difference(parse(base), Difference(Atom("c"), Atom("b")))
