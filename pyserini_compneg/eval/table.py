"""Results as rows, and rows as aligned text, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_compneg.eval.measures import Measure, mean

TABLE_FORMATS = ("text", "markdown", "json")

PerQuery = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one run over one class of queries.

    Attributes:
        group: The class, or ``all``.
        n_queries: How many queries it has.
        run: The run's label.
        values: ``{measure name: mean}``.
    """

    group: str
    n_queries: int
    run: str
    values: dict[str, float]


def make_rows(results: Mapping[str, PerQuery], measures: Sequence[Measure], groups: Mapping[str, str]) -> list[Row]:
    """The rows of a table: for each class in order of its first query, and for ``all``, one for each run.

    Args:
        results: ``{run label: what evaluate() returned}``, all for the same queries, at least one.
        measures: The measures of the results.
        groups: ``{qid: class}``; without any, there is only ``all``.
    """
    qids = list(next(iter(results.values())))
    members: dict[str, list[str]] = {}
    for qid in qids if groups else []:
        members.setdefault(groups[qid], []).append(qid)
    return [
        Row(group, len(chosen), run, {measure.name: mean(per_query, measure, chosen) for measure in measures})
        for group, chosen in [*members.items(), ("all", qids)]
        for run, per_query in results.items()
    ]


def render(rows: Sequence[Row], label: str | None, table_format: str = "text") -> str:
    """Renders rows: a line for each class and the runs side by side, or a line for each run if there is one class.

    Args:
        rows: What :func:`make_rows` returned.
        label: What the classes are, for example ``template``; ``None`` when there is only ``all``.
        table_format: One of ``TABLE_FORMATS``. JSON has one object a row and unrounded means, the others four places.
    """
    if table_format == "json":
        return json.dumps([_json_row(row, label) for row in rows], ensure_ascii=False, indent=2) + "\n"
    if label is None:
        header = [["run", "queries", *rows[0].values]]
        body = [[row.run, str(row.n_queries), *_four_places(row)] for row in rows]
    else:
        header, body = _side_by_side(rows, label)
    return _markdown(header, body) if table_format == "markdown" else _text(header, body)


def run_labels(paths: Sequence[str]) -> list[str]:
    """Short names for runs: the file names, with as many folders before them as it takes to tell them apart.

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
    group = {} if label is None else {label: row.group}
    return {"run": row.run, **group, "queries": row.n_queries, "measures": row.values}


def _side_by_side(rows: Sequence[Row], label: str) -> tuple[list[list[str]], list[list[str]]]:
    """Two lines of header, measures over runs (or one, if there is one run), and a line for each class."""
    runs = list(dict.fromkeys(row.run for row in rows))
    measures = list(rows[0].values)
    header = [[label, "queries", *measures]]
    if len(runs) > 1:
        header = [
            ["", "", *(measure for measure in measures for _ in runs)],
            [label, "queries", *(run for _ in measures for run in runs)],
        ]
    body = []
    for start in range(0, len(rows), len(runs)):
        side_by_side = rows[start : start + len(runs)]
        values = [f"{row.values[measure]:.4f}" for measure in measures for row in side_by_side]
        body.append([side_by_side[0].group, str(side_by_side[0].n_queries), *values])
    return header, body


def _four_places(row: Row) -> list[str]:
    return [f"{value:.4f}" for value in row.values.values()]


def _text(header: list[list[str]], body: list[list[str]]) -> str:
    lines = header + body
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def _markdown(header: list[list[str]], body: list[list[str]]) -> str:
    titles = [" ".join(filter(None, cells)) for cells in zip(*header, strict=True)]
    rule = ["---", *("---:" for _ in titles[1:])]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in [titles, *body]]
    return "".join(f"| {' | '.join(line)} |\n" for line in [lines[0], rule, *lines[1:]])
