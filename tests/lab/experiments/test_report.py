import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from pyserini_compneg.encode.models import Head
from pyserini_compneg.eval import Figure
from pyserini_compneg.eval.significance import PairedDifference, PValue
from pyserini_compneg.lab.experiments import plots
from pyserini_compneg.lab.experiments.plots import activated, draw_bars, draw_curve
from pyserini_compneg.lab.experiments.protocol import SectionPlan
from pyserini_compneg.lab.experiments.report import escape, write_report
from pyserini_compneg.lab.experiments.results import Curve, Example, Point, Results, RowRun, Section
from pyserini_compneg.lab.experiments.rows import RowPlan
from pyserini_compneg.support.errors import OutputError

PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")
"""A sign that parts cells: one that no backslash escapes."""

ODD = "a | b\n# c *d* _e_ `f` <g> & h \\ [i](j) $k$ ~l~ 100 % {m} \x1b[2J\x00"
BETTER = {"vanilla": PairedDifference(0.125, (0.01, 0.2), PValue(0.01, 0.02), None)}


def row(name, *figure, formula="", note="", published=None, values=()):
    """A row of nDCG@10; without a figure, only published."""
    figures = () if published is None else (published,)
    plan = RowPlan(name=name[:100], formula=formula, note=note, method="operators", published=figures)
    per_query = {f"q{n}": {"nDCG@10": value} for n, value in enumerate(values)}
    path, figures = (f"runs/{name}.txt", {"nDCG@10": Figure(*figure)}) if figure else (None, {})
    return RowRun(plan, name, path, figures=figures, per_query=per_query)


def section(*rows, title="Set difference", queries=2, qrels="qrels/set-difference.txt"):
    return Section(SectionPlan(title=title, rows=(RowPlan(name="a", method="operators"),)), [], rows, queries, qrels)


VANILLA = row("vanilla", 0.375, (0.1, 0.6), formula="f(A ⋆ B)", published=0.132, values=[0.5, 0.25])
SECTION = section(
    VANILLA,
    row("fusion", formula="s(A) − s(B)", note="Theirs.", published=0.228),
    row("NRF", 0.50004, (0.4, 0.6), BETTER, formula="A − λB", note="Salton's.", published=0.256, values=[0.25, 1.0]),
    row("it's", 0.49996, formula="A − π_B(A)", note="Salton's.", values=[0.5, 0.5]),
    queries=1200,
)
CURVE = Curve("By interference", "similarity", "nDCG@10", {"NRF": (Point(0.1, 0.5, 0.4, 0.6, 7),), "ignore": ()})
EXAMPLE = Example(
    section="Set difference",
    method="NRF",
    baseline="vanilla",
    qid="S17",
    text="war films that are not spy films",
    expression="war films \\ spy films",
    measure="nDCG@10",
    value=0.786,
    baseline_value=0.131,
    positive=(("war", 3.12), ("film", 0.5)),
    negative=(("spy", -1.0),),
    gained=("Five Graves to Cairo", "Sahara"),
)
RESULTS = Results(
    protocol="table1",
    title="Zero-shot operators",
    about="Of a paper.",
    dataset={"kind": "filmsets", "documents": 33825},
    settings={"encoder": "bm25"},
    command="compneg reproduce table1",
    measures=("nDCG@10",),
    is_papers=False,
    sections=(SECTION,),
    curves=(CURVE,),
    examples=(EXAMPLE,),
    seconds=12.34,
    runs_made=2,
    papers_dataset="QUEST",
)


@pytest.fixture
def page_of(tmp_path, monkeypatch):
    """The report of results, without plots if they are not asked for: each takes a second."""

    def page_of(results, plots=False):
        if not plots:
            for name in ("draw_bars", "draw_curve"):
                monkeypatch.setattr(f"pyserini_compneg.lab.experiments.report.{name}", lambda *_: None)
        write_report(results, tmp_path)
        return (tmp_path / "report.md").read_text()

    return page_of


def test_a_section_is_a_table(page_of):
    assert (
        "## Set difference (1,200 queries)\n\n"
        "|  | method | formula | nDCG@10 |\n"
        "| --- | --- | --- | ---: |\n"
        "| a | vanilla | f(A ⋆ B) | 0.375<br><sub>0.100 to 0.600</sub> |\n"
        "|  | vanilla (published) | f(A ⋆ B) | 0.132 |\n"
        "|  | fusion<sup>1</sup> (published) | s(A) − s(B) | 0.228 |\n"
        "| b | NRF<sup>2</sup> | A − λB | **0.500**<sup>a</sup><br><sub>0.400 to 0.600</sub> |\n"
        "|  | NRF<sup>2</sup> (published) | A − λB | 0.256 |\n"
        "| c | it's<sup>2</sup> | A − π<sub>B</sub>(A) | **0.500** |\n\n"
        "A superscript names the methods that a value is significantly better than (paired t-test, p &lt; 0.05, Holm's "
        "correction over all pairs of rows). Bold: the best value of ours. Small print: the 95 % confidence interval "
        "of the mean. Rows (published): the paper's figures, for QUEST, with the paper's models.\n\n"
        "1. Theirs.\n"
        "2. Salton's.\n"
    ) in page_of(RESULTS)


def test_the_change_relative_to_another_row(page_of):
    """Ours with the same encoder, and the paper's."""
    rows = [row(f"{name}, {encoder}", value) for name, value in (("vanilla", 0.2), ("CPT", 0.25)) for encoder in "ab"]
    plans = [RowPlan(name="vanilla", published=(0.16,)), RowPlan(name="CPT", published=(0.12,), relative_to="vanilla")]
    runs = [replace(one, plan=plans[number // 2]) for number, one in enumerate(rows)]
    table = page_of(replace(RESULTS, sections=(section(*runs),))).split("## ")[2]
    lines = [line.split(" | ") for line in table.splitlines() if line.startswith("|")]
    assert [(line[1], line[-1].rstrip(" |")) for line in lines] == [
        ("method", "change"),
        ("---", "---:"),
        ("vanilla, a", ""),
        ("vanilla, b", ""),
        ("vanilla (published)", ""),
        ("CPT, a", "+25 %"),
        ("CPT, b", "+25 %"),
        ("CPT (published)", "\N{MINUS SIGN}25 %"),
    ]


def test_the_page(page_of):
    page = page_of(RESULTS, plots=True)
    assert re.findall("^## (.*)", page, flags=re.MULTILINE) == [
        "Dataset",
        "Set difference (1,200 queries)",
        "By interference",
        "Examples",
        "Settings",
    ]
    assert page.startswith("# Zero-shot operators\n\nOf a paper.\n")
    assert "> **FilmSets is not QUEST, which the paper used.** Compare the order of figures alone.\n" in page
    assert "| documents | 33,825 |\n" in page and "| encoder | bm25 |\n" in page
    assert "```sh\ncompneg reproduce table1\n```\n" in page
    counts = "beside vanilla: NRF 1 better, 0 equal, 1 worse; it's 1 better, 1 equal, 0 worse.\n"
    assert f"nDCG@10 of single queries {counts}" in page
    near = section(row("vanilla", 0.3, values=[0.1 + 0.2]), row("NRF", 0.3, values=[0.3]))  # sums in another order
    assert "NRF 0 better, 1 equal, 0 worse." in page_of(replace(RESULTS, sections=(near,)))
    assert "| similarity | 0.1 |\n| --- | ---: |\n| NRF | 0.500 |\n| ignore |  |\n| queries | 7 |\n" in page
    assert "2 of 3 runs were made for this report, in 12.3 s.\n" in page
    assert "which the paper used" not in page_of(replace(RESULTS, is_papers=True))


def test_data_in_the_format_of_a_kind_is_not_called_by_its_name(page_of):
    """As QUEST's queries on evidence passages, which have the format of FilmSets."""
    provenance = "queries with ids in QUEST's fields, on documents of their own; not the benchmark QUEST"
    other = {"name": "quest-evidence", "kind": "filmsets", "provenance": provenance, "documents": 7}
    page = page_of(replace(RESULTS, dataset=other))
    assert "> **quest-evidence is not QUEST, which the paper used.**" in page
    assert "| name | quest-evidence |\n| provenance | queries with ids in QUEST's fields" in page
    assert "filmsets" not in page.lower()
    assert "| kind | filmsets |\n" in page_of(RESULTS)


def test_examples_have_terms_and_documents(page_of):
    assert (
        "<details>\n<summary>NRF</summary>\n\n"
        "#### war films that are not spy films\n\n"
        "| query | S17 |\n"
        "| --- | --- |\n"
        "| expression | war films \\\\ spy films |\n"
        "| nDCG@10 | NRF **0.786**, vanilla 0.131 |\n"
        "| raises a score | war **3.12**, film **0.50** |\n"
        "| lowers it | spy **-1.00** |\n"
        "| only in the top 10 of NRF | Five Graves to Cairo<br>Sahara |\n"
    ) in page_of(RESULTS)


def test_measures_in_percent_and_those_of_which_the_lowest_is_the_best(page_of):
    measures = ("negated_terms", "delta_recall@1")
    rows = [row("a", 0.0), row("b", 0.0)]
    for one, values in zip(rows, ((0.02, 0.5), (0.01, -0.05)), strict=True):
        one.figures = dict(zip(measures, map(Figure, values), strict=True))
    shares = section(*rows, qrels="q")
    page = page_of(replace(RESULTS, measures=measures, lower_is_better=measures[:1], sections=(shares,)))
    assert "| method | formula | negated\\_terms (%) | delta\\_recall@1 (%) |\n" in page
    assert "| a | a |  | 2.00 | **50.00** |\n| b | b |  | **1.00** | −5.00 |\n" in page
    assert "Lower is better for negated\\_terms." in page
    assert "negated\\_terms need the texts of documents: only the command above computes them.\n" in page
    assert " --qrels q -m delta_recall@1 --run " in page


def test_one_row_or_one_query_is_compared_with_nothing(page_of):
    alone = replace(SECTION, rows=SECTION.rows[:2])
    for one in (alone, replace(SECTION, queries=1)):
        page = page_of(replace(RESULTS, sections=(one,)))
        assert "superscript" not in page and "| a |" not in page
    assert "**0.375**" not in page_of(replace(RESULTS, sections=(alone,)))
    assert "(1 query)" in page


def test_any_text_stays_in_its_cell(page_of):
    example = replace(EXAMPLE, method=ODD, text=ODD, expression=ODD, positive=((ODD, 1.0),), gained=(ODD,))
    rows = [row(name, 0.5, (0.4, 0.6), formula=ODD, note=ODD, published=0.3) for name in (ODD, "b")]
    texts = {"title": ODD, "about": ODD, "dataset": {ODD: ODD}, "settings": {ODD: ODD}, "command": "a\n```\nb"}
    page = page_of(
        replace(RESULTS, sections=(section(*rows, title=ODD, qrels=ODD),), examples=(example,), curves=(), **texts)
    )
    assert "````sh\na\n```\nb\n````\n" in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", page)
    prose = re.sub(r"^(`{3,}).*?^\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", prose, flags=re.MULTILINE)]
    assert len(tables) == 4
    for lines in tables:
        assert {len(PIPE.findall(line)) for line in lines} == {len(PIPE.findall(lines[1]))}


@given(st.text())
def test_every_sign_that_means_something_is_escaped(text):
    escaped = escape(text)
    assert not re.search(r"[\n<>]", escaped)
    assert not re.search(r"[\\`*_\[\]|~#$]", re.sub(r"\\.", "", escaped))


@pytest.mark.parametrize(
    "rows",
    [
        [row("a", published=0.25)],
        [row("a", 0.0), row("b", 0.0, (-0.1, 0.1))],
        [row("a", -0.5, (-0.6, -0.4)), row("b", 0.5)],
        [row("a", 0.5), row("$x^2$ & <b>"), row("c" * 500, 0.1)],
    ],
)
def test_bars_are_drawn_of_all_that_has_a_figure(rows):
    assert draw_bars(section(*rows), RESULTS).startswith(b"\x89PNG")


def test_nothing_is_drawn_of_nothing():
    assert draw_bars(section(row("a")), RESULTS) is None
    assert draw_curve(replace(CURVE, series={"a": ()})) is draw_curve(replace(CURVE, series={})) is None


def test_the_statistics_of_a_dataset_stand_beside_the_papers(page_of):
    page = page_of(replace(RESULTS, statistics={"pairs": (1383, 2000), "words of a query": (9.125, None)}))
    lines = "| pairs | 1,383 | 2,000 |\n| words of a query | 9.12 | – |\n"
    assert f"| statistic | here | paper |\n| --- | ---: | ---: |\n{lines}" in page


def test_a_curve_has_the_range_of_its_measure_and_a_colour_for_each_method(monkeypatch):
    """The methods of Figure 3 are seven. Intervals may exceed the range."""
    drawn = []
    monkeypatch.setattr(plots, "_png", drawn.append)
    for points, limits in (
        ((Point(0.1, 0.9, 0.7, 1.2, 7), Point(0.2, 0.1, -0.2, 0.4, 7)), (0, 1)),
        ((Point(0.1, -0.5, -0.6, 0, 7),), (-1, 1)),
    ):
        draw_curve(replace(CURVE, series={f"m{number}": points for number in range(7)}))
        (axis,) = drawn.pop().axes
        assert limits[0] <= axis.get_ylim()[0] < axis.get_ylim()[1] <= limits[1]
        assert len({container.lines[0].get_color() for container in axis.containers}) == 7


def test_activations_are_drawn_with_their_epsilon(page_of, monkeypatch):
    heads = {"a model": Head("snrelu", "sum", 8.0), "plain": Head()}
    drawn = []
    monkeypatch.setattr(plots, "_png", lambda figure: drawn.append(figure) or b"")
    page = page_of(replace(RESULTS, sections=(), curves=(), heads=heads), plots=True)
    assert "| a model | snrelu | sum | 8 |\n| plain | relu | max | 0 |\n" in page and "figures/activations.png" in page
    labels = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert labels == ["a model: snrelu, ε = 8", "plain: relu"]
    logits = np.array([-9.0, -8.0, 0.0, 8.0, 11.0])
    assert activated(logits, heads["a model"]).tolist() == pytest.approx([-math.log(2), 0, 0, 0, math.log(4)])
    assert activated(logits, heads["plain"]).tolist() == pytest.approx([0, 0, 0, math.log(9), math.log(12)])
    grown = activated(logits, Head("log1p_relu"))
    assert grown[3] == pytest.approx(math.log1p(math.log(9))) and grown[0] == 0


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_same_results_make_the_same_bytes_whatever_the_user_s_settings_of_plots_are(tmp_path):
    import matplotlib

    write_report(RESULTS, tmp_path / "new" / "a")
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "text.usetex": True, "savefig.dpi": 30}):
        write_report(RESULTS, tmp_path / "b")
        assert matplotlib.rcParams["font.size"] == 20
    made = files(tmp_path / "b")
    assert made == files(tmp_path / "new" / "a")
    plots = {f"figures/{name}.png" for name in ("section-1-bars", "curve-1")}
    assert made.keys() == {"report.md"} | plots


def test_plots_of_an_earlier_report_are_removed_and_nothing_else(page_of, tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("section-7-bars.png", "curve-2.png", "mine.png", "curve-2.png.bak"):
        (tmp_path / "figures" / name).write_text("older")
    page_of(RESULTS)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"mine.png", "curve-2.png.bak"}


def test_a_failure_leaves_an_older_report_as_it_was(page_of, tmp_path):
    (tmp_path / "report.md").write_text("older")
    with pytest.raises(KeyError):
        page_of(replace(RESULTS, sections=(section(VANILLA, replace(SECTION.rows[2], per_query={})),)), True)
    assert files(tmp_path) == {"report.md": b"older"}


def test_a_folder_that_is_a_file_is_named(tmp_path, page_of):
    (tmp_path / "figures").write_text("")
    message = refusal(page_of, RESULTS, error=OutputError)
    assert message == f"{tmp_path}/figures: cannot be made: file exists; choose another place with --report"
