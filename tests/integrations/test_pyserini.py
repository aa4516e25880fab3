"""Expressions in Pyserini: through its own searcher, and through one that takes every operator."""

import importlib
import json
import re
import sys

import numpy as np
import pytest
from impact_indexes import write_index
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg import Operators, SignedImpactSearcher, build_index
from pyserini_compneg.commands.main import main
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError, QueryError

pytestmark = pytest.mark.slow

DOCUMENTS = {
    "d1": {"a": 3, "b": 1, "x": 1},
    "d2": {"a": 3, "c": 4, "x": 1},
    "d3": {"b": 2, "c": 2, "x": 1},
    "d4": {"a": 1, "b": 1, "c": 9, "x": 1},
    "d5": {"a": 3, "b": 1, "x": 1},
}
ATOMS = {"A": {"a": 1.0, "c": 0.123}, "B": {"b": 0.5, "a": 0.25}, "C": {"c": 2.0}, "every": {"x": 1.0, "b": 1.0}}
VECTORS = Operators(union="maxpool", intersection="addition")
SUMS = "Operators(intersection='maxpool')"
QUERIES = ["A", "A OR B", "A AND C", "A NOT B", "(A OR B) AND C NOT every"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pyserini")
    atoms = ({"text": text, "vector": vector, "encoder": "letters"} for text, vector in ATOMS.items())
    write_jsonl(folder / "atoms.jsonl", *atoms)
    write_jsonl(folder / "documents.jsonl", *({"id": docid, "vector": vector} for docid, vector in DOCUMENTS.items()))
    build_index(folder / "documents.jsonl", folder / "plain", "letters", store_raw=True)
    build_index(folder / "documents.jsonl", folder / "pairs", "letters", pair_terms=4)
    return folder


def test_the_language_of_an_index_of_stock_anserini(tmp_path, pyserini_host):
    stock = write_index(tmp_path / "stock", {"d1": {"haus": 80}, "d2": {"gart": 80}})
    assert {*pyserini_host.ComposedQueryEncoder(stock, "bm25", language="de").encode("Häuser")} == {"haus"}


@pytest.fixture
def encoder(folder, pyserini_host):

    def make(operators=None, index="plain", **settings):
        return pyserini_host.ComposedQueryEncoder(folder / index, folder / "atoms.jsonl", operators, **settings)

    return make


@pytest.fixture
def stock_encoder(pyserini_host):
    """An encoder of the kind that Pyserini brings: one text, whole weights."""

    class Letters(pyserini_host.QueryEncoder):
        def encode(self, text, **_):
            return {term: round(100 * weight) for term, weight in ATOMS[text].items()}

    return Letters()


def pairs(hits):
    return [(hit.docid, hit.score) for hit in hits]


def test_whole_weights(encoder):
    assert encoder(VECTORS).encode("A OR B") == {"a": 100, "c": 12, "b": 50}
    assert encoder(VECTORS, weight_scale=10).encode("A AND B") == {"a": 12, "c": 1, "b": 5}
    materialised = encoder(Operators(intersection="cpt"), "pairs", cpt="materialised")
    assert materialised.encode("B AND C") == {"a∩c": 283, "b∩c": 400}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A NOT B", "a damped score; "),
        ("A AND B", f"a product; give cpt='materialised' for an index that holds pairs, or {SUMS}; or "),
        ("A OR B", "a maximum; give Operators(union='maxpool'); or "),
    ],
)
def test_what_its_own_searcher_cannot_run_names_the_one_that_can(encoder, text, said, folder, pyserini_host):
    searcher = pyserini_host.LuceneImpactSearcher(str(folder / "plain"), encoder())
    ours = "search with SignedLuceneImpactSearcher of pyserini_compneg.integrations.pyserini, or with SearchCollection "
    said = f"query {text!r}: LuceneImpactSearcher cannot run {said}{ours}-generator ComposedQueryGenerator"
    assert refusal(searcher.search, text, error=QueryError) == said


@pytest.mark.parametrize("text", ["A", "A OR B", "A AND C", "(A OR B) AND C"])
def test_its_own_searcher_ranks_as_we_do(folder, encoder, pyserini_host, text):
    stock = pyserini_host.LuceneImpactSearcher(str(folder / "plain"), encoder(VECTORS)).search(text, 10)
    with SignedImpactSearcher(folder / "plain", folder / "atoms.jsonl", VECTORS) as searcher:
        ours = searcher.search(text, 10)
    assert [hit.docid for hit in stock] == [hit.docid for hit in ours]
    np.testing.assert_allclose([hit.score for hit in stock], [hit.score for hit in ours], rtol=1e-6)


@pytest.mark.parametrize("operators", [None, VECTORS, Operators(difference="damped")])
def test_every_operator_has_our_hits(folder, encoder, pyserini_host, operators):
    searcher = pyserini_host.SignedLuceneImpactSearcher(str(folder / "plain"), encoder(operators))
    with SignedImpactSearcher(folder / "plain", folder / "atoms.jsonl", operators) as ours:
        expected = {text: ours.search(text, 3) for text in QUERIES}
    found = searcher.batch_search(QUERIES, QUERIES, 3, 2)
    assert {text: pairs(hits) for text, hits in found.items()} == expected
    assert {text: pairs(searcher.search(text, k=3)) for text in QUERIES} == expected
    assert len(expected[QUERIES[-1]]) == 3
    only = {"id": [docid for docid, _ in expected["A"][1:]]}
    assert pairs(searcher.search("A", 3, filter=only))[: len(only["id"])] == expected["A"][1:]


@pytest.mark.parametrize("min_idf", [0, -1])
def test_one_import_changes_nothing_else(folder, stock_encoder, pyserini_host, min_idf):
    """Terms of every document, which Pyserini leaves out unless it is told otherwise, included."""
    arguments = str(folder / "plain"), stock_encoder, min_idf
    stock, ours = pyserini_host.LuceneImpactSearcher(*arguments), pyserini_host.SignedLuceneImpactSearcher(*arguments)
    for text in ATOMS:
        assert pairs(ours.search(text, 10)) == pairs(stock.search(text, k=10))
    (hit,), (expected,) = ours.search("every", 1), stock.search("every", 1)
    for name in ("docid", "score", "lucene_docid"):
        assert getattr(hit, name) == getattr(expected, name)
    assert hit.raw == hit.lucene_document.get("raw") == expected.lucene_document.get("raw")
    assert json.loads(ours.doc(hit.docid).raw())["id"] == hit.docid
    assert ours.num_docs == stock.num_docs == 5


@pytest.mark.parametrize("min_idf", [None, 0, -1, 0.3])
def test_the_command_the_class_and_our_searcher_leave_out_the_same_terms(
    folder, encoder, stock_encoder, pyserini_host, min_idf, capsys
):
    """None by default; and with a number those that Pyserini's searcher leaves out."""
    stock = pyserini_host.LuceneImpactSearcher(str(folder / "plain"), stock_encoder, -1 if min_idf is None else min_idf)
    given = {} if min_idf is None else {"min_idf": min_idf}
    flag = [] if min_idf is None else ["--min-idf", str(min_idf)]
    ours = pyserini_host.SignedLuceneImpactSearcher(str(folder / "plain"), stock_encoder, **given)
    composing = pyserini_host.SignedLuceneImpactSearcher(str(folder / "plain"), encoder(**given))
    with SignedImpactSearcher(folder / "plain", folder / "atoms.jsonl", **given) as searcher:
        for text in ATOMS:
            expected = pairs(stock.search(text, k=10))
            assert pairs(ours.search(text, 10)) == pairs(composing.search(text, 10)) == expected
            assert searcher.search(text, 10) == expected
            arguments = ["search", "--index", str(folder / "plain"), "--encoder", str(folder / "atoms.jsonl"), *flag]
            assert main([*arguments, "--query", text, "--output-format", "trec"]) == 0
            assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == [
                docid for docid, _ in expected
            ]


def test_prebuilt_indexes(folder, stock_encoder, pyserini_host, monkeypatch):
    place = "pyserini.search.lucene._impact_searcher.download_prebuilt_index"
    monkeypatch.setattr(place, {"letters": str(folder / "plain")}.get)
    open_one = pyserini_host.SignedLuceneImpactSearcher.from_prebuilt_index
    searcher = open_one("letters", stock_encoder)
    assert pairs(searcher.search("A NOT B", 1)) == [("d2", 348.0)]
    assert [len(open_one("letters", stock_encoder, *min_idf).search("every")) for min_idf in ([], [0])] == [5, 4]


def test_operators_on_the_weights_of_its_encoder(folder, stock_encoder, pyserini_host):
    composer = pyserini_host.ComposedQueryEncoder(folder / "plain", stock_encoder, Operators(difference="disentangled"))
    searcher = pyserini_host.SignedLuceneImpactSearcher(str(folder / "plain"), composer)
    expected = [("d2", 348.0), ("d1", 250.0), ("d5", 250.0), ("d4", 158.0), ("d3", -76.0)]
    assert pairs(searcher.search("A NOT B")) == expected
    composing = pyserini_host.ComposedQueryEncoder(folder / "plain", stock_encoder, VECTORS)
    assert composing.encode("A OR B") == {"a": 100, "c": 12, "b": 50}


def test_weights_that_java_encoded(folder, pyserini_host, stock_encoder, monkeypatch):
    searcher = pyserini_host.SignedLuceneImpactSearcher(str(folder / "plain"), stock_encoder)
    weights = java_class("java.util.HashMap")()
    weights.put("a", java_class("java.lang.Integer")(2))
    monkeypatch.setattr(searcher, "encode", lambda text: weights)
    assert pairs(searcher.search("any", 1)) == [("d1", 6.0)]


def test_refusals(folder, encoder, pyserini_host, stock_encoder):
    plain, open_one = str(folder / "plain"), pyserini_host.SignedLuceneImpactSearcher
    own_encoder = "for one of this package give ComposedQueryEncoder(index, encoder)"
    given = "ComposedQueryEncoder composes the queries, so give min_idf to it, not to the searcher"
    other = f"{plain}: the encoder composes queries for {folder / 'pairs'}; make one for this index"
    for arguments, error, said in [
        ((plain, "mini"), EncodingError, f"Pyserini knows no encoder 'mini'; {own_encoder}"),
        ((plain, encoder(index="pairs")), IndexFormatError, other),
        ((plain, encoder(), 0), ArgumentError, given),
    ]:
        assert refusal(open_one, *arguments, error=error) == said
    said = refusal(SignedImpactSearcher, plain, min_idf="1", error=ArgumentError)
    assert said == "min_idf must be a finite number, got '1'"
    searcher, search = open_one(plain, stock_encoder), "search without, or with LuceneImpactSearcher"
    said = refusal(searcher.search, "A", fields={"title": 2.0}, error=QueryError)
    assert said == f"composed queries take no fields; {search}"
    searcher.is_using_rm3 = lambda: True
    assert refusal(searcher.search, "A", error=QueryError) == f"composed queries take no feedback; {search}"
    searcher.close()
    said = refusal(searcher.signed.search, "A", error=ValueError)
    assert said == f"{plain}: the searcher is closed; open another one"


def test_what_pyserini_lacks_is_installed_as_the_pages_say(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyserini_compneg.integrations.pyserini", raising=False)
    monkeypatch.setitem(sys.modules, "pyserini.encode", None)
    said = "pyserini.encode: pip install -c constraints.txt -e '.[pyserini]' in the checkout"
    with pytest.raises(ImportError, match=re.escape(said)):
        importlib.import_module("pyserini_compneg.integrations.pyserini")
