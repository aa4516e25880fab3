"""Every way in which a collection can be wrong, and what is said about it."""

import gzip
import json

import pytest

from pyserini_compneg.errors import CollectionError
from pyserini_compneg.index import build_index
from pyserini_compneg.index.collection import iter_collection
from pyserini_compneg.lucene import ImpactReader


def write(path, *records):
    lines = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    text = "".join(f"{line}\n" for line in lines)
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        file.write(text)
    return path


GOOD = {"id": "d1", "contents": "birds", "vector": {"bird": 1}}

BM25_FAULTS = [
    (['{"id": "d1", "contents": '], CollectionError, ":1: not valid JSON: Expecting value at column 26"),
    ([GOOD, "", '{"id": }'], CollectionError, ":3: not valid JSON: Expecting value at column 8"),
    (['["d1"]'], CollectionError, ":1: expected a JSON object, got a list"),
    (['{"id": "d1", "contents": "\\ud800"}'], CollectionError, ":1: not valid JSON text: half of a surrogate pair"),
    ([GOOD, {"contents": "x"}], CollectionError, ":2: no document id; expected one of the fields id, _id, docid"),
    ([{"text": "x", "title": " "}], CollectionError, ":1: no document id; expected one of the fields id, _id, docid"),
    ([{"id": "", "contents": "x"}], CollectionError, ":1: the document id is blank"),
    (
        [{"id": 1.5, "contents": "x"}],
        CollectionError,
        ":1: the document id must be a text or a whole number, got 1.5",
    ),
    (
        [{"id": "a b", "contents": "x"}],
        CollectionError,
        ":1: the document id 'a b' has white space, which a TREC run cannot hold",
    ),
    ([{"id": "d1"}], CollectionError, ":1: no text; expected `contents`, `title` and `text`, or `vector`"),
    (
        [{"id": "d1", "contents": None}],
        CollectionError,
        ":1: no text; expected `contents`, `title` and `text`, or `vector`",
    ),
    ([{"id": "d1", "contents": ["x"]}], CollectionError, ":1: the text must be a string, got list"),
    ([{"id": "d1", "title": 7, "text": "x"}], CollectionError, ":1: the text must be a string, got int"),
    ([{"id": "d1", "vector": []}], CollectionError, ":1: `vector` must be a JSON object, got list"),
    (
        [GOOD, {"id": "d2", "vector": {"a": 1}}],
        CollectionError,
        ":2: only a `vector`, which BM25 cannot use; give the model that made it as --encoder",
    ),
]

TERM_RULE = "must be a text without white space"
RESERVED = "reads as a pseudo-term: ¬t and a∩b are reserved for complements and pairs"
NON_STANDARD = ": enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
MORE = "more than one object on the line"
OVER = "the object goes on after the end of the line"
NO_SPACE = "has white space, which a TREC run cannot hold"
VECTOR_FAULTS = [
    (
        [GOOD, {"id": "d2", "contents": "x"}],
        CollectionError,
        ":2: no `vector`; to encode texts here, use --encoder bm25",
    ),
    (
        ['{"id": "d1", "vector": {"a": NaN}}'],
        CollectionError,
        f":1: not valid JSON: Non-standard token 'NaN'{NON_STANDARD}",
    ),
    (
        ['{"id": "d1", "vector": {"a": Infinity}}'],
        CollectionError,
        f":1: not valid JSON: Non-standard token 'Infinity'{NON_STANDARD}",
    ),
    (
        ['{"id": "d1", "vector": {"a": 1e999}}'],
        CollectionError,
        ":1: the weight of 'a' must be at most 1048576, got Infinity",
    ),
    (
        [{"id": "d1", "vector": {"a": 1, "b": -3}}],
        CollectionError,
        ":1: the weight of 'b' is negative, -3; to index negative weights give --signed",
    ),
    (
        [{"id": "d1", "vector": {"a": (1 << 20) + 1}}],
        CollectionError,
        ":1: the weight of 'a' must be at most 1048576, got 1048577",
    ),
    (
        [{"id": "d1", "vector": {"a": 1.5}}],
        CollectionError,
        ":1: the weight of 'a' must be a whole number, got 1.5; for fractional weights give --impact-scale, for SPLADE "
        "51.2, which is Pyserini's round(weight / 5 * 256)",
    ),
    ([{"id": "d1", "vector": {"a": "1"}}], CollectionError, ":1: the weight of 'a' must be a number, got the text '1'"),
    ([{"id": "d1", "vector": {"a": True}}], CollectionError, ":1: the weight of 'a' must be a number, got true"),
    ([{"id": "d1", "vector": {"a": None}}], CollectionError, ":1: the weight of 'a' must be a number, got null"),
    ([{"id": "d1", "vector": {"a∩b": 1}}], CollectionError, f":1: the term 'a∩b' {RESERVED}"),
    ([{"id": "d1", "vector": {"¬a": 1}}], CollectionError, f":1: the term '¬a' {RESERVED}"),
    ([{"id": "d1", "vector": {"a b": 1}}], CollectionError, f":1: the term 'a b' {TERM_RULE}"),
    (['{"id": "d1", "vector": {"a": 1, "a": 2}}'], CollectionError, ":1: the term 'a' is given twice"),
    (['{"id": "d1", "vector": {"a": 1}} {"id": "d2"}'], CollectionError, f":1: not valid JSON: {MORE}"),
    ([GOOD, '{"id": "d2",', '"vector": {"a": 1}}'], CollectionError, f":2: not valid JSON: {OVER}"),
    ([{"id": "d1", "vector": ["a"]}], CollectionError, ":1: `vector` must be a JSON object, got a list"),
    (['["d1"]'], CollectionError, ":1: expected a JSON object, got a list"),
    (["7"], CollectionError, ":1: expected a JSON object, got 7"),
    ([GOOD, {"vector": {"a": 1}}], CollectionError, ":2: no document id; expected one of the fields id, _id, docid"),
    ([{"id": " ", "vector": {"a": 1}}], CollectionError, ":1: the document id is blank"),
    ([{"id": "a b", "vector": {}}], CollectionError, f":1: the document id 'a b' {NO_SPACE}"),
    ([{"id": True, "vector": {}}], CollectionError, ":1: the document id must be a text or a whole number, got true"),
    ([{"id": "d1", "vector": {"": 1}}], CollectionError, f":1: the term '' {TERM_RULE}"),
]


def refused(collection, index, encoder, error, **options):
    with pytest.raises(error) as caught:
        build_index(collection, index, encoder, **options)
    assert not index.exists()
    assert [path.name for path in index.parent.iterdir() if path.name.startswith(".")] == []
    return str(caught.value)


@pytest.mark.parametrize(("lines", "error", "said"), BM25_FAULTS)
def test_bad_texts(tmp_path, lines, error, said):
    collection = write(tmp_path / "c.jsonl", *lines)
    assert refused(collection, tmp_path / "index", "bm25", error) == f"{collection}{said}"


@pytest.mark.parametrize(("lines", "error", "said"), VECTOR_FAULTS)
def test_bad_vectors(tmp_path, lines, error, said):
    collection = write(tmp_path / "c.jsonl", *lines)
    assert refused(collection, tmp_path / "index", "splade", error) == f"{collection}{said}"


def test_a_scale_moves_the_limits_of_weights(tmp_path):
    collection = write(tmp_path / "c.jsonl", {"id": "d1", "vector": {"a": 20481}})
    assert refused(collection, tmp_path / "index", "splade", CollectionError, impact_scale=51.2) == (
        f"{collection}:1: the weight of 'a' must be at most 20480, got 20481 (the impact scale is 51.2)"
    )


@pytest.mark.parametrize("scale", [1.0, 51.2])
def test_a_whole_number_beyond_all_floats(tmp_path, scale):
    collection = write(tmp_path / "c.jsonl", '{"id": "d1", "vector": {"a": 1' + 400 * "0" + "}}")
    text = refused(collection, tmp_path / "index", "splade", CollectionError, impact_scale=scale)
    assert text.startswith(f"{collection}:1: the weight of 'a' must be at most ")


def test_a_missing_file(tmp_path):
    missing = tmp_path / "none.jsonl"
    assert refused(missing, tmp_path / "index", "bm25", CollectionError) == f"{missing}: no such file"


@pytest.mark.parametrize("content", ["", "\n\n", '{"id": "d1", "contents": "the"}\n'])
def test_a_collection_without_terms(tmp_path, content):
    collection = write(tmp_path / "c.jsonl", content)
    assert refused(collection, tmp_path / "index", "bm25", CollectionError) == (
        f"{collection}: no document with a term in it, so there is nothing to index"
    )


def test_a_folder_without_files(tmp_path):
    folder = tmp_path / "collection"
    folder.mkdir()
    write(folder / "notes.txt", "x")
    assert refused(folder, tmp_path / "index", "bm25", CollectionError) == (
        f"{folder}: the folder holds no .jsonl, .json, .jsonl.gz, .json.gz file"
    )


@pytest.mark.parametrize("encoder", ["bm25", "splade"])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_id_given_twice(tmp_path, encoder, threads):
    folder = tmp_path / "collection"
    folder.mkdir()
    first = write(folder / "a.jsonl", *({**GOOD, "id": f"a{i}"} for i in range(5)))
    second = write(folder / "b.jsonl", GOOD, "", {**GOOD, "id": "a3", "contents": "other birds"})
    assert refused(folder, tmp_path / "index", encoder, CollectionError, threads=threads) == (
        f"{second}:3: document id 'a3' was given at {first}:4 already"
    )


def test_an_id_given_as_text_and_as_number(tmp_path):
    collection = write(tmp_path / "c.jsonl", {"id": 7, "contents": "birds"}, {"id": "7", "contents": "bats"})
    assert refused(collection, tmp_path / "index", "bm25", CollectionError) == (
        f"{collection}:2: document id '7' was given at {collection}:1 already"
    )


def test_an_id_with_a_nul_comes_back_or_is_refused(tmp_path):
    collection = write(tmp_path / "c.jsonl", {"id": "a\0b", "contents": "birds"}, {"id": "c", "contents": "birds"})
    try:
        build_index(collection, tmp_path / "index")
    except CollectionError as error:
        assert str(error).startswith(f"{collection}:1: the document id 'a\\x00b' ")  # noqa: PT017
    else:
        with ImpactReader(tmp_path / "index") as reader:
            assert reader.search(['{"vector": {"bird": 1}}'], 10)[0].docids == ["a\0b", "c"]


def test_files_of_a_folder_are_read_by_name(tmp_path):
    folder = tmp_path / "collection"
    (folder / "part").mkdir(parents=True)
    write(folder / "b.jsonl", {"id": "d3", "contents": "x"})
    write(folder / "a.json", {"id": "d1", "contents": "x"}, {"id": 2, "contents": "x"})
    write(folder / "part" / "c.jsonl.gz", {"docid": "d4", "title": "A title", "text": "and text"})
    write(folder / "README.md", "no JSON")
    documents = list(iter_collection(folder))
    assert [document.docid for document in documents] == ["d1", "2", "d3", "d4"]
    assert documents[3].text == "A title\nand text"
    assert documents[3].source == f"{folder / 'part' / 'c.jsonl.gz'}:1"


def test_gzip_is_recognised_by_its_content(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert build_index(path, tmp_path / "index").documents == 1


def test_quests_documents_have_titles_for_ids(tmp_path):
    collection = write(
        tmp_path / "documents.jsonl",
        {"title": "Drive (2007 film)", "text": "A film."},
        {"title": "Birds of  Colombia", "text": None},
    )
    assert [(document.docid, document.text) for document in iter_collection(collection)] == [
        ("Drive_(2007_film)", "Drive (2007 film)\nA film."),
        ("Birds_of_Colombia", "Birds of  Colombia"),
    ]
    assert build_index(collection, tmp_path / "index").documents == 2


def test_two_titles_that_make_one_id(tmp_path):
    collection = write(tmp_path / "c.jsonl", {"title": "a b", "text": "x1"}, {"title": "a  b", "text": "x2"})
    assert refused(collection, tmp_path / "index", "bm25", CollectionError) == (
        f"{collection}:2: document id 'a_b' was given at {collection}:1 already"
    )
