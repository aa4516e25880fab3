"""Filters and NOT! on the command line, from the documents to the run, and what is wrong with them in one line."""

import json
import shlex
import shutil

import pytest
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg import ImpactIndexer, SignedImpactSearcher, build_index, encode_collection
from pyserini_compneg.commands.main import main
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
    (room / "empty.txt").write_text("\n")
    (room / "words.txt").write_text("d1\nd2 d3\n")
    (room / "twice.jsonl").write_text('{"id": "1", "query": "spy", "filter": {"year": 1966}}\n')
    (room / "wrong.jsonl").write_text('{"id": "1", "query": "spy", "filter": ["d1"]}\n')
    (room / "filters.jsonl").write_text('{"id": "1", "query": "spy", "filters": {"year": 1966}}\n')
    (room / "null.jsonl").write_text('{"id": "1", "query": "spy", "filter": {"year": null}}\n')
    return room


@pytest.fixture
def run(room, monkeypatch, capsys, caplog):
    monkeypatch.chdir(room)

    def run(line):
        caplog.clear()
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        return code, out, err + "\n".join(record.getMessage() for record in caplog.records)

    return run


def ranked(out):
    found = {}
    for line in out.splitlines():
        qid, _, docid, *_ = line.split()
        found.setdefault(qid, []).append(docid)
    return found


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", {"1": ["d3", "d1", "d2"], "2": ["d3", "d2"], "3": ["d1", "d2"]}),
        ("--filter ids.txt", {"1": ["d3", "d2"], "2": ["d3", "d2"], "3": ["d2"]}),
        ("--filter none.txt", {}),
    ],
)
@pytest.mark.parametrize("batch", [1, 64])
def test_topics(run, flags, expected, batch):
    line = f"--index films --topics topics.jsonl {flags} --batch-size {batch}"
    code, out, err = run(f"search {line}")
    assert (code, ranked(out)) == (0, expected)
    if "ids" in flags:
        assert "3 of 3 queries, such as 1: 2 of 4 ids in the filter are not in the index, such as 'd9'" in err
    if "none" in flags:
        assert "no result for query 1: its filter allows none (id=d7 or d8); values are exact" in err
    assert run(f"compose {line} --output composed.jsonl")[0] == 0
    assert ranked(run("search --index films --topics composed.jsonl")[1]) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("spy' --filter-field year=1966", ["d1"]),
        ("spy' --filter-field year=1966 --filter-field year=1980..", ["d3", "d1"]),
        ("spy' --filter-field year=1966..1985 --filter-field genre=War", ["d2"]),
        ("spy' --filter-field year=1966.0", ["d1"]),
        ("spy' --filter ids.txt --filter-field id=d2 --filter-field id=d1", ["d2"]),
        ("spy' --filter-field 'genre=Spy film'", ["d1"]),
        ('spy NOT! genre="Spy film"\'', ["d3", "d2"]),
        ("spy NOT! genre=Spy film NOT! year=..1980'", ["d3"]),
        ("spy NOT! id=d3'", ["d1", "d2"]),
        ("spy NOT! comedy OR western'", ["d4", "d3", "d2"]),
        ("spy NOT! (comedy OR war)'", ["d3"]),
        ("spy NOT! (drama AND comedy)'", ["d3", "d1", "d2"]),
    ],
)
def test_queries(run, query, expected):
    code, out, _ = run(f"search --index films --output-format trec --query '{query}")
    assert (code, ranked(out)["1"]) == (0, expected)


def test_a_condition_that_excludes_nothing_is_said(run):
    code, out, err = run("search --index films --output-format trec --query 'spy NOT! genre=war NOT! year=..1900'")
    assert (code, ranked(out)["1"]) == (0, ["d3", "d1", "d2"])
    for condition in ("genre=war", "year=..1900"):
        assert f"no document has '{condition}', so NOT! excludes none by it" in err
    assert "excludes none" not in run("search --index films --query 'spy NOT! genre=War'")[2]


def test_what_is_shown(run):
    assert "spy  [year=1966]\n" in run("search --index films --query spy --filter-field year=1966")[1]
    shown = run("explain --index films --query 'spy NOT! comedy NOT! genre=War' --exclusion all")[1]
    assert "NOT! (all)\n├── NOT! (all)\n│   ├── spy: spy" in shown and "└── genre=War\n" in shown
    assert "left out with  comedi\n" in shown and "left out       genre=War\n" in shown
    query = "explain --index films --query 'spy NOT! comedy' --docid d1 d2 d3 --filter-field year=1900..1980"
    shown = run(query)[1]
    assert all(
        f"{docid}: filtered out: {reason}; otherwise its score would be " in shown
        for docid, reason in (("d1", "NOT! comedi"), ("d3", "not year=1900..1980"))
    )
    assert "d2: rank 1\n" in shown
    assert shown.startswith("spy NOT! comedy  [year=1900..1980]\n")
    explained = json.loads(run(f"{query} --output-format json")[1])
    filtered = [document["filtered_out"] for document in explained["documents"]]
    assert filtered == ["NOT! comedi", None, "not year=1900..1980"]
    plain = json.loads(run("explain --index films --query spy --docid d1 d2 d3 --output-format json")[1])
    assert [one["score"] for one in explained["documents"]] == [one["score"] for one in plain["documents"]]
    assert [one["contributions"] for one in explained["documents"]] == [o["contributions"] for o in plain["documents"]]
    assert explained["filter"] == {"year": ["1900..1980"]}
    flags = "--filter-field year=1970..1990 --filter-field genre=War"
    shown = run(f"explain --index films --query 'spy NOT! comedy' --docid d1 d3 {flags}")[1]
    assert "d1: filtered out: NOT! comedi, not genre=War, not year=1970..1990; otherwise" in shown
    assert "d3: filtered out: not genre=War; otherwise" in shown
    said = run("explain --index films --query 'spy NOT! comedy' --docid d2 --filter-field genre=Western")[2]
    assert "no result for query spy NOT! comedy: no document matches among 1 that its filter allows" in said


NO_FIELDS = "plain: cannot be filtered: it has no filter fields, so none is 'year'; build it with --filter-fields year"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "--query spy --filter empty.txt",
            "empty.txt: no document ids, so nothing could be found; expected one a line",
        ),
        ("--query spy --filter words.txt", "words.txt:2: expected one document id, got 'd2 d3'"),
        ("--query spy --filter missing.txt", "missing.txt: no such file"),
        ("--query spy --filter genre=War", "'genre=War': no such file; conditions are --filter-field FIELD=VALUE"),
        *(
            (
                f"--query spy --filter-field '{wrong}'",
                f"a condition must be FIELD=VALUE, such as genre=Comedy or year=1990..1999, got '{wrong}'; NOT! "
                "genre=Comedy in an expression excludes",
            )
            for wrong in ("year", "year=", "year>=1990", "genre!=War")
        ),
        (
            "--query spy --filter-field year=2..1",
            "the range 2..1 of 'year' ends before it begins; write 1..2",
        ),
        (
            "--query spy --filter-field yaer=1",
            "films: cannot be filtered: it has no filter field 'yaer', only genre, year",
        ),
        (
            "--query spy --filter-field genre=1..2",
            "films: cannot be filtered: the filter field 'genre' has no numbers, so there is no range 1..2",
        ),
        ("--query 'spy NOT! yaer=1'", "films: cannot be filtered: it has no filter field 'yaer', only genre, year"),
        (
            "--topics twice.jsonl --filter-field year=1975",
            "twice.jsonl:1: two filters name the field 'year'; give its values in one of them",
        ),
        (
            "--topics wrong.jsonl",
            'wrong.jsonl:1: a filter must name fields, such as {"genre": "Comedy"}, got [\'d1\']',
        ),
        (
            "--topics null.jsonl",
            "null.jsonl:1: a value of the filter field 'year' must be a text such as Comedy or 1990..1999, a number, "
            "true or false, got None",
        ),
        (
            "--topics filters.jsonl",
            "filters.jsonl:1: `filters` is no field; the documents that may be found are its `filter`",
        ),
        ("--query spy --exclusion 2", "argument --exclusion: must be a number above 0 and below 1, any or all, got 2"),
    ],
)
def test_bad_input(run, line, message):
    code, out, err = run(f"search --index films {line} --output-format trec --output run.txt")
    assert (code, out) == (2, "")
    said = [one for one in err.splitlines() if one.startswith("error: ")]
    assert len(said) == 1 and said[0].endswith(message), err


def test_a_filter_is_not_replaced(run, room):
    code, _, err = run("search --index films --query spy --filter ids.txt --output-format trec --output ids.txt")
    assert code == 1
    assert "ids.txt: would overwrite ids.txt" in err and (room / "ids.txt").read_text().startswith("d2")


def test_an_index_without_fields(run):
    code, _, err = run("search --index plain --query spy --filter-field year=1966")
    assert code == 2 and err.startswith(f"error: query spy: {NO_FIELDS}")
    assert ranked(run("search --index plain --query spy --filter ids.txt --output-format trec")[1])["1"] == ["d3", "d2"]
    assert run("compose --index films --topics topics.jsonl --output-format tsv")[2].startswith(
        "error: query 2: tsv cannot hold a filter; use --output-format jsonl"
    )


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


def test_fields_may_be_given_in_turn(run, tmp_path):
    collection = "index --collection films.jsonl --filter-fields year --filter-fields genre"
    assert run(f"{collection} --index {tmp_path}/i")[0] == 0
    assert Manifest.read(tmp_path / "i").filter_fields == ("year", "genre")


def test_the_manifest_has_the_fields(room, tmp_path):
    assert Manifest.read(room / "films").filter_fields == ("year", "genre")
    assert "filter_fields" not in json.loads((room / "plain" / "compneg.json").read_text())
    assert Manifest.read(room / "plain").filter_fields == ()
    for fields, error, message in [
        (["yaer"], InputError, f"{room}/films.jsonl: no document has the filter field 'yaer'; leave it out"),
        (["a b"], ArgumentError, "a filter field must be named by a letter, then letters, digits, _ . -, got 'a b'"),
        (["id"], ArgumentError, "filter fields: 'id' has another use in the index; rename the field"),
    ]:
        assert refusal(build_index, room / "films.jsonl", tmp_path / "i", filter_fields=fields, error=error) == message
        assert not (tmp_path / "i").exists()


def test_the_check_of_an_index_knows_the_fields(run, room, tmp_path):
    shutil.copytree(room / "films", tmp_path / "films")
    manifest = tmp_path / "films" / "compneg.json"
    assert run(f"index --verify {tmp_path}/films")[0] == 0
    manifest.write_text(manifest.read_text().replace('"genre"', '"colour"'))
    code, _, err = run(f"index --verify {tmp_path}/films")
    assert code == 1
    assert f"{tmp_path}/films: cannot be filtered: it has no filter field 'colour', only genre, year" in err


def test_a_bad_value_is_a_bad_document(run, tmp_path):
    line = '{"id": "d1", "contents": "spy", "year": {"a": 1}}\n{"id": "d2", "contents": "spy", "year": 7}\n'
    (tmp_path / "c.jsonl").write_text(line)
    code, _, err = run(f"index --collection {tmp_path}/c.jsonl --index {tmp_path}/i --filter-fields year")
    said = "the field 'year' must be a text of at most 32766 bytes, a number, or a list of these, got {\"a\":1}"
    assert (code, f"error: {tmp_path}/c.jsonl:1: {said}" in err) == (2, True)
    assert (
        run(f"index --collection {tmp_path}/c.jsonl --index {tmp_path}/i --filter-fields year --on-error skip")[0] == 0
    )
    assert (
        run(f"search --index {tmp_path}/i --query spy --filter-field year=7 --output-format trec")[1].count("\n") == 1
    )


def test_a_build_that_is_continued(tmp_path):
    def build(fields, docid, **options):
        with ImpactIndexer(tmp_path / "i", "letters", filter_fields=fields, **options) as indexer:
            indexer.add(docid, {"a": 1.0}, {"year": 1966})
            if docid == "d1":
                indexer.checkpoint(1)
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(["year"], "d1")
    message = refusal(build, [], "d2", resume=True, error=OutputError)
    assert "cannot be continued, because filter_fields changed since" in message
    build(["year"], "d2", resume=True)
    check_target(tmp_path / "i", overwrite=True)
    with SignedImpactSearcher(tmp_path / "i", LookupEncoder({})) as searcher:
        assert len(searcher.search(Linear({"a": 1.0}), filter={"year": "1960..1969"})) == 2
    build([], "d2", overwrite=True)
    assert Manifest.read(tmp_path / "i").filter_fields == ()
