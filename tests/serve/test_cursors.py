"""Totals, facets and pages of the server agree with one search for all hits."""

import base64
import shutil

import pytest
from json_lines import write_jsonl
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.compose.queries import parsed_query
from pyserini_compneg.index import build_index
from pyserini_compneg.serve.cursors import Ranking

COUNT = 60
QUERY = "spy NOT war"


def build(folder, count=COUNT):
    """Documents of which many have the same score."""
    texts = ("a spy", "a spy at war", "a spy, a spy", "war")
    films = (
        {"id": f"d{n * 7 % 100}", "text": texts[n % 4], "year": 1990 + n % 3, "kind": f"k{n % 2}"} for n in range(count)
    )
    folder.mkdir(exist_ok=True)
    lines = write_jsonl(folder / "films.jsonl", *films)
    build_index(lines, folder / "index", store_raw=True, filter_fields=["year", "kind"])
    return folder / "index"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def client(index):
    with make_client(index) as client:
        yield client


def walked(ask, size):
    """The answers of all pages."""
    answers = [ask(hits=size)]
    while answers[-1]["hasMore"]:
        answers.append(ask(hits=size, cursor=answers[-1]["cursor"]))
        assert len(answers) <= COUNT, "pages go in a circle"
    return answers


@pytest.mark.parametrize("filter", [None, "year=1990..1991"])
@pytest.mark.parametrize("size", [1, 7, 45, 1000])
def test_pages_are_slices_of_the_ranking_of_all(client, index, size, filter):
    def ask(**parameters):
        more = {} if filter is None else {"filter": filter}
        return client.get("/v1/films/search", params={"query": QUERY, **more, **parameters}).json()

    answers = walked(ask, size)
    with SignedImpactSearcher(index) as searcher:
        wanted = searcher.search(QUERY, COUNT, filter=None if filter is None else {"year": "1990..1991"})
    hits = [hit for answer in answers for hit in answer["candidates"]]
    assert [(hit["docid"], hit["score"]) for hit in hits] == wanted
    assert [hit["rank"] for hit in hits] == list(range(1, len(wanted) + 1))
    assert all(answer["total"] == {"value": len(wanted), "relation": "eq"} for answer in answers)
    assert all(len(answer["candidates"]) == size for answer in answers[:-1])
    assert "cursor" not in answers[-1]


def test_a_body_and_a_tool_page_alike(client):
    def ask(**parameters):
        return client.post("/v1/films/search", json={"vector": {"spy": 2, "war": -1}, **parameters}).json()

    hits = [hit["docid"] for answer in walked(ask, 11) for hit in answer["candidates"]]
    assert hits == [hit["docid"] for hit in ask(hits=1000)["candidates"]]


def test_facets_are_of_all_that_match(client):
    answer = client.get(f"/v1/films/search?query={QUERY}&hits=1&facets=kind,year:2").json()
    matching = [n for n in range(COUNT) if n % 4 != 3]
    years = [sum(n % 3 == year for n in matching) for year in range(3)]
    assert answer["total"] == {"value": len(matching), "relation": "eq"}
    assert answer["facets"] == {
        "kind": [
            {"value": "k0", "count": sum(n % 2 == 0 for n in matching)},
            {"value": "k1", "count": sum(n % 2 for n in matching)},
        ],
        "year": [
            {"value": 1990 + year, "count": years[year]} for year in sorted(range(3), key=lambda y: (-years[y], y))
        ][:2],
    }
    assert (
        client.post("/v1/films/search", json={"query": QUERY, "hits": 1, "facets": {"kind": 10, "year": 2}}).json()[
            "facets"
        ]
        == answer["facets"]
    )
    assert "facets" not in client.get(f"/v1/films/search?query={QUERY}").json()
    refused = client.get(f"/v1/films/search?query={QUERY}&facets=genre")
    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "films: cannot be searched: it has no filter field 'genre', only kind, year"},
    )


def damaged(cursor):
    """The cursor with one bit changed, for each of its bytes; cut; longer; and nothing that was ever a cursor."""
    packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for place in range(len(packed)):
        changed = bytearray(packed)
        changed[place] ^= 1
        yield base64.urlsafe_b64encode(bytes(changed)).decode().rstrip("=")
    yield from (cursor[:-3], cursor + "AAAA", "AAAA", "=", "null", "%00")


@pytest.mark.parametrize("settings", [{"weight_scale": 51.2}, {"min_idf": 0.1}, {"encoder": "bm25", "cpt": "factored"}])
def test_a_cursor_is_of_all_that_composes_a_query(index, settings):
    query, same = parsed_query(QUERY), "encoder" in settings
    with SignedImpactSearcher(index) as one, SignedImpactSearcher(index, **settings) as other:
        rankings = [Ranking.of(searcher, query, searcher.operators, None) for searcher in (one, other)]
    assert (rankings[0] == rankings[1]) == same
    assert rankings[0].index == rankings[1].index


def test_only_the_cursor_of_this_query_and_this_index_goes_on(tmp_path):
    """Damage, another query, filter or operator, and another index are one error each."""
    index = build(tmp_path)
    with make_client(index) as client:

        def ask(**parameters):
            answer = client.get("/v1/films/search", params={"query": QUERY, "hits": 5, **parameters})
            return answer.json()["error"] if answer.status_code == 400 else answer.json()

        cursor = ask()["cursor"]
        for one in damaged(cursor):
            said = "cursor: this is no cursor of an answer; send the field cursor of the last answer as it is"
            assert ask(cursor=one) == said, one
        said = (
            "cursor: the cursor is of another query, filter, order or operators; send it with those that it came from"
        )
        for change in ({"query": "spy"}, {"filter": "kind=k1"}, {"difference": "ignore"}):
            assert ask(cursor=cursor, **change) == said
        assert ask(cursor=cursor, hits=2, explain="true")["candidates"][0]["rank"] == 6
    shutil.copytree(index, tmp_path / "copy")
    for folder, goes_on in ((tmp_path / "copy", True), (build(tmp_path / "other", COUNT - 1), False)):
        with make_client(folder) as client:
            answer = client.get("/v1/films/search", params={"query": QUERY, "cursor": cursor}).json()
            said = {"error": "cursor: the index has changed since the cursor was made; begin again without a cursor"}
            assert ("candidates" in answer) if goes_on else answer == said
