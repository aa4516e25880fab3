"""Expressions in Pyserini's own searcher, through an encoder that composes them."""

import json

import numpy as np
import pytest

from pyserini_compneg import ComposedQueryEncoder, Operators, SignedImpactSearcher, build_index
from pyserini_compneg.errors import CompositionError

DOCUMENTS = {
    "d1": {"a": 3, "b": 1, "x": 1},
    "d2": {"a": 3, "c": 4, "x": 1},
    "d3": {"b": 2, "c": 2, "x": 1},
    "d4": {"a": 1, "b": 1, "c": 9, "x": 1},
    "d5": {"a": 3, "b": 1, "x": 1},
}
ATOMS = {"A": {"a": 1.0, "c": 0.123}, "B": {"b": 0.5, "a": 0.25}, "C": {"c": 2.0}, "every": {"x": 1.0, "b": 1.0}}
VECTORS = Operators(union="maxpool", intersection="addition")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    atoms = [{"text": text, "vector": vector, "encoder": "letters"} for text, vector in ATOMS.items()]
    documents = [{"id": docid, "vector": vector} for docid, vector in DOCUMENTS.items()]
    for name, records in (("atoms", atoms), ("documents", documents)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    build_index(folder / "documents.jsonl", folder / "plain", "letters")
    build_index(folder / "documents.jsonl", folder / "pairs", "letters", pair_terms=4)
    return folder


def encoder(folder, index="plain", **settings):
    return ComposedQueryEncoder(folder / index, folder / "atoms.jsonl", **settings)


def test_whole_weights(folder):
    assert encoder(folder, operators=VECTORS).encode("A OR B") == {"a": 100, "c": 12, "b": 50}
    assert encoder(folder, operators=VECTORS, weight_scale=10).encode("A AND B") == {"a": 12, "c": 1, "b": 5}
    assert encoder(folder, "pairs", operators=Operators(intersection="cpt"), cpt="materialised").encode("B AND C") == {
        "a∩c": 71,
        "b∩c": 100,
    }


def test_what_pyserini_cannot_run(folder):
    ours = "search with SignedImpactSearcher, or with SearchCollection -generator ComposedQueryGenerator"
    for operators, text, said in (
        (None, "A NOT B", f"a negative weight, -50 of 'b'; {ours}"),
        (
            None,
            "A AND B",
            "a product; give cpt='materialised' for an index that holds pairs, or Operators(intersection='maxpool'); "
            f"or {ours}",
        ),
        (None, "A OR B", f"a maximum; give Operators(union='maxpool'); or {ours}"),
    ):
        with pytest.raises(CompositionError) as raised:
            encoder(folder, operators=operators).encode(text)
        assert str(raised.value) == f"query {text!r}: LuceneImpactSearcher cannot run {said}"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["A", "A OR B", "A AND C", "(A OR B) AND C"])
def test_pyserini_ranks_as_we_do(folder, lucene_impact_searcher, text):
    stock = lucene_impact_searcher(str(folder / "plain"), encoder(folder, operators=VECTORS))
    with SignedImpactSearcher(folder / "plain", folder / "atoms.jsonl", VECTORS) as searcher:
        ours = searcher.search(text, 10)
    found = stock.search(text, 10)
    assert [hit.docid for hit in found] == [hit.docid for hit in ours]
    np.testing.assert_allclose([hit.score for hit in found], [hit.score for hit in ours], rtol=1e-6)


@pytest.mark.slow
def test_pyserini_leaves_out_terms_of_every_document(folder, lucene_impact_searcher):
    stock = lucene_impact_searcher(str(folder / "plain"), encoder(folder))
    assert {hit.docid: hit.score for hit in stock.search("every", 10)}["d3"] == 200.0  # ours: 300
