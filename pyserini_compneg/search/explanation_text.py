"""What a query became, as text: its tree with the vectors of the atoms, and its terms as in the paper's Table 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from pyserini_compneg.compose import Linear, Max, Operators, Product, QueryTerm, ScoringNode, Sum, query_terms
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union, verbalise
from pyserini_compneg.search.columns import fitted, places, width, wrapped
from pyserini_compneg.search.query_explanation import ExplainedQuery
from pyserini_compneg.vectors import add, complement_term

_ATOM_TERMS = 8
_WIDEST_ATOM = 48
_WIDEST_TERM = 32
_LABEL_WIDTH = len("  operand 1  ")
_LEAST_WIDTH = 20


def query_lines(explained: ExplainedQuery, columns: int, most: int) -> Iterator[str]:
    """The lines that show a composed query.

    Args:
        explained: The query.
        columns: How wide the lines may be.
        most: Terms shown of each vector and pairs of each conjunction, the heaviest; how many are left out is said.
    """
    if explained.expression is not None:
        yield from _tree(explained, columns)
        yield ""
    yield from _composed(explained.node, explained.weight_scale, columns, most)


def _tree(explained: ExplainedQuery, columns: int) -> Iterator[str]:
    """The expression, an operator or an atom a line, and what each atom asks for."""
    assert explained.expression is not None
    rows = list(_branches(explained.expression, explained.operators, "", ""))
    widest = min(max(width(label) for label, atom in rows if atom is not None), max(_WIDEST_ATOM, columns // 2))
    for label, atom in rows:
        if atom is None:
            yield label
            continue
        terms = list(_weighted(_terms(explained.atoms[atom], explained.weight_scale), _ATOM_TERMS))
        room = max(columns - widest - 2, _LEAST_WIDTH)
        yield f"{fitted(label, widest)}  {wrapped(terms, room)[0].rstrip(',') if terms else 'no known term'}"


def _branches(expression: Expression, operators: Operators, own: str, below: str) -> Iterator[tuple[str, str | None]]:
    """Each line's label, and the text of the atom if it is one.

    Args:
        expression: A subtree.
        operators: What the operators are called.
        own: What stands before the first line.
        below: What stands before the others.
    """
    if isinstance(expression, Atom):
        yield own + expression.text, expression.text
        return
    members: Sequence[Expression]
    match expression:
        case Union(operands):
            sign, name, members = "OR", operators.union, operands
        case Intersection(operands):
            sign, name, members = "AND", operators.intersection, operands
        case Difference(left, right):
            sign, name, members = "NOT", operators.difference, (left, right)
    if name == "vanilla":  # nothing below is encoded
        members = (Atom(verbalise(expression)),)
    yield f"{own}{sign} ({name})", None
    for member in members[:-1]:
        yield from _branches(member, operators, f"{below}├─ ", f"{below}│  ")
    yield from _branches(members[-1], operators, f"{below}└─ ", f"{below}   ")


def _composed(node: ScoringNode, scale: float, columns: int, most: int) -> Iterator[str]:
    """The parts that are added up: conjunctions, alternatives, and one vector of terms."""
    parts = list(_summands(node))
    for part in parts:
        if isinstance(part, Product):
            yield from _conjunction(part, scale, columns, most)
        elif isinstance(part, Max):
            yield "the best of"
            for number, child in enumerate(part.children, 1):
                lines = _composed(child, scale, columns - 4, most)
                yield from (f"{'' if i else number:>3} {line}" for i, line in enumerate(lines))
    vectors = [part.weights for part in parts if isinstance(part, Linear)]
    terms = _terms(Linear(reduce(add, vectors, {})), scale)
    for label, sign in (("positive", 1), ("negative", -1)):
        if chosen := [term for term in terms if term.weight * sign > 0]:
            yield from _labelled("", label, _weighted(chosen, most), columns)


def _summands(node: ScoringNode) -> Iterator[ScoringNode]:
    if isinstance(node, Sum):
        for child in node.children:
            yield from _summands(child)
    else:
        yield node


def _conjunction(node: Product, scale: float, columns: int, most: int) -> Iterator[str]:
    scored = "" if node.is_sum_over_tuples else f", power {node.exponent:g}, root {node.root}"
    scored += "" if node.weight == 1 else f", weight {node.weight:.3g}"
    yield f"conjunction of {len(node.operands)}{scored}"
    for number, (operand, count) in enumerate(node.factors, 1):
        times = "" if count == 1 else f" × {count}"
        yield from _labelled("  ", f"operand {number}{times}", _weighted(_terms(Linear(operand), scale), most), columns)
    tuples = "pairs" if len(node.operands) == 2 else "tuples"
    yield from _labelled("  ", tuples, _weighted(_terms(node, scale), most), columns)


def _labelled(indent: str, label: str, pieces: Iterator[str], columns: int) -> Iterator[str]:
    for i, line in enumerate(wrapped(pieces, max(columns - _LABEL_WIDTH, _LEAST_WIDTH))):
        yield f"{'' if i else indent + label:<{_LABEL_WIDTH}}{line}"


def _terms(node: ScoringNode, scale: float) -> list[QueryTerm]:
    """The weights of a query, without the complements by which an index of signed documents is asked for the same."""
    terms = query_terms(node, scale)
    implied = {complement_term(term): -weight for term, weight in terms}
    return [term for term in terms if implied.get(term.term) != term.weight]


def _weighted(terms: Sequence[QueryTerm], most: int) -> Iterator[str]:
    digits = places([weight for _, weight in terms], 2)
    for term, weight in terms[:most]:
        yield f"{fitted(term, min(width(term), _WIDEST_TERM))} {weight:.{digits}f}"
    if len(terms) > most:
        yield f"{len(terms) - most} more"
