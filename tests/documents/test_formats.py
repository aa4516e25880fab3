import csv
import gzip
import io
import json
import lzma
import math
import shutil
import sys
from datetime import date, datetime, time
from decimal import Decimal

import pytest
from index_folders import postings
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.documents import formats
from pyserini_compneg.documents.collection import CollectionPart, collection_files, iter_collection_blocks
from pyserini_compneg.index import build_index, build_sharded_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactReader, open_reader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support import files
from pyserini_compneg.support.errors import install_hint

DOCUMENTS = [
    {"id": "007", "title": 'Birds, "seen"', "text": "a bird flies\nover [the] {sea}", "year": "1999"},
    {"id": "d2", "title": "Fish", "text": "ünder\u2028water, a fish\tswims", "year": "2001"},
    {"id": "d3", "title": "Owls", "text": "a bird at night"},
]


def table(separator):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(DOCUMENTS[0]), delimiter=separator, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(DOCUMENTS)
    return text.getvalue()


FILES = {
    "a.json": json.dumps(DOCUMENTS),
    "b.json": json.dumps(DOCUMENTS, indent=2, ensure_ascii=False),
    "c.json": "\n".join(json.dumps(one, indent=1) for one in DOCUMENTS),
    "d.json": "\n".join(map(json.dumps, DOCUMENTS)),
    "e.csv": "\ufeff" + table(","),
    "f.tsv": table("\t").replace("\r\n", "\n"),
    "g.txt": table(","),
    "h.json.gz": json.dumps(DOCUMENTS),
    "i.csv.gz": table(","),
    "j.json.xz": json.dumps(DOCUMENTS),
}


def write(path, text):
    content = text.encode("utf-8", "surrogateescape")
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(content))
    return path


def records(files, start=(0, 1), shard=(0, 1)):
    return [
        (place, json.loads(line))
        for block in iter_collection_blocks(CollectionPart(files, *shard), start, 1)
        for place, line in block.numbered()
        if line.strip()
    ]


@pytest.mark.parametrize("piece", [30, 1 << 20])
@pytest.mark.parametrize("name", FILES)
def test_every_format_holds_the_same_documents(tmp_path, monkeypatch, name, piece):
    monkeypatch.setattr(files, "_BLOCK_BYTES", piece)
    monkeypatch.setattr(formats, "_BLOCK_BYTES", piece)
    found = collection_files(write(tmp_path / name, FILES[name]))
    read = records(found)
    assert [record for _, record in read] == DOCUMENTS
    assert sorted(one for part in range(2) for one in records(found, shard=(part, 2))) == sorted(read)
    for number, block in enumerate(
        block for block in iter_collection_blocks(CollectionPart(found), most_lines=1) if block.lines.strip()
    ):
        assert records(found, block.end) == read[number + 1 :]  # where a build that was killed goes on


@pytest.mark.parametrize("name", ["b.json", "e.csv"])
def test_an_index_of_a_format(tmp_path, name, caplog):
    caplog.set_level("INFO")
    path = write(tmp_path / name, FILES[name])
    build_index(path, tmp_path / "index", store_raw=True, filter_fields=["year"], existing="overwrite")
    said = f"{path}: {name[2:]} with the fields id, title, text, year"
    assert caplog.messages.count(said) == 1
    with ImpactReader(tmp_path / "index") as reader:
        raw = {docid: json.loads(reader.raw(docid)) for docid in ("007", "d3")}
    assert raw == {"007": DOCUMENTS[0] | ({"year": 1999} if name == "e.csv" else {}), "d3": DOCUMENTS[2]}
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [hit.docid for hit in searcher.search("bird", filter={"year": ["1999"]})] == ["007"]
    build_sharded_index(path, tmp_path / "shards", 2, store_raw=True)
    with SignedImpactSearcher(tmp_path / "shards") as searcher:
        assert {hit.docid for hit in searcher.search("bird")} == {"007", "d3"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.csv", 'id,vector\nd1,"{""bird"": 3}"\nd2,"{""fish"": 2}"\n'),
        ("v.json", '[{"id": "d1", "vector": {"bird": 3}}, {"id": "d2", "vector": {"fish": 2}}]'),
    ],
)
def test_vectors_of_a_format(tmp_path, name, text):
    lines = write_jsonl(tmp_path / "v.jsonl", {"id": "d1", "vector": {"bird": 3}}, {"id": "d2", "vector": {"fish": 2}})
    build_index(lines, tmp_path / "one", "mine")
    build_index(write(tmp_path / name, text), tmp_path / "other", "mine")
    for term in ("bird", "fish"):
        assert postings(tmp_path / "one", term) == postings(tmp_path / "other", term) != {}


def test_vectors_of_passages_in_a_table(tmp_path):
    table = write(tmp_path / "v.csv", 'id,vectors\nd1,"[{""bird"": 3}, {""bird"": 4}]"\n')
    build_index(table, tmp_path / "index", "m", passages={"words": 3, "overlap": 0})
    with open_reader(tmp_path / "index") as reader:
        (ranking,) = reader.search([Linear({"bird": 1.0})], 9)
        assert (ranking.docids, list(ranking.scores), ranking.passages) == (["d1"], [4.0], [1])
    table.write_text('id,text,vectors\nd1,a b c d,"[{""bird"": 3}]"\n')
    said = "has 1 `vectors`, and its text has 2 passages of words=3,overlap=0"
    text = refusal(build_index, table, tmp_path / "other", "m", passages={"words": 3, "overlap": 0})
    assert text == f"{table}:2: {said}; encode the texts again with encode --passages"


def test_a_format_that_is_given(tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    write(folder / "judgements.tsv", "query-id\tcorpus-id\tscore\n")
    write(folder / "a.csv", table(","))
    write(folder / "b.jsonl", json.dumps(DOCUMENTS[0]))
    assert [file.path.name for file in collection_files(folder)] == ["b.jsonl"]
    assert [file.path.name for file in collection_files(folder, "csv")] == ["a.csv"]
    assert len(records(collection_files(write(tmp_path / "table.jsonl", table("\t")), "tsv"))) == 3


OPEN_QUOTE = "a quote holds a tab and a line end, as one does that is never closed; double quotes in texts"
FAULTS = [
    ("a.csv", "id,text,id\nd1,x,y\n", ":1: the header has 'id' twice; rename one"),
    ("a.csv", "id,,text\n", ":1: column 2 of the header has no name"),
    ("a.csv", "key,text\n", ":1: the header (key, text) has no column for the id; expected one of id, _id, docid"),
    ("a.csv", "sku,title\n", ":1: the header (sku, title) has no column for the id; expected one of id, _id, docid"),
    ("a.csv", "", ": empty, expected a header with the names of the fields"),
    ("a.csv", 'id,text\nd1,x\nd2,"y\nd3,z\n', ":3: a quote is never closed; double quotes in texts"),
    ("a.csv", "id,text\n", ": nothing to index: no documents"),
    ("a.csv", "id,url\nd1,x\n", ":2: no text; expected `contents`, `title` and `text`, or `vector`"),
    ("a.tsv", 'id\ttext\nd1\t"x\nd2\ty"\n', f":2: {OPEN_QUOTE}"),
    ("a.json", '[{"id": "d1", "text": "x"},\n {"id": "d2" "text": ""}]', ":2: not valid JSON: Expecting ',' delimiter"),
    ("a.json", '[{"id": "d1", "text": "x"}\n', ":2: the list does not end"),
    ("a.json", '[{"id": "d1", "text": "x"}]\n7', ":2: more after the end of the list"),
    ("a.json", '[{"id": "d1", "text": "x"},\n]', ":2: a comma before the end of the list"),
    ("a.json", '[{"id": "d1", "text": "x"} {}]', ":1: expected a comma between documents"),
    ("a.json", "[" * 100_000, ":1: too many brackets within brackets"),
    ("a.json", '[{"id": "d1", "text": "x"}, 7]', ": document:2: expected a JSON object, got a whole number"),
    ("a.json", "[]", ": nothing to index: no documents"),
    ("a.csv", "id,te\0xt\n1,a\n", ":1: the header: a NUL character, so this is not a text file"),
    ("a.csv", "id,te\udcffxt\n1,a\n", ":1: the header: not UTF-8 text"),
    ("v.csv", 'id,vector\nd1,"{""\\ud800"": 1}"\n', ":2: `vector` must be a JSON object, got a text"),
    ("a.json", '[{"id": 1, "n": ' + "9" * 5000 + "}]", ":1: not valid JSON: a number of thousands of digits"),
]


@pytest.mark.parametrize(("name", "text", "said"), FAULTS)
def test_what_is_wrong(tmp_path, name, text, said):
    path = write(tmp_path / name, text)
    assert refusal(build_index, path, tmp_path / "index", "bm25") == f"{path}{said}"
    assert not (tmp_path / "index").exists()


def test_bad_rows_are_skipped_and_listed(tmp_path):
    rows = ["d1,birds", "d2", "", 'd3,"two', 'lines"', 'd4,"x"y', "d5,a\0b", "d6,\udcff", "d7,owls"]
    path = tmp_path / "a.csv"
    path.write_bytes("\n".join(["id,text", *rows]).encode("utf-8", "surrogateescape"))
    assert build_index(path, tmp_path / "index", on_error="skip").documents == 3
    broken = (
        "quotes or line ends are broken (',' expected after '\"'); enclose the text in quotes, and double those in it"
    )
    assert (tmp_path / "index" / SKIPPED_LOG).read_text().splitlines() == [
        f"{path}:3: 1 fields, and the header has 2; enclose texts with separators in quotes",
        f"{path}:7: {broken}",
        f"{path}:8: a NUL character, so this is not a text file",
        f"{path}:9: not UTF-8 text",
    ]


def test_an_index_counts_what_is_encoded(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("pyserini_compneg.support.progress.SECONDS", 0)
    monkeypatch.setattr("pyserini_compneg.encode.bm25.Bm25DocumentEncoder.most_lines", 2)
    caplog.set_level("INFO", "pyserini_compneg.support.progress")
    documents = [{"id": f"d{number}", "text": "birds"} for number in range(6)]
    build_index(write_jsonl(tmp_path / "c.jsonl", *documents), tmp_path / "index", threads=2)
    done = [record.progress["done"] for record in caplog.records if record.progress["work"] == "indexing"]
    assert done == [2, 4, 6, 6]


@pytest.mark.parametrize("name", ["collection.tsv", "collection.tsv.gz"])
def test_tsv_without_a_header(tmp_path, caplog, name):
    """As MS MARCO has it: a quote is text."""
    caplog.set_level("INFO")
    path = write(tmp_path / name, 'D0\t"a bird" flies\r\n\n7\ta "fish\tswims\n8\tan owl')
    files = collection_files(path)
    expected = [
        {"id": "D0", "contents": '"a bird" flies'},
        {"id": "7", "contents": 'a "fish\tswims'},
        {"id": "8", "contents": "an owl"},
    ]
    assert records(files) == [(f"{path}:{line}", one) for line, one in zip((1, 3, 4), expected, strict=True)]
    build_index(path, tmp_path / "index", store_raw=True)
    assert caplog.messages[0] == f"{path}: tsv without a header, with the fields id, contents"
    build_sharded_index(path, tmp_path / "sharded", 2)
    for index in ("index", "sharded"):
        with SignedImpactSearcher(tmp_path / index) as searcher:
            assert {hit.docid for hit in searcher.search("fish OR birds")} == {"D0", "7"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\tbirds\nbats\n", ":2: no tab between an id and a text"),
        ("1\tbirds\n2\tb\udcffts\n", ":2: not UTF-8 text"),
        ("1\tbirds\n\tbats\n", ":2: no document id; expected one of the fields id, _id, docid among ['contents']"),
        ("pid\tbirds\n", ":1: the header (pid, birds) has no column for the id; expected one of id, _id, docid"),
        (
            "1\tbirds\tbats\n",
            ":1: the header (1, birds, bats) has no column for the id; expected one of id, _id, docid",
        ),
    ],
)
def test_wrong_tsv_without_a_header(tmp_path, text, said):
    path = write(tmp_path / "a.tsv", text)
    assert refusal(build_index, path, tmp_path / "index") == f"{path}{said}"


def test_parquet_holds_what_json_lines_hold(tmp_path, caplog, monkeypatch):
    """In a folder, too, of files with many row groups and few rows at a time."""
    arrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    monkeypatch.setattr("pyserini_compneg.documents.parquet._ROWS", 2)
    caplog.set_level("INFO")
    folder = tmp_path / "c" / "corpus"
    folder.mkdir(parents=True)
    table = arrow.Table.from_pylist([one | {"year": int(one["year"]) if "year" in one else None} for one in DOCUMENTS])
    parquet.write_table(table, folder / "train-00000-of-00002.parquet", row_group_size=2)
    parquet.write_table(table.slice(0, 1), folder / "train-00001-of-00002.parquet.tmp")
    (tmp_path / "c" / "dataset_infos.json").write_text("{}")
    found = collection_files(tmp_path / "c")
    read = records(found)
    assert [record for _, record in read] == [
        DOCUMENTS[0] | {"year": 1999},
        DOCUMENTS[1] | {"year": 2001},
        DOCUMENTS[2],
    ]
    assert [place for place, _ in read] == [f"{folder / 'train-00000-of-00002.parquet'}:{row}" for row in (1, 2, 3)]
    assert sorted(one for part in range(2) for one in records(found, shard=(part, 2))) == sorted(read)
    for number, block in enumerate(iter_collection_blocks(CollectionPart(found), most_lines=1)):
        assert records(found, block.end) == read[number + 1 :]
    (tmp_path / "c.bin").write_bytes(found[0].path.read_bytes())  # known by its first bytes
    build_index(tmp_path / "c.bin", tmp_path / "index", store_raw=True, filter_fields=["year"])
    assert f"{tmp_path / 'c.bin'}: parquet with the fields id, title, text, year" in caplog.messages
    build_sharded_index(tmp_path / "c", tmp_path / "shards", 2, filter_fields=["year"])
    for index in ("index", "shards"):
        with SignedImpactSearcher(tmp_path / index) as searcher:
            assert [hit.docid for hit in searcher.search("bird", filter={"year": "1998..2000"})] == ["007"]


def test_columns_of_parquet_have_the_values_of_json(tmp_path):
    arrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    kinds = {
        "date": (arrow.date32(), date(1999, 5, 1), "1999-05-01"),
        "second": (arrow.timestamp("s"), datetime(1999, 5, 1, 10), "1999-05-01T10:00:00"),
        "nano": (arrow.timestamp("ns", "UTC"), 1_000_000_001, "1970-01-01T00:00:01+00:00"),
        "time": (arrow.time32("s"), time(10, 30), "10:30:00"),
        "span": (arrow.duration("ms"), 1500, 1.5),
        "price": (arrow.decimal128(9, 2), Decimal("2.50"), 2.5),
        "count": (arrow.uint64(), 2**63, 2**63),
        "half": (arrow.float16(), 0.5, 0.5),
        "nan": (arrow.float64(), math.nan, ...),
        "nothing": (arrow.null(), None, ...),
        "seen": (arrow.bool_(), True, True),
        "bytes": (arrow.binary(), "é".encode(), "é"),
        "genres": (arrow.list_(arrow.string()), ["a", None], ["a", None]),
        "nested": (
            arrow.struct({"a": arrow.date32(), "b": arrow.int8()}),
            {"a": date(1999, 5, 1)},
            {"a": "1999-05-01"},
        ),
        "map": (arrow.map_(arrow.string(), arrow.float32()), [("bird", 0.5), ("owl", None)], {"bird": 0.5}),
        "kind": (arrow.dictionary(arrow.int8(), arrow.string()), "film", "film"),
    }
    columns = {name: arrow.array([value, None], kind) for name, (kind, value, _) in kinds.items()}
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"_id": ["d1", "d2"], **columns}), path)
    expected = {name: value for name, (_, _, value) in kinds.items() if value is not ...}
    assert [record for _, record in records(collection_files(path))] == [{"_id": "d1", **expected}, {"_id": "d2"}]


def test_vectors_in_parquet(tmp_path):
    """As a map, or as a struct, in which each document has the terms of all, most of them null."""
    arrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    rows = [{"id": "d1", "vector": {"bird": 3.0}}, {"id": "d2", "vector": {"fish": 2.0}}]
    vectors = arrow.array([[*one["vector"].items()] for one in rows], arrow.map_(arrow.string(), arrow.float32()))
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "struct.parquet")
    parquet.write_table(arrow.table({"id": ["d1", "d2"], "vector": vectors}), tmp_path / "map.parquet")
    for name in ("struct", "map"):
        build_index(tmp_path / f"{name}.parquet", tmp_path / name, "mine")
        assert [[*postings(tmp_path / name, term)] for term in ("bird", "fish")] == [["d1"], ["d2"]]


def test_what_is_wrong_in_parquet(tmp_path, monkeypatch):
    arrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    path, index = tmp_path / "a.parquet", tmp_path / "index"
    twice = arrow.array([[("a", 1), ("a", 2)]], arrow.map_(arrow.string(), arrow.int32()))
    faults = [
        ({"id": ["d1"], "text": [b"\xff"]}, ":1: `text` cannot be written as JSON: a value of the type bytes"),
        ({"key": ["d1"], "text": ["x"]}, ":1: no document id; expected one of the fields id, _id, docid among "),
        ({"id": ["d1", None], "text": ["x", "y"]}, ":2: no document id; expected one of the fields id, _id, docid "),
        ({"id": ["d1"], "text": ["x"], "m": twice}, ":1: a cell that cannot be read: "),
        ({"id": ["d1"], "text": ["x"], "n": [math.inf]}, ":1: `n` cannot be written as JSON: inf is not a finite"),
        ({"id": [1.0], "text": ["x"]}, ":1: the document id must be a text or a whole number, got 1.0"),
    ]
    for table, said in faults:
        parquet.write_table(arrow.table(table), path)
        assert refusal(build_index, path, index).startswith(f"{path}{said}")
    parquet.write_table(arrow.table(faults[2][0]), path)
    assert build_index(path, index, on_error="skip", existing="overwrite").documents == 1
    shutil.rmtree(index)
    parquet.write_table(arrow.table([["d1"], ["x"], ["y"]], ["id", "text", "text"]), path)
    assert refusal(build_index, path, index) == f"{path}: the column 'text' is there twice; rename one"
    whole = path.read_bytes()
    for size in (0, 3, 5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert refusal(build_index, path, index).startswith(f"{path}: broken parquet data, or no plain parquet file: ")
    path.with_suffix(".parquet.gz").write_bytes(gzip.compress(whole))
    assert refusal(build_index, path.with_suffix(".parquet.gz"), index).startswith(
        f"{path}.gz: broken parquet data, or "
    )
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refusal(build_index, path, index) == f"{path}: parquet is read by pyarrow; {install_hint('parquet')}"
    assert not index.exists()
