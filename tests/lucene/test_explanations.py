import json
import math
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from impact_indexes import pairs, write_index
from lookup_encoder import LookupEncoder
from random_searches import collections, trees
from score_oracle import score
from test_exactness import PINNED, SHAPES, few

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, Sum, to_json
from pyserini_compneg.search import SignedImpactSearcher


def check(index, nodes, documents):
    """Explanations of every document: parts that add up to the score, the score of the ranking, and what is matched."""
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        rankings = [dict(pairs(ranking)) for ranking in searcher.reader.search(nodes, 10 + len(documents))]
        for node, ranking in zip(nodes, rankings, strict=True):
            for docid, impacts in documents.items():
                explanation = searcher.explain(node, docid)
                amounts = [part.amount for part in explanation.contributions]
                assert explanation.docid == docid
                check_sum(node, amounts, explanation.score, score(node, impacts).magnitude)
                assert explanation.matched == (docid in ranking) == score(node, impacts).matched
                assert explanation.score == ranking.get(docid, explanation.score)
                assert amounts == sorted(amounts, reverse=True)


def check_sum(node, amounts, score, magnitude):
    """Linear parts add up to the last bit; tuples and what damps are rounded one by one, the score only once."""
    total = math.fsum(amounts)
    if not {"product", "damped"} & set(re.findall(r"\w+", json.dumps(to_json(node)))):
        assert np.float32(total) == score, node
    assert abs(total - score) <= 2.0**-24 * abs(score) + 2.0**-48 * (sum(map(abs, amounts)) + magnitude), node


@few
@example(PINNED, SHAPES)
@given(collections(), st.lists(trees(), min_size=1, max_size=6))
def test_contributions_add_up_to_the_score_of_the_ranking(tmp_path_factory, collection, nodes):
    index = write_index(tmp_path_factory.mktemp("explained"), *collection.segments, deleted=collection.deleted)
    check(index, nodes, collection.live)


BIRDS = Sum((Product(({"birds": 1.0}, {"andes": 1.0})), Linear({"parrots": -5.0, "birds": 1.0})))
PENALTY = Product(({"a": 1.0, "b": 1.0}, {"x": 1.0}, {"x": 1.0}), 1.0, weight=-0.25)
TAKEN = Sum((Linear({"a": 1.0, "b": 1.0}), PENALTY))
LEFT_OUT = Excluding(Linear({"b": 1.0}), (Linear({"c": 1.0}),), (0.0,))
LOWERED = Sum((Linear({"a": 1.0}), Sum((Product(({"b": 1.0}, {"c": 1.0}), weight=-0.5), LEFT_OUT))))
MANY = {f"t{i}": 1.0 for i in range(70)}


@pytest.mark.parametrize(
    ("impacts", "node", "contributions", "score", "matched"),
    [
        ({"birds": 4, "andes": 9, "parrots": 2}, BIRDS, {"andes∩birds": 6.0, "birds": 4.0, "parrots": -10.0}, 0, True),
        ({"parrots": 1}, BIRDS, {"parrots": -5.0}, -5, False),
        ({"a": 3, "b": 1, "x": 2}, TAKEN, {"a": 3.0, "b": 1.0, "b∩x": -1.0, "a∩x": -3.0}, 0, True),
        ({"a": 3, "b": 1, "x": 2}, PENALTY, {"b∩x": -1.0, "a∩x": -3.0}, -4, False),
        # What only lowers counts, even beside an alternative that is left out.
        ({"a": 5, "b": 4, "c": 9}, LOWERED, {"a": 5.0, "b∩c": -3.0}, 2, True),
        # Below a root, √((9 + 7) · 16), the tuples share in proportion; of alternatives the better one is explained.
        ({"a": 9, "b": 7, "c": 16}, Product(({"a": 1, "b": 1}, {"c": 1}), 1, 2), {"a∩c": 9.0, "b∩c": 7.0}, 16, True),
        ({"a": 1, "b": 2}, Max((Linear({"a": 3.0}), Linear({"b": 2.0}))), {"b": 4.0}, 4, True),
        # A conjunction of very many tuples is one part.
        (dict.fromkeys(MANY, 4), Product((MANY, MANY)), {"conjunction of 2": 140.0**2}, 140**2, True),
        (dict.fromkeys(MANY, 4), Product((MANY, {**MANY, "none": 1}), 1, 2), {"conjunction of 2": 280.0}, 280, True),
    ],
)
def test_explanations_by_hand(tmp_path, impacts, node, contributions, score, matched):
    with SignedImpactSearcher(write_index(tmp_path / "index", {"d": impacts}), LookupEncoder({})) as searcher:
        explanation = searcher.explain(node, "d")
    assert explanation.contributions == tuple(contributions.items())
    assert (explanation.score, explanation.matched) == (score, matched)
    assert explanation.pulled_up(1) == [part for part in contributions.items() if part[1] > 0][:1]
    assert explanation.pushed_down() == [part for part in reversed(contributions.items()) if part[1] < 0]


def test_what_damped_lowers(tmp_path):
    """r is the ratio of the worst part, and cannot be told from contributions of terms that are also wanted."""
    node = Damped(Linear({"a": 1.0, "b": 0.5}), (Linear({"b": 1.0}), Linear({"a": 1.0})), (8.0, 100.0), 0.5)
    index = write_index(tmp_path / "index", {"d": {"a": 10, "b": 4}, "e": {"a": 10, "b": 9}})
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        explained = searcher.explain(node, "d")
        assert explained.lowered == ((0.5, 12.0, 12 * (1 - 0.5 * 0.5**3)),)
        assert explained.score == np.float32(explained.lowered[0].after)
        assert explained.in_unit(2.0).lowered == ((0.5, 6.0, 11.25 / 2),)
        assert searcher.explain(node, "e").lowered == ((1.0, 14.5, 7.25),)  # no more than the best
        twice = Sum((node, Max((Linear({"a": 0.1}), Damped(Linear({"a": 2.0}), (Linear({"b": 1.0}),), (4.0,), 0.25)))))
        assert searcher.explain(twice, "d").lowered == (*explained.lowered, (1.0, 20.0, 15.0))
        assert searcher.explain(Damped(Linear({"b": 1.0}), (Linear({"c": 1.0}),), (1.0,), 0.5), "d").lowered == ()
