"""``latent``, the latent model of the package: it needs no torch, and finds what BM25 does not."""

import pytest
from anserini_runs import COMPOSED, search_collection
from json_lines import write_jsonl

pytest.importorskip("onnxruntime", reason="models are run by onnxruntime")

from pyserini_compneg import SignedImpactSearcher, build_index  # noqa: E402
from pyserini_compneg.commands.main import main  # noqa: E402

TEXTS = {
    "oak": "Oak\nThe oak is a hardwood of the genus Quercus, with acorns in cups.",
    "piano": "Piano\nThe piano is struck by hammers when its keys are pressed.",
    "sparrow": "Sparrow\nThe sparrow nests under roofs and eats seeds.",
    "ray": "Ray\nRay is a 1994 American spy film directed by Ada Lovelace and starring Charles Babbage.",
    "victoria": "Victoria\nVictoria ruled the United Kingdom from 1837 until her death.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latent")
    collection = write_jsonl(folder / "d.jsonl", *({"id": name, "contents": text} for name, text in TEXTS.items()))
    build_index(collection, folder / "index", encoder="bm25+latent")
    return folder / "index"


@pytest.mark.parametrize(
    ("query", "found"),
    [("timber", "oak"), ("musical instruments", "piano"), ("movies", "ray"), ("monarchs", "victoria")],
)
def test_what_bm25_does_not_find_is_found(index, query, found):
    with SignedImpactSearcher(index, latent_weight=0.0) as searcher:
        assert searcher.search(query) == []
    with SignedImpactSearcher(index) as searcher:
        assert searcher.search(query)[0].docid == found


def test_concepts_are_composed_and_named(index):
    with SignedImpactSearcher(index) as searcher:
        ranked = [hit.docid for hit in searcher.search("animals OR plants NOT trees")]
        assert ranked[0] == "sparrow" and len(searcher.reader.concepts) > 8000
        (vector,) = searcher.encoder.encode_batch(["monarchs"])
        term = max(vector, key=vector.__getitem__)
        assert searcher.reader.concepts[int(term.removeprefix("~"))]


@pytest.mark.usefixtures("anserini")
@pytest.mark.parametrize(
    ("form", "options", "queries"),
    [
        ("jsonl", COMPOSED, ["monarchs", "spy movies AND actors", "animals OR plants NOT trees"]),
        ("tsv", ("-topicReader", "TsvString"), ["monarchs", "musical instruments"]),
    ],
)
def test_search_collection_ranks_alike(index, tmp_path, form, options, queries):
    """By composed queries, and by repeated tokens where nothing is negative and no terms are multiplied."""
    topics, composed = tmp_path / "topics.tsv", tmp_path / f"composed.{form}"
    topics.write_text("".join(f"{number}\t{query}\n" for number, query in enumerate(queries)))
    arguments = ["--index", index, "--topics", topics, "--output-format", form, "--output", composed]
    assert main(["compose", *map(str, arguments)]) == 0
    assert "~" in composed.read_text()
    with SignedImpactSearcher(index) as searcher:
        ranked = {str(number): [hit.docid for hit in searcher.search(query)] for number, query in enumerate(queries)}
    assert min(map(len, ranked.values())) > 1
    assert search_collection(index, composed, tmp_path / "run", 10, *options) == ranked
