"""Random expressions, and what an expression means as a set."""

from __future__ import annotations

from functools import partial
from itertools import combinations

from hypothesis import strategies as st

from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Filter, Intersection, Union

# Text that is hard to write: operators, signs, quotes, blanks of all kinds, and anything else.
WORDS = ["AND", "OR", "NOT", "NOT!", "AND!", "genre=", "and", "ANDROID", "Schindler's", "é"]
HARD = [*WORDS, *'()∩∪\\" \t\n\u00a0']
TEXTS = (st.lists(st.sampled_from(HARD), max_size=6).map("".join) | st.text()).filter(str.strip)


DOCUMENTS = [frozenset(some) for count in range(5) for some in combinations("abcd", count)]
"""All documents that the atoms a, b, c and d can tell apart."""


CONDITIONS = st.builds(lambda name, value: Filter({name: value}), st.sampled_from(["genre", "é.b-c_1"]), TEXTS)


def expressions(
    texts: st.SearchStrategy[str] = TEXTS, max_leaves: int = 12, exclusions: bool = False
) -> st.SearchStrategy[Expression]:
    """Trees of every shape; those with ``exclusions`` have NOT! and AND!, too."""

    def above(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(children, min_size=2, max_size=4).map(tuple)
        trees = several.map(Union) | several.map(Intersection) | st.builds(Difference, children, children)
        hard = st.builds(Exclusion, children, children | CONDITIONS) | several.map(partial(Intersection, strict=True))
        return trees | hard if exclusions else trees

    return st.recursive(texts.map(Atom), above, max_leaves=max_leaves)


def contains(expression: Expression, document: frozenset[str]) -> bool:
    """Whether a document, given as the atoms that it is about, belongs to the expression's set."""
    match expression:
        case Atom(text):
            return text in document
        case Union(operands):
            return any(contains(operand, document) for operand in operands)
        case Intersection(operands):
            return all(contains(operand, document) for operand in operands)
        case Difference(left, right):
            return contains(left, document) and not contains(right, document)
