"""The command that explains queries and documents, on an index whose weights are given, so that all output is known."""

import json
import math
import os
import re
import sys
from contextlib import suppress

import pytest
from json_lines import write_jsonl

from pyserini_compneg import Operators, SignedImpactSearcher, build_index
from pyserini_compneg.commands.explain import main
from pyserini_compneg.compose import from_json

ATOMS = {
    "spy films": {"spy": 2.5, "film": 0.5},
    "comedies": {"comedi": 2.0, "film": 0.25, "laugh": 0.5},
    "animated films": {"anim": 3.0, "film": 0.5},
    "映画": {"映画館で見る": 2.0, "film": 0.5},
    "long": {"x" * 300: 1.0, "film": 0.5},
    "unknown": {},
    "[bold]:smile:[/bold]": {"[red]": 2.0},
}
DOCUMENTS = [
    {"id": "d1", "title": "Spies\tLaugh\x1b[31m", "vector": {"spy": 100, "comedi": 64, "film": 10, "laugh": 8}},
    {"id": "d2", "title": "映画のスパイ", "vector": {"spy": 120, "anim": 40, "film": 12, "映画館で見る": 7}},
    {"id": "d3", "vector": {"comedi": 90, "anim": 90, "x" * 300: 5}},
    {"id": "none", "title": "Nothing", "vector": {"horse": 3}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    records = [{"text": text, "vector": vector, "encoder": "given"} for text, vector in ATOMS.items()]
    write_jsonl(folder / "atoms.jsonl", *records)
    build_index(write_jsonl(folder / "documents.jsonl", *DOCUMENTS), folder / "index", "given", store_raw=True)
    return folder


@pytest.fixture
def explain(folder, run):
    line = f"explain --index {folder}/index --encoder {folder}/atoms.jsonl --difference disentangled"

    def explain(*arguments, code=0):
        ran = run(line, *arguments, code=code)
        assert (ran.out if code else ran.err) == ""
        return ran.err if code else ran.out

    return explain


def test_all_documents(explain):
    assert explain("--query", "*") == "*\n\nall documents, with the score 0\n"
    assert "d1" in explain("--query", "*", "--docid", "d1")
    told = json.loads(explain("--query", "*", "--docid", "d1", "--output-format", "json"))
    assert (told["composed"]["score"], told["weights"]) == ({"all": True}, {})


def test_a_query_with_a_conjunction(explain):
    assert explain("--query", "spy films AND comedies NOT animated films") == (
        "spy films AND comedies NOT animated films\n"
        "\n"
        "NOT (disentangled)\n"
        "├── AND (cpt-maxpool)\n"
        "│   ├── spy films: spy 2.50, film 0.50\n"
        "│   └── comedies: comedi 2.00, laugh 0.50, film 0.25\n"
        "└── animated films: anim 3.00, film 0.50\n"
        "\n"
        "conjunction of 2 operands, weight 0.5\n"
        "  operand 1  spy 2.50\n"
        "  operand 2  comedi 2.00  laugh 0.50\n"
        "  pairs      comedi∩spy 1.12  laugh∩spy 0.56\n"
        "positive     spy 2.50  comedi 2.00  film 0.50  laugh 0.50\n"
        "negative     anim -3.00\n"
    )


def test_alternatives_an_unknown_atom_and_fewer_terms(explain):
    lines = explain("--query", "comedies NOT spy films OR unknown OR animated films", "--terms", "1").splitlines()
    assert lines[2:] == [
        "OR (dismax)",
        "├── NOT (disentangled)",
        "│   ├── comedies: comedi 2.00, laugh 0.50, film 0.25",
        "│   └── spy films: spy 2.50, film 0.50",
        "├── unknown: no known term",
        "└── animated films: anim 3.00, film 0.50",
        "",
        "alternative 1 (the best alternative counts)",
        "  positive  comedi 2.00  2 more",
        "  negative  spy -2.50",
        "alternative 2",
        "  positive  anim 3.00  1 more",
        "positive    anim 0.75  3 more",
    ]


def test_what_is_verbalised_is_one_atom(explain, tmp_path):
    verbalised = {"text": "spy films that are not comedies", "vector": {"not": 1.0}, "encoder": "given"}
    atoms = write_jsonl(tmp_path / "verbalised.jsonl", verbalised)
    query = ["--query", "spy films NOT comedies", "--difference", "vanilla", "--encoder", atoms]
    assert explain(*query).splitlines()[2:4] == ["NOT (vanilla)", "└── spy films that are not comedies: not 1.00"]


TREE = """\
NOT (disentangled)
├── spy films: spy 2.50, film 0.50
└── animated films: anim 3.00, film 0.50
"""


def test_two_documents_side_by_side(explain):
    assert explain("--query", "spy films NOT animated films", "--docid", "d1", "d2", "--terms", "2") == (
        "spy films NOT animated films\n"
        "\n"
        f"{TREE}"
        "\n"
        "A  Spies Laugh [31m  [d1]: rank 1\n"
        "B  映画のスパイ  [d2]: rank 2\n"
        "\n"
        "               A         B    A - B\n"
        "anim       0.000  -120.000  120.000             ▕████████████████████████████\n"
        "spy      250.000   300.000  -50.000  ███████████▊\n"
        "1 other    5.000     6.000   -1.000             ▐\n"
        "score    255.000   186.000   69.000\n"
    )


def test_several_documents_have_the_same_scale(explain):
    lines = explain("--query", "spy films NOT animated films", "--docid", "d2", "none", "--docid", "d1", "d2")
    assert lines.splitlines()[2:] == [
        *TREE.splitlines(),
        "",
        "映画のスパイ  [d2]: rank 2",
        "spy     300.000             ▐████████████████████████████",
        "film      6.000             ▐",
        "anim   -120.000  ███████████▍",
        "score   186.000",
        "",
        "Nothing  [none]: not retrieved, because the query does not match it",
        "score  0.000",
        "",
        "Spies Laugh [31m  [d1]: rank 1",
        "spy    250.000             ▐███████████████████████▏",
        "film     5.000             ▐",
        "score  255.000",
    ]


def test_user_texts_are_no_markup_and_long_terms_are_cut(explain):
    shown = explain("--query", "(映画 OR long) NOT [bold]:smile:[/bold]", "--docid", "d2", "d3")
    assert "[bold]:smile:[/bold]\n" in shown
    assert "\n映画館で見る  " in shown
    assert f"\n{'x' * 31}…  " in shown
    tree = explain("--query", "long NOT [bold]:smile:[/bold]")
    assert f"├── long: {'x' * 31}… 1.00, film 0.50\n└── [bold]:smile:[/bold]: [red] 2.00\n" in tree


def rows(lines):
    """The numbers of each line, by its name."""
    table = (re.fullmatch(r"(\S+|\d+ \w+)((?:\s+-?\d+\.\d+)+)(?:\s+[▏▎▍▌▋▊▉█▐▕]+)?", line) for line in lines)
    return {row[1]: [float(number) for number in row[2].split()] for row in table if row}


@pytest.mark.parametrize("most", [2, 20])
@pytest.mark.parametrize(
    "query",
    [
        "spy films AND comedies NOT animated films",
        "(spy films OR long NOT comedies) AND 映画",
    ],
)
def test_what_is_printed_adds_up_to_the_score(explain, query, most):
    for documents in (["d2"], ["d3", "d1"], ["none", "d1"]):
        table = rows(explain("--query", query, "--terms", most, "--docid", *documents).splitlines())
        scores = table.pop("score")
        assert len(scores) == (3 if len(documents) == 2 else 1)
        for i, score in enumerate(scores):
            rounding = 0.0005 * (len(table) + 1) + 2.0**-23 * max(map(abs, scores))
            assert math.fsum(numbers[i] for numbers in table.values()) == pytest.approx(score, abs=rounding)
        if len(documents) == 2:
            assert all(abs(a - b - c) < 0.0015001 for a, b, c in table.values())
            assert abs(scores[0] - scores[1] - scores[2]) < 0.0015001


def test_json_has_it_all(explain, folder):
    query = "spy films AND comedies NOT animated films"
    found = json.loads(explain("--query", query, "--docid", "d2", "d1", "none", "--output-format", "json"))
    documents = found.pop("documents")
    weights = found.pop("weights")
    composed = found.pop("composed")
    assert found == {
        "query": query,
        "expression": query,
        "operators": {"union": "dismax", "intersection": "cpt-maxpool", "difference": "disentangled"},
        "weight_scale": 100.0,
        "atoms": {text: ATOMS[text] for text in ("spy films", "comedies", "animated films")},
    }
    operators = Operators(difference="disentangled")
    with SignedImpactSearcher(folder / "index", folder / "atoms.jsonl", operators) as searcher:
        assert [from_json(composed["score"], "")] == searcher.compose([query])
        ranks = {hit.docid: rank for rank, hit in enumerate(searcher.search(query), 1)}
        told = {docid: searcher.explain(query, docid) for docid in ("d2", "d1", "none")}
    assert list(weights) == sorted(weights, key=lambda term: (-abs(weights[term]), term))
    assert (weights["comedi∩spy"], weights["anim"]) == (pytest.approx(math.sqrt(5.0) / 2), -3.0)
    assert [document["docid"] for document in documents] == ["d2", "d1", "none"]
    assert [document["title"] for document in documents] == ["映画のスパイ", "Spies\tLaugh\x1b[31m", "Nothing"]
    for document in documents:
        explanation = told[document["docid"]]
        assert document["rank"] == ranks.get(explanation.docid)
        assert (document["score"], document["matched"]) == (explanation.score, explanation.matched)
        assert document["contributions"] == [part._asdict() for part in explanation.contributions]


def test_what_damped_lowers_is_shown(explain, folder):
    """The last --difference counts."""
    asked = ("--difference", "damped", "--query", "spy films NOT animated films", "--docid", "d2", "d1")
    found = json.loads(explain(*asked, "--output-format", "json"))
    one, other = found["documents"]
    (lowered,) = one["lowered"]
    damped = found["composed"]["score"]
    assert lowered["after"] == lowered["before"] * (1 - damped["weight"] * lowered["r"] ** 3)
    assert one["score"] == pytest.approx(lowered["after"], rel=2**-23)
    assert "lowered" not in other
    scores = [number / found["weight_scale"] for number in (lowered["before"], lowered["after"])]
    shown = " to ".join(f"{score:.3f}" for score in scores)
    assert f"rank 1, lowered from {shown} by r = {lowered['r']:.3f}\n" in explain(*asked)


def test_a_rank_beyond_the_first_thousand(run, tmp_path):
    atoms = write_jsonl(tmp_path / "atoms.jsonl", {"text": "a", "vector": {"a": 0.01}, "encoder": "given"})
    documents = ({"id": str(i), "vector": {"a": i}} for i in range(1, 1002))
    build_index(write_jsonl(tmp_path / "documents.jsonl", *documents), tmp_path / "index", "given")
    lines = run(f"explain --index {tmp_path}/index --encoder {atoms} --query a --docid 1 2 3").lines
    assert [line for line in lines if "rank" in line] == ["1: beyond rank 1000", "2: rank 1000", "3: rank 999"]


TOPICS = """\
{"id": "1", "expression": "spy films NOT comedies"}
{"id": "2", "query": "comedies"}
{"id": "3", "contents": "for people", "score": {"max": [{"vector": {"spy": 2, "anim": -1}}, {"vector": {"film": 1}}]}}
{"id": "4", "vector": {"comedi": 0.25}}
"""


@pytest.fixture
def topics(tmp_path):
    (tmp_path / "topics.jsonl").write_text(TOPICS)
    return tmp_path / "topics.jsonl"


def test_a_topic_is_what_it_asks(explain, topics):
    assert explain("--topics", topics, "--qid", "1") == explain("--query", "spy films NOT comedies")
    assert explain("--topics", topics, "--qid", "2", "--docid", "d3").splitlines() == [
        "comedies",
        "",
        "comedies: comedi 2.00, laugh 0.50, film 0.25",
        "",
        "d3: rank 1",
        f"comedi  180.000  {'█' * 40}",
        "score   180.000",
    ]


def test_composed_topics_have_no_tree_and_their_own_weights(explain, topics):
    assert explain("--topics", topics, "--qid", "3").splitlines() == [
        "for people",
        "",
        "alternative 1 (the best alternative counts)",
        "  positive  spy 2.00",
        "  negative  anim -1.00",
        "alternative 2",
        "  positive  film 1.00",
    ]
    assert explain("--topics", topics, "--qid", "4") == '{"vector": {"comedi": 0.25}}\n\npositive  comedi 0.25\n'
    found = json.loads(explain("--topics", topics, "--qid", "4", "--output-format", "json", "--docid", "d1"))
    composed = {"vector": {"comedi": 0.25}}
    assert (found["expression"], found["composed"], found["weights"]) == (None, composed, composed["vector"])
    assert found["documents"][0]["score"] == 16.0


def test_an_output_appears_whole_or_not_at_all(explain, folder, tmp_path):
    path = tmp_path / "why.txt"
    assert explain("--query", "spy films", "--docid", "d1", "--output", path) == ""
    assert path.read_text(encoding="utf-8") == explain("--query", "spy films", "--docid", "d1")
    assert explain("--query", "spy films", "--docid", "d1", "nobody", "--output", path, code=2)
    assert "nobody" not in path.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["why.txt"]


@pytest.fixture
def on_a_terminal(folder, monkeypatch):
    """Runs the command on a terminal of so many columns, and gives what it writes there."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")

    def on_a_terminal(columns, **environment):
        for name in ("NO_COLOR", "COLUMNS", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        read_end, write_end = pty.openpty()
        termios.tcsetwinsize(write_end, (24, columns))
        given = ["--index", folder / "index", "--encoder", folder / "atoms.jsonl", "--docid", "d1"]
        given += ["--query", "spy films NOT comedies", "--difference", "disentangled"]
        with open(write_end, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
            for name in ("stdout", "__stdout__"):  # the latter is asked for its columns
                patch.setattr(sys, name, terminal)
            assert main([*map(str, given)]) == 0
        written = b""
        with os.fdopen(read_end, "rb", 0) as handle, suppress(OSError):  # which is the end of a terminal
            while some := handle.read(4096):
                written += some
        return "".join(f"{line.rstrip()}\n" for line in written.decode().splitlines())

    return on_a_terminal


def test_colours_on_a_terminal(on_a_terminal):
    text = on_a_terminal(40, TERM="xterm")
    assert "\x1b[32" in text and "\x1b[31" in text
    plain = re.sub(r" *\x1b\[[\d;]*m$", "", text, flags=re.MULTILINE)
    plain = re.sub(r"\x1b\[[\d;]*m", "", plain)
    assert {len(line.rstrip()) <= 40 for line in plain.splitlines()[7:]} == {True}
    assert "comedi  -128.000  " in plain
    assert plain == on_a_terminal(40, TERM="xterm", NO_COLOR="1") == on_a_terminal(40, TERM="dumb")
    assert plain != on_a_terminal(60, TERM="xterm", NO_COLOR="1")
