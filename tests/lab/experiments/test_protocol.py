import re

import pytest
from refusals import refusal

from pyserini_compneg.expression.marks import TEMPLATES
from pyserini_compneg.lab.experiments.datasets.nevir import EDITS
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.provided import protocol_names
from pyserini_compneg.lab.experiments.word_space import ONE_NEGATED, TWO_NEGATED
from pyserini_compneg.support.errors import InputError

LEAST = """
title: Least
about: Nothing
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
sections:
  - title: One
    rows:
      - {name: a, method: operators}
"""


@pytest.fixture
def refused(tmp_path):
    def refused(text):
        path = tmp_path / "p.yaml"
        path.write_text(text)
        return refusal(read_protocol, str(path), error=InputError).removeprefix(str(path))

    return refused


@pytest.mark.parametrize("name", protocol_names())
def test_protocols_of_the_package(name):
    """Reading checks methods, settings, measures and kinds of datasets."""
    protocol = read_protocol(name)
    assert protocol.name == name
    for section in protocol.sections:
        assert {*section.templates} <= {*TEMPLATES, *EDITS, ONE_NEGATED, TWO_NEGATED}
        for row in section.rows:
            assert row.method or row.published, row.name
            assert all(value is None or -0.1 < value <= 1 for value in row.published)


@pytest.mark.parametrize("name", protocol_names())
def test_notes_name_the_operands_of_the_formula(name):
    for row in (row for section in read_protocol(name).sections for row in section.rows if row.formula and row.note):
        named, formula = (set(re.findall(r"\b[ABC]\b", text)) for text in (row.note, row.formula))
        assert named <= formula, row.name


def test_figures_of_the_paper():
    """A few by hand, so that columns and rows are not exchanged."""
    sections = {section.title: {row.name: row for row in section.rows} for section in read_protocol("table1").sections}
    assert sections["Set difference"]["disentangled"].published == (0.258, 0.398)
    assert sections["Intersection"]["CPT"].published == (0.080, 0.268)
    assert sections["Union"]["max pool"].published == (0.254, 0.387)
    (section,) = read_protocol("excluir").sections
    published = {row.name: row.published for row in section.rows}
    assert published["BM25"][1] == 0.5348
    assert published["all-MiniLM-L6-v2"][1:] == (0.6209, 0.2641, 0.1942)


def test_the_least_protocol(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(LEAST.replace("[nDCG@10]", "[ndcg@10, r@5]"))
    protocol = read_protocol(str(path))
    assert (protocol.name, protocol.hits, protocol.examples, protocol.interference) == ("p", 1000, 0, None)
    assert [row.title for row in protocol.sections[0].rows] == ["a"]
    assert protocol.measures == ("nDCG@10", "R@5")


def test_a_sweep_is_a_row_for_each_value():
    section = read_protocol("settings").sections[0]
    swept = [row for row in section.rows if row.sweep]
    assert [row.title for row in swept[:2]] == ["disentangled, λ = 0.25", "disentangled, λ = 0.5"]
    assert swept[0].settings == {"difference": "disentangled", "difference_weight": 0.25}
    assert (section.sweep_symbol, section.rows[0].title) == ("λ", "ignore")


def test_a_sweep_of_the_models_weight_is_no_setting_of_the_method():
    rows = read_protocol("hybrid").sections[0].rows
    assert [(row.model_weight, row.settings) for row in rows[:3]] == [(0, {}), (0.05, {}), (0.1, {})]
    assert rows[0].title == "bm25+model, w = 0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("title: Least", "titel: Least"), ": unknown key 'titel'; did you mean title?"),
        (("about: Nothing", "about: 3"), ": about: expected a text, got 3"),
        (("[filmsets]", "filmsets"), ": datasets: expected a list, such as [a, b], got 'filmsets'"),
        (("splits: [dev]", "splits: [dev]\nhits: 0"), ": hits: expected a number from 1, got 0"),
        (("splits: [dev]", f"splits: [dev]\nhits: {10**30}"), ": hits: expected a number up to 1000000000, got "),
        (("splits: [dev]", "splits: [dev]\ntitle: Two"), ":6: not valid YAML: title is given twice"),
        (("[nDCG@10]", "[]"), ": measures: expected a list of at least 1, got []"),
        (("[nDCG@10]", "[R@5, r@5]"), ": measures: the measure 'R@5' is there twice"),
        (("[nDCG@10]", "[nDGC@10]"), ": measures: unknown measure 'nDGC@10'"),
        (("[nDCG@10]", '["P.5,10"]'), ": measures: measure 'P.5,10' is several; name them one by one"),
        (("[filmsets]", "[filmset]"), ": datasets: no kind of dataset 'filmset'; there are: quest, filmsets, "),
        (("method: operators", "method: magic"), ": sections[0].rows: row 'a': no method 'magic'; expected one of "),
        (
            ("operators}", "operators, settings: {differense: nrf}}"),
            ": sections[0].rows: row 'a': method operators: unknown setting 'differense'; expected one of union, ",
        ),
        (
            ("operators}", "operators, settings: {difference: minus}}"),
            ": sections[0].rows: row 'a': difference must be one of ",
        ),
        (
            ("operators}", "operators, sweep: {setting: cpt_weight, symbol: α, values: [1, -1]}}"),
            ": sections[0].rows: row 'a, α = -1': cpt_weight must be a finite number above 0, got -1",
        ),
        (
            ("operators}", "operators, ablation: all}"),
            ": sections[0].rows: row 'a': no ablation 'all'; expected one of ",
        ),
        (("splits: [dev]", "splits: [dev]\npapers: {quest: [test]}"), ": papers: 'quest' is none of the datasets: "),
        (("{name: a, method: operators}", "{name: a}"), ": sections[0].rows: no row has a method"),
        (
            ("{name: a,", "{name: a, methods: b,"),
            ": sections[0].rows[0]: unknown key 'methods'; did you mean method?",
        ),
        (
            ("{name: a,", "{name: a, reads: marks,"),
            ": sections[0].rows[0].reads: expected 'expression', 'plain', 'model' or 'llm', got 'marks'",
        ),
        (("{name: a,", "{name: a, published: [1, 2],"), ": the row 'a' has more published figures than there are meas"),
        (
            ("operators}", "operators, model: nc}"),
            ": the row 'a' names the model 'nc'; models has: none",
        ),
        (
            ("operators}", "operators, tuned: true}"),
            ": sections[0].rows[0]: row 'a' is tuned, but has no sweep that says of which values",
        ),
        (
            ("operators}", "operators, tuned: true, sweep: {setting: cpt_weight, symbol: β, values: [1]}}"),
            ": the row 'a' is tuned, but tuned_on names no split",
        ),
        (
            ("operators}", "word-space, settings: {difference: vanilla}}"),
            ": sections[0].rows: row 'a': difference in a word space must be one of orthogonal, ",
        ),
        (
            ("splits: [dev]", "splits: [dev]\nqueries: words"),
            ": queries of words are not judged, so there is no nDCG@10; ",
        ),
        (("splits: [dev]", "splits: [dev]\nqueries: word"), ": queries: expected 'dataset' or 'words', got 'word'"),
        (("{name: a,", "{name: a, published: [x],"), ": sections[0].rows[0].published[0]: expected a number"),
        (("{name: a,", "{name: a, published: [.nan],"), ": sections[0].rows[0].published[0]: expected a finite number"),
        (
            ("operators}", "operators}\n      - {name: a, method: operators}"),
            ": sections[0].rows: the row 'a' is there twice",
        ),
        (
            ("sections:", "sections:\n  - {title: ONE!, rows: [{name: a, method: operators}]}"),
            ": the section 'one' is there twice",
        ),
        (("    rows:\n      - {name: a, method: operators}", "    rows: []"), ": sections[0].rows: "),
        (
            ("{name: a,", "{name: a, sweep: {setting: x, symbol: x, values: [y]},"),
            ": sections[0].rows[0].sweep.values[0]: expected a whole number, got 'y'",
        ),
        (("sections:", "interference: {section: Two}\nsections:"), ": interference: no section 'Two'"),
        (
            ("sections:", "interference: {section: One, bins: 0}\nsections:"),
            ": interference.bins: expected a number from 1, got 0",
        ),
    ],
)
def test_what_is_no_protocol(refused, change, message):
    assert refused(LEAST.replace(*change)).startswith(message)


def test_some_rows():
    protocol = read_protocol("settings")
    assert [section.title for section in protocol.only(["CPT"]).sections] == [
        "Intersection: terms of each operand",
        "Intersection of three: terms of each operand",
    ]
    section = protocol.only(["damped, λ = 0.5", "ign*"]).sections[0]
    assert [row.title for row in section.rows] == ["ignore", "damped, λ = 0.5"]
    assert read_protocol("figure3").only(["ignore"]).interference
    message = refusal(protocol.only, ["CPT", "filtring"], error=InputError)
    start = "protocol settings: no row 'filtring'; did you mean filtering? There are: 'ignore', 'filtering', "
    assert message.startswith(start)


def test_no_such_protocol(tmp_path):
    expected = f"expected one of {', '.join(protocol_names())}, or the path of a .yaml file"
    assert refusal(read_protocol, "table9", error=InputError) == f"no protocol 'table9'; {expected}"
    path = str(tmp_path / "none.yaml")
    assert refusal(read_protocol, path, error=InputError).startswith(f"{path}: cannot be read: ")


def test_a_section_has_one_sweep(refused):
    rows = [
        f"{{name: {name}, method: operators, sweep: {{setting: cpt_weight, symbol: {name}, values: [1]}}}}"
        for name in "αβ"
    ]
    text = LEAST.replace("{name: a, method: operators}", "\n      - ".join(rows))
    assert refused(text) == (": sections[0].rows: sweeps over 'α' and over 'β' need a section each")
