"""Decomposition by a language model, which answers well, badly or not at all."""

import json
import logging
import time
from types import SimpleNamespace

import pytest
from chat_server import body, chat_server, content, drip, expression, hang_up, raw, trickle

from pyserini_compneg.decompose import LlmReader, decompose, llm_reader
from pyserini_compneg.decompose import llm as llm_module
from pyserini_compneg.decompose.chat import ChatModel
from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, parse

TEXT = "spy films other than comedies"
CUES = decompose(TEXT)
GOOD = expression("spy films NOT comedies")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Of the reader; the servers keep theirs."""
    pauses = []
    monkeypatch.setattr(llm_module, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    return pauses


def reader(server, cache=None, timeout_s=20.0, **bounds):
    return LlmReader(ChatModel(server.url, "some-model", "secret", timeout_s), cache, **bounds)


def test_an_answer_is_a_reading_with_places():
    with chat_server(GOOD) as server:
        result = reader(server)(TEXT)
    assert result.expression == parse("spy films NOT comedies")
    assert [(part.text, part.spans, part.excluded) for part in result.parts] == [
        ("spy films", ((0, 9),), False),
        ("comedies", ((21, 29),), True),
    ]
    assert [(reason.kind, reason.span) for reason in result.reasons] == [("language model", (0, len(TEXT)))]
    assert server.keys == ["Bearer secret"]
    (request,) = server.requests
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("some-model", 0, 1024)
    assert request["messages"][-1] == {"role": "user", "content": TEXT}
    assert request["response_format"]["json_schema"]["schema"]["required"] == ["expression"]


def test_one_atom_is_the_text_as_it_is():
    with chat_server(expression("vote")) as server:
        result = reader(server)("Who did not vote?")
    assert (result.expression, result.reasons) == (Atom("Who did not vote?"), ())


def test_json_among_words_is_found():
    with chat_server(content('Here: ```json\n{"expression": "spy films NOT comedies"}\n```')) as server:
        assert reader(server)(TEXT).expression == CUES.expression


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (content("sorry"), "answer: not valid JSON: Expecting value at column 1"),
        (content("[]"), "answer: expected a JSON object, got a list"),
        (content('{"expression": 1}'), "`expression` must be a text"),
        (content('{"query": "a"}'), "`expression` must be a text"),
        (expression("spy films NOT"), 'the expression ends after NOT; expected a phrase or "("'),
        (expression("NOT comedies"), "NOT has nothing to take away from; a query needs a positive part"),
        (
            expression("spy films NOT funny films"),
            "the atom 'funny films' has the word 'funny', which the text lacks",
        ),
        (expression("spy films NOT !"), "the atom '!' has no word"),
        (expression("spy films NOT (comedies OR Spy films)"), "'spy films' is both asked for and excluded"),
        (expression("(" * 9000), "`expression` has 9,000 characters; at most 8,000 may be"),
        (content('{"expression": "spy \\ud800 films"}'), "answer: not valid JSON text: half of a surrogate pair"),
    ],
)
def test_an_answer_that_is_none_is_complained_of_and_asked_again(bad, complaint, caplog):
    with chat_server(bad, GOOD) as server:
        result = reader(server)(TEXT)
    assert result.reasons[0].kind == "language model"
    first, second = server.requests
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2]["role"] == "assistant"
    assert second["messages"][3]["content"].startswith(f"That is not valid: {complaint.split(';')[0]}")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("bad", "message", "requests"),
    [
        (body("slow down", 429), "HTTP status 429", 3),
        (body("oops", 500), "HTTP status 500", 3),
        (body("who are you?", 401), "HTTP status 401", 1),
        (body("", 302, Location="http://127.0.0.1:1/"), "HTTP status 302", 1),
        (body("<html>"), "the answer is no chat completion", 3),
        (body('{"choices": []}'), "the answer is no chat completion", 3),
        (body("[" * 100_000), "the answer is no chat completion", 3),
        (content(None), "the answer has no text", 3),
        (body(" " * (1 << 20) + "  "), "the answer has more than 1048576 bytes", 1),
        (hang_up, "the server hung up", 3),
        (raw(b"hello"), "the answer is not HTTP", 3),
        (raw(b"HTTP/1.1 \x1b[2J OK\r\n\r\n"), "the answer is not HTTP", 3),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"), "the answer is not HTTP", 3),
        (body('{"choices": ' + "9" * 9999 + "}"), "the answer is no chat completion", 3),
        (body("{}", Content_Length="99"), "the answer is no chat completion", 3),
        (
            expression("spy films NOT Bond"),
            "the model's answer is none: the atom 'Bond' has the word 'bond', which the text lacks",
            3,
        ),
    ],
)
def test_without_an_answer_the_cues_decide(bad, message, requests, caplog):
    with chat_server(bad) as server:
        assert reader(server)(TEXT) == CUES
    assert len(server.requests) == requests
    assert [record.getMessage() for record in caplog.records] == [f"query {TEXT!r}: {message}; decomposed by cues"]


@pytest.mark.parametrize("slow", [trickle, drip])
def test_a_slow_server_is_left(slow, caplog):
    with chat_server(slow) as server:
        assert reader(server, timeout_s=0.2)(TEXT) == CUES
    assert "the answer took too long" in caplog.text


def test_no_server(caplog):
    assert LlmReader(ChatModel("http://127.0.0.1:9/v1", "m"))(TEXT) == CUES
    assert caplog.messages == [f"query {TEXT!r}: no connection: connection refused; decomposed by cues"]


def test_atoms_are_the_words_of_the_text():
    with chat_server(content('{"expression": "Spy \ud800 FILMS NOT \u200bcomedies"}')) as server:
        result = reader(server)("spy films, but no 'comedies'")
    assert result.expression == parse("spy films NOT comedies")


@pytest.mark.parametrize("header", ["nan", "inf", "-3", "1e3", "\u00b2", "9" * 5000])
def test_a_nonsensical_wait_is_none(header, no_pauses):
    with chat_server(body("", 429, Retry_After=header), GOOD) as server:
        assert reader(server)(TEXT).reasons[0].kind == "language model"
    assert no_pauses in ([0.5], [10.0])


def test_pauses_count_as_time(no_pauses, caplog):
    with chat_server(body("", 429, Retry_After="7")) as server:
        reader(server, most_seconds=5)(TEXT)
    assert len(server.requests) == 1
    assert 4 < no_pauses[0] < 5
    assert "the time for the model are used up" in caplog.text


def test_a_server_is_given_the_time_it_asks_for_within_bounds(no_pauses):
    with chat_server(body("", 429, Retry_After="3"), body("", 503, Retry_After="9999"), GOOD) as server:
        assert reader(server)(TEXT).reasons[0].kind == "language model"
    with chat_server(body("", 429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"), body("", 500), GOOD) as server:
        reader(server)(TEXT)
    assert no_pauses == [3.0, 10.0, 0.5, 1.0]


def test_a_silent_model_is_given_up(caplog):
    with chat_server(body("", 500)) as server:
        ask = reader(server)
        for number in range(5):
            assert ask(f"films except {number}").reasons[0].kind == "exception"
    assert len(server.requests) == 9
    assert caplog.messages[-1] == "query 'films except 4': the model has not answered several times; decomposed by cues"


def test_requests_and_time_are_bounded(caplog):
    with chat_server(GOOD) as server:
        ask = reader(server, most_requests=1)
        assert ask(TEXT).reasons[0].kind == "language model"
        assert ask(TEXT).reasons[0].kind == "exception"
        assert reader(server, most_seconds=0)(TEXT).reasons[0].kind == "exception"
    assert len(server.requests) == 1
    assert (
        caplog.messages
        == [f"query {TEXT!r}: the requests or the time for the model are used up; decomposed by cues"] * 2
    )


def test_long_texts_are_not_sent(caplog):
    with chat_server(GOOD) as server:
        assert reader(server)("films except " + "x" * 2000).reasons[0].kind == "exception"
    assert server.requests == []
    assert "longer than the 2000 characters that a model is asked about" in caplog.text


def test_answers_are_kept(tmp_path):
    with chat_server(GOOD) as server:
        first = reader(server, tmp_path)(TEXT)
        assert reader(server, tmp_path)(TEXT) == first
        assert len(server.requests) == 1
        other = LlmReader(ChatModel(server.url, "another-model"), tmp_path)
        assert other(TEXT) == first
        assert len(server.requests) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("spoilt", ["", "{}", "\x00", '{"expression": "a OR b"}', "[" * 10_000])
def test_a_spoilt_cache_is_no_answer(tmp_path, spoilt):
    with chat_server(GOOD) as server:
        reader(server, tmp_path)(TEXT)
        (file,) = tmp_path.iterdir()
        file.write_text(spoilt)
        assert reader(server, tmp_path)(TEXT).expression == CUES.expression
    assert len(server.requests) == 2
    assert json.loads(file.read_text()) == {"expression": "spy films NOT comedies"}


def test_a_cache_that_cannot_be_written_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with chat_server(GOOD) as server:
        ask = reader(server, tmp_path / "file" / "cache")
        assert ask(TEXT) == ask(TEXT)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_what_asks_for_nothing_is_refused_as_by_cues():
    with (
        chat_server(expression("NOT dogs")) as server,
        pytest.raises(DecompositionError, match="only what it does not"),
    ):
        reader(server)("not dogs")
    with chat_server(GOOD) as server, pytest.raises(DecompositionError, match="blank"):
        reader(server)(" ")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {},
            "a language model needs OPENAI_BASE_URL and COMPNEG_LLM_MODEL in the environment: the base of an "
            "OpenAI-compatible API, such as http://localhost:8000/v1, and the model's name; OPENAI_API_KEY where it "
            "wants a key",
        ),
        (
            {"OPENAI_BASE_URL": "file:///etc/passwd", "COMPNEG_LLM_MODEL": "m"},
            "the URL of a language model must be http:// or https:// and a host, in ASCII, got 'file:///etc/passwd'",
        ),
        (
            {"OPENAI_BASE_URL": "http://[::1/v1", "COMPNEG_LLM_MODEL": "m"},
            "the URL of a language model must be http:// or https:// and a host, in ASCII, got 'http://[::1/v1'",
        ),
        (
            {"OPENAI_BASE_URL": "http://höst/v1", "COMPNEG_LLM_MODEL": "m"},
            "the URL of a language model must be http:// or https:// and a host, in ASCII, got 'http://höst/v1'",
        ),
        (
            {"OPENAI_BASE_URL": "http://localhost/v1", "COMPNEG_LLM_MODEL": "m", "OPENAI_API_KEY": "a\nb"},
            "the key of a language model must be printable ASCII, without line ends",
        ),
    ],
)
def test_the_environment_names_the_model(environment, message):
    with pytest.raises(DecompositionError) as error:
        llm_reader(environment, None)
    assert str(error.value) == message


def test_settings_of_a_model():
    with pytest.raises(DecompositionError, match="name the language model"):
        ChatModel("http://localhost/v1", "")
    for timeout_s in (-1, 0, float("nan"), float("inf")):
        with pytest.raises(DecompositionError, match="must be above 0 and at most 3600 seconds, got"):
            ChatModel("http://localhost/v1", "m", timeout_s=timeout_s)
