"""Formats rows as aligned text or JSON."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from string import ascii_letters

from pyserini_compneg.eval.measures import Measure
from pyserini_compneg.eval.rows import PerQuery, Row
from pyserini_compneg.eval.significance import LEVEL, PairedDifference
from pyserini_compneg.support.terminal import printable

TABLE_FORMATS = ("text", "json")

_LEAST_P = 0.0001
_MARK = "\0"
"""Separates a cell from its letters until columns are aligned. File names do not contain it."""


def render(rows: Sequence[Row], label: str | None, table_format: str = "text") -> str:
    """Renders rows: a line for each run, or with several classes a line for each class and the runs side by side.

    If runs were compared, each run has a letter. Letters after a value name the runs that this run is significantly
    better than: ``0.2580^a``; see :func:`row_letters`. With two runs, the p-values of their difference are shown.
    ``label`` is the name of the classes, such as ``template``; None if there is only ``all``. JSON has an object for
    each row and does not round; text has four decimals.
    """
    if table_format == "json":
        return json.dumps([_json_row(row, label) for row in rows], ensure_ascii=False, indent=2) + "\n"
    rows = [replace(row, run=printable(row.run), group=printable(row.group)) for row in rows]
    runs = list(dict.fromkeys(row.run for row in rows))
    compared = any(figure.against for row in rows for figure in row.figures.values()) and len(runs) > 1
    letters = row_letters(runs) if compared else {}
    if label is None:
        header = [["run", "queries", *rows[0].figures]]
        body = [[_marked(row.run, letters.get(row.run, "")), *_numbers(row, letters)] for row in rows]
        if len(letters) == 2:
            body.append(["p", "", *_p_values(rows[0])])
    else:
        header, body = _side_by_side(rows, label, letters)
    return _text(header, body) + (_legend(len(runs)) if letters else "")


def per_query_csv(results: Mapping[str, PerQuery], measures: Sequence[Measure]) -> str:
    """The value of each measure for each run and query as CSV, unrounded, below a line of names.

    >>> print(per_query_csv({"a.txt": {"1": {"map": 0.5}}}, [Measure("map", None)]), end="")
    run,query,map
    a.txt,1,0.5
    """
    names = [measure.name for measure in measures]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["run", "query", *names])
    for run, values in results.items():
        lines.writerows([run, qid, *(value[name] for name in names)] for qid, value in values.items())
    return text.getvalue()


def row_letters(rows: Iterable[str]) -> dict[str, str]:
    """A letter for each of the first 52 rows, and two letters for each later row.

    >>> list(row_letters(map(str, range(54))).values())[-3:]
    ['Z', 'aa', 'ab']
    """
    lengths = (itertools.product(ascii_letters, repeat=length) for length in itertools.count(1))
    return dict(zip(rows, map("".join, itertools.chain.from_iterable(lengths)), strict=False))


def superscript(letters: Mapping[str, str], better_than: Collection[str]) -> str:
    """The letters of some rows. If there are rows with two letters, commas separate them.

    >>> superscript({"x": "a", "y": "b", "z": "c"}, ["z", "x"])
    'ac'
    """
    separator = "," if len(letters) > len(ascii_letters) else ""
    return separator.join(letter for row, letter in letters.items() if row in better_than)


def run_labels(paths: Sequence[str]) -> list[str]:
    """Short names for runs: file names, preceded by as many folders as are needed to distinguish them.

    >>> run_labels(["runs/cpt/dev.txt", "runs/maxpool/dev.txt", "bm25.txt"])
    ['cpt/dev.txt', 'maxpool/dev.txt', 'bm25.txt']
    >>> run_labels(["a.txt", "a.txt"])
    ['a.txt', 'a.txt (2)']
    """
    labels: list[str] = []
    for path in paths:
        others = {other for other in paths if other != path}
        parts = Path(path).parts
        endings = ("/".join(parts[start:]) for start in range(len(parts) - 1, 0, -1))
        label = next((end for end in endings if all(_ending(other, end) != end for other in others)), path)
        same = paths[: len(labels)].count(path)
        labels.append(f"{label} ({same + 1})" if same else label)
    return labels


def _ending(path: str, like: str) -> str:
    return "/".join(Path(path).parts[-len(Path(like).parts) :])


def _json_row(row: Row, label: str | None) -> dict[str, object]:
    record: dict[str, object] = {"run": row.run, **({} if label is None else {label: row.group})}
    record |= {"queries": len(row.per_query), "measures": {name: one.value for name, one in row.figures.items()}}
    if intervals := {name: one.interval for name, one in row.figures.items() if one.interval}:
        record["confidence_intervals"] = intervals
    if comparisons := {name: _json_comparisons(one.against) for name, one in row.figures.items() if one.against}:
        record["comparisons"] = comparisons
    return record


def _json_comparisons(against: Mapping[str, PairedDifference]) -> list[dict[str, object]]:
    return [
        {
            "with": other,
            "difference": one.difference,
            "confidence_interval": one.interval,
            "t_test": asdict(one.t_test),
            "randomisation": one.randomisation and asdict(one.randomisation),
        }
        for other, one in against.items()
    ]


def _side_by_side(
    rows: Sequence[Row], label: str, letters: Mapping[str, str]
) -> tuple[list[list[str]], list[list[str]]]:
    """The header, a line of measures and with several runs a line of runs, and the body, a line for each class."""
    runs = list(dict.fromkeys(row.run for row in rows))
    measures = list(rows[0].figures)
    with_p = len(letters) == 2
    header = [[label, "queries", *measures]]
    if len(runs) > 1:
        columns = [*(_marked(run, letters.get(run, "")) for run in runs), *(["p"] if with_p else [])]
        header = [
            ["", "", *(measure for measure in measures for _ in columns)],
            [label, "queries", *columns * len(measures)],
        ]
    body = []
    for start in range(0, len(rows), len(runs)):
        side_by_side = [_numbers(row, letters) for row in rows[start : start + len(runs)]]
        if with_p:
            side_by_side.append(["", *_p_values(rows[start])])
        (queries, *_), *values = zip(*side_by_side, strict=True)
        body.append([rows[start].group, queries, *itertools.chain.from_iterable(values)])
    return header, body


def _numbers(row: Row, letters: Mapping[str, str]) -> list[str]:
    """The number of queries, and the values with the letters of the runs that this run is better than."""
    values = [_marked(f"{one.value:.4f}", superscript(letters, one.better_than())) for one in row.figures.values()]
    return [str(len(row.per_query)), *values]


def _p_values(row: Row) -> list[str]:
    """The p-value of each measure, for one of two runs; empty if the runs are not compared."""
    values = [next((other.t_test.raw for other in one.against.values()), None) for one in row.figures.values()]
    return ["" if p is None else _p_text(p) for p in values]


def _p_text(p: float) -> str:
    return f"{p:.4f}" if p >= _LEAST_P or p == 0 else f"<{_LEAST_P:.4f}"


def _marked(cell: str, letters: str) -> str:
    return f"{cell}{_MARK}{letters}" if letters else cell


def _legend(n_runs: int) -> str:
    pairs = n_runs * (n_runs - 1) // 2
    correction = f", Holm's correction for {pairs} comparisons" if pairs > 1 else ""
    return f"\nA letter after a value: better than that run (paired t-test, p < {LEVEL}{correction}).\n"


def _text(header: list[list[str]], body: list[list[str]]) -> str:
    names, *columns = zip(*body, strict=True)
    lines = header + [list(line) for line in zip(names, *map(_aligned, columns), strict=True)]
    name_width, *widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ""
    for name, *cells in lines:
        aligned = [name.ljust(name_width), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))]
        text += "  ".join(aligned).replace(_MARK, "^").rstrip() + "\n"
    return text


def _aligned(column: Sequence[str]) -> list[str]:
    """A column whose digits stay aligned regardless of the letters after them."""
    letters = [len("".join(cell.partition(_MARK)[1:])) for cell in column]
    width = max(letters)
    return [cell + " " * (width - length) for cell, length in zip(column, letters, strict=True)]
