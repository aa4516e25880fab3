"""A kind of scoring node that a function was not written for is never left out or taken for another kind."""

import io
from dataclasses import dataclass
from types import SimpleNamespace

from pyserini_compneg.compose import Linear, Operators, QueryTerm, Sum, quantised, query_terms, to_json
from pyserini_compneg.compose.scoring import Combination
from pyserini_compneg.display.drawing import draw, query_drawing
from pyserini_compneg.display.query_explanation import ExplainedQuery
from pyserini_compneg.search.matches import Total, count_matches
from pyserini_compneg.topics.token_form import stock_obstacle


@dataclass(frozen=True, slots=True)
class Min(Combination):
    """The smallest value, of documents that match every child."""

    key = "min"
    called = "a minimum"


NODE = Min((Linear({"a": 1.0}), Linear({"b": 2.0, "c": -1.0})))


def test_it_is_written_and_rounded():
    assert to_json(NODE) == {"score": {"min": [{"vector": {"a": 1}}, {"vector": {"b": 2, "c": -1}}]}}
    assert quantised(NODE) == Min((Linear({"a": 100.0}), Linear({"b": 200.0, "c": -100.0})))


def test_no_term_is_taken_to_be_enough():
    frequencies = {"a": 70_000, "b": 70_000, "c": 70_000}
    reader = SimpleNamespace(manifest=None, document_frequencies=lambda terms: [frequencies[term] for term in terms])
    assert count_matches(reader, Sum(NODE.children)).total == Total(70_000, "gte")
    assert count_matches(reader, NODE, found=10, asked=10).total == Total(10, "gte")


def test_it_is_drawn_and_its_terms_are_listed():
    drawn = io.StringIO()
    draw(drawn, query_drawing(ExplainedQuery("", None, Operators(), NODE, 1.0, 1.0, {}, ()), 5))
    assert drawn.getvalue().splitlines() == [
        "min, part 1",
        "  positive  a 1.00",
        "min, part 2",
        "  positive  b 2.00",
        "  negative  c -1.00",
    ]
    assert query_terms(NODE, 1.0) == [QueryTerm("b", 2.0), QueryTerm("a", 1.0), QueryTerm("c", -1.0)]


def test_stock_anserini_does_not_get_it():
    assert stock_obstacle(Min(NODE.children[:1])) == (None, "more than one vector")
