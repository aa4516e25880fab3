"""People see latents by the words that light them; runs, composed queries and JSON have their terms."""

import json
import shutil

import pytest
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from refusals import refusal
from served import make_client

from pyserini_compneg import SignedImpactSearcher, build_index
from pyserini_compneg.display import explain_query, highlights
from pyserini_compneg.display.query_explanation import to_object
from pyserini_compneg.lucene import INDEX_CONCEPTS
from pyserini_compneg.support.errors import IndexReadError

CONCEPTS = ["ship, sail, harbour", "", "monarch, king, queen", "an enormously long name, of words, which do not end"]
ATOMS = {
    "royals": {"royal": 2.5, "@crown": 0.5, "~2": 1.5},
    "sailors": {"sailor": 2.0, "~0": 1.0, "~1": 0.5, "~9": 0.25},
    "long": {"~3": 1.0, "royal": 0.5},
    "latents": {"~2": 1.0},
    "ships": {"~0": 1.0, "sailor": 0.5},
}
DOCUMENTS = [
    {"id": "d1", "title": "The Queen", "text": "royal ~2 king", "vector": {"royal": 90, "@crown": 20, "~2": 120}},
    {"id": "d2", "title": "The Sea", "vector": {"royal": 80, "~2": 90, "sailor": 60, "~0": 70, "~1": 10, "~9": 5}},
    {"id": "d3", "vector": {"sailor": 50, "~0": 40}},
]
NAMED = {"~0": "ship, sail, harbour", "~2": "monarch, king, queen"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Indexes of the same vectors: one does not name its latents, and one is of a latent model alone."""
    folder = tmp_path_factory.mktemp("concepts")
    write_jsonl(folder / "atoms.jsonl", *({"text": text, "vector": vector} for text, vector in ATOMS.items()))
    collection = write_jsonl(folder / "documents.jsonl", *DOCUMENTS)
    build_index(collection, folder / "unnamed", "bm25+mini+latent:m", store_raw=True)
    shutil.copytree(folder / "unnamed", folder / "named")
    build_index(collection, folder / "alone", "latent:m", store_raw=True)
    for name in ("named", "alone"):
        (folder / name / INDEX_CONCEPTS).write_text(json.dumps(CONCEPTS))
    return folder


@pytest.fixture
def ask(folder, run):
    def ask(command, *arguments, index="named"):
        where = ("--index", folder / index, "--encoder", folder / "atoms.jsonl", "--difference", "disentangled")
        return run(command, *map(str, (*where, *arguments))).out

    return ask


@pytest.fixture(scope="module")
def searcher(folder):
    with SignedImpactSearcher(folder / "named", LookupEncoder(ATOMS)) as searcher:
        yield searcher


def test_the_explanation_of_a_query(ask):
    lines = ask("explain", "--query", "royals AND ships NOT sailors").splitlines()
    assert lines == [
        "royals AND ships NOT sailors  (terms that begin with @ are the model's, concepts are latents, the",
        "others bm25's)",
        "",
        "NOT (disentangled)",
        "├── AND (cpt-maxpool)",
        "│   ├── royals: royal 2.50, concept: monarch, king, queen 1.50, @crown 0.50",
        "│   └── ships: concept: ship, sail, harbour 1.00, sailor 0.50",
        "└── sailors: sailor 2.00, concept: ship, sail, harbour 1.00, ~1 0.50, ~9 0.25",
        "",
        "conjunction of 2 operands, weight 0.5",
        "  operand 1  royal 2.50  concept: monarch, king, queen 1.50  @crown 0.50",
        "  operand 2  concept: ship, sail, harbour 1.00  sailor 0.50",
        "  pairs      royal∩concept: ship, sail, harbour 0.79",
        "             concept: ship, sail, harbour∩concept: monarch, king, queen 0.61",
        "             royal∩sailor 0.56",
        "             sailor∩concept: monarch, king, queen 0.43",
        "             @crown∩concept: ship, sail, harbour 0.35",
        "             @crown∩sailor 0.25",
        "positive     royal 2.50   concept: monarch, king, queen 1.50  concept: ship, sail, harbour 1.00",
        "             @crown 0.50  sailor 0.50",
        "negative     ~1 -0.50  ~9 -0.25",
    ]


def test_the_explanation_of_documents(ask):
    lines = ask("explain", "--query", "royals NOT sailors", "--docid", "d1", "d2", "--terms", "3").splitlines()
    assert [line for line in lines if line.startswith(("A ", "B "))] == [
        "A  The Queen  [d1]: rank 1 (bm25 225.000, model 10.000, latent 180.000)",
        "B  The Sea  [d2]: rank 2 (bm25 80.000, latent 58.750)",
    ]
    rows = [line.split("  ")[0] for line in lines[-5:]]
    assert rows == ["sailor", "concept: ship, sail, harbour", "concept: monarch, king, queen", "4 others", "score"]


def test_a_list_of_hits(ask):
    lines = ask("search", "--query", "royals NOT sailors", "--hits", "2").splitlines()
    assert lines[2].strip() == "+  royal 225.000, concept: monarch, king, queen 180.000, @crown 10.000"
    assert lines[-2].strip() == "-  sailor 120.000, concept: ship, sail, harbour 70.000, ~1 5.000, ~9 1.250"


def test_long_names_are_shortened_in_each_part_of_a_pair(ask):
    shown = ask("explain", "--query", "long AND ships")
    assert "concept: ship, sail, harbour∩concept: an enormously long nam… 0.50" in shown


@pytest.mark.parametrize("exclusion", ["words", "any"])
def test_what_is_left_out_is_named(ask, exclusion):
    """A latent model knows no words, so its heaviest terms are taken for them."""
    asked = ("--query", "sailors NOT! latents", "--exclusion", exclusion)
    assert "left out with  concept: monarch, king, queen" in ask("explain", *asked, index="alone")
    shown = ask("explain", *asked, "--docid", "d2", index="alone")
    assert "filtered out: NOT! concept: monarch, king, queen; otherwise" in shown
    asked = ("--query", "royals AND! ships")
    assert "only with    concept: ship, sail, harbour" in ask("explain", *asked, index="alone")
    shown = ask("explain", *asked, "--docid", "d1", index="alone")
    assert "filtered out: AND! concept: ship, sail, harbour; otherwise" in shown


@pytest.mark.parametrize("command", ["explain", "search"])
def test_an_index_without_names(ask, command):
    shown = " ".join(ask(command, "--query", "royals NOT sailors", index="unnamed").split())
    assert "@ are the model's, terms that begin with ~ are latents, the others bm25's" in shown
    assert "~2 1" in shown and "concept" not in shown


@pytest.mark.parametrize(
    ("command", "flags"),
    [("search", ["--output-format", "trec"]), ("search", ["--output-format", "json"]), ("compose", [])],
)
def test_what_machines_read_has_no_names(folder, ask, tmp_path, command, flags):
    topics, output = write_jsonl(tmp_path / "t.jsonl", {"id": "1", "query": "royals"}), tmp_path / "out"
    written = []
    for index in ("named", "unnamed"):
        ask(command, "--topics", topics, "--output", output, *flags, index=index)
        written.append(output.read_text())
        output.unlink()
    assert written[0] == written[1]


def test_json_has_terms_and_beside_them_the_names(folder, searcher):
    with SignedImpactSearcher(folder / "unnamed", LookupEncoder(ATOMS)) as unnamed:
        plain = to_object(explain_query(unnamed, "royals NOT! sailors", ["d1"]))
    explained = to_object(explain_query(searcher, "royals NOT! sailors", ["d1"]))
    assert explained.pop("concepts") == NAMED  # also of what only excludes
    assert explained == plain
    assert "concepts" not in plain and "~2" in plain["weights"]
    assert list(plain["documents"][0]["sides"]) == ["bm25", "model", "latent"]


def test_latents_have_no_place_in_a_text(searcher):
    found = highlights(searcher, "royals", "d1")
    assert [(one.terms, one.start, one.end) for one in found] == [(("royal",), 0, 5)]
    assert highlights(searcher, "latents", "d1") == []


def test_the_server_names_concepts(folder):
    composed = {"vector": {"~2": 100, "~1": 10, "~0": -10, "royal": 1}}
    with make_client(folder / "named", encoder=str(folder / "atoms.jsonl")) as client:
        answer = client.post("/v1/films/search", json={**composed, "explain": True, "highlight": True}).json()
        assert answer["concepts"] == NAMED
        assert {part["term"] for part in answer["candidates"][0]["contributions"]} <= {"~2", "~1", "~0", "royal"}
        assert "concepts" not in client.post("/v1/films/search", json=composed).json()
        asked = {"query": "royals NOT sailors", "docid": "d2"}
        explained = client.get("/v1/films/explain", params=asked).json()
        assert explained["concepts"] == NAMED
        described = client.get("/openapi.yaml").text
        assert described.count("the names of the latents among the terms") == 2
    with make_client(folder / "unnamed", encoder=str(folder / "atoms.jsonl")) as client:
        assert "concepts" not in client.get("/v1/films/explain", params=asked).json()


@pytest.mark.parametrize("content", ["{}", "[1]", '["a"', '["\\ud800"]', "[" * 10**5])
def test_damaged_names(folder, tmp_path, content):
    index = shutil.copytree(folder / "unnamed", tmp_path / "index")
    (index / INDEX_CONCEPTS).write_text(content)
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        assert searcher.search("royals")
        said = "damaged: expected a list of names; copy concepts.json of the model again, or delete it"
        refused = refusal(explain_query, searcher, "royals", error=IndexReadError)
        assert refused == f"{index / INDEX_CONCEPTS}: {said}"
