"""How texts of topics and of --query are read, and what the commands say about it."""

import json

import pytest
from chat_server import chat_server, expression
from film_index import build

from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.explain import main as explain
from pyserini_compneg.commands.search import main as search

TEXT = "Can you list spy films other than comedies?"
EXPRESSION = "spy films NOT comedies"
DAMPED = ("--difference", "damped")


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
    path = tmp_path / "topics.jsonl"
    records = [
        {"id": "plain", "text": TEXT},
        {"id": "expression", "expression": "spy films other than comedies"},
        {"id": "marked", "original_query": "<mark>spy except comedies</mark>", "query": "spy except comedies"},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("command", [search, compose, explain])
def test_a_query_is_plain_text_then(run, command):
    assert (
        run(command, "--query", TEXT, "--read", "cues").out.replace(TEXT, EXPRESSION).splitlines()[-3:]
        == (run(command, "--query", EXPRESSION, *DAMPED).out.splitlines()[-3:])
    )
    assert "NOT" not in run(command, "--query", "spy NOT comedy", "--read", "cues").out.replace("NOT comedy", "")


WRITTEN = ["Can you list spy films other than comedies?", "spy films other than comedies", "spy except comedies"]


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        ([], [WRITTEN[0], WRITTEN[1], WRITTEN[2]]),
        (["--read", "cues"], [EXPRESSION, EXPRESSION, "spy NOT comedies"]),
        (["--decompose", "cues"], [EXPRESSION, EXPRESSION, "spy NOT comedies"]),
        (["--read", "plain"], WRITTEN),
        (["--plain"], WRITTEN),
        (["--decompose", "off"], WRITTEN),
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
    "damped": "NOT is damped here, as texts are read by cues; for expressions it is disentangled; --difference chooses "
    "one",
}


@pytest.mark.parametrize(
    ("options", "text", "kinds"),
    [
        ([], "spy films not comedies", ["case"]),
        ([], "spy films NOT comedies", []),
        (["--read", "plain"], "spy NOT comedies", ["capitals"]),
        (["--read", "cues"], "spy NOT comedies", ["capitals"]),
        (["--read", "cues"], "spy NOT comedies other than westerns", ["capitals", "damped"]),
        (["--read", "cues"], "spy films", []),
        (["--read", "cues"], "spy films OR war films", []),  # understood
        (["--read", "cues", "--difference", "nrf"], "spy films other than westerns", []),
    ],
)
@pytest.mark.parametrize("command", [search, compose, explain])
def test_what_is_misread_is_said_once(run, caplog, command, options, text, kinds):
    run(command, "--query", text, *options)
    assert caplog.messages == [SPOKEN[kind].format(repr(text)) for kind in kinds]


def test_a_json_query_with_operators_is_said_once_for_all(run, caplog, tmp_path):
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps({"id": n, "query": "spy NOT comedy"}) + "\n" for n in range(3))
    )
    run(search, "--topics", tmp_path / "t.jsonl")
    assert caplog.messages == [SPOKEN["capitals"].format("3 of 3 queries, such as 0 ('spy NOT comedy')")]
    parsed = run(search, "--topics", tmp_path / "t.jsonl", "--read", "expression").out
    assert parsed.splitlines()[0].split()[2] == "d2"


def test_an_explanation_of_nothing_is_said(run, caplog):
    run(search, "--query", "spy", "--explain")
    assert caplog.messages == ["--explain shows how --read cues or llm takes texts apart; here nothing is taken apart"]


@pytest.mark.parametrize("difference", [[], ["--difference", "nrf"]])
def test_all_topics_of_a_run_have_one_difference(run, tmp_path, difference):
    path = tmp_path / "topics.jsonl"
    path.write_text(json.dumps({"id": "1", "text": TEXT}) + "\n" + json.dumps({"id": "2", "text": WRITTEN[1]}))
    options = ["--topics", path, "--read", "cues", *difference]
    plain, expression = (json.loads(line) for line in run(compose, *options).out.splitlines())
    assert {**plain, "id": "2"} == expression
    plain, expression = (
        run(explain, *options, "--qid", qid, "--output-format", "json", "--docid", "d1").out for qid in "12"
    )
    plain, expression = map(json.loads, (plain, expression))
    assert plain["documents"] == expression["documents"]


def test_another_difference_can_be_named(run):
    decomposed = json.loads(run(compose, "--query", TEXT, "--read", "cues", "--difference", "disentangled").out)
    assert decomposed["vector"] == json.loads(run(compose, "--query", EXPRESSION).out)["vector"]


def test_without_an_index_it_is_the_expression_s_own_difference(tmp_path, capfd):
    atoms = tmp_path / "atoms.jsonl"
    atoms.write_text('{"text": "spy films", "vector": {"spy": 1}}\n{"text": "comedies", "vector": {"comedy": 1}}\n')
    assert compose(["--encoder", str(atoms), "--query", TEXT, "--read", "cues"]) == 0
    assert json.loads(capfd.readouterr().out)["vector"] == {"spy": 100, "comedy": -100}


DECOMPOSITION = {
    "text": TEXT,
    "expression": EXPRESSION,
    "parts": [
        {"text": "spy films", "spans": [[13, 22]], "excluded": False},
        {"text": "comedies", "spans": [[34, 42]], "excluded": True},
    ],
    "reasons": [{"kind": "exception", "cue": "other than", "span": [23, 33]}],
    "confidence": 0.97,
}


def test_json_carries_the_decomposition(run, topics):
    options = ["--topics", topics, "--read", "cues", "--explain"]
    for lines in (
        run(compose, *options).out.splitlines(),
        run(search, *options, "--output-format", "json").out.splitlines(),
    ):
        records = {record["id"]: record for record in map(json.loads, lines)}
        assert records["plain"]["decomposition"] == DECOMPOSITION
        assert records["marked"]["decomposition"]["expression"] == "spy NOT comedies"
    answer = run(explain, "--query", TEXT, "--read", "cues", "--output-format", "json").out
    assert json.loads(answer)["decomposition"] == DECOMPOSITION
    assert "decomposition" not in run(compose, *options[:-1]).out


def test_what_is_composed_with_an_explanation_is_a_topic_again(run, topics, tmp_path):
    composed = tmp_path / "composed.jsonl"
    run(compose, "--topics", topics, "--read", "cues", "--explain", "--output", composed)
    assert run(search, "--topics", composed).out == run(search, "--topics", topics, "--read", "cues").out


SHOWN = """\
  wanted    spy films  [13-22]
  excluded  comedies  [34-42]
  because   other than  [23-33] exception
  confidence 0.97
"""


def test_a_reading_is_shown(run, topics):
    assert run(search, "--query", TEXT, "--read", "cues", "--explain").out.startswith(f"{EXPRESSION}\n{SHOWN}")
    assert SHOWN not in run(search, "--query", TEXT, "--read", "cues").out
    expected = f"{TEXT}\n{SHOWN}\nNOT (damped)\n"
    assert run(explain, "--query", TEXT, "--read", "cues").out.startswith(expected)
    assert run(explain, "--topics", topics, "--qid", "plain", "--read", "cues").out.startswith(expected)
    whole = run(search, "--query", "spy films", "--read", "cues", "--explain").out
    assert whole.startswith("spy films\n  wanted    spy films  [0-9]\n  nothing is excluded or joined\n")


def test_what_asks_for_nothing(run, tmp_path, caplog):
    message = (
        "'not comedies' says only what it does not ask for, after 'not'; say what is wanted too, or search the text as "
        "it is\n"
    )
    assert run(search, "--query", "not comedies", "--read", "cues", code=2).err == f"error: {message}"
    path = tmp_path / "topics.jsonl"
    path.write_text('{"id": "1", "query": "spy"}\n{"id": "2", "query": "not comedies"}\n')
    assert run(search, "--topics", path, "--read", "cues", code=2).err == f"error: {path}:2: {message}"
    kept = run(compose, "--topics", path, "--read", "cues", "--fallback", "vanilla")
    assert [json.loads(line)["contents"] for line in kept.out.splitlines()] == ["spy", "not comedies"]
    assert caplog.messages == ["'not comedies' says only what it does not ask for, after 'not'; searched as it is"]
    other = ["--topics", path, "--qid", "1", "--read", "cues"]
    assert run(explain, *other).out.startswith("spy\n")


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


def test_without_an_answer_the_cues_decide(run, topics, environment, caplog):
    topics.write_text(topics.read_text().splitlines()[0])
    with chat_server((403, "no")) as server:
        environment(server)
        answer = run(compose, "--topics", topics, "--read", "llm")
    assert answer.out == run(compose, "--topics", topics, "--read", "cues").out
    assert caplog.messages[0] == f"query {TEXT!r}: HTTP status 403; decomposed by cues"


def test_a_language_model_has_to_be_named(run, topics, monkeypatch):
    for name in ("OPENAI_BASE_URL", "COMPNEG_LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert run(compose, "--topics", topics, "--read", "llm", code=2).err.startswith(
        "error: a language model needs OPENAI_BASE_URL and COMPNEG_LLM_MODEL in the environment"
    )
