"""AND! on real indexes: the ranking of AND, less the documents that lack an operand."""

import random
import shlex

import pytest
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from pair_index import write

from pyserini_compneg import SignedImpactSearcher, build_index
from pyserini_compneg.baselines import Filtering, TwoStep
from pyserini_compneg.commands.main import main
from pyserini_compneg.index import build_sharded_index

ATOMS = LookupEncoder(
    {
        "A": {"p": 2.0, "q": 1.0},
        "B": {"q": 3.0, "r": 2.0, "s": -1.0},
        "C": {"t": 1.0, "s": 0.5},
        "D": {"u": 1.0},
    }
)


@pytest.fixture(scope="module", params=[False, True], ids=["unsigned", "signed"])
def searcher(request, tmp_path_factory):
    draw, signed = random.Random(5), request.param
    documents = {}
    for number in range(300):
        signs = [1, 1, -1] if signed else [1]
        terms = draw.sample("pqrstuvw", draw.randint(1, 6))
        documents[f"d{number:03}"] = {term: draw.choice([1.0, 2.0, 5.0]) * draw.choice(signs) for term in terms}
    index = write(tmp_path_factory.mktemp("strict") / "i", documents, signed=signed, pair_terms=0 if signed else 5)
    with SignedImpactSearcher(index, ATOMS) as opened:
        yield opened, documents


def has_all(document, groups):
    return all(any(document.get(term, 0.0) > 0 for term in group) for group in groups)


def test_scores_and_explanations(searcher):
    opened, documents = searcher
    scores = opened.score("A AND! B", list(documents))
    soft = opened.score("A AND B", list(documents))
    for (docid, document), score, otherwise in zip(documents.items(), scores, soft, strict=True):
        lacking = ", ".join(term for term in ("p", "r") if document.get(term, 0.0) <= 0)
        explained = opened.explain("A AND! B", docid)
        assert score == (None if lacking else otherwise)
        assert explained.filtered_out == (f"AND! {lacking}" if lacking and otherwise is not None else None)
        assert explained.matched == (score is not None)
        assert otherwise is None or explained.score == otherwise
    assert opened.explain("A AND! (B OR C) NOT! D", "d000").docid == "d000"


@pytest.mark.parametrize("method", [Filtering(), TwoStep(depth=300)], ids=["filtering", "two-step"])
def test_methods(searcher, method):
    opened, documents = searcher
    found = opened.search("A AND! C", 1000, method=method)
    soft = opened.search("A AND C", 1000, method=method)
    assert found == [hit for hit in soft if has_all(documents[hit.docid], ["pq", "st"])] != []


def test_pairs_in_the_index(searcher):
    opened, documents = searcher
    if opened.reader.manifest.signed:
        return
    with SignedImpactSearcher(opened.reader.folder, ATOMS, cpt="materialised") as pairs:
        soft = pairs.search("A AND B", 1000)
        expected = [hit for hit in soft if has_all(documents[hit.docid], ["p", "r"])]
        assert pairs.search("A AND! B", 1000) == expected != []


TEXTS = [
    "swiss cheese",
    "goat cheese",
    "swiss goat cheese",
    "a goat in swiss mountains",
    "cheese and wine",
    "wine",
]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = tmp_path_factory.mktemp("cheese")
    films = write_jsonl(room / "films.jsonl", *({"id": f"d{i}", "contents": text} for i, text in enumerate(TEXTS)))
    build_index(films, room / "one", store_raw=True)
    build_sharded_index(films, room / "shards", 3, store_raw=True)
    return room


@pytest.fixture
def run(room, monkeypatch, capsys, caplog):
    monkeypatch.chdir(room)

    def run(line):
        caplog.clear()
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        return code, out, err + caplog.text

    return run


@pytest.mark.parametrize("index", ["one", "shards"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("swiss cheese AND! goat cheese", ["d2", "d3"]),
        ("(swiss AND goat) AND! cheese", ["d0", "d1", "d2"]),
        ("swiss AND! goat AND! cheese", ["d2"]),
        ("swiss AND! goat OR wine", ["d2", "d3", "d4", "d5"]),
    ],
)
def test_queries_of_the_command(run, index, query, expected):
    code, out, _ = run(f"search --index {index} --output-format trec --query '{query}'")
    found = sorted(line.split()[2] for line in out.splitlines())
    assert (code, found) == (0, expected)


def test_what_is_shown(run):
    shown = run("explain --index one --query 'cheese AND! goat cheese' --docid d0 d2")[1]
    assert "d0: filtered out: AND! goat; otherwise its score would be " in shown
    assert "d2: rank " in shown and "AND! (cpt-maxpool)\n├── cheese: chees" in shown
    shown = run("explain --index one --query 'cheese AND! (goat OR wine)'")[1]
    assert "only with         chees\n" in shown and "only with any of  wine  goat\n" in shown
