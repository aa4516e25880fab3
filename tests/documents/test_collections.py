import json
import os
from functools import partial

import pytest
from checkpoints import SAMPLE
from index_folders import hidden, postings
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.commands.index import main
from pyserini_compneg.documents.collection import collection_files
from pyserini_compneg.documents.source_documents import source_document
from pyserini_compneg.index import build_index, build_sharded_index, update_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactWriter
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines

GOOD = {"id": "d1", "contents": "birds", "vector": {"bird": 1}}

NO_ID = "no document id; expected one of the fields id, _id, docid"
ONLY_VECTOR = (
    "only a `vector`, where texts are encoded; add its text, or build an index of vectors with index --encoder MODEL"
)
NO_TEXT = "no text; expected `contents`, `title` and `text`, or `vector`"
SPACE = "the document id 'a b' has white space, which a TREC run cannot hold"
TEXT_FAULTS = [
    (['{"id": "d1", "contents": '], ":1: not valid JSON: Expecting value at column 26"),
    ([GOOD, "", '{"id": }'], ":3: not valid JSON: Expecting value at column 8"),
    (['["d1"]'], ":1: expected a JSON object, got a list"),
    (['{"id": "d1", "contents": "\\ud800"}'], ":1: not valid JSON text: half of a surrogate pair"),
    ([GOOD, {"contents": "x"}], f":2: {NO_ID} among ['contents']"),
    ([{"text": "x", "title": " "}], f":1: {NO_ID} among ['text', 'title']"),
    ([{"docid ": "d1", "title": "x", "text": "y"}], f":1: {NO_ID} among ['docid ', 'title', 'text']"),
    ([{"id": "", "contents": "x"}], ":1: the document id is blank"),
    ([{"id": 1.5, "contents": "x"}], ":1: the document id must be a text or a whole number, got 1.5"),
    ([{"id": "a b", "contents": "x"}], f":1: {SPACE}"),
    ([{"id": "a\0b", "contents": "birds"}], ":1: the document id 'a\\x00b' has a NUL character"),
    ([{"id": "d1"}], f":1: {NO_TEXT}"),
    ([{"id": "d1", "contents": None}], f":1: {NO_TEXT}"),
    ([{"id": "d1", "contents": ["x"]}], ":1: `contents` must be a text, got a list"),
    ([{"id": "d1", "title": 7, "text": "x"}], ":1: `title` must be a text, got a whole number"),
    ([{"id": "d1", "vector": []}], ":1: `vector` must be a JSON object, got a list"),
    ([{"id": "d2", "vector": {"a": 1}}], f":1: {ONLY_VECTOR}"),
    (["", ""], ": nothing to index: no documents"),
    ([{"id": "d1", "contents": "the"}], ": nothing to index: none of 1 documents has a term at impact scale 256"),
]

SCALE = "for fractional weights build the index with an impact scale, for SPLADE 51.2, which is Pyserini's "
SCALE += "round(weight / 5 * 256)"
SIGNED = "to index negative weights build the index with --signed (signed=True)"
NO_TERM = "must be a text without white space"
RESERVED = "reads as a pseudo-term: ¬t and a∩b are reserved for complements and pairs"
VECTOR_FAULTS = [
    ([GOOD, {"id": "d2", "contents": "x"}], ":2: no `vector`; to encode texts here, give bm25 as the encoder"),
    (['["d1"]'], ":1: expected a JSON object, got a list"),
    (["7"], ":1: expected a JSON object, got 7"),
    ([GOOD, {"vector": {"a": 1}}], f":2: {NO_ID}"),
    ([{"id": " ", "vector": {"a": 1}}], ":1: the document id is blank"),
    ([{"id": "a b", "vector": {}}], f":1: {SPACE}"),
    ([{"id": True, "vector": {}}], ":1: the document id must be a text or a whole number, got true"),
    ([{"id": "d1", "vector": ["a"]}], ":1: `vector` must be a JSON object, got a list"),
    (['{"id": "d1", "vector": {"a": 1, "a": 2}}'], ":1: the term 'a' is given twice"),
    (['{"id": "d1", "vector": {"a": 1}} {"id": "d2"}'], ":1: not valid JSON: more than one object on the line"),
    (['{"id": "d2",', '"vector": {"a": 1}}'], ":1: not valid JSON: the object goes on after the end of the line"),
]
VECTOR_FAULTS += [
    ([f'{{"id": "d1", "vector": {vector}}}'], f":1: {said}")
    for vector, said in [
        ('{"a": NaN}', "not valid JSON: Non-standard token 'NaN'"),
        ('{"a": Infinity}', "not valid JSON: Non-standard token 'Infinity'"),
        ('{"a": 1e999}', "the weight of 'a' must be at most 1048576, got Infinity"),
        ('{"a": 1048577}', "the weight of 'a' must be at most 1048576, got 1048577"),
        (
            '{"b": -3}',
            f"the weight of 'b' is negative, -3; {SIGNED}",
        ),
        ('{"a": 1.5}', f"the weight of 'a' must be a whole number, got 1.5; {SCALE}"),
        ('{"a": "1"}', "the weight of 'a' must be a number, got the text '1'"),
        ('{"a": true}', "the weight of 'a' must be a number, got true"),
        ('{"a": null}', "the weight of 'a' must be a number, got null"),
        ('{"a∩b": 1}', f"the term 'a∩b' {RESERVED}"),
        ('{"¬a": 1}', f"the term '¬a' {RESERVED}"),
        ('{"a b": 1}', f"the term 'a b' {NO_TERM}"),
        ('{"": 1}', f"the term '' {NO_TERM}"),
    ]
]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def refused(collection, index, encoder, **options):
    with pytest.raises(InputError) as caught:
        build_index(collection, index, encoder, **options)
    assert not index.exists()
    assert hidden(index.parent) == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("encoder", "lines", "said"),
    [("bm25", *fault) for fault in TEXT_FAULTS] + [("splade", *fault) for fault in VECTOR_FAULTS],
)
def test_bad_documents(tmp_path, encoder, lines, said):
    collection = write_jsonl(tmp_path / "c.jsonl", *lines)
    assert refused(collection, tmp_path / "index", encoder) == f"{collection}{said}"


@pytest.mark.parametrize(
    ("scale", "weight", "said"),
    [(51.2, "20481", "20480, got 20481 (the impact scale is 51.2)"), (1.0, f"1{'0' * 400}", "")],
)
def test_the_largest_weight(tmp_path, scale, weight, said):
    collection = write_jsonl(tmp_path / "c.jsonl", f'{{"id": "d1", "vector": {{"a": {weight}}}}}')
    text = refused(collection, tmp_path / "index", "splade", impact_scale=scale)
    assert text.startswith(f"{collection}:1: the weight of 'a' must be at most {said}")


def read(collection):
    return [
        source_document(line, f"{file}:{number}")
        for file, *_ in collection_files(collection)
        for number, line in iter_lines(file)
    ]


@pytest.mark.parametrize("field", [{"vector": {"bird": 1}}, {"vectors": [{"bird": 1}]}])
@pytest.mark.parametrize("build", [build_index, partial(build_sharded_index, shards=1), "index", "index --shards 1"])
def test_vectors_are_not_lost_where_no_encoder_is_named(tmp_path, capsys, build, field):
    path = write_jsonl(tmp_path / "dump.jsonl", {"id": "d1", "contents": "owls"} | field)
    said = f"{path}: documents have vectors, and nothing says whether to index these or the texts beside them; give "
    said += "--encoder MODEL (encoder=), which made the vectors, or --encoder bm25 for the texts"
    if isinstance(build, str):
        command = [*build.split()[1:], "--collection", str(path), "--index", str(tmp_path / "index")]
        assert main(command) == 2
        assert capsys.readouterr().err == f"error: {said}\n"
        assert main([*command, "--encoder", "bm25"]) == 0
    else:
        assert refusal(build, path, tmp_path / "index") == said
        build(path, tmp_path / "index", encoder="bm25")
    shard = next((tmp_path / "index").glob("shard-*"), tmp_path / "index")
    assert list(postings(shard, "owl")) == ["d1"]


def test_the_model_of_vectors_is_named_where_it_is_known(tmp_path):
    folder = SAMPLE / "vectors"
    said = refusal(build_index, folder, tmp_path / "index")
    assert said.endswith(
        "; give --encoder bm25+mini (encoder=), which made the vectors, or --encoder bm25 for the texts"
    )
    said = refusal(build_index, [{"id": "d1", "vector": {"bird": 1}}], tmp_path / "index")
    assert said.startswith("documents: documents have vectors")


def test_files_of_a_folder_are_read_by_name(tmp_path):
    folder = tmp_path / "collection"
    (folder / "part").mkdir(parents=True)
    write_jsonl(folder / "b.jsonl", {"id": "d3", "contents": "x"})
    write_jsonl(folder / "a.json", {"id": "d1", "contents": "x"}, {"id": 2, "contents": "x"})
    write_jsonl(folder / "part" / "c.jsonl.gz", {"docid": "d4", "title": "A title", "text": "and text"})
    write_jsonl(folder / "README.md", "no JSON")
    documents = read(folder)
    assert [document.docid for document in documents] == ["d1", "2", "d3", "d4"]
    assert documents[3].text == "A title\nand text"
    assert documents[3].source == f"{folder / 'part' / 'c.jsonl.gz'}:1"


def test_quests_documents_have_titles_for_ids(tmp_path, caplog):
    records = {"title": "Drive (2007 film)", "text": "A film."}, {"title": "Birds of  Colombia", "text": None}
    collection = write_jsonl(tmp_path / "documents.jsonl", *records)
    assert [(document.docid, document.text) for document in read(collection)] == [
        ("Drive_(2007_film)", "Drive (2007 film)\nA film."),
        ("Birds_of_Colombia", "Birds of  Colombia"),
    ]
    assert build_index(collection, tmp_path / "index").documents == 2
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [f"{collection}: documents have no ids, so their titles are their ids"]


GOOD_IDS = [7, "7", "é"]
BAD_IDS = ["a" * 40_000, "", " ", "a b", "a\u00a0b", "a\u2028b", "a\x1fb", "a\0b", "\ud800", True, None, 1.5, []]


@pytest.mark.slow
@pytest.mark.parametrize("field", ["id", "_id", "docid"])
def test_ids_have_the_same_rules_with_texts_and_with_vectors(tmp_path, field):
    for docid in GOOD_IDS + BAD_IDS:
        path = write_jsonl(tmp_path / "c.jsonl", json.dumps({field: docid, "contents": "birds", "vector": {"bird": 1}}))
        refusals = []
        for encoder in ("bm25", "splade"):
            try:
                build_index(path, tmp_path / encoder, encoder, existing="overwrite")
            except InputError as error:
                refusals.append(str(error).partition(", got ")[0].partition("the document id ")[0])
        assert len(refusals) == (0 if docid in GOOD_IDS else 2), repr(docid)
        assert len(set(refusals)) <= 1


@pytest.mark.parametrize("encoder", ["bm25", "splade"])
def test_the_last_of_a_documents_repeated_fields_counts(tmp_path, encoder):
    fields = ('"id": "x", "id": "y"', '"contents": "bats", "contents": "birds"', '"vector": {}, "vector": {"bird": 1}')
    build_index(write_jsonl(tmp_path / "c.jsonl", f"{{{', '.join(fields)}}}"), tmp_path / "index", encoder)
    assert list(postings(tmp_path / "index", "bird")) == ["y"]
    assert postings(tmp_path / "index", "bat") == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_a_file_that_is_no_utf8(tmp_path, encoding):
    path = tmp_path / "c.jsonl"
    path.write_bytes('{"id": "é", "contents": "birds", "vector": {"é": 1}}\n'.encode(encoding))
    for encoder in ("bm25", "splade"):
        assert refused(path, tmp_path / "index", encoder).startswith(f"{path}:1: ")
    with pytest.raises(InputError, match="nothing to index: no documents; . were skipped"):
        build_index(path, tmp_path / "index", "splade", on_error="skip")


def test_a_file_with_an_odd_name(tmp_path):
    folder = tmp_path / "odd: names"
    folder.mkdir()
    path = os.path.join(os.fsencode(folder), b"\xff.jsonl")
    with open(path, "w") as file:
        file.write('{"id": "x", "contents": "a", "vector": {"a": 0.5}}\n' + 2 * '{"id": "x", "vector": {"a": 1}}\n')
    assert build_index(folder, tmp_path / "index", "m", on_error="skip").documents == 1
    log = (tmp_path / "index" / SKIPPED_LOG).read_text().splitlines()
    assert log[1] == f"{folder}/\ufffd.jsonl:3: document id 'x' was given at {folder}/\ufffd.jsonl:2 already"
    with pytest.raises(InputError, match=f"^{folder}/\ufffd.jsonl:2: only a `vector`"):
        build_index(folder, tmp_path / "other", "bm25")


def test_whatever_a_line_holds_it_is_said_in_one_printable_line(tmp_path):
    words = ["a" * 39 + 5 * "😀", "a b\ud800", "a b\x1b[31m", "a b\u202e", "a\0", "b" * 400 + " "]
    lines = [json.dumps({"id": f"d{i}", "vector": {word: "x"}}) for i, word in enumerate(words)]
    lines += ['{"id": "n", "vector": {"a": ' + "7" * 900 + "}}", '{"id": "\ufeff"}', "\0\0"]
    lines += ['\ufeff{"id": "z", "vector": {}}', '{"id": "good", "vector": {"a": 1}}']
    path = write_jsonl(tmp_path / "c.jsonl", *lines)
    assert build_index(path, tmp_path / "index", "m", on_error="skip").documents == 1
    log = (tmp_path / "index" / SKIPPED_LOG).read_text().splitlines()
    assert [line.split(": ")[0] for line in log] == [f"{path}:{number}" for number in range(1, 11)]
    assert all(line.isprintable() and len(line) < 300 for line in log)


def test_what_is_no_file_in_a_folder_is_left_out(tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", GOOD)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    for name in ("l", "m", "n"):
        (folder / name).symlink_to(".")
    assert build_index(folder, folder / "index", "bm25").documents == 1
    assert build_index(folder, folder / "index", "bm25", existing="overwrite").documents == 1


def test_an_index_never_replaces_its_collection(tmp_path):
    index = tmp_path / "index"
    build_index(write_jsonl(tmp_path / "c.jsonl", GOOD), index, "bm25")
    inside = write_jsonl(index / "c.jsonl", GOOD)
    message = refusal(build_index, inside, index, "bm25", existing="overwrite")
    assert message == f"{inside}: is in the folder of the index, {index}; give another folder"
    assert inside.exists()


def test_texts_in_fields_that_are_not_indexed_are_said_once(tmp_path, caplog):
    documents = [
        {"id": "d1", "title": "On soup", "body": "broth", "url": "soup.org"},
        {"id": "d2", "contents": "apple", "title": "pear"},
        {"id": "d3", "contents": "", "text": "fish"},
        {"id": "d4", "contents": "On pies\npie", "title": "On pies", "text": "pie", "metadata": {"a": "b c"}},
    ]
    write_jsonl(tmp_path / "c.jsonl", *documents)
    build_index(tmp_path / "c.jsonl", tmp_path / "index", threads=1)
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "3 documents have text in fields that are not indexed (body, title, text), for example d1; "
        "join them in `contents`, or rename them to `title` and `text`"
    ]


NUMBERS = [
    *("7", "0", "-0", "1.0", "-2.5", "12e0", "5E-1", "01", "1.", "-"),
    *("0.749999999999999940", "123456789012345678e-17"),  # the first, rounded once, is below 0.75
]
TERMS = ["a", "¬a", "é", "\\u0061", "b", "", "a b", "\u00a0", "a∩b", "\x7f"]
IDS = ["e", "é", "", "a b", "\\u0065"]
VALUES = ['"é \\"\\u00e9"', '"\\x"', '"\\u00e"', '"\t"', "-1.5e3", "01", "true"]
LINES = [
    *(f'{{"id": "d", "vector": {{"a": {number}, "b": 3}}}}' for number in NUMBERS),
    *(f'{{"id":"d","vector":{{"{term}":1,"b":2}}}}' for term in TERMS),
    *(f'{{"docid": "{docid}", "vector": {{"a": 1}}, "id": "d"}}' for docid in IDS),
    *(f'{{"id": "d", "text": {value}, "vector": {{"a": 1}}}}' for value in VALUES),
    ' {\t"id" : "d" , "vector" : { "a" : 1 , "b" : 2 } } \r',
    '{"id": "d", "vector": {"a": 1}, "vector": {"b": 1}}',
    '{"id": "d", "id": 7, "vector": {"a": 1}}',
    '{"id": "d", "vector": {}}',
    '{"id": "d", "vector": {"a": 1,}}',
    '{"id": "d", "vector": {"a": 1}} é',
    '{"id": "d", "vector": {"a": 1}',
    '{"id": "d", "vector": {"a": 1 "b": 2}}',
]


@pytest.mark.parametrize("signed", [False, True])
def test_lines_of_the_common_form_are_read_as_others_are(tmp_path, signed):
    """A list that nobody asks for makes a line one for the JSON parser."""
    lines = [*LINES, *LINES]  # the second time their terms are known
    common = [line.replace('"d"', f'"d{number}"') for number, line in enumerate(lines)]
    others = [line.replace("{", '{"x": [], ', 1) for line in common]
    outcomes = []
    for lines in (common, others):
        folder = tmp_path / str(len(outcomes))
        folder.mkdir()
        with ImpactWriter(folder, impact_scale=2.0, signed=signed) as writer:
            problems = writer.add_lines("\n".join(lines).encode(), "f") + writer.drain()
            writer.commit()
        outcomes.append((problems, [postings(folder, term) for term in TERMS if term.split() == [term]]))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][0]) == 40 - 2 * signed


def test_json_lines_as_bytes_are_a_collection(tmp_path):
    """Messages count its lines, blank ones included. A line that did not change is skipped."""
    line = b'{"contents": "birds", "id": "d1"}'
    build_index(line, tmp_path / "index")
    assert update_index(tmp_path / "index", line + b'\n{"id": "d2", "contents": "bats"}').unchanged == 1
    with pytest.raises(InputError, match=r"^documents:3: "):
        update_index(tmp_path / "index", b'{"id": "d3", "contents": "owls"}\n\n{"contents": "owls"}')
