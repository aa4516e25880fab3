"""The report as Markdown, and the tables as LaTeX: what is escaped, and what lines up."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.reproduce.characters import printable
from pyserini_compneg.reproduce.report import latex, markdown, page
from pyserini_compneg.reproduce.report.contents import make_contents
from pyserini_compneg.reproduce.report.tables import make_table
from pyserini_compneg.reproduce.results import Cell, Example, Results, Row, Section

ODD = "a | b\n# c *d* _e_ `f` <g> & h \\ [i](j) $k$ ~l~ 100 % {m}"
PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")
"""A sign that parts cells: one that no backslash escapes."""


@pytest.fixture(scope="module")
def report(contents):
    return markdown.render_markdown(contents, "figures")


@pytest.fixture(scope="module")
def odd_report():
    return markdown.render_markdown(make_contents(odd_results()), "figures")


@pytest.fixture(scope="module")
def tables(results):
    return latex.render_tables([make_table(section, results) for section in results.sections])


def odd_results():
    example = Example(ODD, ODD, ODD, ODD, ODD, ODD, "nDCG@10", 0.5, 0.25, ((ODD, 1.0),), ((ODD, -1.0),), (ODD,), (ODD,))
    row = Row(ODD, ODD, {"nDCG@10": Cell(0.5, (0.4, 0.6), (), 0.3)}, ODD, ODD)
    section = Section(ODD, 2, (row, replace(row, name="b")), ODD, {}, ODD)
    texts = {"title": ODD, "about": ODD, "dataset": {ODD: ODD}, "settings": {ODD: ODD}, "command": "a\n```\nb"}
    return Results(
        protocol="p", measures=("nDCG@10",), is_papers=True, sections=(section,), examples=(example,), **texts
    )


def blocks(text):
    """The tables: runs of lines that begin with a pipe, outside of code."""
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", prose, flags=re.MULTILINE)]


@pytest.mark.parametrize("name", ["report", "odd_report"])
def test_markdown_tables_have_as_many_cells_in_every_row(name, request):
    found = blocks(request.getfixturevalue(name))
    assert len(found) >= 4
    for lines in found:
        assert re.fullmatch(r"\|( -{3}:? \|)+", lines[1])
        assert {len(PIPE.findall(line)) for line in lines} == {len(PIPE.findall(lines[1]))}


def test_markdown_has_what_the_page_has(report):
    headings = [line for line in report.splitlines() if line.startswith("## ")]
    sections = [f"## {title} (20 queries)" for title in ("Set difference", "Union", "Intersection")]
    assert headings == ["## Dataset", *sections, "## Curves", "## Examples", "## Settings"]
    assert report.startswith("# Zero-shot operators on set-compositional queries\n\nTable 1 of Krasakis")
    assert "> **FilmSets, which is not QUEST." in report
    assert "| documents | 33,825 |" in report
    assert "1. Not in the paper: the better score of the alternatives, for each document." in report
    assert "3 of 15 runs were made, in 12 min 34 s; the others were there already." in report


def test_markdown_links_every_plot(report):
    names = [f"section-{number}-{kind}" for number in (1, 2, 3) for kind in ("bars", "differences")]
    assert re.findall(r"^!\[.{40,}\]\(figures/(.*)\.png\)$", report, flags=re.MULTILINE) == [*names, "curve-1"]


def test_markdown_rows_have_letters_the_best_in_bold_intervals_and_the_papers_figures():
    cells = {"vanilla": Cell(0.2, (0.1, 0.3), (), 0.132), "disentangled": Cell(0.5, (0.4, 0.6), ("vanilla",), 0.258)}
    rows = tuple(Row(name, "A − π_B", {"nDCG@10": cell}, f"runs/{name}.txt", "") for name, cell in cells.items())
    rows += (Row("fusion", "s", {"nDCG@10": Cell(published=0.228)}, None, "Theirs."),)
    section = Section("Set difference", 7, rows, "vanilla", {})
    results = Results("p", "T", "A.", {}, {}, "true", ("nDCG@10",), True, (section,))
    text = markdown.render_markdown(make_contents(results), "figures")
    assert (
        "|  | method | formula | nDCG@10 | nDCG@10, paper |\n"
        "| --- | --- | --- | ---: | ---: |\n"
        "| a | vanilla | A − π<sub>B</sub> | 0.200<br><sub>0.100 to 0.300</sub> | 0.132 |\n"
        "| b | disentangled | A − π<sub>B</sub> | **0.500**<sup>a</sup><br><sub>0.400 to 0.600</sub> | 0.258 |\n"
        "|  | fusion<sup>1</sup> (published) | s | – | 0.228 |\n"
    ) in text


def test_markdown_examples_have_terms_and_documents(report):
    assert (
        "#### 1940s war films that are not spy films\n\n"
        "| query | S17 |\n"
        "| --- | --- |\n"
        "| expression | 1940s war films \\\\ spy films |\n"
        "| nDCG@10 | disentangled 0.786, vanilla 0.131: **+0.655** |\n"
        "| raises a score | war **312**, 1940 **271**, 1940s **254**, film **41** |\n"
        "| lowers it | spy **−388**, espionage **−117** |\n"
        "| only in disentangled's first ten | Five Graves to Cairo (1943)<br>They Were Expendable (1945)<br>"
        "Sahara (1943) |\n"
    ) in report


def test_markdown_keeps_commands_as_they_are(odd_report):
    assert "````sh\na\n```\nb\n````\n" in odd_report


@given(st.text())
def test_markdown_escapes_every_sign_that_means_something(text):
    escaped = markdown.escape(text)
    assert not re.search(r"[\n<>]", escaped)
    assert not re.search(r"[\\`*_\[\]|~#$]", re.sub(r"\\.", "", escaped))
    unescaped = re.sub(r"\\([\\`*_\[\]|~#$])", r"\1", escaped)
    for sign, entity in (("<", "&lt;"), (">", "&gt;"), ("&", "&amp;")):
        unescaped = unescaped.replace(entity, sign)
    assert unescaped == printable(" ".join(text.split()))


def test_latex_tables_are_of_booktabs_and_one_for_each_section(tables):
    assert tables.startswith("% Tables of a report of pyserini_compneg. In the preamble: \\usepackage{booktabs}\n")
    for command in (r"\begin{table*}", r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}", r"\end{table*}"):
        assert tables.count(command) == 3
    assert re.findall(r"\\caption\{(.*?) \(", tables) == ["Set difference", "Union", "Intersection"]


def test_latex_rows_fill_the_columns(tables):
    for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", tables, flags=re.DOTALL):
        assert columns == "lllrrrr"
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) >= 7
        for row in rows:
            spanned = sum(int(width) - 1 for width in re.findall(r"\\multicolumn\{(\d)\}", row))
            assert len(re.findall(r"(?<!\\)&", row)) + spanned == len(columns) - 1


def test_latex_of_one_table():
    cells = [
        ("vanilla", Cell(0.2, (0.1, 0.3), (), 0.132), Cell(0.1)),
        ("NRF_2", Cell(0.5, (0.4, 0.6), ("vanilla",), 0.256), Cell(-0.3, better_than=())),
    ]
    rows = [Row(name, "A − π_B", {"R@100": one, "delta_mrr@10": two}, "r", "90 %") for name, one, two in cells]
    rows += [Row("fusion", "s", {"R@100": Cell(published=0.228), "delta_mrr@10": Cell()})]
    section = Section("A \\ B", 1200, tuple(rows), "vanilla", {})
    results = Results("p", "T", "A.", {}, {}, "true", ("R@100", "delta_mrr@10"), True, (section,))
    assert latex.render_tables([make_table(section, results)]).partition("\n\n")[2] == (
        r"""\begin{table*}
\centering\small
\caption{A \textbackslash{} B (1,200 queries). A superscript names the methods that a value is significantly better """
        r"""than (paired t-test, p \ensuremath{<} 0.05, Holm's correction over all pairs of rows). Bold: the best """
        r"""value of ours. Paper: """
        r"""the published figure.}
\begin{tabular}{lllrrr}
\toprule
 &  &  & \multicolumn{2}{c}{R@100} & \multicolumn{1}{c}{delta\_mrr@10 (\%)} \\
\cmidrule(lr){4-5}\cmidrule(lr){6-6}
 & method & formula & here & paper &  \\
\midrule
a & vanilla\textsuperscript{1} & A \ensuremath{-} \ensuremath{\pi}\textsubscript{B} & 0.200 & 0.132 & \textbf{10.00} \\
b & NRF\_2\textsuperscript{1} & A \ensuremath{-} \ensuremath{\pi}\textsubscript{B} & """
        r"""\textbf{0.500}\textsuperscript{a} & 0.256 & \ensuremath{-}30.00 \\
 & fusion & s & \textendash{} & 0.228 & \textendash{} \\
\bottomrule
\end{tabular}
\par\smallskip{\footnotesize\textsuperscript{1} 90 \%}
\end{table*}
"""
    )


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("100 % & $5 #1_a {b}", r"100 \% \& \$5 \#1\_a \{b\}"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("[a]* <b>|", r"{[}a{]}\ensuremath{*} \ensuremath{<}b\ensuremath{>}\ensuremath{|}"),
        ("a -- b --- c", "a -{}- b -{}-{}- c"),
        (
            "A ∩ B ∪ ¬C ⊗ λ₁",
            r"A \ensuremath{\cap} B \ensuremath{\cup} \ensuremath{\neg}C \ensuremath{\otimes} "
            r"\ensuremath{\lambda}\ensuremath{_{1}}",
        ),
        ("Dvořák, Łódź, Ærø", "Dvořák, Łódź, Ærø"),
        ("þ 鳥 \U0001f3ac a\x00", "{[}U+00FE{]} {[}U+9CE5{]} {[}U+1F3AC{]} a{[}U+0000{]}"),
        ("two\n lines", "two lines"),
    ],
)
def test_latex_prints_any_text(text, escaped):
    assert latex.escape(text) == escaped


@given(st.text())
def test_latex_gets_nothing_that_it_would_obey(text):
    escaped = latex.escape(text)
    commands = r"\\(?:[&%$#_{}]|text\w+\{\}|dots\{\}|ensuremath\{(?:[^{}]|\{\w\}|\{[+-]\})*\})"
    rest = re.sub(commands, "", escaped).replace("{[}", "").replace("{]}", "").replace("{`}", "").replace("-{}", "-")
    assert not re.search(r"[\\&%$#_{}~^\n]", rest)


def test_no_format_holds_control_characters(results):
    hostile = replace(results, title="a\x1b[2Jb\x00", command="run '\x07\ud83d'", about="\x9b1m")
    contents = make_contents(hostile)
    for text in (markdown.render_markdown(contents, "figures"), page.render_page(contents)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
        assert "a\ufffd[2Jb\ufffd" in text.replace("\\", "") and "run '\ufffd\ufffd'" in text.replace("&#39;", "'")
