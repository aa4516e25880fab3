"""The report of an experiment: one Markdown page for GitHub, with plots as PNG files beside it."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

from pyserini_compneg.encode.models import Head
from pyserini_compneg.eval import LEVEL, row_letters, superscript
from pyserini_compneg.lab.experiments.datasets.opening import TITLES
from pyserini_compneg.lab.experiments.inputs import REMEDY, TERM_MEASURES, WORD_SPACE
from pyserini_compneg.lab.experiments.plots import draw_activations, draw_bars, draw_curve, draw_framework, draw_shares
from pyserini_compneg.lab.experiments.results import Curve, Example, Results, RowRun, Section, shown_figure, unit
from pyserini_compneg.support.errors import InputError, OutputError, install_hint
from pyserini_compneg.support.files import reason_of
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.support.surrogates import HALVES

FIGURES = "figures"
_OWN_PLOTS = ("section-*.png", "curve-*.png", "framework-*.png", "activations.png")

_EQUAL = 1e-9
"""Values this close are equal: they are sums of the same terms in different orders."""

_UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{HALVES}]")
"""Control characters, and halves of surrogate pairs, which cannot be written."""

_SPECIAL = re.compile(r"([\\`*_\[\]|~#$])")


def check_packages() -> None:
    """Raises an error without matplotlib, before hours of runs."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as cause:
        remedy = install_hint("report")
        raise InputError(f"a report needs the package matplotlib ({cause})", remedy=remedy) from None


def write_report(results: Results, folder: Path) -> None:
    """Writes ``report.md`` and ``figures/*.png`` beside the runs. Equal results give equal bytes.

    All content is made before the first file is written. Unused plots of an earlier report are removed.
    """
    check_packages()
    plots = {f"{name}.png": png for name, png in _plots(results) if png is not None}
    page = "\n".join(_page(results, plots)) + "\n"
    figures = folder / FIGURES
    try:
        figures.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise OutputError(f"cannot be made: {reason_of(cause)}", where=cause.filename, remedy=REMEDY) from None
    for name, png in plots.items():
        with atomic_writer(figures / name, REMEDY) as handle:
            handle.buffer.write(png)
    for path in chain.from_iterable(map(figures.glob, _OWN_PLOTS)):
        if path.name not in plots:
            path.unlink()
    with atomic_writer(folder / "report.md", REMEDY) as handle:
        handle.write(page)


def escape(text: str) -> str:
    r"""Escapes a text so that Markdown shows it literally, in a paragraph or a cell, on one line.

    >>> escape("a_b | <i> & *c*\nd")
    'a\\_b \\| &lt;i&gt; &amp; \\*c\\* d'
    """
    line = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _plots(results: Results) -> Iterator[tuple[str, bytes | None]]:
    for number, section in enumerate(results.sections, 1):
        if section.plan.query:
            yield f"framework-{number}", draw_framework(section)
        elif shares := _shares(results):
            yield f"section-{number}-bars", draw_shares(section, shares)
        else:
            yield f"section-{number}-bars", draw_bars(section, results)
    for number, curve in enumerate(results.curves, 1):
        yield f"curve-{number}", draw_curve(curve)
    if results.heads:
        yield "activations", draw_activations(results.heads)


def _shares(results: Results) -> list[str]:
    """The measures, in the order of their figure, if all are shares of words; otherwise empty."""
    measures = [name for name in TERM_MEASURES if name in results.measures]
    return measures if len(measures) == len(results.measures) else []


def _page(results: Results, plots: Mapping[str, bytes]) -> Iterator[str]:
    """The blocks of the page, each followed by an empty line."""
    yield f"# {escape(results.title)}\n"
    yield f"{escape(results.about)}\n"
    yield "## Dataset\n"
    if not results.is_papers and results.papers_dataset:
        name, other = _dataset_name(results), results.papers_dataset
        yield f"> **{escape(f'{name} is not {other}, which the paper used.')}** Compare the order of figures alone.\n"
    yield _pairs({name: value for name, value in results.dataset.items() if name != "kind" or _is_original(results)})
    if results.statistics:
        lines = [[escape(name), *map(_number, values)] for name, values in results.statistics.items()]
        yield _table([["statistic", "here", "paper"], ["---", "---:", "---:"], *lines])
    yield f"This command made the report:\n\n{_code(results.command)}"
    for number, section in enumerate(results.sections, 1):
        if section.plan.query:
            yield from _terms(section, number, plots)
            continue
        yield from _section(section, results)
        measure = escape(", ".join(_shares(results) or results.measures[:1]))
        if f"section-{number}-bars.png" in plots:
            yield f"![Bars: {measure} of each method]({FIGURES}/section-{number}-bars.png)\n"
        if counts := _counts(section, results):
            yield f"{counts}\n"
        yield from _recomputing(section, results.measures)
    for number, curve in enumerate(results.curves, 1):
        if f"curve-{number}.png" in plots:
            yield from _curve(curve, f"{FIGURES}/curve-{number}.png")
    if "activations.png" in plots:
        yield from _activations(results.heads)
    if results.examples:
        yield "## Examples\n"
    for title, examples in groupby(results.examples, lambda example: example.section):
        yield f"### {escape(title)}\n"
        for method, those in groupby(examples, lambda example: example.method):
            yield f"<details>\n<summary>{escape(method)}</summary>\n"
            for example in those:
                yield f"#### {escape(example.text)}\n\n{_table(_example(example))}"
            yield "</details>\n"
    yield f"## Settings\n\n{_pairs(results.settings)}"
    runs = sum(len(section.ran) for section in results.sections)
    if results.measures:
        yield f"{results.runs_made} of {runs} runs were made for this report, in {results.seconds:,.1f} s."


def _dataset_name(results: Results) -> str:
    """The name of a dataset's kind, or the folder's name."""
    return _kind_title(results) if _is_original(results) else str(results.dataset["name"])


def _is_original(results: Results) -> bool:
    """Whether the dataset is the one that its kind is named after: another collection may have the same format."""
    provenance = results.dataset.get("provenance")
    return provenance is None or _kind_title(results) in str(provenance)


def _kind_title(results: Results) -> str:
    return TITLES.get(str(results.dataset.get("kind")), "This dataset")


def _terms(section: Section, number: int, plots: Mapping[str, bytes]) -> Iterator[str]:
    """The heaviest terms of a query in each row."""
    notes = list(dict.fromkeys(row.plan.note for row in section.rows if row.plan.note))
    is_of_words = any(row.plan.method == WORD_SPACE for row in section.rows)
    header = ["method", "formula", *(["nearest words"] if is_of_words else ["raises a score", "lowers it"])]
    lines = []
    for row, after in itertools.zip_longest(section.rows, section.rows[1:]):
        if row.terms is not None:
            weights = [_weights(row.terms.positive), _weights(row.terms.negative)]
            lines.append([_name(row, notes), _formula(row), *weights][: len(header)])
        if (terms := row.plan.published_terms) and (after is None or after.plan.title != row.plan.title):
            lines.append([_published_name(row, notes), _formula(row), escape(terms), *[""] * (len(header) - 3)])
    yield f"## {escape(section.plan.title)}\n"
    yield f"Query: {escape(section.plan.query)}\n"
    if f"framework-{number}.png" in plots:
        yield f"![The vectors of the atoms, and the vectors of the query]({FIGURES}/framework-{number}.png)\n"
    yield _table([header, ["---"] * len(header), *lines])
    said = "The heaviest terms, by their weights in the composed query; pairs of terms as a∩b."
    yield f"{'The words nearest to the query, by their cosines.' if is_of_words else said}\n"
    yield from _noted(notes)


def _weights(terms: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{escape(term)} **{weight:.2f}**".replace("**-", "**\N{MINUS SIGN}") for term, weight in terms)


def _noted(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield "\n".join(f"{number}. {escape(note)}" for number, note in enumerate(notes, 1)) + "\n"


def _name(row: RowRun, notes: Sequence[str]) -> str:
    return escape(row.name) + _mark(row, notes)


def _published_name(row: RowRun, notes: Sequence[str]) -> str:
    """The name of the row in the paper, whose model is another than that of our row."""
    return f"{escape(row.plan.published_as or row.plan.title)}{_mark(row, notes)} (published)"


def _mark(row: RowRun, notes: Sequence[str]) -> str:
    return f"<sup>{notes.index(row.plan.note) + 1}</sup>" if row.plan.note else ""


def _formula(row: RowRun) -> str:
    return re.sub(r"\\_(\w+)", r"<sub>\1</sub>", escape(row.plan.formula))


def _section(section: Section, results: Results) -> Iterator[str]:
    ran = section.ran
    letters = row_letters(row.name for row in ran) if len(ran) > 1 and section.queries > 1 else {}
    notes = list(dict.fromkeys(row.plan.note for row in section.rows if row.plan.note))
    header = ["", "method", "formula", *(f"{escape(measure)}{unit(measure)}" for measure in results.measures)]
    changes = _changes(section, results.measures[0])
    header += ["change"] if changes else []
    lines = []
    for row, after in itertools.zip_longest(section.rows, section.rows[1:]):
        if row.path:
            line = [letters.get(row.name, ""), _name(row, notes), _formula(row)]
            for measure in results.measures:
                best = _best(ran, measure, results)
                line.append(_value(row, measure, letters, best, measure in results.lower_is_better))
            lines.append(line + [changes.get(row.name, "")] * bool(changes))
        if row.plan.published and (after is None or after.plan.title != row.plan.title):  # once for all encoders
            published = [_shown(row.published(number), measure) for number, measure in enumerate(results.measures)]
            line = ["", _published_name(row, notes), _formula(row), *published]
            lines.append(line + [changes.get(f"{row.plan.title} (published)", "")] * bool(changes))
    rule = [*["---"] * 3, *["---:"] * (len(header) - 3)]
    yield f"## {escape(section.plan.title)} ({section.queries:,} {'query' if section.queries == 1 else 'queries'})\n"
    yield _table([header, rule, *lines])
    has_published = any(row.plan.published for row in section.rows)
    yield f"{' '.join(_legend(bool(letters), has_published, bool(changes), results))}\n"
    yield from _noted(notes)


def _changes(section: Section, measure: str) -> dict[str, str]:
    """The relative changes to other rows: of rows by their names, and of published figures."""
    values = {row.name: row.figures[measure].value for row in section.ran}
    bases = {row.name: row.plan.relative_to + row.name.removeprefix(row.plan.title) for row in section.rows}
    for row in section.rows:
        if (published := row.published(0)) is not None:
            values[name := f"{row.plan.title} (published)"] = published
            bases[name] = f"{row.plan.relative_to} (published)"
    return {
        name: f"{value / base - 1:+.0%}".replace("-", "\N{MINUS SIGN}").replace("%", " %")
        for name, value in values.items()
        if (base := values.get(bases[name]))
    }


def _best(rows: Sequence[RowRun], measure: str, results: Results) -> str | None:
    """The best value of this package's rows, as shown; None if there is only one value."""
    values = [row.figures[measure].value for row in rows]
    best = min if measure in results.lower_is_better else max
    return _shown(best(values), measure) if len(values) > 1 else None


def _value(row: RowRun, measure: str, letters: Mapping[str, str], best: str | None, lower_is_better: bool) -> str:
    if measure not in row.figures:
        return _shown(None, measure)
    figure = row.figures[measure]
    value = shown_figure(figure.value, measure)
    better = superscript(letters, figure.better_than(lower_is_better))
    parts = [f"**{value}**" if value == best else value, f"<sup>{better}</sup>" if better else ""]
    if figure.interval:
        parts.append(f"<br><sub>{' to '.join(shown_figure(end, measure) for end in figure.interval)}</sub>")
    return "".join(parts)


def _shown(value: float | None, measure: str) -> str:
    return "–" if value is None else shown_figure(value, measure)


def _legend(has_letters: bool, has_published: bool, has_changes: bool, results: Results) -> Iterator[str]:
    if has_letters:
        yield "A superscript names the methods that a value is significantly better than (paired t-test,"
        yield f"p &lt; {LEVEL}, Holm's correction over all pairs of rows). Bold: the best value of ours."
    if results.lower_is_better:
        yield f"Lower is better for {escape(' and '.join(results.lower_is_better))}."
    yield "Small print: the 95 % confidence interval of the mean."
    if has_changes:
        yield f"Change: of {escape(results.measures[0])}, relative to another row of the same model (above)."
    if has_published:
        of = f", for {escape(results.papers_dataset)}" if results.papers_dataset else ""
        yield f"Rows (published): the paper's figures{of}, with the paper's models."


def _counts(section: Section, results: Results) -> str:
    """The numbers of queries for which each row is better or worse than the baseline; empty without a baseline."""
    measure = results.measures[0]
    sign = -1 if measure in results.lower_is_better else 1
    baseline, *others = section.ran
    counts = []
    for row in others:
        changes = [sign * (row.per_query[qid][measure] - base[measure]) for qid, base in baseline.per_query.items()]
        better, worse = sum(change > _EQUAL for change in changes), sum(change < -_EQUAL for change in changes)
        if changes:
            counts.append(f"{row.name} {better:,} better, {len(changes) - better - worse:,} equal, {worse:,} worse")
    return escape(f"{measure} of single queries beside {baseline.name}: {'; '.join(counts)}.") if counts else ""


def _recomputing(section: Section, measures: Sequence[str]) -> Iterator[str]:
    """The command that computes the table again from its run files in the folder of the report."""
    runs = [row.path for row in section.ran if row.path]
    options = [word for measure in measures if measure not in TERM_MEASURES for word in ("-m", measure)]
    if left_out := [measure for measure in measures if measure in TERM_MEASURES]:
        yield f"{escape(', '.join(left_out))} need the texts of documents: only the command above computes them.\n"
    if runs and options:
        command = shlex.join(["compneg", "eval", "--qrels", section.qrels, *options, "--run"])
        listed = " \\\n    ".join([command, *map(shlex.quote, runs)])
        yield f"This command computes the table again, in the folder of the report:\n\n{_code(listed)}"


def _curve(curve: Curve, path: str) -> Iterator[str]:
    """A plot, and its points as a table with a column for each x."""
    yield f"## {escape(curve.title)}\n"
    yield f"![Curves through the points of the table below]({path})\n"
    queries = {point.x: point.queries for points in curve.series.values() for point in points}
    xs = sorted(queries)
    lines = [[escape(curve.x_label), *(f"{x:.3g}" for x in xs)], ["---"] + ["---:"] * len(xs)]
    for method, points in curve.series.items():
        values = {point.x: shown_figure(point.y, curve.y_label) for point in points}
        lines.append([escape(method), *(values.get(x, "") for x in xs)])
    yield _table([*lines, [escape(curve.counted), *(f"{queries[x]:,}" for x in xs)]])


def _activations(heads: Mapping[str, Head]) -> Iterator[str]:
    """The weight of a term by its logit in one token, as in Figure 2."""
    yield "## Activations\n"
    yield f"![The weight of a term by its logit, for each model]({FIGURES}/activations.png)\n"
    lines = [[escape(name), head.activation, head.pooling, f"{head.epsilon:g}"] for name, head in heads.items()]
    yield _table([["model", "activation", "pooling", "ε"], ["---", "---", "---", "---:"], *lines])


def _example(example: Example) -> Iterator[Sequence[str]]:
    method, baseline, measure = escape(example.method), escape(example.baseline), example.measure
    yield ["query", escape(example.qid)]
    yield ["---", "---"]
    yield ["expression", escape(example.expression)]
    value, other = shown_figure(example.value, measure), shown_figure(example.baseline_value, measure)
    yield [f"{escape(measure)}{unit(measure)}", f"{method} **{value}**, {baseline} {other}"]
    for title, weights in (("raises a score", example.positive), ("lowers it", example.negative)):
        if weights:
            yield [title, ", ".join(f"{escape(term)} **{weight:.2f}**" for term, weight in weights)]
    for name, titles in ((method, example.gained), (baseline, example.lost)):
        if titles:
            yield [f"only in the top 10 of {name}", "<br>".join(map(escape, titles))]


def _pairs(values: Mapping[str, str | int | float]) -> str:
    shown_values = (
        [escape(name), f"{value:,}" if isinstance(value, int) else escape(str(value))] for name, value in values.items()
    )
    return _table([["name", "value"], ["---", "---"], *shown_values])


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _table(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _code(text: str) -> str:
    """A code block whose fence is longer than any fence in the text."""
    text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}\n"
