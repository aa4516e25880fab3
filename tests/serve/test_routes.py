import json

import film_index
import pytest
import yaml
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import Operators, SignedImpactSearcher, decompose
from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS
from pyserini_compneg.compose.difference import DIFFERENCE_WEIGHTS
from pyserini_compneg.index import build_index, build_sharded_index
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.lucene.gate import java_class
from pyserini_compneg.serve import backend

WESTERN = {"title": "Western", "text": "A western with horses."}
SHORT = {"title": "Western", "text": "A western"}
READ = "spy films other than comedies"


def ranking(answer):
    return [(candidate["docid"], candidate["score"]) for candidate in answer.json()["candidates"]]


@pytest.fixture(scope="module")
def searcher(films):
    with SignedImpactSearcher(films) as searcher:
        yield searcher


@pytest.fixture
def get(client):
    return lambda path, **parameters: client.get(path, params=parameters).json()


def test_search_answers_in_the_form_of_pyserini(get, searcher):
    answer = get("/v1/films/search", query="spy comedy", hits=1)
    assert answer.keys() == {"api", "index", "generation", "query", "total", "candidates", "hasMore", "cursor"}
    assert (answer["api"], answer["index"], answer["query"]["text"]) == ("v1", "films", "spy comedy")
    ((docid, score),) = searcher.search("spy comedy", 1)
    document = {"title": "Spy Comedy", "text": "A spy comedy about a clumsy spy."}
    assert answer["candidates"] == [{"docid": docid, "score": score, "rank": 1, "doc": document}]


@pytest.mark.parametrize(
    ("parameters", "document"),
    [({}, WESTERN), ({"parse": "false"}, json.dumps({"id": "d4", **WESTERN})), ({"max_doc_length": 9}, SHORT)],
)
def test_forms_of_documents(get, parameters, document):
    (candidate,) = get("/v1/films/search", query="horses", hits=1, **parameters)["candidates"]
    answer = get("/v1/films/doc/d4", **parameters)
    assert len(answer.pop("generation")) == 12
    assert answer == {"api": "v1", "index": "films", "docid": "d4", "doc": candidate["doc"]}
    assert candidate["doc"] == document or json.loads(candidate["doc"]) == json.loads(document)


def test_a_document_of_one_field_is_that_field_and_vectors_are_no_text(tmp_path):
    """The ids include those that a path cannot hold."""
    lines = [{"id": docid, "contents": "a spy", "vector": {"spy": 3}} for docid in (".", "..", "a/b?c")]
    build_index(write_jsonl(tmp_path / "v.jsonl", *lines), tmp_path / "index", encoder="bm25", store_raw=True)
    with make_client(tmp_path / "index") as client:
        for line in lines:
            asked = {"docid": line["id"]}
            assert client.get("/v1/films/doc", params=asked).json()["doc"] == "a spy"
            answer = client.get("/v1/films/explain", params={"query": "spy", **asked}).json()
            assert [document["docid"] for document in answer["documents"]] == [line["id"]]
        assert client.get("/v1/films/explain?query=spy").json() == {"error": "the key 'docid' is missing"}


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


def test_whatever_is_stored_can_be_given(client, monkeypatch):
    source = '{"title": "\\ud800", "values": [NaN, 1, 1e999], "text": "spy"}'
    monkeypatch.setattr(ImpactReader, "raw", lambda *_: source)
    answer = client.get("/v1/films/doc/d1")
    assert answer.status_code == 200
    assert json.loads(answer.content, parse_constant=pytest.fail)["doc"]["values"] == ["NaN", 1, "1e999"]


NO_ROUTE = "Expected route /v1/{index}/search or /v1/{index}/doc/{docid}; /docs has all"


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/v1/films/doc/d9", 404, "Document not found: d9"),
        ("/v1/films/doc/a/b", 404, "Document not found: a/b"),
        ("/v1/films/explain/d9?query=spy", 404, "Document not found: d9"),
        ("/v1/films/search", 400, "the key 'query' is missing"),
        ("/v1/books/search?query=spy", 400, "Unable to open index: books; there are films"),
        ("/v1/../etc/search?query=spy", 404, NO_ROUTE),
        ("/v2/films/search?query=spy", 404, NO_ROUTE),
    ],
)
def test_errors(client, path, status, error):
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_other_methods_are_refused(client):
    answer = client.delete("/v1/films/doc/d4")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json() == {"error": "Method not allowed; /docs has the methods of each route"}


def test_the_root_and_the_description(client):
    facts = client.get("/").json()
    assert facts.keys() == {"name", "version", "description", "openapi", "documentation"}
    assert (facts["version"], facts["openapi"], facts["documentation"]) == ("v1", "/openapi.yaml", "/docs")
    description = yaml.safe_load(client.get("/openapi.yaml").text)
    parameters = {one["name"]: one for one in description["paths"]["/v1/{index}/search"]["get"]["parameters"]}
    assert {"index", "query", "hits", "parse", "max_doc_length"} <= parameters.keys()
    assert parameters["hits"]["schema"]["default"] == 10
    assert parameters["query"]["required"]
    assert "/v1/{index}/doc/{docid}" in description["paths"]
    assert description["components"]["schemas"]["ErrorReply"]["required"] == ["error"]
    schemes = description["components"]["securitySchemes"]
    assert {name: (one["type"], one.get("name"), one.get("scheme")) for name, one in schemes.items()} == {
        "ApiKey": ("apiKey", "X-API-Key", None),
        "Bearer": ("http", None, "bearer"),
    }
    routes = [route for methods in description["paths"].values() for route in methods.values()]
    assert all(route["security"] == [{"ApiKey": []}, {"Bearer": []}] for route in routes)  # either is enough
    assert "HTTPValidationError" not in json.dumps(description)  # FastAPI's own answer, which this server never gives


CHOSEN = {"difference": "nrf", "difference_weight": 0.9}, {"intersection": "cpt", "cpt_terms": 1}, {"cpt_weight": 0.25}


@pytest.mark.parametrize("parameters", [{}, {"union": "addition"}, *CHOSEN])
def test_operators(client, searcher, parameters):
    query = "(spy OR western) AND comedy NOT animated"
    answer = client.get("/v1/films/search", params={"query": query, **parameters})
    assert ranking(answer) == searcher.search(query, 10, operators=Operators(**parameters))
    assert answer.json()["query"]["expression"] == query
    assert answer.json()["query"]["operators"]["difference"] == parameters.get("difference", "damped")


@pytest.mark.parametrize("given", [{}, {"union": "addition"}])
def test_sets_of_operators(client, searcher, given):
    query, chosen = "(spy OR western) AND comedy NOT animated", Operators.named("paper", **given)
    answer = client.get("/v1/films/search", params={"query": query, "operators": "paper", **given})
    assert ranking(answer) == searcher.search(query, 10, operators=chosen)


def test_the_former_name_of_cpt_maxpool_is_accepted_with_a_note(client):
    asked, new = {"query": "spy AND comedy", "intersection": "disentangled"}, {"intersection": "cpt-maxpool"}
    for _ in range(2):
        for send in (
            lambda asked: client.get("/v1/films/search", params=asked),
            lambda asked: client.get("/v1/films/explain/d1", params=asked),
            lambda asked: client.post("/v1/films/search", json=asked),
        ):
            answer = send(asked).json()
            assert answer.pop("notes") == ["intersection disentangled is now cpt-maxpool"]
            assert answer == send(asked | new).json()
    description = yaml.safe_load(client.get("/openapi.yaml").text)
    (schema,) = (
        one["schema"]
        for one in description["paths"]["/v1/{index}/search"]["get"]["parameters"]
        if one["name"] == "intersection"
    )
    assert schema["enum"] == list(INTERSECTIONS)


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_the_strength_of_not_is_the_one_in_force(get, difference):
    operators = get("/v1/films/search", query="spy NOT comedy", difference=difference)["query"]["operators"]
    assert operators.get("difference_weight") == DIFFERENCE_WEIGHTS.get(difference)
    assert None not in operators.values()


def test_ways_to_read_a_text(client, searcher):
    answer = client.get("/v1/films/search", params={"query": READ, "read": "model"})
    assert ranking(answer) == searcher.search(decompose(READ), 10)
    assert answer.json()["query"]["expression"] == "spy films NOT comedies"
    chosen = client.get("/v1/films/search", params={"query": READ, "read": "model", "union": "addition"})
    for one in (answer, chosen):
        assert one.json()["query"]["operators"]["difference"] == "damped"
    plain = client.get("/v1/films/search", params={"query": "spy (NOT", "read": "plain"})
    assert ranking(plain) == searcher.search('"spy (NOT"', 10)


@pytest.mark.parametrize(
    ("query", "read", "strict"),
    [
        (READ, "model", "spy films NOT! comedies"),
        ("spy NOT comedy OR western", "expression", "spy NOT! comedy OR western"),
        ("spy", "plain", "spy"),
    ],
)
def test_exclusions_are_strict_on_demand(client, searcher, query, read, strict):
    answer = client.get("/v1/films/search", params={"query": query, "read": read, "strict": "true"})
    assert answer.json()["query"]["expression"] == strict
    assert ranking(answer) == searcher.search(strict, 10)


def test_tags_are_told_and_may_be_given(client, get):
    answer = get("/v1/decompose", query=READ)
    assert (answer["expression"], answer["understood"]) == ("spy films NOT comedies", True)
    assert [word["tag"] for word in answer["words"]] == ["W", "W", "O", "O", "X"]
    assert answer["words"][-1]["span"] == [21, 29]
    assert answer["tree"] == {"difference": ["spy films", "comedies"]}
    parameters = {"query": READ, "tags": "X,W,O,O,W"}
    answer = get("/v1/decompose", **parameters)
    assert answer["expression"] == "films comedies NOT spy"
    assert [word["tag"] for word in answer["words"]] == ["X", "W", "O", "O", "W"]
    found = get("/v1/films/search", **parameters, read="model")
    assert found["query"]["expression"] == "films comedies NOT spy"
    assert "d2" not in [candidate["docid"] for candidate in found["candidates"][:2]]
    by_body = client.post("/v1/films/search", json={**parameters, "read": "model"}).json()
    assert by_body["candidates"] == found["candidates"]


@pytest.fixture(scope="module", params=["whole", "shards"])
def soft_client(request, films, tmp_path_factory):
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


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ({"query": "spy NOT comedy"}, "spy NOT comedy"),
        ({"expression": {"difference": ["spy", "comedy"]}}, "spy NOT comedy"),
        ({"expression": "spy AND! comedy"}, "spy AND! comedy"),
        ({"expression": {"union": ["spy", {"intersection": ["western", "comedy"]}]}}, "spy OR western AND comedy"),
        ({"query_tokens": None}, "spy comedy"),  # as the encoder gives them
    ],
)
def test_bodies(client, searcher, body, query):
    if "query_tokens" in body:
        body = {"query_tokens": searcher.encoder.encode_batch([query])[0]}
    assert ranking(client.post("/v1/films/search", json=body)) == searcher.search(query, 10)


def test_explanations_name_words_and_add_up_to_the_score(get):
    candidates = get("/v1/films/search", query="spy NOT comedies", explain="true")["candidates"]
    assert (candidates[0]["docid"], candidates[0]["words"]) == ("d2", {"spy": ["spy"]})
    lowered = next(one for one in candidates if one["docid"] == "d1")
    assert lowered["words"] == {"comedy": ["comedi"], "spy": ["spy"]}
    assert [part["amount"] < 0 for part in lowered["contributions"] if part["term"] == "comedi"] == [True]
    (document,) = get("/v1/films/explain/d1", query="spy AND comedy NOT animated")["documents"]
    assert document["rank"] == 1
    assert sum(part["amount"] for part in document["contributions"]) == pytest.approx(document["score"], rel=1e-6)


def test_words_are_those_of_all_texts_and_of_nothing_else(tmp_path):
    """Not of the names of fields, and not of JSON's signs for line feeds."""
    source = {"id": "d1", "title": "On spies", "contents": "Spy\nbirds\tnew", "more": ["nested owls", {"a": "wren"}]}
    build_index(write_jsonl(tmp_path / "birds.jsonl", source), tmp_path / "index", store_raw=True)
    query = {"vector": {"bird": 1, "new": 1, "nbird": 1, "tnew": 1, "owl": 1, "wren": 1, "titl": 1, "spi": 1}}
    with make_client(tmp_path / "index") as client:
        [hit] = client.post("/v1/films/search", json={**query, "explain": True}).json()["candidates"]
    found = {part["term"] for part in hit["contributions"]}
    assert {term for terms in hit["words"].values() for term in terms} == found - {"titl"}


def test_no_hits_are_the_total_alone(client):
    wanted = client.get("/v1/films/search", params={"query": "spy", "total": "exact"}).json()
    answer = client.get("/v1/films/search", params={"query": "spy", "total": "exact", "hits": 0}).json()
    assert (answer["candidates"], answer["total"], answer["hasMore"]) == ([], wanted["total"], True)
    assert "cursor" not in answer and "notes" not in answer
    nothing = client.get("/v1/films/search", params={"query": "zebra", "hits": 0}).json()
    assert nothing["total"] == {"value": 0, "relation": "eq"}


@pytest.mark.parametrize("query", ["*", "(*)"])
def test_all_documents_are_explained(new_client, query):
    with new_client() as client:
        composed, *explained = (
            client.get(f"/v1/films/{path}", params={"query": query, **more}).json()
            for path, more in (("compose", {}), ("explain/d1", {}), ("explain", {"docid": "d1"}))
        )
        found = client.post("/v1/films/search", json=composed["composed"]).json()["candidates"]
    assert [one["docid"] for one in found] == sorted(film_index.FILMS)
    assert (composed["query"], composed["weights"], composed["atoms"]) == (query, {}, {})
    for answer in explained:
        (document,) = answer["documents"]
        assert (document["matched"], document["score"], document["contributions"]) == (True, 0.0, [])


NOT_FOUND = "no result for query zebra: no document has its words"
WORDS = "'and', 'or', 'not', 'without', 'except', 'excluding' are words"
MISREAD = "text 'no comedies, no westerns' (it only excludes): may be misread; decompose shows how "


UNSURE = "spy who never, except once, lied"


@pytest.mark.parametrize(
    ("query", "read", "note"),
    [
        ("zebra", "expression", NOT_FOUND),
        ("zebra NOT spy", "expression", "zebra NOT spy: no document has its words, or NOT takes them away"),
        ("spy not comedy", "expression", WORDS),
        ("spy -comedy", "plain", "a '-' before a word is not an operator"),
        ("spy NOT comedy", "plain", "AND, OR, NOT are words, because plain text is not parsed"),
        ("spy not comedy", "model", None),
        ("no comedies, no westerns", "model", MISREAD),
        (UNSURE, "model", "('never' is searched as a word; the reading is unsure (0."),
        ("spy", "expression", None),
    ],
)
def test_warnings_are_notes_of_the_answer(client, query, read, note):
    asked = {"query": query, "read": read}
    answers = [client.get(f"/v1/films/{path}", params=asked) for path in ("search", "compose", "explain/d1")]
    answers.append(client.post("/v1/films/search", json=asked))
    if read == "expression":
        answers.append(client.post("/v1/films/search", json={"expression": query}))
    for answer in answers:
        if not (answer.url.path != "/v1/films/search" and "zebra" in query):  # nothing is searched
            assert note in answer.json()["notes"][0] if note else "notes" not in answer.json()


@pytest.mark.parametrize(
    ("asked", "doubt"),
    [
        ({"query": "no comedies, no westerns"}, "it only excludes"),
        ({"query": UNSURE}, "'never' is searched as a word"),
        ({"query": "anything but not spy", "strict": True}, "'but' is searched as a word"),
        ({"query": "spy films without comedies"}, None),
        ({"query": "spy films without comedies", "tags": "W,W,O,X"}, None),
        ({"query": "spy films without comedies", "tags": "O,O,O,X"}, "it only excludes"),
    ],
)
def test_a_doubted_reading_is_refused_if_the_client_asks_for_it(client, asked, doubt):
    asked = {**asked, "read": "model", "unsure": "refuse"}
    inside = {key: str(value).lower() if value is True else value for key, value in asked.items()}
    answers = [client.get(f"/v1/films/{path}", params=inside) for path in ("search", "compose", "explain/d1")]
    answers.append(client.post("/v1/films/search", json=asked))
    for answer in answers:
        if doubt is None:
            assert answer.is_success and "notes" not in answer.json()
            continue
        reading = answer.json()["decomposition"]
        assert not reading["understood"] and reading["doubts"][0] == doubt and 0 < reading["confidence"] <= 1
        said = f"query: may be misread: {'; '.join(reading['doubts'])}; write an expression, or give tags"
        assert (answer.status_code, answer.json()["error"]) == (422, said)
    if doubt and "strict" not in asked:
        shown = client.get("/v1/films/search", params={**inside, "unsure": "note"}).json()["query"]["decomposition"]
        assert shown == reading


def test_health_and_metrics(client, monkeypatch):
    monkeypatch.setattr(backend, "describe_build", None)  # the files may be those of a later build by now
    health = {"status": "ok", "indexes": {"films": 6}, "filter_fields": {"films": []}, "languages": {"films": "en"}}
    health |= {"versions": {}, "follows": {}, "degraded": {}}
    found = client.get("/health").json()
    assert found.pop("build").keys() == {"version", "build", "anserini", "lucene", "index_format"}
    assert len(generation := found.pop("generations")["films"]) == 12
    assert found == health
    for path in ("search?query=spy", "doc/d1", "explain/d1?query=spy"):
        assert client.get(f"/v1/films/{path}").json()["generation"] == generation
    text = client.get("/metrics").text
    assert 'compneg_index_documents{index="films"} 6.0' in text
    assert 'compneg_requests_total{route="/health",status="200"} 1.0' in text
    assert "compneg_searches_waiting 0.0" in text


def test_an_index_in_another_language(tmp_path):
    german = write_jsonl(tmp_path / "german.jsonl", {"id": "d1", "contents": "Die alten Häuser der Stadt"})
    build_index(german, tmp_path / "index", bm25={"language": "de"}, store_raw=True)
    with make_client(tmp_path / "index") as client:
        answer = client.get("/v1/films/search", params={"query": "Haus", "explain": "true"}).json()
        assert answer["candidates"][0]["words"] == {"häuser": ["haus"]}
        read = {"query": "Haus ohne Stadt", "read": "model"}
        for path in ("search", "explain/d1"):
            refused = client.get(f"/v1/films/{path}", params=read)
            said = "read: the model reads English, and the language of this index is de; "
            assert (refused.status_code, refused.json()["error"]) == (400, f"{said}write an expression, or give tags")
        assert client.get("/v1/films/search", params={**read, "tags": "W,O,X"}).status_code == 200
        assert client.get("/health").json()["languages"] == {"films": "de"}
