"""Explanations for people, drawn with rich: the tree and the terms of a query, and what adds up to a score."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TextIO

from rich.bar import Bar
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pyserini_compneg.compose import Linear, Max, Product, QueryTerm, ScoringNode, Sum, query_terms
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union, verbalise
from pyserini_compneg.search.display import printable, titled
from pyserini_compneg.search.query_explanation import RANKED, ExplainedDocument, ExplainedQuery
from pyserini_compneg.vectors import add, complement_term

_PLAIN_WIDTH = 100
_ATOM_TERMS = 8
_WIDEST_TERM = 32
_BAR_WIDTH = 40
_COMPARED = ("A", "B", "A - B")


def draw(handle: TextIO, parts: Sequence[RenderableType]) -> None:
    """Writes drawings: with colours and as wide as the terminal, or, elsewhere, as plain text of 100 columns.

    Args:
        handle: Where to write.
        parts: Drawings and texts, each on lines of its own.
    """
    on_terminal = handle.isatty()
    width = shutil.get_terminal_size((_PLAIN_WIDTH, 0)).columns if on_terminal else _PLAIN_WIDTH
    drawn = io.StringIO()
    console = Console(
        file=drawn,
        width=width,
        height=len(parts),  # without a height, rich ignores the width on a dumb terminal
        force_terminal=on_terminal,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for part in parts:
        console.print(part)
    handle.writelines(f"{line.rstrip()}\n" for line in drawn.getvalue().removesuffix("\n").split("\n"))


def query_drawing(explained: ExplainedQuery, most: int) -> list[RenderableType]:
    """A composed query: its tree with the heaviest terms of each atom, and the terms that it became.

    Args:
        explained: The query.
        most: Terms shown of each vector and each conjunction, the heaviest; the number of the others is shown.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    _add_composed(table, explained.node, explained.weight_scale, most, "")
    return [table] if explained.expression is None else [_tree(explained.expression, explained), "", table]


def documents_drawing(documents: Sequence[ExplainedDocument], most: int) -> list[RenderableType]:
    """What adds up to the scores of documents, with bars.

    Two documents stand side by side, and the terms that decide between them come first. Others stand one below another,
    with bars of one scale.

    Args:
        documents: The documents.
        most: Terms shown, those of the largest magnitude; the others are added up in one line.
    """
    if len(documents) == 2:
        rows = _compared_rows(documents, most)
        headings = [f"{letter}  {_heading(document)}" for letter, document in zip(_COMPARED, documents, strict=False)]
        return [*headings, "", _contribution_table([rows], _COMPARED)[0]]
    tables = _contribution_table([_rows(document, most) for document in documents])
    parts: list[RenderableType] = []
    for document, table in zip(documents, tables, strict=True):
        parts += [_heading(document), table, ""]
    return parts[:-1]


def _tree(expression: Expression, explained: ExplainedQuery) -> Tree:
    """An operator or an atom a line, with what each atom asks for."""
    if isinstance(expression, Atom):
        terms = _terms(explained.atoms[expression.text], explained.weight_scale)
        return Tree(
            Text(f"{printable(expression.text)}: {', '.join(_weighted(terms, _ATOM_TERMS)) or 'no known term'}")
        )
    members: Sequence[Expression]
    match expression:
        case Union(operands):
            sign, name, members = "OR", explained.operators.union, operands
        case Intersection(operands):
            sign, name, members = "AND", explained.operators.intersection, operands
        case Difference(left, right):
            sign, name, members = "NOT", explained.operators.difference, (left, right)
    if name == "vanilla":  # nothing below is encoded
        members = (Atom(verbalise(expression)),)
    tree = Tree(f"{sign} ({name})")
    tree.children += [_tree(member, explained) for member in members]
    return tree


def _add_composed(table: Table, node: ScoringNode, scale: float, most: int, indent: str) -> None:
    """Adds the parts that are summed up: conjunctions, alternatives, and one vector of positive and negative terms."""
    parts = list(_summands(node))
    for part in parts:
        if isinstance(part, Product):
            _add_conjunction(table, part, scale, most, indent)
        elif isinstance(part, Max):
            for number, child in enumerate(part.children, 1):
                table.add_row(f"{indent}alternative {number}", "" if number > 1 else "the best alternative counts")
                _add_composed(table, child, scale, most, f"{indent}  ")
    vectors = [part.weights for part in parts if isinstance(part, Linear)]
    terms = _terms(Linear(reduce(add, vectors, {})), scale)
    for label, sign in (("positive", 1), ("negative", -1)):
        if chosen := [term for term in terms if term.weight * sign > 0]:
            table.add_row(f"{indent}{label}", Columns(_weighted(chosen, most), padding=(0, 2)))


def _summands(node: ScoringNode) -> Iterator[ScoringNode]:
    if isinstance(node, Sum):
        for child in node.children:
            yield from _summands(child)
    else:
        yield node


def _add_conjunction(table: Table, node: Product, scale: float, most: int, indent: str) -> None:
    scored = "" if node.is_sum_over_tuples else f", power {node.exponent:g}, root {node.root}"
    scored += "" if node.weight == 1 else f", weight {node.weight:.3g}"
    table.add_row(f"{indent}conjunction", f"of {len(node.operands)} operands{scored}")
    for number, (operand, count) in enumerate(node.factors, 1):
        label = f"{indent}  operand {number}" + ("" if count == 1 else f" × {count}")
        table.add_row(label, Columns(_weighted(_terms(Linear(operand), scale), most), padding=(0, 2)))
    tuples = "pairs" if len(node.operands) == 2 else "tuples"
    table.add_row(f"{indent}  {tuples}", Columns(_weighted(_terms(node, scale), most), padding=(0, 2)))


def _terms(node: ScoringNode, scale: float) -> list[QueryTerm]:
    """The weights of a query, without the complement terms that say the same to an index of signed documents."""
    terms = query_terms(node, scale)
    implied = {complement_term(term): -weight for term, weight in terms}
    return [term for term in terms if implied.get(term.term) != term.weight]


def _weighted(terms: Sequence[QueryTerm], most: int) -> list[str]:
    digits = _decimals([weight for _, weight in terms], 2)
    texts = [f"{_shortened(term)} {weight:.{digits}f}" for term, weight in terms[:most]]
    return texts if len(terms) <= most else [*texts, f"{len(terms) - most} more"]


class _Row(NamedTuple):
    """A term, and what it adds to each score, or to their difference; the last number has the bar."""

    name: str
    numbers: Sequence[float]
    has_bar: bool = True


def _contribution_table(tables: Sequence[Sequence[_Row]], header: Sequence[str] = ()) -> list[Table]:
    """Tables of terms, numbers and bars; all bars have the same scale."""
    drawn = [row.numbers[-1] for rows in tables for row in rows if row.has_bar]
    low, high = min([0.0, *drawn]), max([0.0, *drawn])
    digits = _decimals([number for rows in tables for row in rows for number in row.numbers], 3)
    made = []
    for rows in tables:
        table = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        table.add_column()
        for name in header or [""]:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column()
        for name, numbers, has_bar in rows:
            cells = (f"{number + 0.0:.{digits}f}" for number in numbers)
            bar = _bar(numbers[-1], low, high) if has_bar and low < high else ""
            table.add_row(Text(_shortened(name)), *cells, bar)
        made.append(table)
    return made


def _bar(number: float, low: float, high: float) -> Bar:
    """A bar to the right or to the left of 0."""
    begin, end = min(number, 0.0) - low, max(number, 0.0) - low
    return Bar(high - low, begin, end, width=_BAR_WIDTH, color="green" if number > 0 else "red")


def _rows(document: ExplainedDocument, most: int) -> list[_Row]:
    amounts = _amounts(document)
    shown = sorted(_heaviest(amounts, most), key=lambda term: (-amounts[term], term))
    return _with_totals([amounts], shown, [document.explanation.score])


def _compared_rows(documents: Sequence[ExplainedDocument], most: int) -> list[_Row]:
    a, b = map(_amounts, documents)
    terms = dict.fromkeys((*a, *b))
    differences = {term: a.get(term, 0.0) - b.get(term, 0.0) for term in terms}
    deciding = {term: difference for term, difference in differences.items() if difference}
    first, second = (document.explanation.score for document in documents)
    return _with_totals([a, b, differences], _heaviest(deciding, most), [first, second, first - second])


def _with_totals(amounts: Sequence[Mapping[str, float]], shown: Sequence[str], scores: Sequence[float]) -> list[_Row]:
    """A row for each term shown, one for all others, and one of the scores."""
    rows = [_Row(term, [column.get(term, 0.0) for column in amounts]) for term in shown]
    others = {term for column in amounts for term in column} - set(shown)
    if others:
        sums = [math.fsum(column.get(term, 0.0) for term in others) for column in amounts]
        rows.append(_Row(f"{len(others)} {'term' if not shown else 'other'}{'s' * (len(others) > 1)}", sums))
    return [*rows, _Row("score", scores, has_bar=False)]


def _amounts(document: ExplainedDocument) -> dict[str, float]:
    return {part.term: part.amount for part in document.explanation.contributions}


def _heaviest(amounts: Mapping[str, float], most: int) -> list[str]:
    return sorted(amounts, key=lambda term: (-abs(amounts[term]), term))[:most]


def _heading(document: ExplainedDocument) -> str:
    if not document.explanation.matched:
        place = "not retrieved, because the query does not match it"
    else:
        place = f"beyond rank {RANKED}" if document.rank is None else f"rank {document.rank}"
    return f"{titled(document.title, document.explanation.docid)}: {place}"


def _shortened(term: str) -> str:
    text = printable(term)
    return text if len(text) <= _WIDEST_TERM else f"{text[: _WIDEST_TERM - 1]}…"


def _decimals(numbers: Sequence[float], least: int) -> int:
    """Decimal places that show two or more digits of the largest number; ``least`` or more.

    >>> _decimals([250.0, -3.0], 3), _decimals([0.025], 3), _decimals([], 3)
    (3, 4, 3)
    """
    largest = max(map(abs, numbers), default=0.0)
    return max(least, least - 1 - math.floor(math.log10(largest))) if largest else least
