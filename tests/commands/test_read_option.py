"""How texts of topics and of --query are read, and what the commands say about it."""

import json
import shutil

import pytest
from chat_server import chat_server, expression
from film_index import build
from json_lines import write_jsonl

from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.explain import main as explain
from pyserini_compneg.commands.read import main as read
from pyserini_compneg.commands.search import main as search
from pyserini_compneg.compose import Operators, to_json
from pyserini_compneg.reading.model_reader import PACKAGED, packaged_reader
from pyserini_compneg.search import SignedImpactSearcher

TEXT = "Can you list spy films other than comedies?"
EXPRESSION = "spy films NOT comedies"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return str(build(tmp_path_factory.mktemp("films"), store_raw=True))


@pytest.fixture
def run(index, capfd):
    def run(command, *arguments, code=0):
        assert command(["--index", index, *map(str, arguments)]) == code
        return capfd.readouterr()

    return run


@pytest.fixture
def topics(tmp_path):
    return write_jsonl(
        tmp_path / "topics.jsonl",
        {"id": "plain", "text": TEXT},
        {"id": "expression", "expression": "spy films other than comedies"},
        {"id": "marked", "original_query": "<mark>spy except comedies</mark>", "query": "spy except comedies"},
    )


@pytest.mark.parametrize("command", [search, compose, explain])
def test_a_query_is_plain_text_then(run, command):
    chosen = ("--difference", "disentangled")
    assert (
        run(command, "--query", TEXT, "--read", "model", *chosen).out.replace(TEXT, EXPRESSION).splitlines()[-3:]
        == (run(command, "--query", EXPRESSION, *chosen).out.splitlines()[-3:])
    )


def test_the_default_of_not_is_another_one_then(run, index):
    (line,) = run(compose, "--query", TEXT, "--read", "model").out.splitlines()
    with SignedImpactSearcher(index) as searcher:
        (node,) = searcher.compose([packaged_reader()(TEXT)])
        assert json.loads(line) == {"id": "1", "contents": EXPRESSION, **to_json(node)}
        (expected,) = searcher.compose([EXPRESSION], Operators(difference="damped"))
    assert (node.excluded, node.best, node.weight) == (expected.excluded, expected.best, expected.weight)
    assert node.child.children[0] == expected.child
    assert node.child.children[1].weights.keys() == {"spy", "film", "comedi"}


WRITTEN = ["Can you list spy films other than comedies?", "spy films other than comedies", "spy except comedies"]


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        ([], [WRITTEN[0], WRITTEN[1], WRITTEN[2]]),
        (["--read", "model"], [EXPRESSION, EXPRESSION, "spy NOT comedies"]),
        (["--decompose", "model"], [EXPRESSION, EXPRESSION, "spy NOT comedies"]),
        (["--read", "plain"], WRITTEN),
        (["--plain"], WRITTEN),
    ],
)
def test_a_reading_holds_for_all_texts_in_all_formats(run, topics, tmp_path, options, contents):
    def told(*given):
        return [json.loads(line)["contents"] for line in run(compose, *given, *options).out.splitlines()]

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
@pytest.mark.parametrize("command", [search, compose, explain])
def test_what_is_misread_is_said_once(run, caplog, command, options, text, kinds):
    run(command, "--query", text, *options)
    assert caplog.messages == [SPOKEN[kind].format(repr(text)) for kind in kinds]


def test_a_json_query_with_operators_is_said_once_for_all(run, caplog, tmp_path):
    topics = write_jsonl(tmp_path / "t.jsonl", *({"id": n, "query": "spy NOT comedy"} for n in range(3)))
    run(search, "--topics", topics)
    assert caplog.messages == [SPOKEN["capitals"].format("3 of 3 queries, such as 0 ('spy NOT comedy')")]
    parsed = run(search, "--topics", topics, "--read", "expression").out
    assert parsed.splitlines()[0].split()[2] == "d2"


def test_an_explanation_of_nothing_is_said(run, caplog):
    run(search, "--query", "spy", "--explain")
    assert caplog.messages == [
        "--explain shows how --read model, FOLDER or llm parses texts; here no text is parsed by a model, and the "
        "command explain shows what a query became"
    ]


@pytest.mark.parametrize("difference", [[], ["--difference", "nrf"]])
def test_all_topics_of_a_run_have_one_difference(run, tmp_path, difference):
    path = write_jsonl(tmp_path / "topics.jsonl", {"id": "1", "text": TEXT}, {"id": "2", "text": WRITTEN[1]})
    options = ["--topics", path, "--read", "model", *difference]
    plain, expression = (json.loads(line) for line in run(compose, *options).out.splitlines())
    assert {**plain, "id": "2"} == expression
    plain, expression = (
        run(explain, *options, "--qid", qid, "--output-format", "json", "--docid", "d1").out for qid in "12"
    )
    plain, expression = map(json.loads, (plain, expression))
    assert plain["documents"] == expression["documents"]


def test_another_difference_can_be_named(run):
    decomposed = json.loads(run(compose, "--query", TEXT, "--read", "model", "--difference", "disentangled").out)
    expression = json.loads(run(compose, "--query", EXPRESSION, "--difference", "disentangled").out)
    assert decomposed["vector"] == expression["vector"]


def test_without_an_index_another_difference_must_be_named(tmp_path, capfd):
    atoms = tmp_path / "atoms.jsonl"
    atoms.write_text('{"text": "spy films", "vector": {"spy": 1}}\n{"text": "comedies", "vector": {"comedy": 1}}\n')
    command = ["--encoder", str(atoms), "--query", TEXT, "--read", "model"]
    assert compose(command) == 2
    assert capfd.readouterr().err.endswith("or choose another --difference, such as disentangled\n")
    assert compose([*command, "--difference", "disentangled"]) == 0
    assert json.loads(capfd.readouterr().out)["vector"] == {"spy": 100, "comedy": -100}


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


def test_json_carries_the_decomposition(run, topics):
    options = ["--topics", topics, "--read", "model", "--explain"]
    for lines in (
        run(compose, *options).out.splitlines(),
        run(search, *options, "--output-format", "json").out.splitlines(),
    ):
        records = {record["id"]: record for record in map(json.loads, lines)}
        assert records["plain"]["decomposition"] == DECOMPOSITION
        assert records["marked"]["decomposition"]["expression"] == "spy NOT comedies"
    answer = run(explain, "--query", TEXT, "--read", "model", "--output-format", "json").out
    assert json.loads(answer)["decomposition"] == DECOMPOSITION
    assert "decomposition" not in run(compose, *options[:-1]).out


def test_what_is_composed_with_an_explanation_is_a_topic_again(run, topics, tmp_path):
    composed = tmp_path / "composed.jsonl"
    run(compose, "--topics", topics, "--read", "model", "--explain", "--output", composed)
    read = run(search, "--topics", topics, "--read", "model", "--tag", "t")
    assert run(search, "--topics", composed, "--tag", "t").out == read.out


SHOWN = """\
  Can you list [W spy films] other than [X comedies]?
  confidence 0."""


def test_a_reading_is_shown(run, topics):
    assert run(search, "--query", TEXT, "--read", "model", "--explain").out.startswith(f"{EXPRESSION}\n{SHOWN}")
    assert SHOWN not in run(search, "--query", TEXT, "--read", "model").out
    for options in (["--query", TEXT], ["--topics", topics, "--qid", "plain"]):
        shown = run(explain, *options, "--read", "model").out
        assert shown.startswith(f"{TEXT}\n{SHOWN}") and "\nNOT (damped)\n" in shown
    whole = run(search, "--query", "spy films", "--read", "model", "--explain").out
    assert whole.startswith("spy films\n  [W spy films]\n  nothing is excluded or joined\n  confidence ")


def test_a_text_that_is_not_understood_is_told(run, caplog, monkeypatch):
    monkeypatch.setattr(packaged_reader(), "threshold", 1.0)
    shown = run(search, "--query", TEXT, "--read", "model", "--explain").out
    assert "\n  may be misread: the reading is unsure (0.9" in shown
    assert caplog.messages[0].startswith(f"text {TEXT!r} (the reading is unsure (0.9")
    assert caplog.messages[0].endswith(": may be misread; the command read shows how texts are read")


def test_the_command_read(capfd, topics, tmp_path):
    def run(*arguments, code=0):
        assert read([*map(str, arguments)]) == code
        return capfd.readouterr()

    shown = run(TEXT, "no leather, no fur").out
    assert shown.startswith(f"{EXPRESSION}\n{SHOWN}")
    assert "\nno leather, no fur\n  [W no leather, no fur]\n  may be misread: it only excludes\n" in shown
    output = tmp_path / "readings.jsonl"
    run("--topics", topics, "--output-format", "jsonl", "--output", output)
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert {"id": "plain", **DECOMPOSITION} in records
    said = {
        "give texts, or a file of them as --topics": ([], [TEXT, "--topics", topics]),
        "--read: plain reads nothing": [[TEXT, "--read", "plain"]],
        "no way to read texts is named 'x'": [[TEXT, "--read", "x"]],
        "blank": [[" "]],
        "an argument must not be empty": [[""]],
    }
    for message, wrong in said.items():
        assert all(message in run(*arguments, code=2).err for arguments in wrong)
    topics.write_text('{"id": "1", "query": "spy"}\n{"id": "2"\n', encoding="utf-8")
    assert f"{topics}:2" in run("--topics", topics, code=2).err


@pytest.mark.parametrize("name", ["cues", "no/such/folder"])
def test_an_unknown_way_to_read(run, name):
    assert (
        f"invalid choice: {name!r} (choose from expression, plain, model, llm, or the folder of a reader)"
        in run(search, "--query", TEXT, "--read", name, code=2).err
    )


def test_a_reader_of_one_s_own(run, tmp_path):
    folder = shutil.copytree(PACKAGED, tmp_path / "reader")
    told = run(search, "--query", TEXT, "--read", folder).out
    assert told == run(search, "--query", TEXT, "--read", "model").out
    (folder / "model.onnx").write_bytes(b"")
    assert run(search, "--query", TEXT, "--read", folder, code=2).err.startswith(f"error: {folder}/model.onnx: damaged")


@pytest.fixture
def environment(monkeypatch, tmp_path):
    def point_to(server):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("COMPNEG_LLM_MODEL", "some-model")
        monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return point_to


def test_a_language_model_reads_and_is_asked_once(run, topics, environment, tmp_path):
    topics.write_text(topics.read_text().splitlines()[0])
    with chat_server(expression("spy films NOT comedies")) as server:
        environment(server)
        first = run(compose, "--topics", topics, "--read", "llm")
        assert run(compose, "--topics", topics, "--read", "llm") == first
    assert first.err == ""
    assert len(server.requests) == 1
    assert json.loads(first.out.splitlines()[0])["contents"] == EXPRESSION
    assert len(list((tmp_path / "cache" / "decompositions").iterdir())) == 1


def test_without_an_answer_the_model_in_the_package_reads(run, topics, environment, caplog):
    topics.write_text(topics.read_text().splitlines()[0])
    with chat_server((403, "no")) as server:
        environment(server)
        answer = run(compose, "--topics", topics, "--read", "llm")
    assert answer.out == run(compose, "--topics", topics, "--read", "model").out
    assert caplog.messages[0] == f"query {TEXT!r}: HTTP status 403; read by the model in the package"


def test_a_language_model_has_to_be_named(run, topics, monkeypatch):
    for name in ("OPENAI_BASE_URL", "COMPNEG_LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert run(compose, "--topics", topics, "--read", "llm", code=2).err.startswith(
        "error: a language model needs OPENAI_BASE_URL and COMPNEG_LLM_MODEL in the environment"
    )
