"""The report as Markdown, such as GitHub shows it, with links to the plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyserini_compneg.reproduce.characters import printable
from pyserini_compneg.reproduce.report.contents import Contents
from pyserini_compneg.reproduce.report.drawing import Plot
from pyserini_compneg.reproduce.report.examples import Card, Chip
from pyserini_compneg.reproduce.report.tables import Entry, Line, Table

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile(r"([\\`*_\[\]|~#$])")


def escape(text: str) -> str:
    r"""Text that Markdown shows as it is, in a paragraph or a cell: on one line, whatever signs it holds.

    >>> escape("a_b | <i> & *c*\nd")
    'a\\_b \\| &lt;i&gt; &amp; \\*c\\* d'
    """
    line = "".join(_ENTITIES.get(character, character) for character in printable(" ".join(text.split())))
    return _SPECIAL.sub(r"\\\1", line)


def render_markdown(contents: Contents, figures: str) -> str:
    """The whole report.

    Args:
        contents: What to write.
        figures: The folder of the plots, relative to the report.
    """
    return "\n".join(_blocks(contents, figures)) + "\n"


def _blocks(contents: Contents, figures: str) -> Iterator[str]:
    yield f"# {escape(contents.title)}\n"
    yield f"{escape(contents.about)}\n"
    yield "## Dataset\n"
    if contents.warning:
        yield f"> **{escape(contents.warning)}**\n"
    yield _pairs(contents.dataset)
    yield "Make this report again:\n"
    yield _code(contents.command)
    for part in contents.parts:
        yield from _table_blocks(part.table)
        yield from (_plot(plot, figures) for plot in part.plots)
        if part.table.uncomputed:
            yield f"{escape(part.table.uncomputed)}\n"
        if part.table.command:
            yield "Compute these figures again, in the folder of this report, from the run files:\n"
            yield _code(part.table.command)
        if part.table.row_commands:
            yield "<details>\n<summary>Each row by itself</summary>\n"
            yield _code("\n".join(part.table.row_commands.values()))
            yield "</details>\n"
    if contents.curves:
        yield "## Curves\n"
        yield from (_plot(plot, figures) for plot in contents.curves)
    if contents.examples:
        yield "## Examples\n"
    for title, groups in contents.examples.items():
        yield f"### {escape(title)}\n"
        for group in groups:
            yield f"<details{' open' if group.is_open else ''}>\n<summary>{escape(group.method)}</summary>\n"
            for card in group.cards:
                yield from _card(card)
            yield "</details>\n"
    yield "## Settings\n"
    yield _pairs(contents.settings)
    yield contents.effort


def _table_blocks(table: Table) -> Iterator[str]:
    yield f"## {escape(table.title)} ({table.queries})\n"
    if table.finding:
        yield f"{escape(table.finding)}\n"
    yield _results(table)
    if table.legend:
        yield f"{escape(' '.join(table.legend.values()))}\n"
    if table.notes:
        yield "\n".join(f"{number}. {escape(note)}" for number, note in enumerate(table.notes, 1)) + "\n"


def _results(table: Table) -> str:
    header, rule = ["method", "formula"], ["---", "---"]
    if table.has_letters:
        header, rule = ["", *header], ["---", *rule]
    for column in table.columns:
        title = escape(column.title)
        header += [title, f"{title}, paper"] if column.has_paper else [title]
        rule += ["---:"] * (2 if column.has_paper else 1)
    return _rows([header, rule, *(_line(line, table) for line in table.lines)])


def _line(line: Line, table: Table) -> list[str]:
    name = escape(line.name) + (f"<sup>{line.note}</sup>" if line.note else "")
    cells = [line.letter] if table.has_letters else []
    formula = (f"<sub>{escape(text)}</sub>" if is_index else escape(text) for text, is_index in line.formula)
    cells += [f"{name} (published)" if line.is_published_only else name, "".join(formula)]
    for entry, column in zip(line.entries, table.columns, strict=True):
        cells.append(_entry(entry))
        if column.has_paper:
            cells.append(entry.published or "–")
    return cells


def _entry(entry: Entry) -> str:
    if not entry.value:
        return "–"
    value = f"**{entry.value}**" if entry.is_best else entry.value
    letters = f"<sup>{entry.letters}</sup>" if entry.letters else ""
    return value + letters + (f"<br><sub>{entry.interval}</sub>" if entry.interval else "")


def _card(card: Card) -> Iterator[str]:
    example = card.example
    yield f"#### {escape(example.text)}\n"
    method, baseline = escape(example.method), escape(example.baseline)
    rows = [
        ["query", escape(example.qid)],
        ["---", "---"],
        ["expression", escape(example.expression)],
        [escape(card.measure), f"{method} {card.value}, {baseline} {card.baseline_value}: **{card.difference}**"],
    ]
    rows += [["raises a score", _chips(card.positive)]] if card.positive else []
    rows += [["lowers it", _chips(card.negative)]] if card.negative else []
    rows += [[f"only in {method}'s first ten", _listed(example.gained)]] if example.gained else []
    rows += [[f"only in {baseline}'s first ten", _listed(example.lost)]] if example.lost else []
    yield _rows(rows)


def _chips(chips: Sequence[Chip]) -> str:
    return ", ".join(f"{escape(chip.term)} **{chip.weight}**" for chip in chips)


def _listed(names: Iterable[str]) -> str:
    return "<br>".join(map(escape, names))


def _plot(plot: Plot, figures: str) -> str:
    return f"![{escape(plot.alt)}]({figures}/{plot.name}.png)\n\n{escape(plot.caption)}\n"


def _pairs(names: Mapping[str, str]) -> str:
    return _rows([["name", "value"], ["---", "---"], *([escape(name), escape(value)] for name, value in names.items())])


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _code(text: str) -> str:
    """A block whose fence is longer than any in the text."""
    text = printable(text)
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{text}\n{fence}\n"
