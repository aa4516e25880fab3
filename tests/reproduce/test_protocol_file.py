import pytest

from pyserini_compneg.compose import Operators
from pyserini_compneg.datasets.opening import KINDS
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.eval import parse_measures
from pyserini_compneg.expression import from_marks
from pyserini_compneg.models import ABLATIONS
from pyserini_compneg.reproduce.protocol_file import protocol_names, read_protocol
from pyserini_compneg.reproduce.term_measures import TERM_MEASURES

LIMITS = ": needs a measure, 'hits' from 1 and 'examples' from 0"
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
        with pytest.raises(ProtocolError) as caught:
            read_protocol(str(path))
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix(str(path))

    return refused


@pytest.mark.parametrize("name", protocol_names())
def test_protocols_of_the_package(name):
    protocol = read_protocol(name)
    assert protocol.name == name
    assert set(protocol.datasets) <= set(KINDS) and set(protocol.papers) <= set(protocol.datasets)
    judged = [name for name in protocol.measures if name not in TERM_MEASURES]
    assert [measure.name for measure in parse_measures(judged)] == judged
    for section in protocol.sections:
        for template in section.templates:
            from_marks(template.replace("_", "<mark>x</mark>"))
        for row in section.rows:
            assert row.method or row.published, row.name
            assert row.ablation in (None, *ABLATIONS)
            assert all(0 <= value <= 1 for value in row.published.values())
            if row.method == "operators":
                Operators(**row.settings)


def test_figures_of_the_paper():
    """A few by hand, so that columns and rows are not exchanged."""
    sections = {section.title: {row.name: row for row in section.rows} for section in read_protocol("table1").sections}
    assert sections["Set difference"]["disentangled"].published == {"nDCG@10": 0.258, "R@100": 0.398}
    assert sections["Intersection"]["CPT"].published == {"nDCG@10": 0.080, "R@100": 0.268}
    assert sections["Union"]["max pool"].published == {"nDCG@10": 0.254, "R@100": 0.387}
    (section,) = read_protocol("excluir").sections
    published = {row.name: row.published for row in section.rows}
    assert published["BM25"]["right_rank@10"] == 0.5348
    assert published["all-MiniLM-L6-v2"] == {"right_rank@10": 0.6209, "delta_recall@1": 0.2641, "delta_mrr@10": 0.1942}


def test_the_least_protocol(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(LEAST)
    protocol = read_protocol(str(path))
    assert (protocol.name, protocol.hits, protocol.examples, protocol.interference) == ("p", 1000, 0, None)
    assert protocol.sections[0].baseline == "a"


def test_a_sweep_is_a_row_for_each_value():
    section = read_protocol("settings").sections[0]
    swept = [row for row in section.rows if row.swept]
    assert [row.name for row in swept[:3]] == ["NRF, λ = 0", "NRF, λ = 0.1", "NRF, λ = 0.25"]
    assert [row.settings for row in swept[:2]] == [
        {"difference": "nrf", "nrf_weight": 0},
        {"difference": "nrf", "nrf_weight": 0.1},
    ]
    assert [row.swept for row in swept[:2]] == [("NRF", 0.0), ("NRF", 0.1)]
    assert section.sweep == "λ"
    assert section.baseline == "disentangled"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("title: Least", "titel: Least"), ": the key 'title' is missing; "),
        (("about: Nothing", "about: 3"), ": 'about' must be a str, got int"),
        (("[filmsets]", "[1]"), ": 'datasets' must be a list of texts"),
        (("[filmsets]", "filmsets"), ": 'datasets' must be a list, got str"),
        (("splits: [dev]", "splits: [dev]\nhints: 3"), ": unknown key 'hints'; expected one of about, datasets, "),
        (("splits: [dev]", "splits: [dev]\nhits: true"), ": 'hits' must be a int, got bool"),
        (
            ("splits: [dev]", "splits: [dev]\nhits: 0"),
            ": needs a measure, 'hits' from 1 and 'examples' from 0, got 1, 0 and 0",
        ),
        (("splits: [dev]", "splits: [dev]\nexamples: -1"), LIMITS),
        (("splits: [dev]", "splits: [dev]\ntitle: Two"), ":2: no YAML: the key 'title' is there twice"),
        (("title: Least", "title: 2020-13-45"), ": no YAML: "),
        (("title: Least", f"title: {'[' * 5000}"), ": no YAML: too deeply nested"),
        (("{name: a,", "{name: a, settings: {1: 2},"), ": sections[0]: rows[0]: 'settings' must have texts as keys"),
        (("{name: a,", "{name: a, published: [.nan],"), ": sections[0]: rows[0]: 'published' must be figures in "),
        (("{name: a,", "{name: a, published: [true],"), ": sections[0]: rows[0]: 'published' must be figures in "),
        (("[nDCG@10]", "[]"), f"{LIMITS}, got 0, 1000 and 0"),
        (("splits: [dev]", "splits: [dev]\npapers: [quest]"), ": 'papers' must be a dict, got list"),
        (("splits: [dev]", "splits: [dev]\npapers: {quest: [test]}"), ": papers: unknown key 'quest'"),
        (("{name: a, method: operators}", "{name: a}"), ": sections[0]: no row has a method"),
        (("{name: a,", "{name: a, methods: b,"), ": sections[0]: rows[0]: unknown key 'methods'; expected one of "),
        (
            ("{name: a,", "{name: a, reads: marks,"),
            ": sections[0]: rows[0]: 'reads' must be one of expression, text, cues, llm, got 'marks'",
        ),
        (("{name: a,", "{name: a, published: [1, 2],"), ": sections[0]: rows[0]: 'published' must be figures in "),
        (("{name: a,", "{name: a, published: [x],"), ": sections[0]: rows[0]: 'published' must be figures in "),
        (
            ("operators}", "operators}\n      - {name: a, method: operators}"),
            ": sections[0]: the row 'a' is there twice",
        ),
        (
            ("sections:", "sections:\n  - {title: ONE!, rows: [{name: a, method: operators}]}"),
            ": the section 'one' is there twice",
        ),
        (("    rows:\n      - {name: a, method: operators}", "    rows: []"), ": sections[0]: 'rows' is empty"),
        (
            ("    rows:\n      - {name: a, method: operators}", "    rows: [7]"),
            ": sections[0]: rows[0]: expected keys ",
        ),
        (
            ("{name: a,", "{name: a, sweep: {setting: x, symbol: x, values: [y]},"),
            ": sections[0]: rows[0]: sweep: 'values' must be numbers, got ['y']",
        ),
        (("sections:", "interference: {section: Two}\nsections:"), ": interference: no section 'Two'"),
        (("sections:", "interference: {section: One, rows: [b]}\nsections:"), ": interference: no row 'b' in section "),
        (("sections:", "interference: {section: One, bins: 0}\nsections:"), ": interference: 'bins' must be 1 or more"),
        (("title: Least", "title: [Least"), ":3: no YAML: "),
        (("title: Least", f"title: {'9' * 5000}"), ": no YAML: "),
        (("splits: [dev]", f"splits: [dev]\nhits: {10**30}"), ": a whole number beyond 1e+09 in magnitude"),
        (("{name: a,", f"{{name: a, settings: {{x: [0x{'f' * 5000}]}},"), ": a whole number beyond 1e+09 in magnitude"),
        (("{name: a,", f"{{name: a, published: [-{10**400}],"), ": a whole number beyond 1e+09 in magnitude"),
        (
            ("title: Least", 'title: "half \\uD83D"'),
            ": U+D83D, a character that cannot be shown, in 'half \\ud83d'",
        ),
        (("{name: a,", '{name: "a\\e[2J",'), ": U+001B, a character that cannot be shown, in 'a\\x1b[2J'"),
        (("about: Nothing", "about: &a [*a]"), ": 'about' must be a str, got list"),
        ((LEAST, "- 1"), ": expected keys and values, got list; "),
        ((LEAST, ""), ": expected keys and values, got nothing; "),
    ],
)
def test_what_is_no_protocol(refused, change, message):
    assert refused(LEAST.replace(*change)).startswith(message)


def test_no_such_protocol(tmp_path):
    with pytest.raises(ProtocolError) as caught:
        read_protocol("table9")
    assert str(caught.value) == (
        f"no protocol 'table9'; expected one of {', '.join(protocol_names())}, or the path of a .yaml file"
    )
    with pytest.raises(ProtocolError) as caught:
        read_protocol(str(tmp_path / "none.yaml"))
    assert str(caught.value) == f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory"
    (tmp_path / "odd.yaml").write_bytes(b"title: \xff")
    with pytest.raises(ProtocolError) as caught:
        read_protocol(str(tmp_path / "odd.yaml"))
    assert str(caught.value) == f"{tmp_path / 'odd.yaml'}: cannot be read: no UTF-8"


def test_a_section_has_one_sweep(refused):
    rows = [f"{{name: {name}, method: operators, sweep: {{setting: x, symbol: {name}, values: [1]}}}}" for name in "αβ"]
    text = LEAST.replace("{name: a, method: operators}", "\n      - ".join(rows))
    assert refused(text) == (
        ": sections[0]: sweeps over 'α' and over 'β', which have no curve in common; put one into a section of its own"
    )
