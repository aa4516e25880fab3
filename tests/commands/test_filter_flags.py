"""Filters and NOT! on the command line, from the documents to the run."""

import json

import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg import build_index
from pyserini_compneg.lucene import ImpactWriter, Manifest
from pyserini_compneg.support.errors import InputError

FILMS = [
    {"id": "d1", "contents": "a spy comedy", "year": 1966, "genre": ["Comedy", "Spy film"]},
    {"id": "d2", "contents": "a spy drama of the war", "year": 1975, "genre": "War"},
    {"id": "d3", "contents": "a spy", "year": 1985},
    {"id": "d4", "contents": "a western comedy", "year": 1966, "genre": "Western"},
]
TOPICS = [
    {"id": "1", "query": "spy"},
    {"id": "2", "expression": "spy NOT! comedy", "filter": {"year": "1970.."}},
    {"id": "3", "vector": {"spy": 1}, "filter": {"genre": ["War", "Comedy"]}},
]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = tmp_path_factory.mktemp("filters")
    write_jsonl(room / "films.jsonl", *FILMS)
    build_index(room / "films.jsonl", room / "films", filter_fields=["year", "genre"], store_raw=True)
    build_index(room / "films.jsonl", room / "plain")
    write_jsonl(room / "topics.jsonl", *TOPICS)
    (room / "ids.txt").write_text("d2\nd3\n\nd2\nunknown\nd9\n")
    (room / "none.txt").write_text("d7\nd8\n")
    return room


@pytest.fixture(autouse=True)
def here(room, monkeypatch):
    monkeypatch.chdir(room)


@pytest.mark.parametrize(
    ("flags", "expected", "told"),
    [
        ("", {"1": ["d3", "d1", "d2"], "2": ["d3", "d2"], "3": ["d1", "d2"]}, None),
        (
            "--filter ids.txt",
            {"1": ["d3", "d2"], "2": ["d3", "d2"], "3": ["d2"]},
            "3 of 3 queries, such as 1: 2 of 4 ids in the filter are not in the index, such as 'd9'",
        ),
        ("--filter none.txt", {}, "no result for query 1: its filter allows none (id=d7 or d8); values are exact"),
    ],
)
def test_topics(run, ranked, flags, expected, told):
    line = f"--index films --topics topics.jsonl {flags}"
    assert ranked(line) == expected
    warnings = run(f"compose {line} --output composed.jsonl").told + run(f"search {line}").told
    assert not told or any(told in warning for warning in warnings)
    assert ranked("--index films --topics composed.jsonl") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("spy' --filter year=1966", ["d1"]),
        ("spy' --filter year=1966 --filter year=1980..", ["d3", "d1"]),
        ("spy' --filter year=1966..1985 --filter genre=War", ["d2"]),
        ("spy' --filter year=1966.0", ["d1"]),
        (f"spy' --filter genre={300 * 'x'} --filter genre=War", ["d2"]),
        ("spy' --filter 'year>1966' --filter 'year<1985'", ["d2"]),
        ("spy' --filter ids.txt --filter id=d2 --filter id=d1", ["d2"]),
        ("spy' --filter 'genre=Spy film'", ["d1"]),
        ('spy NOT! genre="Spy film"\'', ["d3", "d2"]),
        ("spy NOT! genre=Spy film NOT! year=..1980'", ["d3"]),
        ("spy NOT! id=d3'", ["d1", "d2"]),
        ("spy NOT! comedy OR western'", ["d4", "d3", "d2"]),
        ("spy NOT! (comedy OR war)'", ["d3"]),
        ("spy NOT! (drama AND comedy)'", ["d3", "d1", "d2"]),
        ("spy' --index plain --filter ids.txt", ["d3", "d2"]),
    ],
)
def test_queries(ranked, query, expected):
    assert ranked(f"--index films --query '{query}") == {"1": expected}


def test_a_file_whose_name_has_an_equals_sign_is_no_condition(ranked, room):
    (room / "year=1966").write_text("d2\n")
    assert ranked("--index films --query spy --filter year=1966") == {"1": ["d2"]}
    (room / "year=1966").unlink()


def test_a_condition_that_excludes_nothing_is_said(run, ranked):
    query = "--index films --query 'spy NOT! genre=war NOT! year=..1900'"
    assert ranked(query) == {"1": ["d3", "d1", "d2"]}
    said = "\n".join(run(f"search {query}").told)
    for condition in ("genre=war", "year=..1900"):
        assert f"no document has '{condition}', so NOT! excludes none by it" in said
    assert run("search --index films --query 'spy NOT! genre=War'").told == []


def test_what_is_shown(run):
    assert "spy  [year=1966]\n" in run("search --index films --query spy --filter year=1966").out
    shown = run("explain --index films --query 'spy NOT! comedy NOT! genre=War'").out
    assert "NOT! (words)\n├── NOT! (words)\n│   ├── spy: spy" in shown and "└── genre=War\n" in shown
    assert "left out with  comedi\n" in shown and "left out       genre=War\n" in shown
    query = "explain --index films --query 'spy NOT! comedy' --docid d1 d2 d3 --filter year=1900..1980"
    shown = run(query).out
    assert all(
        f"{docid}: filtered out: {reason}; otherwise its score would be " in shown
        for docid, reason in (("d1", "NOT! comedi"), ("d3", "not year=1900..1980"))
    )
    assert "d2: rank 1\n" in shown
    assert shown.startswith("spy NOT! comedy  [year=1900..1980]\n")
    explained = json.loads(run(f"{query} --output-format json").out)
    filtered = [document["filtered_out"] for document in explained["documents"]]
    assert filtered == ["NOT! comedi", None, "not year=1900..1980"]
    plain = json.loads(run("explain --index films --query spy --docid d1 d2 d3 --output-format json").out)
    for field in ("score", "contributions"):
        assert [one[field] for one in explained["documents"]] == [one[field] for one in plain["documents"]]
    assert explained["filter"] == {"year": ["1900..1980"]}
    flags = "--filter year=1970..1990 --filter genre=War"
    shown = run(f"explain --index films --query 'spy NOT! comedy' --docid d1 d3 {flags}").out
    assert "d1: filtered out: NOT! comedi, not genre=War, not year=1970..1990; otherwise" in shown
    assert "d3: filtered out: not genre=War; otherwise" in shown
    (said,) = run("explain --index films --query 'spy NOT! comedy' --docid d2 --filter genre=Western").told
    assert "no result for query spy NOT! comedy: no document matches among 1 that its filter allows" in said


@pytest.mark.parametrize(
    ("flags", "remedy"),
    [
        ("--filter genre=war", "did you mean genre=War?"),
        ("--filter 'genre=spy films' --filter year=1966", "did you mean genre=Spy film?"),
        ("--filter genre=Opera", "values are exact, and a range is 1990..1999"),
        ("--filter year=1967", "values are exact, and a range is 1990..1999"),
        ("--filter genre=War --filter year=1985", "values are exact, and a range is 1990..1999"),
    ],
)
def test_a_filter_that_allows_none_is_told_a_close_value(run, flags, remedy):
    (told,) = run(f"search --index films --query spy {flags}").told
    assert told.endswith(f"); {remedy}")


def test_a_field_that_no_document_has_is_told_before_the_merge(room, tmp_path, monkeypatch):
    monkeypatch.setattr(ImpactWriter, "optimize", lambda *_: pytest.fail("merged"))
    options = {"filter_fields": ["yaer"], "optimize": True}
    said = refusal(build_index, room / "films.jsonl", tmp_path / "i", **options, error=InputError)
    assert said == f"{room}/films.jsonl: no document has the filter field 'yaer'; leave it out"


def test_the_check_of_an_index_knows_the_fields(run, tmp_path):
    run("index --collection films.jsonl --filter-fields year --filter-fields genre --index", tmp_path / "films")
    assert Manifest.read(tmp_path / "films").filter_fields == ("year", "genre")
    manifest = tmp_path / "films" / "compneg.json"
    run(f"index --verify {tmp_path}/films")
    manifest.write_text(manifest.read_text().replace('"genre"', '"colour"'))
    err = run(f"index --verify {tmp_path}/films", code=1).err
    assert f"{tmp_path}/films: cannot be filtered: it has no filter field 'colour', only genre, year" in err


def test_totals_and_facets(run, monkeypatch):
    films = "search --index films --query 'spy OR western'"
    shown = run(f"{films} --hits 3 --facets genre:2,year").out
    facets = "  genre: Comedy 1, Spy film 1\n  year: 1966 2, 1975 1, 1985 1\n"
    assert shown.endswith(f"\n  3 of 4 documents; --offset 3 shows the next\n{facets}")
    assert run(films).out.endswith("\n  4 documents\n")
    line = f"{films} --hits 3 --output-format json"
    assert json.loads(run(line).out)["total"] == {"value": 3, "relation": "gte"}
    assert json.loads(run(f"{line} --total exact").out)["total"] == {"value": 4, "relation": "eq"}
    found = json.loads(run(f"{line} --filter year=1970.. --facets genre:1").out)
    assert found["total"] == {"value": 2, "relation": "eq"}
    assert found["facets"] == {"genre": [{"value": "War", "count": 1}]}
    assert run(f"{films} --facets genre:9").out == run(f"{films} --facets genre:99999999999").out
    monkeypatch.setattr("pyserini_compneg.search.matches._FEW_POSTINGS", 0)
    assert run(f"{films} --hits 1").out.endswith("\n  1 of at least 3 documents; --offset 1 shows the next\n")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--facets genre,", "a facet must be FIELD or FIELD:N, such as genre or year:20, got ''"),
        ("--facets genre:x", "a facet must be FIELD or FIELD:N, such as genre or year:20, got 'genre:x'"),
        ("--facets genre,genre", "the facet genre is given twice"),
        ("--facets id", "the field 'id' is no facet: its values are those of one document each"),
        ("--facets yaer", "films: cannot be searched: it has no filter field 'yaer', only genre, year"),
        (
            "--total exact --output-format trec",
            "--total has no place in a run of this format; use --output-format json",
        ),
        (
            "--facets year --method score-fusion",
            "--facets counts what the operators find, so it has no use with --method and --rerank",
        ),
    ],
)
def test_what_cannot_be_counted(run, flags, said):
    ran = run(f"search --index films --query spy {flags}", code=2)
    assert (ran.out, ran.err) == ("", f"error: {said}\n")


def test_texts_that_no_range_finds_are_told_once(run, tmp_path):
    values = ["1999", "7.5", "-3", "007", "7a", 5, ["1", "x"], "2001-05-01", "1.2.3", "1990-91", "in 5/1/1999"]
    values += ["1.5.1999", ["2001-5-1", "1999-02-29", "2001-05-01T12:30Z"], "2001-05-01 noon"]
    lines = [{"id": f"d{n}", "contents": "spy", "f": value, "g": n} for n, value in enumerate(values)]
    films = write_jsonl(tmp_path / "films.jsonl", *lines)
    told = [
        one
        for one in run(f"index --collection {films} --filter-fields f,g --index {tmp_path}/i").told
        if "docs" not in one
    ]
    said = "filter fields have numbers as texts, which ranges do not find: f (3, such as '7.5')"
    dates = "filter fields have dates not of ISO 8601, which ranges do not find: f (4, such as '1.5.1999')"
    assert told == [f"{tmp_path}/i: {said}; remove the quotes", f"{tmp_path}/i: {dates}; write them as 1999-05-01"]
