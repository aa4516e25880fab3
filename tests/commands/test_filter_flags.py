"""Filters and NOT! on the command line, from the documents to the run."""

import json
import shutil

import pytest
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg import ImpactIndexer, SignedImpactSearcher, build_index, encode_collection
from pyserini_compneg.compose import Linear, compose_queries
from pyserini_compneg.encode import CachedQueryEncoder, query_encoder
from pyserini_compneg.eval import term_frequencies
from pyserini_compneg.explaining import explain_query
from pyserini_compneg.index.index_folder import check_target
from pyserini_compneg.lucene import ImpactWriter, Manifest, analyze
from pyserini_compneg.reading import tagged_reading
from pyserini_compneg.support.errors import ArgumentError, InputError, OutputError

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
    shown = run("explain --index films --query 'spy NOT! comedy NOT! genre=War' --exclusion all").out
    assert "NOT! (all)\n├── NOT! (all)\n│   ├── spy: spy" in shown and "└── genre=War\n" in shown
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


def test_filters_in_python(room):
    with SignedImpactSearcher(room / "films") as searcher:
        year = {"year": 1966}
        assert [hit.docid for hit in searcher.search("spy", filter=year)] == ["d1"]
        assert searcher.search("spy", filter={"id": []}) == []
        found = searcher.batch_search(["spy", "spy"], ["1", "2"], filter=[year, None])
        assert [len(hits) for hits in found.values()] == [1, 3]
        message = refusal(searcher.batch_search, ["spy"], ["1"], filter=[year, year], error=ArgumentError)
        assert message == "1 queries need one filter, or as many, got 2"
        assert searcher.score("spy NOT! comedy", ["d1", "d2", "zzz"])[::2] == [None, None]
        assert searcher.search("spy", filter={"id": ["d1"]})[0].score == searcher.search("spy", 2)[1].score


def test_a_field_that_no_document_has_is_told_before_the_merge(room, tmp_path, monkeypatch):
    monkeypatch.setattr(ImpactWriter, "optimize", lambda *_: pytest.fail("merged"))
    options = {"filter_fields": ["yaer"], "optimize": True}
    said = refusal(build_index, room / "films.jsonl", tmp_path / "i", **options, error=InputError)
    assert said == f"{room}/films.jsonl: no document has the filter field 'yaer'; leave it out"


@pytest.mark.parametrize("optimize", [False, True])
def test_a_field_of_left_out_documents_alone(tmp_path, optimize):
    """Of an id that is given twice the first document stays, and that one has no year."""
    plain = [{"id": f"p{number}", "contents": "war"} for number in range(50)]
    films = write_jsonl(tmp_path / "films.jsonl", *plain, {**FILMS[0], "id": "p7"})
    options = {"filter_fields": ["year"], "on_error": "skip", "optimize": optimize}
    said = refusal(build_index, films, tmp_path / "index", **options, error=InputError)
    assert said.startswith(f"{films}: no document has the filter field 'year'; leave it out")


QUERY = "a text, an expression, a reading or a composed query"
ATOM = {"text": "spy", "vector": {"spy": 1}}


def test_a_text_is_no_list(room, tmp_path):
    """It would be taken letter by letter."""
    cached = CachedQueryEncoder(write_jsonl(tmp_path / "atoms.jsonl", ATOM))
    encoders = [analyze, cached.encode_batch, query_encoder("mini", None).encode_batch]
    with SignedImpactSearcher(room / "films") as searcher:
        encoders.append(searcher.encoder.encode_batch)
        for call, arguments, name, given in [
            (searcher.score, ("spy", "d1"), "docids must be a list", "'d1'"),
            (searcher.score, ("spy", None), "docids must be a list", "None"),
            (searcher.score, ("spy", [39]), "docids must be texts", "39"),
            (searcher.batch_score, (["spy", "war"], ["d1", "d2"]), "docids must be a list", "'d1'"),
            (searcher.batch_search, ("spy", ["1", "2", "3"]), "queries must be a list", "'spy'"),
            (searcher.batch_search, (["a", "b"], "12"), "qids must be a list", "'12'"),
            (searcher.compose, ("spy NOT war",), "queries must be a list", "'spy NOT war'"),
            (compose_queries, ("spy", searcher.encoder), "queries must be a list", "'spy'"),
            (compose_queries, ([39], searcher.encoder), f"a query must be {QUERY}", "39"),
            (searcher.best_scores, ("spy",), "nodes must be a list", "'spy'"),
            (explain_query, (searcher, "spy", "d1"), "docids must be a list", "'d1'"),
            (searcher.reader.search, ("{}", 1), "queries must be a list", "'{}'"),
            (searcher.reader.score, (["{}"], ["d1"]), "docids must be a list", "'d1'"),
            (searcher.reader.raws, ("d1",), "docids must be a list", "'d1'"),
            (searcher.reader.document_frequencies, ("spy",), "terms must be a list", "'spy'"),
            *((encode, ("spy",), "texts must be a list", "'spy'") for encode in encoders),
            (term_frequencies, ("spy films", ["spy"]), "texts must be a list", "'spy films'"),
            (term_frequencies, (["spy films"], "spy"), "terms must be a list", "'spy'"),
            (tagged_reading, ("spy", "W"), "tags must be a list", "'W'"),
            (encode_collection, (room, tmp_path, "mini"), "fields must be a list", "'title'"),
        ]:
            fields = {"fields": "title"} if call is encode_collection else {}
            assert refusal(call, *arguments, **fields, error=ArgumentError) == f"{name}, got {given}"
        assert searcher.score("spy", (one for one in ("d1", "d4"))) == searcher.score("spy", ["d1", "d4"])
    options = {"filter_fields": "year"}
    said = refusal(build_index, room / "films.jsonl", tmp_path / "i", **options, error=ArgumentError)
    assert said == "filter fields must be a list of names, got the text 'year'"


def test_the_manifest_has_the_fields(run, room, tmp_path):
    run("index --collection films.jsonl --filter-fields year --filter-fields genre --index", tmp_path / "in-turn")
    for index in (room / "films", tmp_path / "in-turn"):
        assert Manifest.read(index).filter_fields == ("year", "genre")
    assert "filter_fields" not in json.loads((room / "plain" / "compneg.json").read_text())
    assert Manifest.read(room / "plain").filter_fields == ()
    for fields, error, message in [
        (["a b"], ArgumentError, "a filter field must be named by a letter, then letters, digits, _ . -, got 'a b'"),
        (["id"], ArgumentError, "filter fields: 'id' has another use in the index; rename the field"),
    ]:
        assert refusal(build_index, room / "films.jsonl", tmp_path / "i", filter_fields=fields, error=error) == message
        assert not (tmp_path / "i").exists()


def test_the_check_of_an_index_knows_the_fields(run, room, tmp_path):
    shutil.copytree(room / "films", tmp_path / "films")
    manifest = tmp_path / "films" / "compneg.json"
    run(f"index --verify {tmp_path}/films")
    manifest.write_text(manifest.read_text().replace('"genre"', '"colour"'))
    err = run(f"index --verify {tmp_path}/films", code=1).err
    assert f"{tmp_path}/films: cannot be filtered: it has no filter field 'colour', only genre, year" in err


def test_a_bad_value_is_a_bad_document(run, ranked, tmp_path):
    line = '{"id": "d1", "contents": "spy", "year": {"a": 1}}\n{"id": "d2", "contents": "spy", "year": 7}\n'
    (tmp_path / "c.jsonl").write_text(line)
    index = f"index --collection {tmp_path}/c.jsonl --index {tmp_path}/i --filter-fields year"
    said = "the field 'year' must be a text of at most 32766 bytes, a number, or a list of these, got {\"a\":1}"
    assert f"error: {tmp_path}/c.jsonl:1: {said}" in run(index, code=2).err
    run(f"{index} --on-error skip")
    assert ranked(f"--index {tmp_path}/i --query spy --filter year=7") == {"1": ["d2"]}


def test_a_build_that_is_continued(tmp_path):
    def build(fields, docid, **options):
        with ImpactIndexer(tmp_path / "i", "letters", filter_fields=fields, **options) as indexer:
            indexer.add(docid, {"a": 1.0}, {"year": 1966})
            if docid == "d1":
                indexer.checkpoint(1)
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(["year"], "d1")
    message = refusal(build, [], "d2", existing="resume", error=OutputError)
    assert "cannot be continued, because filter_fields changed since" in message
    build(["year"], "d2", existing="resume")
    check_target(tmp_path / "i", may_overwrite=True)
    with SignedImpactSearcher(tmp_path / "i", LookupEncoder({})) as searcher:
        assert len(searcher.search(Linear({"a": 1.0}), filter={"year": "1960..1969"})) == 2
    build([], "d2", existing="overwrite")
    assert Manifest.read(tmp_path / "i").filter_fields == ()
