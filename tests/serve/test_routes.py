"""Our own routes."""

import json
import time

import pytest
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import Operators, SignedImpactSearcher, decompose
from pyserini_compneg.compose import DIFFERENCES
from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS
from pyserini_compneg.expression import parse
from pyserini_compneg.index import build_index, build_sharded_index
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.serve import answers


def ranking(answer):
    return [(candidate["docid"], candidate["score"]) for candidate in answer.json()["candidates"]]


@pytest.fixture(scope="module")
def searcher(films):
    with SignedImpactSearcher(films) as searcher:
        yield searcher


@pytest.mark.parametrize(
    ("parameters", "operators"),
    [
        ({}, None),
        ({"difference": "nrf"}, Operators(difference="nrf")),
        ({"difference": "nrf", "difference_weight": 0.9}, Operators(difference="nrf", difference_weight=0.9)),
        ({"intersection": "cpt", "cpt_terms": 1}, Operators(intersection="cpt", cpt_terms=1)),
        ({"cpt_weight": 0.25}, Operators(cpt_weight=0.25)),
        ({"union": "addition"}, Operators(union="addition")),
    ],
)
def test_operators(client, searcher, parameters, operators):
    query = "(spy OR western) AND comedy NOT animated"
    answer = client.get("/v1/films/search", params={"query": query, **parameters})
    assert ranking(answer) == searcher.search(query, 10, operators=operators)
    assert answer.json()["query"]["operators"]["difference"] == parameters.get("difference", "damped")


def test_plain_words_are_taken_apart_as_the_command_does(client, searcher):
    text = "spy films other than comedies"
    answer = client.get("/v1/films/search", params={"query": text, "read": "model"})
    assert ranking(answer) == searcher.search(decompose(text), 10)
    assert answer.json()["query"]["expression"] == "spy films NOT comedies"
    assert answer.json()["query"]["operators"]["difference"] == "damped"
    chosen = client.get("/v1/films/search", params={"query": text, "read": "model", "union": "addition"})
    assert chosen.json()["query"]["operators"]["difference"] == "damped"


def test_a_plain_text_has_no_operators(client, searcher):
    answer = client.get("/v1/films/search", params={"query": "spy (NOT", "read": "plain"})
    assert ranking(answer) == searcher.search('"spy (NOT"', 10)


def test_offset_goes_on_where_hits_ended(client):
    whole = client.get("/v1/films/search?query=spy").json()["candidates"]
    rest = client.get("/v1/films/search?query=spy&offset=1&hits=1").json()["candidates"]
    assert rest == whole[1:2]


@pytest.fixture(scope="module", params=["whole", "shards"])
def soft_client(request, films, tmp_path_factory):
    """A client of the index of films, whole or in shards."""
    folder = films
    if request.param == "shards":
        folder = tmp_path_factory.mktemp("soft") / "index"
        build_sharded_index(films.parent / "films.jsonl", folder, 2, store_raw=True)
    with make_client(folder) as client:
        yield client


def test_hits_of_and_say_what_they_lack(soft_client):
    def lacks(query, **parameters):
        answer = soft_client.get("/v1/films/search", params={"query": query, **parameters}).json()
        return {candidate["docid"]: candidate.get("lacks") for candidate in answer["candidates"]}

    assert lacks("spy AND comedy") == {"d1": None, "d2": ["comedy"], "d3": None, "d5": ["spy"], "d6": ["spy"]}
    (page,) = lacks("spy AND comedy", offset=4, hits=1).values()
    assert page in (["spy"], ["comedy"])
    assert lacks("spy AND comedy", explain="true")["d5"] == ["spy"]
    assert set(lacks("spy AND comedy", intersection="vanilla").values()) == {None}
    composed = soft_client.get("/v1/films/compose", params={"query": "spy AND comedy"}).json()["composed"]
    candidates = soft_client.post("/v1/films/search", json=composed).json()["candidates"]
    assert [candidate for candidate in candidates if "lacks" in candidate] == []
    assert len(candidates) == 5
    tree = {"expression": {"intersection": ["spy", "comedy"]}}
    (*_, last) = soft_client.post("/v1/films/search", json=tree).json()["candidates"]
    assert last["lacks"] in (["comedy"], ["spy"])


def test_what_compose_writes_is_a_body_of_search(client):
    parameters = {"query": "spy AND comedy NOT animated"}
    composed = client.get("/v1/films/compose", params=parameters).json()["composed"]
    line = {"id": "7", "contents": "spies", **composed}
    answer = client.post("/v1/films/search", json=line)
    assert ranking(answer) == ranking(client.get("/v1/films/search", params=parameters))
    assert answer.json()["query"]["text"] == "spies"


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ({"query": "spy NOT comedy"}, "spy NOT comedy"),
        ({"expression": {"difference": ["spy", "comedy"]}}, "spy NOT comedy"),
        ({"expression": "spy AND! comedy"}, "spy AND! comedy"),
        ({"expression": {"union": ["spy", {"intersection": ["western", "comedy"]}]}}, "spy OR western AND comedy"),
    ],
)
def test_bodies(client, searcher, body, query):
    assert ranking(client.post("/v1/films/search", json=body)) == searcher.search(query, 10)


def test_tokens_are_weighed_as_an_encoder_weighs(client, searcher):
    tokens = searcher.encoder.encode_batch(["spy comedy"])[0]
    answer = client.post("/v1/films/search", json={"query_tokens": tokens})
    assert ranking(answer) == searcher.search("spy comedy", 10)


def test_explained_hits_say_which_words_count(client):
    parameters = {"query": "spy NOT comedies", "explain": "true"}
    (first, *_) = candidates = client.get("/v1/films/search", params=parameters).json()["candidates"]
    assert first["docid"] == "d2"
    assert first["words"] == {"spy": ["spy"]}
    lowered = next(one for one in candidates if one["docid"] == "d1")
    assert lowered["words"] == {"comedy": ["comedi"], "spy": ["spy"]}
    assert [part["amount"] < 0 for part in lowered["contributions"] if part["term"] == "comedi"] == [True]


def test_words_are_those_of_the_texts_alone(tmp_path):
    """Not of the names of fields, and not of JSON's signs for line feeds."""
    source = {"id": "d1", "title": "On spies", "contents": "Spy\nbirds\tnew", "more": ["nested words", {"a": "wren"}]}
    (tmp_path / "birds.jsonl").write_text(json.dumps(source))
    build_index(tmp_path / "birds.jsonl", tmp_path / "index", store_raw=True)
    with make_client(tmp_path / "index") as client:
        [hit] = client.get("/v1/films/search?query=birds new&explain=true").json()["candidates"]
        assert hit["words"] == {"birds": ["bird"], "new": ["new"]}
    assert list(answers._texts_of(source)) == ["d1", "On spies", "Spy\nbirds\tnew", "nested words", "wren"]


def test_whatever_is_stored_can_be_given(client, monkeypatch):
    monkeypatch.setattr(
        ImpactReader, "raw", lambda *_: '{"title": "\\ud800", "values": [NaN, 1, 1e999], "text": "spy"}'
    )
    answer = client.get("/v1/films/doc/d1")
    assert answer.status_code == 200
    assert json.loads(answer.content, parse_constant=pytest.fail)["doc"]["values"] == ["NaN", 1, "1e999"]


def test_words_that_look_like_operators_are_noted(client):
    for parameters, said in [
        ({"query": "spy not comedy"}, "'and', 'or', 'not' are words"),
        ({"query": "spy NOT comedy", "read": "plain"}, "AND, OR, NOT are words, because plain text is not parsed"),
    ]:
        for answer in (
            client.get("/v1/films/search", params=parameters),
            client.post("/v1/films/search", json=parameters),
        ):
            assert said in answer.json()["notes"][0]
    assert "notes" not in client.get("/v1/films/search", params={"query": "spy not comedy", "read": "model"}).json()


def test_a_body_does_not_keep_others_waiting(client):
    body = "{" + ",".join(f'"{number}":0' for number in range(60_000)) + ',"7":0}'
    begun = time.perf_counter()
    answer = client.post("/v1/films/search", content=body)
    assert (answer.status_code, answer.json()) == (400, {"error": "body: the key '7' is given twice"})
    assert time.perf_counter() - begun < 5  # to count each key for each key takes a minute


def test_contributions_add_up_to_the_score(client):
    answer = client.get("/v1/films/explain/d1", params={"query": "spy AND comedy NOT animated"}).json()
    (document,) = answer["documents"]
    assert document["rank"] == 1
    assert sum(part["amount"] for part in document["contributions"]) == pytest.approx(document["score"], rel=1e-6)
    assert client.get("/v1/films/explain/d9?query=spy").status_code == 404


def test_ids_that_a_path_cannot_hold(tmp_path):
    lines = [{"id": docid, "contents": "a spy"} for docid in (".", "..", "a/b?c")]
    build_index(write_jsonl(tmp_path / "dots.jsonl", *lines), tmp_path / "index", store_raw=True)
    with make_client(tmp_path / "index") as client:
        for line in lines:
            asked = {"docid": line["id"]}
            assert client.get("/v1/films/doc", params=asked).json()["doc"] == "a spy"
            answer = client.get("/v1/films/explain", params={"query": "spy", **asked}).json()
            assert [document["docid"] for document in answer["documents"]] == [line["id"]]
        assert client.get("/v1/films/explain?query=spy").json() == {"error": "the key 'docid' is missing"}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_the_strength_of_not_is_the_one_in_force(client, difference):
    answer = client.get("/v1/films/search", params={"query": "spy NOT comedy", "difference": difference}).json()
    operators = answer["query"]["operators"]
    assert operators.get("difference_weight") == DIFFERENCE_WEIGHTS.get(difference)
    assert None not in operators.values()


def test_reading_with_tags(client):
    answer = client.get("/v1/decompose", params={"query": "spy films other than comedies"}).json()
    assert (answer["expression"], answer["understood"]) == ("spy films NOT comedies", True)
    assert [word["tag"] for word in answer["words"]] == ["W", "W", "O", "O", "X"]
    assert answer["words"][-1]["span"] == [21, 29]
    assert answer["tree"] == {"difference": ["spy films", "comedies"]}


def test_other_tags_make_another_expression(client):
    parameters = {"query": "spy films other than comedies", "tags": "X,W,O,O,W"}
    answer = client.get("/v1/decompose", params=parameters).json()
    assert answer["expression"] == "films comedies NOT spy"
    assert [word["tag"] for word in answer["words"]] == ["X", "W", "O", "O", "W"]
    found = client.get("/v1/films/search", params={**parameters, "read": "model"}).json()
    assert found["query"]["expression"] == "films comedies NOT spy"
    assert "d2" not in [candidate["docid"] for candidate in found["candidates"][:2]]
    by_body = client.post("/v1/films/search", json={**parameters, "read": "model"}).json()
    assert by_body["candidates"] == found["candidates"]


def test_warnings_are_notes_of_the_answer(client, caplog):
    answer = client.get("/v1/films/search", params={"query": "zebra"}).json()
    assert answer["candidates"] == []
    assert answer["notes"] == ["no result for query zebra: no positive term is left to search for"]
    assert "notes" not in client.get("/v1/films/search", params={"query": "spy"}).json()


def test_health_and_metrics(client):
    health = {"status": "ok", "indexes": {"films": 6}, "filter_fields": {"films": []}, "degraded": {}}
    assert client.get("/health").json() == health
    text = client.get("/metrics").text
    assert 'compneg_index_documents{index="films"} 6.0' in text
    assert 'compneg_requests_total{route="/health",status="200"} 1.0' in text
    assert "compneg_searches_waiting 0.0" in text


def test_documents_that_hold_html_are_data(client):
    answer = client.get("/v1/films/search", params={"query": "<script>alert(1)</script> spy"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")


def test_parse_agrees_with_what_is_said(client):
    answer = client.get("/v1/films/search", params={"query": "spy AND (comedy OR drama)"})
    assert parse(answer.json()["query"]["expression"]) == parse("spy AND (comedy OR drama)")
