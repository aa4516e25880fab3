"""Explanations for people, drawn with rich: the tree and the terms of a query, and the contributions to a score."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TextIO, TypeAlias

from rich.bar import Bar
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pyserini_compneg.baselines import PartMatches
from pyserini_compneg.compose import (
    All,
    Damped,
    Excluding,
    Linear,
    Max,
    Product,
    QueryTerm,
    ScoringNode,
    Sum,
    query_terms,
)
from pyserini_compneg.display.concepts import named
from pyserini_compneg.display.hit_list import decimals, titled
from pyserini_compneg.display.query_explanation import RANKED, ExplainedQuery, sides
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Filter, Intersection, Union, verbalise
from pyserini_compneg.search import Explanation
from pyserini_compneg.support.terminal import printable
from pyserini_compneg.support.vectors import PAIR_SIGN, add, complement_term

_PLAIN_WIDTH = 100
_ATOM_TERMS = 8
_WIDEST_TERM = 32
_BAR_WIDTH = 40
_LEAST_BAR = 4
_COMPARED = ("A", "B", "A - B")

_Row: TypeAlias = tuple[str, Sequence[float]]
"""A term and its contribution to each score. Side by side, the last number is the difference."""


def draw(handle: TextIO, parts: Sequence[RenderableType]) -> None:
    """Writes drawings: in colour and at the terminal's width, or elsewhere as plain text of 100 columns."""
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
    """A drawing without control characters, so its texts cannot control the terminal."""

    def __init__(self, part: RenderableType) -> None:
        self._part = Text(printable(part)) if isinstance(part, str) else part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._part, options):
            yield Segment("\n".join(map(printable, text.split("\n"))), style, control)


def _least_width(part: RenderableType) -> int:
    """The number of columns that a table needs without its bars."""
    return Console(width=1000).measure(part).minimum if isinstance(part, Table) else 0


def query_drawing(explained: ExplainedQuery, most: int) -> list[RenderableType]:
    """A query's tree and its composed form, with the ``most`` heaviest terms of each vector and conjunction."""
    lines = list(_ComposedForm(explained.weight_scale, most, explained.concepts).lines(explained.node))
    width = max((len(label) for label, terms in lines if terms), default=0)
    composed: list[RenderableType] = [_term_list(label, terms, width) if terms else label for label, terms in lines]
    return [*_tree_drawing(explained), *composed]


def _tree_drawing(explained: ExplainedQuery) -> list[RenderableType]:
    """The tree. Empty for a composed query, which has no tree."""
    return [] if explained.expression is None else [_tree(explained.expression, explained), ""]


def documents_drawing(explained: ExplainedQuery, most: int) -> list[RenderableType]:
    """The query's tree, and for each document a table of the ``most`` terms that contribute most to its score.

    Two documents share a table, which is ordered by the difference between their contributions.
    """
    documents = [document.in_unit(explained.unit) for document in explained.documents]
    tree, concepts = _tree_drawing(explained), explained.concepts
    headings = [_heading(document, explained.is_hybrid, concepts) for document in documents]
    if len(documents) == 2:
        headings = [f"{letter}  {heading}" for letter, heading in zip(_COMPARED, headings, strict=False)]
        return [*tree, *headings, "", _contribution_tables([_compared_rows(documents, most)], _COMPARED, concepts)[0]]
    tables = _contribution_tables([_rows(document, most) for document in documents], concepts=concepts)
    parts = [part for heading, table in zip(headings, tables, strict=True) for part in (heading, table, "")]
    return [*tree, *parts[:-1]]


def matches_drawing(
    titles: Mapping[str, str | None], matches: Mapping[str, Sequence[PartMatches]]
) -> list[RenderableType]:
    """For each document and part of a query, a table of the tokens that met, with their similarities."""
    parts = [part for of_document in matches.values() for part in of_document]
    rows = [
        [*((f"{token} → {met}", [similarity]) for token, met, similarity in part.tokens), ("score", [part.score])]
        for part in parts
    ]
    tables = iter(_contribution_tables(rows))
    drawn: list[RenderableType] = []
    for docid, of_document in matches.items():
        drawn += ["", f"{titled(titles[docid], docid)}: what each token met"]
        for part in of_document:
            drawn += [part.text, next(tables)]
    return drawn


def _tree(expression: Expression | Filter, explained: ExplainedQuery) -> Tree:
    """The tree, with an operator or an atom on each line, and each atom's terms."""
    if isinstance(expression, Filter):
        return Tree(Text(str(expression)))
    if isinstance(expression, Atom):
        terms = _terms(explained.atoms[expression.text], explained.weight_scale)
        shown = ", ".join(_weighted(terms, _ATOM_TERMS, explained.concepts)) or "no known term"
        return Tree(Text(f"{expression.text}: {shown}"))
    members: Sequence[Expression | Filter]
    names = explained.operators.names
    match expression:
        case Union(operands):
            sign, name, members = "OR", names["union"], operands
        case Intersection(operands, strict=strict):
            sign, name, members = "AND!" if strict else "AND", names["intersection"], operands
        case Difference(left, right):
            sign, name, members = "NOT", names["difference"], (left, right)
        case Exclusion(left, right):
            sign, name, members = "NOT!", str(explained.operators.exclusion), (left, right)
    if name == "vanilla" and not isinstance(expression, Exclusion):  # nothing below is encoded
        members = (Atom(verbalise(expression)),)
    tree = Tree(f"{sign} ({name})")
    tree.children += [_tree(member, explained) for member in members]
    return tree


_Line: TypeAlias = tuple[str, list[str]]
"""A label and the terms beside it. A heading has no terms."""


class _ComposedForm(NamedTuple):
    """Describes scoring trees: weights are divided by ``scale``, and the ``most`` heaviest of each vector are shown."""

    scale: float
    most: int
    concepts: Sequence[str]

    def lines(self, node: ScoringNode) -> Iterator[_Line]:
        """The summands of a tree: first the summands that are not vectors, then one vector for the rest."""
        vectors = []
        for part in _summands(node):
            match part:
                case Linear(weights):
                    vectors.append(weights)
                case Product():
                    yield from self._conjunction(part)
                case Max(children):
                    for number, child in enumerate(children, 1):
                        yield f"alternative {number}{' (the best alternative counts)' * (number == 1)}", []
                        yield from _indented(self.lines(child))
                case All():
                    yield "all documents, with the score 0", []
                case Damped():
                    yield from self._damped(part)
                case Excluding():
                    yield from self._excluding(part)
                case _:  # a kind that has no drawing of its own
                    for number, child in enumerate(part.children, 1):
                        yield f"{type(part).__name__.lower()}, part {number}", []
                        yield from _indented(self.lines(child))
        terms = _terms(Linear(reduce(add, vectors, {})), self.scale)
        for label, sign in (("positive", 1), ("negative", -1)):
            if signed := [term for term in terms if term.weight * sign > 0]:
                yield label, _weighted(signed, self.most, self.concepts)

    def _heaviest(self, node: ScoringNode) -> list[str]:
        return _weighted(_terms(node, self.scale), self.most, self.concepts)

    def _damped(self, node: Damped) -> Iterator[_Line]:
        least = ", no further than near the fourth best score" if node.floor else ""
        yield f"lowered by up to {node.weight:.0%}{least}", []
        yield from _indented(self.lines(node.child))
        for excluded in node.excluded:
            linear = self._heaviest(excluded) if isinstance(excluded, Linear) else []
            yield "excluded", linear
            if not linear:
                yield from _indented(self.lines(excluded))

    def _excluding(self, node: Excluding) -> Iterator[_Line]:
        """The excluded documents: documents with a term of each operand, or with a score above a limit."""
        yield from self.lines(node.child)
        for part, limit in zip(node.excluded, node.above, strict=True):
            if isinstance(part, Filter):
                yield "left out", [str(part)]
                continue
            for number, operand in enumerate(part.operands if isinstance(part, Product) else (part.weights,)):
                label = (
                    "and with" if number else f"left out above {limit / self.scale:.3g}" if limit else "left out with"
                )
                yield label, self._heaviest(Linear(operand)) if limit else self._named(sorted(operand))
        for needed in node.required:
            yield f"only with{' any of' * (len(needed.weights) > 1)}", self._named(needed.weights)

    def _named(self, terms: Iterable[str]) -> list[str]:
        return [named(term, self.concepts) for term in terms]

    def _conjunction(self, node: Product) -> Iterator[_Line]:
        scored = "" if node.is_sum_over_tuples else f", power {node.exponent:g}, root {node.root}"
        scored += "" if node.weight == 1 else f", weight {node.weight:.3g}"
        yield f"conjunction of {len(node.operands)} operands{scored}", []
        for number, (operand, count) in enumerate(node.factors, 1):
            yield f"  operand {number}" + ("" if count == 1 else f" × {count}"), self._heaviest(Linear(operand))
        yield f"  {'pairs' if len(node.operands) == 2 else 'tuples'}", self._heaviest(node)


def _indented(lines: Iterator[_Line]) -> Iterator[_Line]:
    return ((f"  {label}", terms) for label, terms in lines)


def _summands(node: ScoringNode) -> Iterator[ScoringNode]:
    if isinstance(node, Sum):
        for child in node.children:
            yield from _summands(child)
    else:
        yield node


def _term_list(label: str, terms: Sequence[str], width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=width)
    table.add_column(min_width=max(map(cell_len, terms)))
    table.add_row(label, Columns(terms, padding=(0, 2)))
    return table


def _terms(node: ScoringNode, scale: float) -> list[QueryTerm]:
    """The weights of a query, without complement terms, which repeat weights for an index of signed documents."""
    terms = query_terms(node, scale)
    implied = {complement_term(term): -weight for term, weight in terms}
    return [term for term in terms if implied.get(term.term) != term.weight]


def _weighted(terms: Sequence[QueryTerm], most: int, concepts: Sequence[str]) -> list[str]:
    digits = decimals([weight for _, weight in terms], 2)
    texts = [f"{_shortened(term, concepts)} {weight:.{digits}f}" for term, weight in terms[:most]]
    return texts if len(terms) <= most else [*texts, f"{len(terms) - most} more"]


def _contribution_tables(
    tables: Sequence[Sequence[_Row]], header: Sequence[str] = ("",), concepts: Sequence[str] = ()
) -> list[Table]:
    """Tables of terms, numbers and bars. The last row has the scores and no bar. All bars have the same scale."""
    with_bars = [numbers[-1] for rows in tables for _, numbers in rows[:-1]]
    low, high = min([0.0, *with_bars]), max([0.0, *with_bars])
    digits = decimals([number for rows in tables for _, numbers in rows for number in numbers])
    drawn = []
    for rows in tables:
        table = Table(box=None, show_header=any(header), pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        cells = [
            [_shortened(term, concepts), *(f"{number + 0.0:.{digits}f}" for number in numbers)]
            for term, numbers in rows
        ]
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


def _rows(document: Explanation, most: int) -> list[_Row]:
    amounts = dict(document.contributions)
    shown = sorted(_heaviest(amounts, most), key=lambda term: (-amounts[term], term))
    return _with_totals([amounts], shown, [document.score])


def _compared_rows(documents: Sequence[Explanation], most: int) -> list[_Row]:
    a, b = (dict(document.contributions) for document in documents)
    differences = {term: a.get(term, 0.0) - b.get(term, 0.0) for term in {**a, **b}}
    deciding = {term: difference for term, difference in differences.items() if difference}
    first, second = (document.score for document in documents)
    return _with_totals([a, b, differences], _heaviest(deciding, most), [first, second, first - second])


def _with_totals(amounts: Sequence[Mapping[str, float]], shown: Sequence[str], scores: Sequence[float]) -> list[_Row]:
    """A row for each shown term, a row for all other terms, and a row for the scores."""
    rows: list[_Row] = [(term, [column.get(term, 0.0) for column in amounts]) for term in shown]
    if others := {term for column in amounts for term in column} - set(shown):
        sums = [math.fsum(column.get(term, 0.0) for term in others) for column in amounts]
        rows.append((f"{len(others)} {'other' if shown else 'term'}{'s' * (len(others) > 1)}", sums))
    return [*rows, ("score", scores)]


def _heaviest(amounts: Mapping[str, float], most: int) -> list[str]:
    return sorted(amounts, key=lambda term: (-abs(amounts[term]), term))[:most]


def _heading(document: Explanation, is_hybrid: bool, concepts: Sequence[str] = ()) -> str:
    if document.filtered_out:
        score = _decimal(document.score)
        rank = f"filtered out: {named(document.filtered_out, concepts)}; otherwise its score would be {score}"
    elif not document.matched:
        rank = "not retrieved, because the query does not match it"
    else:
        rank = f"beyond rank {RANKED}" if document.rank is None else f"rank {document.rank}"
    rank += "" if document.passage is None else f", by passage {document.passage}"
    for one in document.lowered:
        before, after = _decimal(one.before), _decimal(one.after)
        part = "" if after == _decimal(document.score) else "a part "
        if before != after:
            rank += f", {part}lowered from {before} to {after} by r = {one.r:.3f}"
    amounts = sides(document) if is_hybrid else {}
    listed = ", ".join(f"{name} {_decimal(amount)}" for name, amount in amounts.items())
    return f"{titled(document.title, document.docid)}: {rank}" + (f" ({listed})" if listed else "")


def _decimal(number: float) -> str:
    return f"{number:.{decimals([number])}f}"


def _shortened(term: str, concepts: Sequence[str]) -> str:
    """The term as it is shown. If concepts are named in it, each part of a pair is shortened alone."""
    text = named(term, concepts)
    parts = [term] if text == term else text.split(PAIR_SIGN)
    return PAIR_SIGN.join(
        part if len(part) <= _WIDEST_TERM else f"{part[: _WIDEST_TERM - 1]}…" for part in map(printable, parts)
    )
