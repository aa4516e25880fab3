"""Explanations for people, drawn with rich: the tree and the terms of a query, and what adds up to a score."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TextIO, TypeAlias

from rich.bar import Bar
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, QueryTerm, ScoringNode, Sum, query_terms
from pyserini_compneg.explaining.display import decimals, titled
from pyserini_compneg.explaining.query_explanation import RANKED, ExplainedDocument, ExplainedQuery, sides
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Filter, Intersection, Union, verbalise
from pyserini_compneg.support.terminal import printable
from pyserini_compneg.support.vectors import add, complement_term

_PLAIN_WIDTH = 100
_ATOM_TERMS = 8
_WIDEST_TERM = 32
_BAR_WIDTH = 40
_LEAST_BAR = 4
_COMPARED = ("A", "B", "A - B")

_Row: TypeAlias = tuple[str, Sequence[float]]
"""A term, and what it adds to each score; side by side, the last number is the difference."""


def draw(handle: TextIO, parts: Sequence[RenderableType]) -> None:
    """Writes drawings: with colours and as wide as the terminal, or, elsewhere, as plain text of 100 columns.

    Args:
        handle: Where to write.
        parts: Drawings and texts, each on lines of its own.
    """
    on_terminal = handle.isatty()
    width = shutil.get_terminal_size((_PLAIN_WIDTH, 0)).columns if on_terminal else _PLAIN_WIDTH
    width = max(width, *map(_least_width, parts), 0)  # lines wrap; no number and no term is cut
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
        console.print(_Printable(part))
    handle.writelines(f"{line.rstrip()}\n" for line in drawn.getvalue().removesuffix("\n").split("\n"))


class _Printable:
    """A drawing without characters that steer the terminal, but for rich's own."""

    def __init__(self, part: RenderableType) -> None:
        self._part = Text(printable(part)) if isinstance(part, str) else part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._part, options):
            yield Segment("\n".join(map(printable, text.split("\n"))), style, control)


def _least_width(part: RenderableType) -> int:
    """The columns that a table needs without its bars."""
    return Console(width=1000).measure(part).minimum if isinstance(part, Table) else 0


def query_drawing(explained: ExplainedQuery, most: int) -> list[RenderableType]:
    """A composed query: its tree with the heaviest terms of each atom, and the terms that it became.

    Args:
        explained: The query.
        most: Terms shown of each vector and each conjunction, the heaviest; the number of the others is shown.
    """
    lines = list(_composed_lines(explained.node, explained.weight_scale, most, ""))
    width = max(len(label) for label, terms in lines if terms)
    composed: list[RenderableType] = [_term_list(label, terms, width) if terms else label for label, terms in lines]
    return [*tree_drawing(explained), *composed]


def tree_drawing(explained: ExplainedQuery) -> list[RenderableType]:
    """The tree of a query, and an empty line; nothing of a query that was composed already."""
    return [] if explained.expression is None else [_tree(explained.expression, explained), ""]


def documents_drawing(explained: ExplainedQuery, most: int) -> list[RenderableType]:
    """What adds up to the scores of documents, in the encoder's unit, with bars; before it the tree of the query.

    Two documents stand side by side, and the terms that decide between them come first. Others stand one below another,
    with bars of one scale.

    Args:
        explained: The query and its documents.
        most: Terms shown, those of the largest magnitude; the others are added up in one line.
    """
    documents = [replace(one, explanation=one.explanation.in_unit(explained.unit)) for one in explained.documents]
    tree = tree_drawing(explained)
    if len(documents) == 2:
        rows = _compared_rows(documents, most)
        headings = [
            f"{letter}  {_heading(document, explained.is_hybrid)}"
            for letter, document in zip(_COMPARED, documents, strict=False)
        ]
        return [*tree, *headings, "", _contribution_tables([rows], _COMPARED)[0]]
    tables = _contribution_tables([_rows(document, most) for document in documents])
    parts: list[RenderableType] = []
    for document, table in zip(documents, tables, strict=True):
        parts += [_heading(document, explained.is_hybrid), table, ""]
    return [*tree, *parts[:-1]]


def _tree(expression: Expression | Filter, explained: ExplainedQuery) -> Tree:
    """An operator or an atom a line, with what each atom asks for."""
    if isinstance(expression, Filter):
        return Tree(Text(str(expression)))
    if isinstance(expression, Atom):
        terms = _terms(explained.atoms[expression.text], explained.weight_scale)
        shown = ", ".join(_weighted(terms, _ATOM_TERMS)) or "no known term"
        return Tree(Text(f"{expression.text}: {shown}"))
    members: Sequence[Expression | Filter]
    match expression:
        case Union(operands):
            sign, name, members = "OR", explained.operators.union, operands
        case Intersection(operands, strict=strict):
            sign, name, members = "AND!" if strict else "AND", explained.operators.intersection, operands
        case Difference(left, right):
            sign, name, members = "NOT", explained.operators.difference, (left, right)
        case Exclusion(left, right):
            sign, name, members = "NOT!", str(explained.operators.exclusion), (left, right)
    if name == "vanilla" and not isinstance(expression, Exclusion):  # nothing below is encoded
        members = (Atom(verbalise(expression)),)
    tree = Tree(f"{sign} ({name})")
    tree.children += [_tree(member, explained) for member in members]
    return tree


def _composed_lines(node: ScoringNode, scale: float, most: int, indent: str) -> Iterator[tuple[str, list[str]]]:
    """The parts that are summed up: conjunctions, alternatives, and one vector; headings have no terms."""
    parts = list(_summands(node))
    for part in parts:
        if isinstance(part, Product):
            yield from _conjunction_lines(part, scale, most, indent)
        elif isinstance(part, Max):
            for number, child in enumerate(part.children, 1):
                yield f"{indent}alternative {number}{' (the best alternative counts)' * (number == 1)}", []
                yield from _composed_lines(child, scale, most, f"{indent}  ")
        elif isinstance(part, Damped):
            least = ", no further than near the fourth best score" if part.floor else ""
            yield f"{indent}lowered by up to {part.weight:.0%}{least}", []
            yield from _composed_lines(part.child, scale, most, f"{indent}  ")
            for excluded in part.excluded:
                linear = _weighted(_terms(excluded, scale), most) if isinstance(excluded, Linear) else []
                yield f"{indent}by what is about", linear
                if not linear:
                    yield from _composed_lines(excluded, scale, most, f"{indent}  ")
        elif isinstance(part, Excluding):
            yield from _composed_lines(part.child, scale, most, indent)
            for left_out, limit in zip(part.excluded, part.above, strict=True):
                if isinstance(left_out, Filter):
                    yield f"{indent}left out", [str(left_out)]
                else:
                    yield from _left_out_lines(left_out, limit, scale, most, indent)
            for needed in part.required:
                yield f"{indent}only with{' any of' * (len(needed.weights) > 1)}", list(needed.weights)
    vectors = [part.weights for part in parts if isinstance(part, Linear)]
    terms = _terms(Linear(reduce(add, vectors, {})), scale)
    for label, sign in (("positive", 1), ("negative", -1)):
        if signed := [term for term in terms if term.weight * sign > 0]:
            yield f"{indent}{label}", _weighted(signed, most)


def _left_out_lines(
    part: Linear | Product, limit: float, scale: float, most: int, indent: str
) -> Iterator[tuple[str, list[str]]]:
    """What NOT! excludes: documents that have a term of each operand, or that score above a limit."""
    operands = part.operands if isinstance(part, Product) else (part.weights,)
    for number, operand in enumerate(operands):
        label = "and with" if number else f"left out above {limit / scale:.3g}" if limit else "left out with"
        yield f"{indent}{label}", _weighted(_terms(Linear(operand), scale), most) if limit else sorted(operand)


def _summands(node: ScoringNode) -> Iterator[ScoringNode]:
    if isinstance(node, Sum):
        for child in node.children:
            yield from _summands(child)
    else:
        yield node


def _conjunction_lines(node: Product, scale: float, most: int, indent: str) -> Iterator[tuple[str, list[str]]]:
    scored = "" if node.is_sum_over_tuples else f", power {node.exponent:g}, root {node.root}"
    scored += "" if node.weight == 1 else f", weight {node.weight:.3g}"
    yield f"{indent}conjunction of {len(node.operands)} operands{scored}", []
    for number, (operand, count) in enumerate(node.factors, 1):
        label = f"{indent}  operand {number}" + ("" if count == 1 else f" × {count}")
        yield label, _weighted(_terms(Linear(operand), scale), most)
    tuples = "pairs" if len(node.operands) == 2 else "tuples"
    yield f"{indent}  {tuples}", _weighted(_terms(node, scale), most)


def _term_list(label: str, terms: Sequence[str], width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=width)
    table.add_column(min_width=max(map(cell_len, terms)))
    table.add_row(label, Columns(terms, padding=(0, 2)))
    return table


def _terms(node: ScoringNode, scale: float) -> list[QueryTerm]:
    """The weights of a query, without the complement terms that say the same to an index of signed documents."""
    terms = query_terms(node, scale)
    implied = {complement_term(term): -weight for term, weight in terms}
    return [term for term in terms if implied.get(term.term) != term.weight]


def _weighted(terms: Sequence[QueryTerm], most: int) -> list[str]:
    digits = decimals([weight for _, weight in terms], 2)
    texts = [f"{_shortened(term)} {weight:.{digits}f}" for term, weight in terms[:most]]
    return texts if len(terms) <= most else [*texts, f"{len(terms) - most} more"]


def _contribution_tables(tables: Sequence[Sequence[_Row]], header: Sequence[str] = ("",)) -> list[Table]:
    """Tables of terms, numbers and bars. The last row has the scores and no bar. All bars have the same scale."""
    with_bars = [numbers[-1] for rows in tables for _, numbers in rows[:-1]]
    low, high = min([0.0, *with_bars]), max([0.0, *with_bars])
    digits = decimals([number for rows in tables for _, numbers in rows for number in numbers])
    drawn = []
    for rows in tables:
        table = Table(box=None, show_header=any(header), pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        cells = [[_shortened(term), *(f"{number + 0.0:.{digits}f}" for number in numbers)] for term, numbers in rows]
        for name, column in zip(("", *header), zip(*cells, strict=True), strict=True):
            table.add_column(name, justify="right" if table.columns else "left", min_width=max(map(cell_len, column)))
        table.add_column(min_width=_LEAST_BAR, max_width=_BAR_WIDTH)
        for texts, row in zip(cells, rows, strict=True):
            bar = "" if low == high or row is rows[-1] else _bar(row[1][-1], low, high)
            table.add_row(*map(Text, texts), bar)
        drawn.append(table)
    return drawn


def _bar(number: float, low: float, high: float) -> Bar:
    begin, end = min(number, 0.0) - low, max(number, 0.0) - low
    return Bar(high - low, begin, end, color="green" if number > 0 else "red")


def _rows(document: ExplainedDocument, most: int) -> list[_Row]:
    amounts = _amounts(document)
    shown = sorted(_heaviest(amounts, most), key=lambda term: (-amounts[term], term))
    return _with_totals([amounts], shown, [document.explanation.score])


def _compared_rows(documents: Sequence[ExplainedDocument], most: int) -> list[_Row]:
    a, b = map(_amounts, documents)
    differences = {term: a.get(term, 0.0) - b.get(term, 0.0) for term in {**a, **b}}
    deciding = {term: difference for term, difference in differences.items() if difference}
    first, second = (document.explanation.score for document in documents)
    return _with_totals([a, b, differences], _heaviest(deciding, most), [first, second, first - second])


def _with_totals(amounts: Sequence[Mapping[str, float]], shown: Sequence[str], scores: Sequence[float]) -> list[_Row]:
    """A row for each term shown, one for all others, and one of the scores."""
    rows: list[_Row] = [(term, [column.get(term, 0.0) for column in amounts]) for term in shown]
    if others := {term for column in amounts for term in column} - set(shown):
        sums = [math.fsum(column.get(term, 0.0) for term in others) for column in amounts]
        rows.append((f"{len(others)} {'other' if shown else 'term'}{'s' * (len(others) > 1)}", sums))
    return [*rows, ("score", scores)]


def _amounts(document: ExplainedDocument) -> dict[str, float]:
    return {part.term: part.amount for part in document.explanation.contributions}


def _heaviest(amounts: Mapping[str, float], most: int) -> list[str]:
    return sorted(amounts, key=lambda term: (-abs(amounts[term]), term))[:most]


def _heading(document: ExplainedDocument, is_hybrid: bool) -> str:
    explanation = document.explanation
    if explanation.filtered_out:
        score = f"{explanation.score:.{decimals([explanation.score])}f}"
        rank = f"filtered out: {explanation.filtered_out}; otherwise its score would be {score}"
    elif not explanation.matched:
        rank = "not retrieved, because the query does not match it"
    else:
        rank = f"beyond rank {RANKED}" if document.rank is None else f"rank {document.rank}"
    parts = sides(explanation) if is_hybrid else {}
    said = ", ".join(f"{name} {amount:.{decimals([amount])}f}" for name, amount in parts.items())
    return f"{titled(document.title, explanation.docid)}: {rank}" + (f" ({said})" if said else "")


def _shortened(term: str) -> str:
    text = printable(term)
    return text if len(text) <= _WIDEST_TERM else f"{text[: _WIDEST_TERM - 1]}…"
