import json
import math
import re

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from impact_indexes import pairs, search, write_index
from lookup_encoder import LookupEncoder
from random_searches import collections, trees
from score_oracle import score
from test_exactness import PINNED, SHAPES, few

from pyserini_compneg.compose import Linear, Max, Product, Sum, to_json
from pyserini_compneg.search import SignedImpactSearcher


def check(index, nodes, documents):
    """Explanations of every document: parts that add up to the score, the score of the ranking, and what is matched."""
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        rankings = [dict(pairs(ranking)) for ranking in search(searcher.reader, nodes, 10 + len(documents))]
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


def test_a_sum_of_a_conjunction_and_an_exclusion(tmp_path):
    index = write_index(tmp_path / "index", {"d1": {"birds": 4, "andes": 9, "parrots": 2}, "d2": {"parrots": 1}})
    node = Sum((Product(({"birds": 1.0}, {"andes": 1.0})), Linear({"parrots": -5.0, "birds": 1.0})))
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        explanation = searcher.explain(node, "d1")
        unmatched = searcher.explain(node, "d2")
    assert explanation.contributions == (("andes∩birds", 6.0), ("birds", 4.0), ("parrots", -10.0))
    assert (explanation.score, explanation.matched) == (0.0, True)
    assert explanation.pulled_up() == [("andes∩birds", 6.0), ("birds", 4.0)]
    assert explanation.pulled_up(1) == [("andes∩birds", 6.0)]
    assert explanation.pushed_down() == [("parrots", -10.0)]
    assert (unmatched.score, unmatched.matched) == (-5.0, False)


def test_a_product_that_is_taken_away(tmp_path):
    index = write_index(tmp_path / "index", {"d": {"a": 3, "b": 1, "x": 2}})
    penalty = Product(({"a": 1.0, "b": 1.0}, {"x": 1.0}, {"x": 1.0}), 1.0, weight=-0.25)
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        explanation = searcher.explain(Sum((Linear({"a": 1.0, "b": 1.0}), penalty)), "d")
        alone = searcher.explain(penalty, "d")
    assert explanation.contributions == (("a", 3.0), ("b", 1.0), ("b∩x", -1.0), ("a∩x", -3.0))
    assert (explanation.score, explanation.matched) == (0.0, True)
    assert (alone.score, alone.matched) == (-4.0, False)


def test_below_a_root_the_tuples_share_in_proportion(tmp_path):
    index = write_index(tmp_path / "index", {"d": {"a": 9, "b": 7, "c": 16}})
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        explanation = searcher.explain(Product(({"a": 1.0, "b": 1.0}, {"c": 1.0}), 1.0, root=2), "d")
    assert explanation.score == 16.0  # √((9 + 7) · 16)
    assert explanation.contributions == (("a∩c", 9.0), ("b∩c", 7.0))


def test_only_the_better_alternative_is_explained(tmp_path):
    index = write_index(tmp_path / "index", {"d": {"a": 1, "b": 2}})
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        assert searcher.explain(Max((Linear({"a": 3.0}), Linear({"b": 2.0}))), "d").contributions == (("b", 4.0),)


def test_a_conjunction_of_very_many_tuples_is_one_part(tmp_path):
    terms = [f"t{i}" for i in range(70)]
    operand = dict.fromkeys(terms, 1.0)
    index = write_index(tmp_path / "index", {"d": dict.fromkeys(terms, 4)})
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        explanation = searcher.explain(Product((operand, operand)), "d")
        rooted = searcher.explain(Product((operand, {**operand, "none": 1.0}), 1.0, root=2), "d")
    assert explanation.contributions == (("conjunction of 2", 140.0**2),)
    assert explanation.score == 140.0**2
    assert rooted.contributions == (("conjunction of 2", 280.0),)
