"""The routes that clients of Pyserini's server use, and the forms of its answers."""

import json

import pytest
import yaml
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene.gate import java_class


def test_search_answers_in_the_form_of_pyserini(client, films):
    answer = client.get("/v1/films/search?query=spy%20comedy&hits=1").json()
    assert answer.keys() == {"api", "index", "query", "candidates"}
    assert (answer["api"], answer["index"], answer["query"]["text"]) == ("v1", "films", "spy comedy")
    with SignedImpactSearcher(films) as searcher:
        ((docid, score),) = searcher.search("spy comedy", 1)
    document = {"title": "Spy Comedy", "text": "A spy comedy about a clumsy spy."}
    assert answer["candidates"] == [{"docid": docid, "score": score, "rank": 1, "doc": document}]


def test_ten_hits_by_default_and_ranks_from_one(client):
    ranks = [
        candidate["rank"] for candidate in client.get("/v1/films/search", params={"query": "spy"}).json()["candidates"]
    ]
    assert ranks == [1, 2, 3]


def test_unparsed_documents_are_the_stored_text(client):
    parameters = {"query": "horses", "hits": 1, "parse": "false"}
    (candidate,) = client.get("/v1/films/search", params=parameters).json()["candidates"]
    assert json.loads(candidate["doc"]) == {"id": "d4", "title": "Western", "text": "A western with horses."}


def test_documents_are_cut_to_a_length(client):
    parameters = {"query": "horses", "hits": 1, "max_doc_length": 9}
    (candidate,) = client.get("/v1/films/search", params=parameters).json()["candidates"]
    assert candidate["doc"] == {"title": "Western", "text": "A western"}


def test_document(client):
    answer = client.get("/v1/films/doc/d4").json()
    document = {"title": "Western", "text": "A western with horses."}
    assert answer == {"api": "v1", "index": "films", "docid": "d4", "doc": document}


def test_a_document_of_one_field_is_that_field_and_vectors_are_no_text(tmp_path):
    line = {"id": "d1", "contents": "a spy", "vector": {"spi": 3}}
    build_index(write_jsonl(tmp_path / "v.jsonl", line), tmp_path / "index", encoder="bm25", store_raw=True)
    with make_client(tmp_path / "index") as client:
        assert client.get("/v1/films/doc/d1").json()["doc"] == "a spy"


def test_an_index_of_anserini_may_have_stored_any_text(tmp_path):
    (tmp_path / "collection").mkdir()
    (tmp_path / "collection" / "a.trec").write_text("<DOC>\n<DOCNO>d1</DOCNO>\n<TEXT>a [spy]</TEXT>\n</DOC>\n")
    java_class("io.anserini.index.IndexCollection").main(
        f"-collection TrecCollection -input {tmp_path}/collection -index {tmp_path}/index -threads 1 -impact "
        "-generator DefaultLuceneDocumentGenerator -storeRaw".split()
    )
    with make_client(tmp_path / "index", encoder="bm25") as client:
        for path in ("doc/d1", "doc/d1?parse=false"):
            assert client.get(f"/v1/films/{path}").json()["doc"] == "<TEXT>a [spy]</TEXT>"
        (candidate,) = client.get("/v1/films/search?query=spy&explain=true").json()["candidates"]
        assert candidate["doc"] == "<TEXT>a [spy]</TEXT>"
        (document,) = client.get("/v1/films/explain/d1?query=spy").json()["documents"]
        assert (document["title"], document["rank"]) == (None, 1)


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/v1/films/doc/d9", 404, "Document not found: d9"),
        ("/v1/films/doc/a/b", 404, "Document not found: a/b"),
        ("/v1/films/search", 400, "the key 'query' is missing"),
        ("/v1/books/search?query=spy", 400, "Unable to open index: books; there are films"),
        (
            "/v1/../etc/search?query=spy",
            404,
            "Expected route /v1/{index}/search or /v1/{index}/doc/{docid}; /docs has all",
        ),
        (
            "/v2/films/search?query=spy",
            404,
            "Expected route /v1/{index}/search or /v1/{index}/doc/{docid}; /docs has all",
        ),
    ],
)
def test_errors(client, path, status, error):
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_other_methods_are_refused(client):
    answer = client.delete("/v1/films/doc/d4")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json() == {"error": "Method not allowed; /docs has the methods of each route"}


def test_programs_get_the_facts_at_the_root(client):
    facts = client.get("/").json()
    assert facts.keys() == {"name", "version", "description", "openapi", "documentation"}
    assert (facts["version"], facts["openapi"], facts["documentation"]) == ("v1", "/openapi.yaml", "/docs")


def test_the_description_has_pyserinis_routes(client):
    description = yaml.safe_load(client.get("/openapi.yaml").text)
    parameters = {one["name"]: one for one in description["paths"]["/v1/{index}/search"]["get"]["parameters"]}
    assert {"index", "query", "hits", "parse", "max_doc_length"} <= parameters.keys()
    assert parameters["hits"]["schema"]["default"] == 10
    assert parameters["query"]["required"]
    assert "/v1/{index}/doc/{docid}" in description["paths"]
    assert description["components"]["schemas"]["ErrorReply"]["required"] == ["error"]
    assert "422" not in json.dumps(description)


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer a-long-key"}, {"X-API-Key": "another-key"}])
def test_a_key_may_come_in_two_headers(new_client, headers):
    with new_client("a-long-key", "another-key") as client:
        assert client.get("/v1/films/doc/d4", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": "a-long-ke"},
        {"X-API-Key": ""},
        {"Authorization": "Basic a-long-key"},
        {"X-API-Key": b"\xe9" * 10},
    ],
)
def test_no_key_no_answer(new_client, headers):
    said = "Unauthorized: send an API key as X-API-Key, or as Authorization: Bearer"
    with new_client("a-long-key") as client:
        answer = client.get("/v1/films/search?query=spy", headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"error": said})
        assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/").status_code == 200
