import re

import pytest
from refusals import refusal

from pyserini_compneg.baselines import make_method
from pyserini_compneg.expression import TEMPLATES
from pyserini_compneg.lab.experiments.datasets.nevir import EDITS
from pyserini_compneg.lab.experiments.inputs import protocol_names
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.rows import ROW_METHODS
from pyserini_compneg.lab.experiments.run_folder import Engine
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
ROWS = ": sections[0].rows"


def how_it_runs(row):
    """All that makes two rows of a section one run: a method with its defaults, and what it is given."""
    given = row.reads, row.ablation, row.model, row.model_weight, row.encoder, row.rerank, row.rerank_judged, row.tuned
    return repr(make_method(ROW_METHODS, row.method, row.settings)), *given, row.similarity


@pytest.mark.parametrize("name", protocol_names())
def test_protocols_of_the_package(name):
    """Reading checks methods, settings, measures and kinds of datasets."""
    protocol = read_protocol(name)
    assert protocol.name == name
    templates = {template for section in protocol.sections for template in section.templates}
    assert templates <= {*TEMPLATES, *EDITS, ONE_NEGATED, TWO_NEGATED}
    for row in protocol.rows:
        assert row.method or row.published, row.name
        assert all(value is None or -0.1 < value <= 1 for value in row.published)
        named, operands = (set(re.findall(r"\b[ABC]\b", text)) for text in (row.note, row.formula))
        assert named <= operands or not row.formula, row.name  # a note is on the operands of the formula
    for section in protocol.sections:
        assert len({row.title for row in section.rows}) == len(section.rows)
        run = [how_it_runs(row) for row in section.rows if row.method]
        assert len({*run}) == len(run)


def test_figures_of_the_paper():
    """A few by hand, so that columns and rows are not exchanged."""
    sections = {section.title: {row.name: row for row in section.rows} for section in read_protocol("table1").sections}
    assert sections["Set difference"]["disentangled, SPLADE NC"].published == (0.258, 0.398)
    assert sections["Intersection"]["CPT, SPLADE NC"].published == (0.080, 0.268)
    assert sections["Union"]["max pool, SPLADE NC"].published == (0.254, 0.387)
    assert not any(row.published for name, row in sections["Union"].items() if not name.endswith(", SPLADE NC"))
    ablations = {row.name: row for row in read_protocol("table3").sections[1].rows}
    lexical = ablations["splade-v3-lexical, disentangled"]
    assert (lexical.encoder, lexical.ablation, lexical.published) == ("naver/splade-v3-lexical", None, (0.206,))
    assert ablations["without expansion, disentangled"].published == ()
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


def test_only_a_model_of_terms_has_the_models_weight():
    names = ("bm25", "mini", "latent:m", "bm25+latent:m", "bm25+mini+latent:m")
    assert [name for name in names if Engine(name).is_hybrid] == ["bm25+mini+latent:m"]
    assert [name for name in names if not Engine(name).is_lexical] == ["mini", "latent:m"]


def test_a_sweep_of_the_models_weight_is_no_setting_of_the_method():
    rows = read_protocol("hybrid").sections[0].rows
    assert [(row.model_weight, row.settings) for row in rows[:3]] == [(0, {}), (0.05, {}), (0.1, {})]
    assert rows[0].title == "bm25+model, w = 0"


SWEEP = "sweep: {setting: cpt_weight, symbol: β, values: [1]}}"
SWEPT = "{{name: {0}, method: operators, sweep: {{setting: cpt_weight, symbol: {0}, values: [1]}}}}"
METHOD = f"{ROWS}: row 'a': method operators"
WRONG = {  # in place of what, what is written, and the message
    "title: Least": [("titel: Least", ": unknown key 'titel'; did you mean title?")],
    "about: Nothing": [("about: 3", ": about: expected a text, got 3")],
    "[filmsets]": [
        ("filmsets", ": datasets: expected a list, such as [a, b], got 'filmsets'"),
        ("[filmset]", ": datasets: no kind of dataset 'filmset'; there are: likings, quest, filmsets, "),
    ],
    "[dev]": [
        ("[dev]\nhits: 0", ": hits: expected a number from 1, got 0"),
        (f"[dev]\nhits: {10**30}", ": hits: expected a number up to 1000000000, got "),
        ("[dev]\ntitle: Two", ":6: not valid YAML: title is given twice"),
        ("[dev]\npapers: {quest: [test]}", ": papers: 'quest' is not one of the datasets: "),
        ("[dev]\nqueries: words", ": queries of words are not judged, so there is no nDCG@10; "),
        ("[dev]\nqueries: word", ": queries: expected 'dataset' or 'words', got 'word'"),
    ],
    "[nDCG@10]": [
        ("[]", ": measures: expected at least one"),
        ("[R@5, r@5]", ": measures: the measure 'R@5' is there twice"),
        ("[nDGC@10]", ": measures: unknown measure 'nDGC@10'"),
        ('["P.5,10"]', ": measures: measure 'P.5,10' is several; name them one by one"),
    ],
    "sections:": [
        ("sections:\n  - {title: ONE!, rows: [{name: a, method: operators}]}", ": the section 'one' is there twice"),
        ("published_with: nc\nsections:", ": published_with names the model 'nc', which is not in models"),
        ("statistics: {pairs: 1}\nsections:", ": statistics: no 'pairs' of filmsets; there are: none"),
        ("interference: {section: Two}\nsections:", ": interference: no section 'Two'"),
        ("interference: {section: One, bins: 0}\nsections:", ": interference.bins: expected a number from 1, got 0"),
    ],
    "  - title: One": [
        ("  - title: One\n    query: a NOT b", ": sections with a query have no measures"),
        (
            "  - {title: Two, query: a NOT b, rows: [{name: a, method: operators}]}\n  - title: One",
            ": sections with a query have no measures",
        ),
        ("  - title: One\n    query: a NOT (b", ': sections[0]: "(" is not closed; expected ")"'),
        ("  - title: One\n    query: a\n    templates: [_]", ": sections[0]: section 'One': a section with a qu"),
    ],
    "    rows:\n      - {name: a, method: operators}": [("    rows: []", f"{ROWS}: ")],
    "{name: a, method: operators}": [
        ("{name: a}", f"{ROWS}: no row has a method"),
        ("\n      - ".join(map(SWEPT.format, "αβ")), f"{ROWS}: sweeps over 'α' and over 'β' need a section each"),
    ],
    "{name: a,": [
        ("{name: a, methods: b,", f"{ROWS}[0]: unknown key 'methods'; did you mean method?"),
        ("{name: a, reads: marks,", f"{ROWS}[0].reads: expected 'expression', 'plain', 'model' or 'llm', got 'marks'"),
        ("{name: a, published: [1, 2],", ": the row 'a' has more published figures than there are meas"),
        ("{name: a, published: [x],", f"{ROWS}[0].published[0]: expected a number"),
        ("{name: a, published: [.nan],", f"{ROWS}[0].published[0]: expected a finite number"),
        ("{name: a, sweep: {setting: x, symbol: x, values: [y]},", f"{ROWS}[0].sweep.values[0]: expected a whole num"),
    ],
    "method: operators": [("method: magic", f"{ROWS}: row 'a': no method 'magic'; expected one of ")],
    "operators}": [
        ("operators, settings: {differense: nrf}}", f"{METHOD}: unknown setting 'differense'; expected one of union, "),
        ("operators, settings: {difference: minus}}", f"{ROWS}: row 'a': difference must be one of "),
        (f"operators, {SWEEP.replace('1', '-1')}", f"{ROWS}: row 'a, β = -1': cpt_weight must be a finite number abov"),
        ("operators, ablation: all}", f"{ROWS}: row 'a': no ablation 'all'; expected one of "),
        ("operators, model: nc}", ": the row 'a' names the model 'nc'; models has: none"),
        ("operators, tuned: true}", f"{ROWS}[0]: row 'a' is tuned, but has no sweep that says of which values"),
        (f"operators, tuned: true, {SWEEP}", ": the row 'a' is tuned, but tuned_on names no split"),
        ("word-space, settings: {difference: vanilla}}", f"{ROWS}: row 'a': difference in a word space must be one of"),
        ("operators}\n      - {name: a, method: operators}", f"{ROWS}: the row 'a' is there twice"),
        ("operators, rerank: all}", f"{ROWS}[0].rerank: expected a number, got 'all'"),
        ("operators, rerank: 2}", f"{ROWS}[0].rerank: "),
        ("dense, rerank: 1}", f"{ROWS}: row 'a': rerank: ranks documents of a method of search again, n"),
        ("operators, rerank_judged: true}", f"{ROWS}[0]: row 'a' has rerank_judged, but no rerank, the model's share"),
        ("operators, similarity: dot}", f"{ROWS}[0]: row 'a' has a similarity, but no encoder of the method dense"),
        ("operators, rerank_judged: some}", f"{ROWS}[0].rerank_judged: expected true or false, got 'some'"),
    ],
}


@pytest.mark.parametrize(("old", "new", "message"), [(old, *case) for old, cases in WRONG.items() for case in cases])
def test_what_is_no_protocol(tmp_path, old, new, message):
    path = tmp_path / "p.yaml"
    path.write_text(LEAST.replace(old, new))
    assert refusal(read_protocol, str(path), error=InputError).startswith(f"{path}{message}")


def test_each_row_is_there_with_the_model_of_the_published_figures(tmp_path):
    path = tmp_path / "p.yaml"
    text = LEAST.replace("operators}", "operators, published: [0.5]}\n      - {name: b, published: [0.25]}")
    path.write_text(text.replace("sections:", "models: {nc: [filmsets-nc]}\npublished_with: nc\nsections:"))
    protocol = read_protocol(str(path))
    assert [(row.name, row.model, row.published) for row in protocol.rows] == [
        ("a", None, ()),
        ("a, nc", "nc", (0.5,)),
        ("b", None, (0.25,)),
    ]
    assert [row.name for row in protocol.only_models.rows] == ["a, nc", "b"]


def test_another_query_goes_to_the_sections_of_its_operator():
    protocol = read_protocol("table2").asking("spies NOT Bond")
    assert [(section.title, section.query) for section in protocol.sections] == [("Set difference", "spies NOT Bond")]
    assert not any(row.published_terms for row in protocol.rows) and any(row.method for row in protocol.rows)
    message = refusal(read_protocol("table2").asking, "spies", error=InputError)
    said = "protocol table2: no section is for 'spies'; its sections with a query are: "
    assert message == said + "'Set difference', 'Intersection', 'Union'"
    message = refusal(read_protocol("table1").asking, "a NOT b", error=InputError)
    said = "protocol table1: no section is for 'a NOT b'; protocols with a query of their own are: figure1, table2"
    assert message.startswith(said)


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
