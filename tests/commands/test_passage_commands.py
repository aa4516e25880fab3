"""What commands and the server show of an index of passages, and what is refused."""

import json

import pytest
from json_lines import write_jsonl
from refusals import refusal
from served import make_client

from pyserini_compneg.index import ImpactIndexer, ImpactUpdater, build_index
from pyserini_compneg.lucene.passage_reader import PassageReader
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import CompNegError

BOOKS = [
    {
        "id": "whaler",
        "title": "The whaler",
        "text": "A captain hunts whales in the north. A storm breaks the ship, and  a spy hides.",
        "genre": "Drama",
    },
    {"id": "spy#2", "title": "The second spy", "text": "He hides a map on an island.", "genre": "War"},
]
BEST = {"number": 2, "start": 52, "end": 79, "text": "the ship, and  a spy hides."}


@pytest.fixture
def books(tmp_path):
    return write_jsonl(tmp_path / "books.jsonl", *BOOKS)


@pytest.fixture
def passages(run, books, tmp_path):
    made = run(
        f"index --collection {books} --store-raw --filter-fields genre --passages words=6,overlap=1 --index",
        tmp_path / "i",
    )
    assert f"{tmp_path / 'i'}: 5 passages, encoder bm25\n" in made.err
    return tmp_path / "i"


def test_commands_show_documents_and_their_best_passages(run, ranked, passages):
    assert "spy#2]  (passage 1)" in run(f"search --index {passages} --query 'second spy'").out
    listed = run(f"search --index {passages} --query 'spy hides' --filter genre=Drama").out
    assert "The whaler  [whaler]  (passage 2)\n                the ship, and a spy hides.\n" in listed
    assert "\n  1 document\n" in listed
    topics = write_jsonl(passages.parent / "topics.jsonl", {"id": "q", "query": "spy hides"})
    assert sorted(ranked(f"--index {passages} --topics {topics}")["q"]) == ["spy#2", "whaler"]
    (line,) = run(f"search --index {passages} --topics {topics} --output-format json").lines
    assert {hit["docid"]: hit["passage"] for hit in json.loads(line)["hits"]}["whaler"] == 2
    assert "by passage 2" in run(f"explain --index {passages} --query 'spy hides' --docid whaler").out
    assert json.loads(run(f"doc --index {passages} whaler").out) == BOOKS[0]
    assert run(f"index --verify {passages}").err.endswith("the ids and the manifest of 5 passages\n")


def test_an_update_replaces_all_passages_of_a_document(run, passages, tmp_path):
    (tmp_path / "ids.txt").write_text("spy#2\n")
    changes = write_jsonl(tmp_path / "changes.jsonl", BOOKS[0] | {"text": "A spy."})
    done = run(f"update --index {passages} --collection {changes} --delete", tmp_path / "ids.txt").err
    assert done.endswith(f"{passages}: 0 inserted, 1 replaced, 0 unchanged, 1 deleted, 1 passages now\n")
    assert "1 unchanged" in run(f"update --index {passages} --collection {changes}").err
    assert "\n  1 document\n" in run(f"search --index {passages} --query 'spy OR whales'").out
    assert "(passage 0)" in run(f"search --index {passages} --query spy").out
    with pytest.raises(CompNegError, match="a vector cannot be split"), ImpactUpdater(passages) as updater:
        updater.add("d", {"spy": 1})


def test_vectors_of_passages_make_the_same_index(run, books, tmp_path):
    v, sizes = tmp_path / "v", "--passages words=6,overlap=1"
    run(f"encode --collection {books} --output {v} --encoder mini {sizes}")
    kept = f"--encoder mini --store-raw --filter-fields genre --index {tmp_path}"
    assert "5 passages, encoder mini\n" in run(f"index --collection {v} {kept}/i").err
    run(f"index --collection {books} {kept}/direct {sizes}")
    query = "--query 'spy NOT whales' --facets genre --total exact"
    assert run(f"search --index {tmp_path}/i {query}").out == run(f"search --index {tmp_path}/direct {query}").out
    with SignedImpactSearcher(tmp_path / "i") as searcher:
        whaler = next(hit for hit in searcher.search("spy hides") if hit.docid == "whaler")
        assert searcher.passage(whaler)._asdict() == BEST

    def error(line, code=2):
        return run(line, code=code).err.removeprefix("error: ")

    other = f"{v}: the passages of the vectors are words=6,overlap=1, not words=6,overlap=0; leave out passages\n"
    assert error(f"index --collection {v} --index {tmp_path}/o --encoder mini --passages words=6") == other
    again = f"{v}: holds vectors of 'mini' with other settings; give another --output\n"
    assert error(f"encode --collection {books} --output {v} --encoder mini --passages words=6 --update", 1) == again
    spaces = "texts of the language th have no spaces between words to split passages at; leave out passages\n"
    line = f"encode --collection {books} --output {tmp_path}/o --encoder bm25+mini --language th {sizes}"
    assert error(line) == spaces
    run(f"encode --collection {books} --output {tmp_path}/w --encoder mini --passages words=3")
    said = f"{tmp_path}/w: passages of the vectors are words=3,overlap=0, and words=6,overlap=1 in the index; "
    assert error(f"update --index {tmp_path}/i --collection {tmp_path}/w").startswith(said)
    (tmp_path / "w" / "vectors.about").unlink()
    said = (
        f"{tmp_path}/w: documents have the `vectors` of their passages, and nothing says how their texts were split; "
    )
    assert error(f"index --collection {tmp_path}/w --index {tmp_path}/o --encoder mini").startswith(said)


def test_the_server_gives_the_best_passage(passages, monkeypatch):
    read, raws = [], PassageReader.raws
    monkeypatch.setattr(PassageReader, "raws", lambda reader, docids: read.extend(docids) or raws(reader, docids))
    with make_client(passages) as client:
        asked = {"query": "spy hides", "hits": 1, "explain": True, "highlight": True}
        answer = client.get("/v1/films/search", params=asked).json()
        assert read == ["whaler"]  # once
        candidate = answer["candidates"][0]
        assert (candidate["docid"], candidate["passage"]) == ("whaler", BEST)
        assert BOOKS[0]["text"][BEST["start"] : BEST["end"]] == BEST["text"]
        assert candidate["doc"]["text"] == BOOKS[0]["text"]


SIZES = "must be words=N,overlap=N with an overlap below the words, such as words=200,overlap=50, got"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--passages words=8,overlap=8", f"argument --passages: {SIZES} words=8,overlap=8"),
        ("--passages overlap=0", f"argument --passages: {SIZES} overlap=0"),
        ("--passages words=eight", f"argument --passages: {SIZES} words=eight"),
        ("--passages words=8,size=8", f"argument --passages: {SIZES} words=8,size=8"),
        ("--passages words=8 --on-error skip", "passages of bad documents cannot be skipped; leave out on_error"),
        (
            "--passages words=8 --language zh",
            "texts of the language zh have no spaces between words to split passages at; leave out passages",
        ),
        (
            "--passages words=8 --filter-fields passage.of",
            "filter fields: 'passage.of' has another use in the index; rename the field",
        ),
    ],
)
def test_what_cannot_be_split(run, books, tmp_path, flags, said):
    assert run(f"index --collection {books} {flags} --index", tmp_path / "j", code=2).err.startswith(f"error: {said}\n")
    assert not (tmp_path / "j").exists()


def test_what_passages_cannot_do(run, passages, books, tmp_path):
    def error(line, *more):
        return run(line, *more, code=2).err

    assert error(f"search --index {passages} --query spy --facets passage.of") == (
        f"error: {passages}: cannot be filtered: it has no filter field 'passage.of'; build it with --filter-fields "
        "passage.of\n"
    )
    assert error(f"doc --index {passages} --vector whaler") == (
        f"error: {passages}: has a vector for each passage, and none of a whole document\n"
    )
    assert error(f"search --index {passages} --query spy --filter year=1") == (
        f"error: query spy: {passages}: cannot be filtered: it has no filter field 'year'; build it with "
        "--filter-fields year\n"
    )
    again = write_jsonl(tmp_path / "again.jsonl", *BOOKS, BOOKS[0])
    for shards in ("", "--shards 2"):
        said = error(f"index --collection {again} --passages words=6 {shards} --index {tmp_path / 'again'}")
        assert said.endswith(f"{again}:3: document id 'whaler' was given at {again}:1 already\n")
    vectors = write_jsonl(tmp_path / "v.jsonl", {"id": "d", "vector": {"spy": 1}})
    said = "m: the documents bring their vectors, so there is no text to split into passages"
    sizes = {"words": 6, "overlap": 0}
    assert refusal(build_index, vectors, tmp_path / "v", "m", passages=sizes, error=CompNegError).startswith(said)
    with (
        pytest.raises(CompNegError, match="a vector cannot be split"),
        ImpactIndexer(tmp_path / "v", "m", passages=sizes) as indexer,
    ):
        indexer.add("d", {"spy": 1})
