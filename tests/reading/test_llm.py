import json
import sys
import time
from contextlib import suppress

import pytest
from chat_server import chat_server, content, expression
from local_server import Handler, serving
from refusals import refusal

from pyserini_compneg.expression import parse
from pyserini_compneg.reading import ChatModel, LlmReader, decompose, undivided
from pyserini_compneg.support.errors import QueryError, install_hint

TEXT = "spy films other than comedies"
READ = decompose(TEXT)
GOOD = expression("spy films NOT comedies")
LOCAL = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "COMPNEG_LLM_MODEL": "some-model"}

pytest.importorskip("openai")


@pytest.fixture
def reader(tmp_path):
    def reader(server, model="some-model"):
        environment = {"OPENAI_BASE_URL": server.url, "COMPNEG_LLM_MODEL": model, "OPENAI_API_KEY": "secret"}
        return LlmReader(environment, tmp_path / "cache")

    return reader


def test_an_answer_is_a_reading_with_places(reader):
    with chat_server(GOOD) as server:
        result = reader(server)(TEXT)
    assert result.expression == parse("spy films NOT comedies")
    assert [(part.text, part.spans, part.excluded) for part in result.parts] == [
        ("spy films", ((0, 9),), False),
        ("comedies", ((21, 29),), True),
    ]
    assert server.keys == ["Bearer secret"]
    (request,) = server.requests
    assert request["model"] == "some-model"
    assert request["messages"][-1] == {"role": "user", "content": TEXT}


@pytest.mark.parametrize(
    ("text", "answer", "atoms"),
    [
        ("French or Italian comedies", "french comedies OR Italian comedies", ["French comedies", "Italian comedies"]),
        ("spy films, but no 'comedies'", "Spy FILMS NOT \u200bcomedies", ["spy films", "comedies"]),
        ("set in Rome or Oslo", "set in Rome OR set in Oslo", ["set in Rome", "set in Oslo"]),
    ],
)
def test_atoms_are_the_words_of_the_text(reader, text, answer, atoms):
    with chat_server(expression(answer)) as server:
        result = reader(server)(text)
    assert [part.text for part in result.parts] == atoms
    assert [part.text for part in result.parts] == [
        " ".join(text[start:end] for start, end in part.spans) for part in result.parts
    ]
    assert max(len(part.spans) for part in result.parts) <= 2


def test_one_atom_is_the_text_as_it_is(reader):
    with chat_server(expression("vote")) as server:
        assert reader(server)("Who did not vote?") == undivided("Who did not vote?", 0.9)


def test_json_among_words_is_found(reader):
    with chat_server(content('Here: ```json\n{"expression": "spy films NOT comedies"}\n```')) as server:
        assert reader(server)(TEXT).expression == READ.expression


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (content("sorry"), "answer: not valid JSON: Expecting value at column 1"),
        (content('{"query": "a"}'), "`expression` must be a text"),
        (
            expression("spy films NOT (comedies"),
            '"(" is not closed; expected ")"; for plain words, use quotes or --read plain (read=plain)',
        ),
        (expression("spy films NOT funny films"), "the atom 'funny films' has the word 'funny', which the text lacks"),
        (expression("spy films NOT !"), "the atom '!' has no word"),
        (expression("spy films NOT (comedies OR Spy films)"), "'spy films' is both asked for and excluded"),
        (content('{"expression": "spy \\ud800 films"}'), "answer: not valid JSON text: half of a surrogate pair"),
        (content(None), "answer: not valid JSON: Expecting value at column 1"),
        ((401, "who are you?"), "HTTP status 401"),
        ((500, "oops"), "HTTP status 500"),
        ((200, '{"choices": []}'), "the answer is not a chat completion"),
        ((200, "<html>"), "the answer is not a chat completion"),
    ],
)
def test_without_a_good_answer_the_model_in_the_package_reads(reader, reply, message, caplog, tmp_path):
    with chat_server(reply) as server:
        assert reader(server)(TEXT) == READ
    assert len(server.requests) == 1
    assert [record.getMessage() for record in caplog.records if record.name.startswith("pyserini")] == [
        f"query {TEXT!r}: {message}; read by the model in the package"
    ]
    assert not (tmp_path / "cache").exists()


def test_a_silent_model_is_given_up(reader, caplog):
    with chat_server((500, "")) as server:
        ask = reader(server)
        for number in range(5):
            assert ask(f"{TEXT} {number}") == decompose(f"{TEXT} {number}")
    assert len(server.requests) == 3
    assert caplog.messages[-1].endswith("the model has not answered several times; read by the model in the package")


def test_answers_are_kept_by_model(reader, tmp_path):
    with chat_server(GOOD) as server:
        first = reader(server)(TEXT)
        assert reader(server)(TEXT) == first
        assert len(server.requests) == 1
        assert reader(server, "another-model")(TEXT) == first
    assert len(server.requests) == len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize("damaged", ["", "\x00", '{"expression": "a OR b"}'])
def test_a_damaged_cache_is_no_answer(reader, tmp_path, damaged):
    with chat_server(GOOD) as server:
        reader(server)(TEXT)
        (file,) = (tmp_path / "cache").iterdir()
        file.write_text(damaged)
        assert reader(server)(TEXT).expression == READ.expression
    assert len(server.requests) == 2
    assert json.loads(file.read_text()) == {"expression": "spy films NOT comedies"}


def test_a_cache_that_cannot_be_written_costs_no_answer(reader, tmp_path, caplog):
    (tmp_path / "cache").write_text("")
    with chat_server(GOOD) as server:
        assert reader(server)(TEXT).expression == parse("spy films NOT comedies")
    assert "the answer cannot be kept" in caplog.text


def test_a_blank_text_is_refused(reader):
    with chat_server(GOOD) as server, pytest.raises(QueryError, match="blank"):
        reader(server)(" ")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "a language model needs OPENAI_BASE_URL and COMPNEG_LLM_MODEL in the environment: the base of an "),
        ({**LOCAL, "OPENAI_BASE_URL": "file:///x"}, "OPENAI_BASE_URL must start with http:// or https://, got 'file:"),
        ({**LOCAL, "OPENAI_BASE_URL": "http://[::1"}, "OPENAI_BASE_URL=http://[::1, or the proxy for it, cannot be "),
        ({**LOCAL, "OPENAI_API_KEY": "schlüssel"}, "OPENAI_API_KEY must be printable ASCII"),
    ],
)
def test_the_environment_names_the_model(environment, message, tmp_path):
    assert refusal(LlmReader, environment, tmp_path, error=QueryError).startswith(message)


def test_without_openai(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "openai", None)
    assert refusal(LlmReader, LOCAL, tmp_path, error=QueryError) == f"openai is not installed: {install_hint('llm')}"


@pytest.mark.parametrize(
    ("block", "pause", "said"),
    [
        (b" " * 100_000, 0.0, "the answer has more than 1,048,576 bytes"),
        (b" ", 0.02, "the answer did not end in 0.3 s"),
    ],
)
def test_an_answer_that_does_not_end_is_given_up(block, pause, said):
    class Endless(Handler):
        def do_POST(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            with suppress(OSError):  # until the client has gone
                for _ in range(1_000):  # without a limit, the answer is no completion
                    self.wfile.write(block)
                    time.sleep(pause)

    with serving(Endless) as port:
        environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "COMPNEG_LLM_MODEL": "some-model"}
        assert refusal(ChatModel(environment, 0.3).answer, "", "text", error=QueryError) == said


def test_an_answer_that_breaks_off():
    class Broken(Handler):
        def do_POST(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')

    with serving(Broken) as port:
        environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "COMPNEG_LLM_MODEL": "some-model"}
        said = refusal(ChatModel(environment, 5).answer, "", "text", error=QueryError)
        assert "closed" in said and "\n" not in said


@pytest.mark.parametrize("message", [{}, {"content": None}, {"content": ""}])
def test_an_empty_answer(message):
    reply = 200, json.dumps({"choices": [{"message": {"role": "assistant", **message}}]})
    with chat_server(reply) as server:
        environment = {"OPENAI_BASE_URL": server.url, "COMPNEG_LLM_MODEL": "some-model"}
        assert ChatModel(environment).answer("", "text") == ""


def test_a_redirect_is_not_followed(reader, caplog):
    with chat_server(GOOD) as other, chat_server((307, ""), location=other.url) as server:
        assert reader(server)(TEXT) == READ
    assert other.requests == []
    assert "HTTP status 307" in caplog.text


def test_long_texts_are_not_sent(reader, caplog):
    with chat_server(GOOD) as server:
        reader(server)("spy films " * 201)
    assert server.requests == []
    assert "the text has 2010 characters, and at most 2000 are sent; read by the model in the package" in caplog.text
