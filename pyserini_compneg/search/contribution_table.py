"""Why documents stand where they stand, as text: signed bars of what terms add to a score, and of how two differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyserini_compneg.search.columns import Bars, fitted, places, width
from pyserini_compneg.search.display import titled
from pyserini_compneg.search.query_explanation import RANKED, ExplainedDocument

Paint: TypeAlias = Callable[[str, float], str]
"""Colours a text by the sign of a number."""

_WIDEST_TERM = 28
_LEAST_BAR = 10
_COMPARED = ("A", "B", "A - B")


def document_lines(documents: Sequence[ExplainedDocument], columns: int, most: int, paint: Paint) -> Iterator[str]:
    """The lines that explain documents: two beside each other with their difference, others one after another.

    Two documents have the terms that decide between them first. All bars have the same scale.

    Args:
        documents: The documents.
        columns: How wide the lines may be; terms, numbers and short bars may need more.
        most: Terms shown, those of largest magnitude; the others are added up in one line.
        paint: Colours the bars.
    """
    if len(documents) == 2:
        rows = _difference_rows(documents, most)
        for letter, document in zip(_COMPARED, documents, strict=False):
            yield f"{letter}  {_heading(document)}"
        yield ""
        yield from _Table.fitting(rows, columns, _COMPARED).lines(rows, paint)
        return
    tables = [_rows(document, most) for document in documents]
    table = _Table.fitting([row for rows in tables for row in rows], columns)
    for number, (document, rows) in enumerate(zip(documents, tables, strict=True)):
        yield from ["", _heading(document)] if number else [_heading(document)]
        yield from table.lines(rows, paint)


class _Row(NamedTuple):
    """A term, what it adds to each score, and, where there are two, the difference; the last number has the bar."""

    name: str
    numbers: Sequence[float]
    has_bar: bool = True


class _Table(NamedTuple):
    """How wide the columns of a table are."""

    header: Sequence[str]
    name_width: int
    number_width: int
    digits: int
    bars: Bars

    @classmethod
    def fitting(cls, rows: Sequence[_Row], columns: int, header: Sequence[str] = ()) -> _Table:
        digits = places([number for row in rows for number in row.numbers], 3)
        name_width = min(max((width(row.name) for row in rows), default=0), _WIDEST_TERM)
        number_width = max((len(f"{number:.{digits}f}") for row in rows for number in row.numbers), default=0)
        count = max((len(row.numbers) for row in rows), default=0)
        room = columns - name_width - count * (number_width + 2) - 2
        bars = Bars.fitting([row.numbers[-1] for row in rows if row.has_bar], max(room, _LEAST_BAR))
        return cls(header, name_width, number_width, digits, bars)

    def lines(self, rows: Sequence[_Row], paint: Paint) -> Iterator[str]:
        if self.header:
            yield " " * self.name_width + "".join(f"  {name:>{self.number_width}}" for name in self.header)
        for name, numbers, has_bar in rows:
            cells = (f"  {number + 0.0:>{self.number_width}.{self.digits}f}" for number in numbers)
            bar = self.bars.bar(numbers[-1]) if has_bar else ""
            yield fitted(name, self.name_width) + "".join(cells) + (f"  {paint(bar, numbers[-1])}" if bar else "")


def _rows(document: ExplainedDocument, most: int) -> list[_Row]:
    amounts = _amounts(document)
    shown = sorted(_heaviest(amounts, most), key=lambda term: (-amounts[term], term))
    return _with_totals([amounts], shown, [document.explanation.score])


def _difference_rows(documents: Sequence[ExplainedDocument], most: int) -> list[_Row]:
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
        place = "not retrieved, as the query does not match it"
    else:
        place = f"beyond rank {RANKED}" if document.rank is None else f"rank {document.rank}"
    return f"{titled(document.title, document.explanation.docid)}: {place}"
