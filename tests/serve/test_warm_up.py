import logging

import film_index
import pytest
from served import make_client

from pyserini_compneg.serve import answers
from pyserini_compneg.support.errors import InputError


@pytest.fixture
def searched(monkeypatch):
    """The parameters of all searches."""
    asked, answer = [], answers.search_answer

    def search(backend, name, parameters):
        asked.append(parameters)
        return answer(backend, name, parameters)

    monkeypatch.setattr(answers, "search_answer", search)
    return asked


def test_all_operators_readings_and_parts_of_answers_are_used_before_the_server_is_ready(searched, tmp_path, caplog):
    folder = film_index.build(tmp_path, store_raw=True, filter_fields=["title"])
    with caplog.at_level(logging.INFO), make_client(folder) as client:
        assert {one.read for one in searched} == {"expression", "model"}
        assert all(any(f" {sign} " in one.query for one in searched) for sign in ("AND", "OR", "NOT", "NOT!"))
        assert any(one.explain and one.highlight and one.facets for one in searched)
        assert any("spy" in one.query.lower() or "western" in one.query.lower() for one in searched)  # words found
        assert "compneg_requests_total{" not in client.get("/metrics").text  # nobody has asked
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [record for record in caplog.records if "/search" in record.getMessage()]


def test_the_model_reads_english_only(searched, tmp_path):
    with make_client(film_index.build(tmp_path, bm25={"language": "de"})):  # and no texts, from which words could come
        assert {one.read for one in searched} == {"expression"}


def test_an_answer_to_an_error_is_a_fault(films, monkeypatch, caplog):
    def refuse(*_):
        raise InputError("no such thing")

    monkeypatch.setattr(answers, "search_answer", refuse)
    with make_client(films) as client:
        assert client.get("/health").status_code == 200
    (record,) = (record for record in caplog.records if record.name.endswith("warm_up"))
    assert record.getMessage() == "index films: a search before the first request failed: 400: no such thing"


def test_a_server_that_cannot_be_searched_starts_all_the_same(films, monkeypatch, caplog):
    monkeypatch.setattr(answers, "search_answer", lambda *_: 1 / 0)
    with make_client(films) as client:
        assert client.get("/health").status_code == 200
    (record,) = (record for record in caplog.records if record.name.endswith("warm_up"))
    assert record.getMessage() == "index films: a search before the first request failed: division by zero"
