import io
import sys

import pytest
from impact_indexes import write_stock_index
from lookup_encoder import LookupEncoder

from pyserini_compneg import Operators, SignedImpactSearcher, build_index
from pyserini_compneg.compose import Linear
from pyserini_compneg.display import explain_query
from pyserini_compneg.display.drawing import draw, query_drawing
from pyserini_compneg.display.query_explanation import to_object
from pyserini_compneg.search.settings import SearchSettings
from pyserini_compneg.support.errors import QueryError

ATOMS = {"a": {"x": 2.0, "y": 1.0}, "b": {"y": 0.5, "z": 1.0}, "none": {}}


def shown(explained):
    handle = io.StringIO()
    draw(handle, query_drawing(explained, 20))
    return handle.getvalue().splitlines()


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    index = write_stock_index(tmp_path_factory.mktemp("stock"), {"d1": {"x": 3, "y": 1}, "d2": {"z": 9, "y": 2}})
    with SignedImpactSearcher(index, LookupEncoder(ATOMS)) as searcher:
        yield searcher


def test_an_index_of_stock_anserini(searcher):
    explained = explain_query(searcher, "a OR b", ["d2", "d1", "d2"])
    assert [(one.docid, one.title, one.rank) for one in explained.documents] == [
        ("d2", None, 1),
        ("d1", None, 2),
    ]
    assert [one.score for one in explained.documents] == [1275.0, 875.0]
    assert explained.atoms == {"a": Linear({"x": 200.0, "y": 100.0}), "b": Linear({"y": 50.0, "z": 100.0})}


def test_every_text_is_encoded_once(searcher, monkeypatch):
    encoder = LookupEncoder(ATOMS)
    monkeypatch.setattr(searcher, "_encoder", encoder)
    explain_query(searcher, "a AND b NOT (a AND none)", ["d1"])
    assert encoder.batches == [["a", "b", "none"]]


def test_another_scale_and_other_operators(searcher, monkeypatch):
    settings = SearchSettings(Operators(difference="constant"), weight_scale=10.0)
    monkeypatch.setattr(searcher, "settings", settings)
    explained = explain_query(searcher, "a NOT b")
    assert to_object(explained)["weights"] == {"x": 2.0, "z": -0.8, "y": 0.6}
    assert shown(explained) == [
        "NOT (constant)",
        "├── a: x 2.00, y 1.00",
        "└── b: z 1.00, y 0.50",
        "",
        "positive  x 2.00  y 0.60",
        "negative  z -0.80",
    ]


def test_what_cannot_be_explained(searcher):
    with pytest.raises(QueryError) as error:
        explain_query(searcher, Linear({"x": -1.0}))
    said = 'query \'{"vector": {"x": -1}}\': no document has its words, or NOT takes them away, so it finds nothing'
    assert str(error.value) == said


def test_the_complements_of_signed_documents_are_implied_in_text(tmp_path):
    (tmp_path / "documents.jsonl").write_text('{"id": "d", "vector": {"x": 4, "y": -2}}\n')
    build_index(tmp_path / "documents.jsonl", tmp_path / "index", "letters", signed=True)
    with SignedImpactSearcher(
        tmp_path / "index", LookupEncoder(ATOMS), Operators(difference="disentangled")
    ) as searcher:
        explained = explain_query(searcher, "a NOT b", ["d"])
        composed = explain_query(searcher, Linear({"x": 3.0, "¬y": 2.0}))
    assert to_object(explained)["weights"] == {"x": 2.0, "¬x": -2.0, "y": 1.0, "z": -1.0, "¬y": -1.0, "¬z": 1.0}
    assert shown(explained) == [
        "NOT (disentangled)",
        "├── a: x 2.00, y 1.00",
        "└── b: z 1.00, y 0.50",
        "",
        "positive  x 2.00  y 1.00",
        "negative  z -1.00",
    ]
    assert explained.documents[0].contributions == (("x", 800.0), ("¬y", -200.0))
    assert shown(composed) == ["positive  x 3.00  ¬y 2.00"]


def test_the_former_name_of_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyserini_compneg.explaining", raising=False)
    monkeypatch.delattr("pyserini_compneg.explaining", raising=False)
    with pytest.warns(DeprecationWarning, match="is now pyserini_compneg.display"):
        from pyserini_compneg import explaining
    assert explaining.explain_query is explain_query
