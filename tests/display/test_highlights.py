"""Highlights are the tokens of the stored texts whose terms add to a score, or take from it, and nothing else."""

import json
from collections import Counter

import pytest
from json_lines import write_jsonl
from refusals import refusal
from served import make_client

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.display import highlights
from pyserini_compneg.display.highlights import shown_fields
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import analyze, java_class
from pyserini_compneg.support.errors import InputError

QUERY = "spy drama AND goats NOT comedies"
SOURCES = [
    {"id": "spy", "title": "Spies 😀 spy", "text": "A spy's comedy.\nNo COMEDIES, 𝒮py or goat-spies; spying é spy_"},
    {"id": "a", "text": "goats", "tags": ["spy", {"a/b~c": "a drama", "year": 1999}], "vector": {"spy": 1}},
    {"id": "b", "contents": "western comedy of a drama"},
    {"id": "c", "text": "goat " * 3},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("highlights")
    build_index(write_jsonl(folder / "c.jsonl", *SOURCES), folder / "index", encoder="bm25", store_raw=True)
    return folder / "index"


@pytest.fixture(scope="module")
def searcher(index):
    with SignedImpactSearcher(index) as searcher:
        yield searcher


def at(source, pointer):
    """What a JSON Pointer names."""
    for name in pointer.split("/")[1:]:
        source = source[name]
    return source


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source["id"])
def test_each_word_is_marked_by_what_its_terms_add(searcher, source):
    amounts = {}
    for term, amount in searcher.explain(QUERY, source["id"]).contributions:
        for single in term.split("∩"):
            amounts[single] = amounts.get(single, 0) + amount
    wanted = Counter()
    for pointer in (f"/{name}" for name in ("title", "text", "contents") if name in source):
        (terms,) = analyze([at(source, pointer)])
        wanted.update((pointer, term) for term in terms if amounts.get(term))
    found = highlights(searcher, QUERY, source["id"])
    assert Counter((one.field, term) for one in found for term in one.terms) == wanted
    assert len({(one.field, one.start, one.end) for one in found}) == len(found) > 0
    for one in found:
        assert analyze([at(source, one.field)[one.start : one.end]]) == [list(one.terms)]
        assert one.amount == pytest.approx(amounts[one.terms[0]])
    assert {one.amount > 0 for one in found} == ({True, False} if source["id"] in ("spy", "b") else {True})
    words = {at(source, one.field)[one.start : one.end] for one in found}
    assert words <= {"Spies", "spy", "spy's", "comedy", "COMEDIES", "goat", "goats", "spies", "spying", "drama"}


def test_the_server_gives_the_same(index, searcher):
    with make_client(index) as client:
        asked = {"query": QUERY, "highlight": "true"}
        answer = client.get("/v1/films/search", params=asked).json()
        assert {one["docid"] for one in answer["candidates"]} == {source["id"] for source in SOURCES}
        for one in answer["candidates"]:
            wanted = [found._asdict() for found in highlights(searcher, QUERY, one["docid"])]
            assert one["highlights"] == json.loads(json.dumps(wanted))
            assert "contributions" not in one
        cut = client.get("/v1/films/search", params={**asked, "max_doc_length": 2, "explain": "true"}).json()
        assert [one["highlights"] for one in cut["candidates"]] == [one["highlights"] for one in answer["candidates"]]
        assert "highlights" not in client.get("/v1/films/search", params={"query": QUERY}).json()["candidates"][0]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"query": QUERY}, {"spy": ["comedy", "COMEDIES"], "b": ["comedy"]}),
        ({"query": "spy NOT! western comedies"}, {"spy": ["comedy", "COMEDIES"]}),
        ({"query": "goats, no comedies", "read": "model", "strict": "true"}, {}),
        ({"query": "(spy NOT comedies) OR drama"}, {"spy": ["comedy", "COMEDIES"], "b": ["comedy"]}),
        ({"query": "spy comedies NOT (comedies NOT goats)"}, {}),
    ],
)
def test_what_is_excluded_is_found_in_words(index, asked, found):
    """Also where it takes nothing from a score; wanted words are not excluded."""
    with make_client(index) as client:
        answer = client.get("/v1/films/search", params={**asked, "highlight": "true"}).json()
    sources = {source["id"]: source for source in SOURCES}
    words = {
        one["docid"]: [at(sources[one["docid"]], place["field"])[place["start"] : place["end"]] for place in places]
        for one in answer["candidates"]
        if (places := one.get("excluded"))
    }
    assert words == found


@pytest.mark.parametrize(
    ("language", "query", "text", "marked"),
    [
        ("en", "cafe\u0301", "cafe\u0301 CAFE\u0301 cafe", ["cafe\u0301", "CAFE\u0301"]),
        (
            "en",
            "U.S. don't ﬁlms 12 NOT film",
            "😀 U.S. don't <b>film</b> &lt; ﬁlms 12\u202f000",
            ["U.S", "don't", "-film", "ﬁlms", "12"],
        ),
        ("hi", "किताब", "यह किताब है।", ["किताब"]),
        ("sw", "Habari", "Habari ya dunia", ["Habari"]),
        ("tr", "Irak", "Irak ile IRAK", ["Irak", "IRAK"]),
        ("de", "STRASSE NOT Haus", "😀 Straße, Häuser", ["Straße", "-Häuser"]),
        ("fr", "œuvre", "l'œuvre des élèves", ["l'œuvre"]),
        ("zh", "北京大学 NOT 学生", "😀北京大学的学生们", ["北京", "京大", "大学", "-学生"]),
        ("ja", "空港 NOT 大学", "関西国際空港から東京都の大学", ["空港", "-大学"]),
        ("th", "บ้าน", "เด็กวิ่งเร็วในบ้านหลังใหญ่", ["บ้าน"]),
    ],
)
def test_exactly_the_tokens_of_terms_are_marked(tmp_path, language, query, text, marked):
    """Marks belong to the letter before them, an analyzer sees upper case, and Chinese has tokens."""
    if language == "th" and not java_class("org.apache.lucene.analysis.th.ThaiTokenizer").DBBI_AVAILABLE:
        pytest.skip("this Java does not know where Thai words end")
    source = write_jsonl(tmp_path / "c.jsonl", {"id": "d", "contents": text})
    build_index(source, tmp_path / "index", encoder="bm25", bm25={"language": language}, store_raw=True)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        found = highlights(searcher, query, "d")
    assert ["-" * (one.amount < 0) + text[one.start : one.end] for one in found] == marked


def test_only_the_best_passage_has_words_that_count(tmp_path):
    """Its title belongs to it; the encoder that ``encode`` names is no word of the document."""
    text = "spy spy spy hides war war war war owl owl owl owl spy falls"
    lines = [{"id": "d", "title": "The spy", "text": text}, {"id": "e", "text": "war owl"}]
    options = {"encoder": "bm25", "passages": {"words": 4, "overlap": 0}, "store_raw": True}
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "index", **options)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        found = [(one.field, one.start) for one in highlights(searcher, "spy hides", "d")]
    assert found == [("/title", 4), ("/text", 0), ("/text", 4), ("/text", 8), ("/text", 12)]


def test_of_a_vector_all_texts_but_filter_fields_are_marked(tmp_path):
    source = {"id": "d", "vector": {"spy": 1}, "genre": "spy", "notes": ["a", {"a/b~c": "a spy"}]}
    options = {"encoder": "mini", "filter_fields": ["genre"], "store_raw": True}
    build_index(write_jsonl(tmp_path / "c.jsonl", source), tmp_path / "index", **options)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert {one.field for one in highlights(searcher, "spy", "d")} == {"/notes/1/a~1b~0c"}


def test_what_encode_adds_to_a_document_is_not_shown():
    source = {"id": "d", "text": "spy", "vector": {"spy": 1}, "encoder": "mini"}
    assert shown_fields(source) == {"text": "spy"}
    assert shown_fields({"docid": "d", "encoder": "Enigma"}) == {"encoder": "Enigma"}


def test_word_pieces_of_a_model_are_marked_beside_the_terms_of_bm25(tmp_path):
    """Also where a wrapper leaves out frequent terms. A file of vectors has no tokens, so words are marked."""
    text = "😀 The Spies of Zyzzyx; SPY"
    lines = [{"id": "d", "contents": text}, {"id": "e", "contents": "owl"}]
    build_index(write_jsonl(tmp_path / "c.jsonl", *lines), tmp_path / "index", encoder="bm25+mini", store_raw=True)
    with SignedImpactSearcher(tmp_path / "index", min_idf=0.0) as searcher:
        found = [(text[one.start : one.end], one.terms) for one in highlights(searcher, "spy zyzzyx", "d")]
        pieces = [word for word, terms in found if terms[0].startswith("@") and word != "SPY"]
        assert all(
            (piece, (f"@{prefix}{piece.lower()}",)) in found
            for piece, prefix in zip(pieces, ["", *["##"] * len(pieces)], strict=False)
        )
        assert len(pieces) > 1
        rest = [("Zyzzyx", ("zyzzyx",)), ("SPY", ("@spy", "spy"))]
        assert [one for one in found if one[0] not in pieces] == rest
        vector = searcher.encoder.encode_batch(["spy"])[0]
    queries = write_jsonl(tmp_path / "q.jsonl", {"text": "spy", "vector": vector, "encoder": "bm25+mini"})
    with SignedImpactSearcher(tmp_path / "index", queries) as searcher:
        found = highlights(searcher, "spy", "d")
    assert [(text[one.start : one.end], one.terms) for one in found] == [("SPY", ("@spy", "spy"))]


def test_no_such_document(index, searcher):
    assert refusal(highlights, searcher, "spy", "x", error=InputError) == f"{index} has no document 'x'"
