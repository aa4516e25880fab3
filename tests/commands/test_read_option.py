"""How texts of topics and of --query are read, and what the commands say about it."""

import json
import shutil

import pytest
from chat_server import chat_server, expression
from json_lines import write_jsonl

from pyserini_compneg.reading.model_reader import PACKAGED, packaged_reader

TEXT = "Can you list spy films other than comedies?"
EXPRESSION = "spy films NOT comedies"


@pytest.fixture
def ask(run):
    """A command on the index of films."""
    return lambda command, *more, **options: run(f"{command} --index {{films}}", *more, **options)


@pytest.fixture
def topics(tmp_path):
    return write_jsonl(
        tmp_path / "topics.jsonl",
        {"id": "plain", "text": TEXT},
        {"id": "expression", "expression": "spy films other than comedies"},
        {"id": "marked", "original_query": "<mark>spy except comedies</mark>", "query": "spy except comedies"},
    )


@pytest.mark.parametrize("command", ["search", "compose", "explain"])
def test_a_query_is_plain_text_then(ask, command):
    chosen = ("--difference", "disentangled")
    read = ask(command, "--query", TEXT, "--read", "model", *chosen)
    written = ask(command, "--query", EXPRESSION, *chosen)
    if command == "compose":
        (read, written) = (json.loads(one.out) for one in (read, written))
        assert (read["contents"], read["vector"]) == (written["contents"], written["vector"])
    else:
        assert read.out.replace(TEXT, EXPRESSION).splitlines()[-3:] == written.lines[-3:]


@pytest.mark.parametrize("command", ["search", "compose", "explain"])
def test_what_is_misread_is_said_once(ask, command):
    (told,) = ask(command, "--query", "spy films not comedies").told
    assert told.startswith("in 'spy films not comedies', ")
    assert ask(command, "--query", "spy films OR war films", "--read", "model").told == []


def test_a_reading_holds_for_all_texts_in_all_formats(ask, topics, tmp_path):
    def contents(*given):
        return [json.loads(line)["contents"] for line in ask("compose", *given, "--read", "model").lines]

    assert contents("--topics", topics) == [EXPRESSION, EXPRESSION, "spy NOT comedies"]
    (tmp_path / "topics.tsv").write_text(f"1\t{TEXT}\n")
    assert contents("--topics", tmp_path / "topics.tsv") == contents("--query", TEXT) == [EXPRESSION]


def test_without_an_index_another_difference_must_be_named(run, tmp_path):
    atoms = tmp_path / "atoms.jsonl"
    atoms.write_text('{"text": "spy films", "vector": {"spy": 1}}\n{"text": "comedies", "vector": {"comedy": 1}}\n')
    command = ["--encoder", atoms, "--query", TEXT, "--read", "model"]
    said = run("compose", *command, code=2).err
    assert said.endswith("or choose another --difference, such as disentangled\n")
    composed = json.loads(run("compose --difference disentangled", *command).out)
    assert composed["vector"] == {"spy": 100, "comedy": -100}


DECOMPOSITION = {
    "text": TEXT,
    "expression": EXPRESSION,
    "parts": [
        {"text": "spy films", "spans": [[13, 22]], "excluded": False},
        {"text": "comedies", "spans": [[34, 42]], "excluded": True},
    ],
    "confidence": pytest.approx(0.9, abs=0.1),
    "understood": True,
    "doubts": [],
}


def test_json_carries_the_decomposition(ask, topics):
    options = ["--topics", topics, "--read", "model"]
    for ran in (ask("compose", *options), ask("search", *options, "--output-format", "json")):
        records = {record["id"]: record for record in map(json.loads, ran.lines)}
        assert records["plain"]["decomposition"] == DECOMPOSITION
        assert records["marked"]["decomposition"]["expression"] == "spy NOT comedies"
    answer = ask("explain", "--query", TEXT, "--read", "model", "--output-format", "json").out
    assert json.loads(answer)["decomposition"] == DECOMPOSITION
    assert "decomposition" not in ask("compose", *options[:-2]).out


def test_what_is_composed_with_an_explanation_is_a_topic_again(ask, topics, tmp_path):
    composed = tmp_path / "composed.jsonl"
    ask("compose", "--topics", topics, "--read", "model", "--output", composed)
    read = ask("search", "--topics", topics, "--read", "model", "--tag", "t")
    assert ask("search", "--topics", composed, "--tag", "t").out == read.out


SHOWN = """\
  Can you list [W spy films] other than [X comedies]?
  confidence 0."""


def test_a_reading_is_shown(ask, topics):
    assert ask("search", "--query", TEXT, "--read", "model").out.startswith(f"{EXPRESSION}\n{SHOWN}")
    for options in (["--query", TEXT], ["--topics", topics, "--qid", "plain"]):
        shown = ask("explain", *options, "--read", "model").out
        assert shown.startswith(f"{TEXT}\n{SHOWN}") and "\nNOT (damped)\n" in shown
    whole = ask("search", "--query", "spy films", "--read", "model").out
    assert whole.startswith("spy films\n  [W spy films]\n  nothing is excluded or joined\n  confidence ")


def test_a_text_that_is_not_understood_is_told(ask, monkeypatch):
    monkeypatch.setattr(packaged_reader(), "threshold", 1.0)
    ran = ask("search", "--query", TEXT, "--read", "model")
    assert "\n  may be misread: the reading is unsure (0.9" in ran.out
    assert ran.told[0].startswith(f"text {TEXT!r} (the reading is unsure (0.9")
    assert ran.told[0].endswith(": may be misread; the command read shows how texts are read")


def test_the_command_read(run, topics, tmp_path):
    shown = run("read", TEXT, "no leather, no fur").out
    assert shown.startswith(f"{EXPRESSION}\n{SHOWN}")
    assert "\nno leather, no fur\n  [W no leather, no fur]\n  may be misread: it only excludes\n" in shown
    output = tmp_path / "readings.jsonl"
    run("read --output-format jsonl --topics", topics, "--output", output)
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert {"id": "plain", **DECOMPOSITION} in records


def test_a_reader_of_one_s_own(ask, tmp_path):
    folder = shutil.copytree(PACKAGED, tmp_path / "reader")
    told = ask("search", "--query", TEXT, "--read", folder).out
    assert told == ask("search", "--query", TEXT, "--read", "model").out
    damaged = shutil.copytree(PACKAGED, tmp_path / "damaged")  # a process keeps the readers that it has loaded
    (damaged / "model.onnx").write_bytes(b"")
    said = ask("search", "--query", TEXT, "--read", damaged, code=2).err
    assert said.startswith(f"error: {damaged}/model.onnx: damaged")


def test_a_language_model_reads_and_is_asked_once(ask, topics, monkeypatch, tmp_path):
    topics.write_text(topics.read_text().splitlines()[0])
    with chat_server(expression(EXPRESSION)) as server:
        for name, value in (("OPENAI_BASE_URL", server.url), ("COMPNEG_LLM_MODEL", "m"), ("COMPNEG_CACHE", tmp_path)):
            monkeypatch.setenv(name, str(value))
        first, second = (ask("compose", "--topics", topics, "--read", "llm") for _ in range(2))
    assert (first.out, first.err, len(server.requests)) == (second.out, "", 1)
    assert json.loads(first.lines[0])["contents"] == EXPRESSION
