import pytest
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import Operators, SignedImpactSearcher
from pyserini_compneg.expression.filters import read_conditions
from pyserini_compneg.index import build_index
from pyserini_compneg.support.errors import CompNegError

FILMS = {
    "d1": ("a spy comedy", 1955, ["comedy"]),
    "d2": ("a serious spy drama", 1962, ["drama", "science fiction"]),
    "d3": ("an animated spy comedy", 1968, ["comedy", "animated"]),
    "d4": ("a spy western", 1971, ["western"]),
}


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dated")
    lines = [{"id": docid, "text": text, "year": year, "genre": genre} for docid, (text, year, genre) in FILMS.items()]
    films = write_jsonl(folder / "films.jsonl", *lines)
    build_index(films, folder / "index", store_raw=True, filter_fields=["year", "genre"])
    return folder / "index"


@pytest.fixture(scope="module")
def client(dated):
    with make_client(dated) as client:
        yield client


@pytest.fixture(scope="module")
def searcher(dated):
    with SignedImpactSearcher(dated) as searcher:
        yield searcher


def ranking(answer):
    return [(candidate["docid"], candidate["score"]) for candidate in answer["candidates"]]


LATE = {"d2", "d3"}


def test_browsing_in_the_order_of_a_field_page_by_page(client):
    """All documents with filters and facets; by REST in a URL and in a body, and by a cursor of this order alone."""
    asked = {"query": "*", "sort": "year:desc", "filter": "year<1970", "hits": 2, "facets": "year,genre:1"}
    answer = client.get("/v1/films/search", params=asked).json()
    assert ranking(answer) == [("d3", 0.0), ("d2", 0.0)]
    assert answer["total"] == {"value": 3, "relation": "eq"}
    years = [{"value": year, "count": 1} for year in (1955, 1962, 1968)]
    assert answer["facets"] == {"year": years, "genre": [{"value": "comedy", "count": 2}]}
    body = {"query": "*", "sort": "year:desc", "filter": {"year": "..1969"}, "hits": 2, "highlight": True}
    assert ranking(client.post("/v1/films/search", json=body).json()) == ranking(answer)
    more = client.get("/v1/films/search", params={**asked, "cursor": answer["cursor"]}).json()
    assert (ranking(more), more["hasMore"]) == ([("d1", 0.0)], False)
    refused = client.get("/v1/films/search", params={**asked, "cursor": answer["cursor"], "sort": "year"})
    assert refused.json()["error"].startswith("cursor: the cursor is of another query, filter, order or operators")
    refused = client.get("/v1/films/search?query=spy&sort=year:down")
    said = "sort: sort must be FIELD or FIELD:desc, such as year:desc, got 'year:down'"
    assert (refused.status_code, refused.json()) == (400, {"error": said})
    scored = dict(ranking(client.get("/v1/films/search?query=spy").json()))
    ordered = ranking(client.get("/v1/films/search?query=spy&sort=year").json())
    assert ordered == [(docid, scored[docid]) for docid in ("d1", "d2", "d3", "d4")]


@pytest.mark.parametrize(
    ("conditions", "fields", "found"),
    [
        (["year=1960..", "genre=drama", "genre=comedy"], {"year": "1960..", "genre": ["drama", "comedy"]}, LATE),
        (["genre=science fiction"], {"genre": ["science fiction"]}, {"d2"}),
        (["year>1955", "year<1971"], {"year": "1955<..<1971"}, LATE),
        (["id=d1", "id=d2"], {"id": ["d1", "d2"]}, {"d1", "d2"}),
        ("year=..1955", {"year": "..1955"}, {"d1"}),
        ('{"year": "..1955"}', {"year": "..1955"}, {"d1"}),  # some clients send an object or a list as a text
        ('["year=..1955"]', {"year": "..1955"}, {"d1"}),
        (["genre=noir"], {"genre": "noir"}, set()),
    ],
)
def test_search_finds_what_the_searcher_finds(client, searcher, conditions, fields, found):
    expected = searcher.search("spy", 10, filter=fields)
    assert {hit.docid for hit in expected} == found
    for given in (fields, conditions):
        answer = client.post("/v1/films/search", json={"query": "spy", "filter": given}).json()
        assert ranking(answer) == expected
        assert any("filter allows none" in note for note in answer.get("notes", ())) == (not found)
    if conditions[0] not in "[{":
        for offset in (0, 1):
            parameters = {"query": "spy", "filter": conditions, "offset": offset}
            assert ranking(client.get("/v1/films/search", params=parameters).json()) == expected[offset:]


def test_what_compose_writes_keeps_its_filter(client):
    parameters = {"query": "spy NOT western", "filter": ["genre=comedy", "year=1960.."]}
    composed = client.get("/v1/films/compose", params=parameters).json()["composed"]
    assert composed["filter"] == {"genre": ["comedy"], "year": ["1960.."]}
    found = client.post("/v1/films/search", json=composed).json()
    assert ranking(found) == ranking(client.get("/v1/films/search", params=parameters).json())
    assert [docid for docid, _ in ranking(found)] == ["d3"]


def test_explain_says_what_is_filtered_out(client):
    parameters = {"query": "spy", "filter": "genre=comedy"}
    (out,) = client.get("/v1/films/explain/d2", params=parameters).json()["documents"]
    assert (out["rank"], out["filtered_out"]) == (None, "not genre=comedy")
    ranks = [client.get(f"/v1/films/explain/{docid}", params=parameters).json() for docid in ("d1", "d3")]
    assert sorted(answer["documents"][0]["rank"] for answer in ranks) == [1, 2]


@pytest.mark.parametrize("exclusion", ["words", "score", "any", 0.2, 0.9])
def test_exclusion(client, searcher, exclusion):
    parameters = {"query": "spy NOT! animated comedy", "exclusion": exclusion}
    expected = searcher.search(parameters["query"], 10, operators=Operators(exclusion=exclusion))
    url = "/v1/films/search"
    for answer in (client.get(url, params=parameters).json(), client.post(url, json=parameters).json()):
        assert ranking(answer) == expected
        assert answer["query"]["operators"]["exclusion"] == exclusion


OBJECTS = [{}, {"genre": None}, {"genre": {"a": 1}}, {"genre": [["a"]]}, {"genre": ""}, {"year": ">1"}, {"title": "x"}]
LISTS = [
    ["comedy"],
    [""],
    ["../x=1"],
    ["a\x1b=1"],
    ["year=1969..1960"],
    ["year=>1960"],
    ["title=x"],
    ["genre=1..2"],
    ["year=1960..x"],
]


@pytest.mark.parametrize("filter", [*LISTS, *OBJECTS])
def test_wrong_filters(client, searcher, filter):
    """The server says what the library says, with the name of the index in place of its path."""
    with pytest.raises(CompNegError) as raised:
        searcher.search("spy", filter=read_conditions(filter) if isinstance(filter, list) else filter)
    error = str(raised.value).replace(str(searcher.reader.folder), "films").removeprefix("query spy: ")
    asked = {"query": "spy", "filter": filter}
    refused = [client.post("/v1/films/search", json=asked)]
    if isinstance(filter, list):
        refused += [client.get(f"/v1/films/{route}", params=asked) for route in ("search", "explain/d1")]
    for answer in refused:
        assert (answer.status_code, answer.json()["error"].removeprefix("query spy: ")) == (400, error)


FORM = "body: filter: must be FIELD=VALUE, a list of these, or an object of fields and values, got"


@pytest.mark.parametrize(
    ("filter", "error"),
    [
        (7, f"{FORM} 7"),
        ([7], f"{FORM} [7]"),
        ({"id": [f"d{n}" for n in range(10_001)]}, "filter: expected at most 10000 values, got 10001; search in parts"),
    ],
)
def test_filters_that_only_the_server_refuses(client, filter, error):
    answer = client.post("/v1/films/search", json={"query": "spy", "filter": filter})
    assert (answer.status_code, answer.json()) == (400, {"error": error})


@pytest.mark.parametrize("exclusion", ["some", "0", "1", "nan", "-0.5"])
def test_wrong_exclusions(client, exclusion):
    answer = client.get("/v1/films/search", params={"query": "spy", "exclusion": exclusion})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(
        "exclusion must be one of words, score, any, or a number above 0 and below 1, got "
    )


def test_which_fields_there_are(client):
    assert client.get("/health").json()["filter_fields"] == {"films": ["year", "genre"]}


VALUES = (
    *("comedy", "Sci-Fi & more", "é\u0301", "1942", "1942.0", "true", "null", "x=y", "a,b", '"q"', "-"),
    *(0, -7, 1942, 2**53 + 1, 10**15, 0.5, -0.25, 0.1, 1.5e-7, 1e20, 12345.678, 1e-05, True, False),
    *(["war", "spy"], [1942, 1943], ["1", 2, 0.5]),
)


@pytest.fixture(scope="module")
def valued(tmp_path_factory):
    folder = tmp_path_factory.mktemp("valued")
    lines = [{"id": f"d{number}", "contents": "a spy", "value": value} for number, value in enumerate(VALUES)]
    path = write_jsonl(folder / "values.jsonl", *lines)
    build_index(path, folder / "index", store_raw=True, filter_fields=["value"])
    with make_client(folder / "index") as client:
        yield client


@pytest.mark.parametrize(("number", "value"), list(enumerate(VALUES)))
def test_a_value_of_an_answer_finds_its_document(valued, number, value):
    """As a filter: the answers keep the types of JSON."""
    given = valued.get(f"/v1/films/doc/d{number}").json()["doc"]["value"]
    assert (given, type(given)) == (value, type(value))
    for wanted in given if isinstance(given, list) else [given]:
        body = {"query": "spy", "hits": 100, "filter": {"value": wanted}}
        assert f"d{number}" in dict(ranking(valued.post("/v1/films/search", json=body).json()))
