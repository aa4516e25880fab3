"""How texts of topics and of --query are read, and what the commands say about it."""

import json
import shutil

import pytest
from chat_server import chat_server, expression
from json_lines import write_jsonl

from pyserini_compneg.compose import Operators, to_json
from pyserini_compneg.reading.model_reader import PACKAGED, packaged_reader
from pyserini_compneg.search import SignedImpactSearcher

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


def test_the_default_of_not_is_another_one_then(ask, index):
    (line,) = ask("compose", "--query", TEXT, "--read", "model").lines
    with SignedImpactSearcher(index) as searcher:
        (node,) = searcher.compose([packaged_reader()(TEXT)])
        shown = {"id": "1", "contents": EXPRESSION, **to_json(node), "decomposition": DECOMPOSITION}
        assert json.loads(line) == shown
        (expected,) = searcher.compose([EXPRESSION], Operators(difference="damped"))
    assert (node.excluded, node.best, node.weight) == (expected.excluded, expected.best, expected.weight)
    assert node.child.children[0] == expected.child
    assert node.child.children[1].weights.keys() == {"spy", "film", "comedi"}


WRITTEN = ["Can you list spy films other than comedies?", "spy films other than comedies", "spy except comedies"]


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        ([], WRITTEN),
        (["--read", "model"], [EXPRESSION, EXPRESSION, "spy NOT comedies"]),
        (["--read", "plain"], WRITTEN),
    ],
)
def test_a_reading_holds_for_all_texts_in_all_formats(ask, topics, tmp_path, options, contents):
    def told(*given):
        return [json.loads(line)["contents"] for line in ask("compose", *given, *options).lines]

    assert told("--topics", topics) == contents
    (tmp_path / "topics.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(WRITTEN)))
    assert told("--topics", tmp_path / "topics.tsv") == contents
    assert [told("--query", text)[0] for text in WRITTEN] == contents


SPOKEN = {
    "case": "in {}, 'and', 'or', 'not' are words: write AND, OR, NOT for operators, or put the phrase in quotes",
    "capitals": "in {}, AND, OR, NOT are words, because plain text is not parsed; --read expression makes them "
    "operators",
}


@pytest.mark.parametrize(
    ("options", "text", "kinds"),
    [
        ([], "spy films not comedies", ["case"]),
        ([], "spy films NOT comedies", []),
        (["--read", "plain"], "spy NOT comedies", ["capitals"]),
        (["--read", "model"], "spy films", []),
        (["--read", "model"], "spy films OR war films", []),  # understood
        (["--read", "model"], "spy films NOT comedies", []),  # so is this
        (["--read", "model", "--difference", "nrf"], "spy films other than westerns", []),
    ],
)
@pytest.mark.parametrize("command", ["search", "compose", "explain"])
def test_what_is_misread_is_said_once(ask, command, options, text, kinds):
    assert ask(command, "--query", text, *options).told == [SPOKEN[kind].format(repr(text)) for kind in kinds]


def test_a_json_query_with_operators_is_said_once_for_all(ask, tmp_path):
    topics = write_jsonl(tmp_path / "t.jsonl", *({"id": n, "query": "spy NOT comedy"} for n in range(3)))
    told = ask("search", "--topics", topics).told
    assert told == [SPOKEN["capitals"].format("3 of 3 queries, such as 0 ('spy NOT comedy')")]
    parsed = ask("search", "--topics", topics, "--read", "expression")
    assert parsed.lines[0].split()[2] == "d2"


@pytest.mark.parametrize("difference", [[], ["--difference", "nrf"]])
def test_all_topics_of_a_run_have_one_difference(ask, tmp_path, difference):
    path = write_jsonl(tmp_path / "topics.jsonl", {"id": "1", "text": TEXT}, {"id": "2", "text": WRITTEN[1]})
    options = ["--topics", path, "--read", "model", *difference]
    plain, read = ({**json.loads(line), "id": "", "decomposition": ""} for line in ask("compose", *options).lines)
    assert plain == read
    options += ["--output-format", "json", "--docid", "d1"]
    plain, read = (json.loads(ask("explain", *options, "--qid", qid).out) for qid in "12")
    assert plain["documents"] == read["documents"]


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
    (folder / "model.onnx").write_bytes(b"")
    said = ask("search", "--query", TEXT, "--read", folder, code=2).err
    assert said.startswith(f"error: {folder}/model.onnx: damaged")


@pytest.fixture
def environment(monkeypatch, tmp_path, topics):
    def point_to(server):
        topics.write_text(topics.read_text().splitlines()[0])
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("COMPNEG_LLM_MODEL", "some-model")
        monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return point_to


def test_a_language_model_reads_and_is_asked_once(ask, topics, environment, tmp_path):
    with chat_server(expression("spy films NOT comedies")) as server:
        environment(server)
        first, second = (ask("compose", "--topics", topics, "--read", "llm") for _ in range(2))
    assert (first.out, first.err) == (second.out, "")
    assert len(server.requests) == 1
    assert json.loads(first.lines[0])["contents"] == EXPRESSION
    assert len(list((tmp_path / "cache" / "decompositions").iterdir())) == 1


def test_without_an_answer_the_model_in_the_package_reads(ask, topics, environment):
    with chat_server((403, "no")) as server:
        environment(server)
        answer = ask("compose", "--topics", topics, "--read", "llm")
    assert answer.out == ask("compose", "--topics", topics, "--read", "model").out
    assert answer.told[0] == f"query {TEXT!r}: HTTP status 403; read by the model in the package"


def test_a_language_model_has_to_be_named(ask, topics, monkeypatch):
    for name in ("OPENAI_BASE_URL", "COMPNEG_LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert ask("compose", "--topics", topics, "--read", "llm", code=2).err.startswith(
        "error: a language model needs OPENAI_BASE_URL and COMPNEG_LLM_MODEL in the environment"
    )
