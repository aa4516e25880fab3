"""Totals, facets and pages agree with one ranking of all documents."""

import itertools
from collections import Counter

import pytest
from filter_oracle import allows
from hypothesis import given
from hypothesis import strategies as st
from impact_indexes import pairs, write_index
from random_searches import collections, trees
from score_oracle import score

from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.search.matches import Counting, Total, count_matches

VALUES = ["war", "spy", "é", "😀", "\uffee", "1", "10"]
FILTERS = st.none() | st.sampled_from([Filter({"genre": "war"}), Filter({"year": "1991..1993"})])
EXCLUDED = st.sampled_from([Filter({"genre": ["spy", "é"]}), Filter({"year": "..1990"})])


@st.composite
def fielded(draw):
    """A collection, and the fields of its documents; a document may have several genres, one of them twice."""
    collection = draw(collections().filter(lambda one: one.live))
    genres = st.lists(st.sampled_from(VALUES), max_size=3)
    fields = st.fixed_dictionaries({"genre": genres, "year": st.integers(1989, 1994)})
    docids = [docid for segment in collection.segments for docid in segment]
    known = {docid: draw(fields) for docid in docids}
    known[next(iter(collection.live))] = {"genre": ["war"], "year": 1990}  # so that the index has both fields
    return collection, known


def facet(fields, name, most):
    """The most frequent values; equal ones in the order of their characters."""
    values = [{*(value if isinstance(value, list) else [value])} for value in map(name, fields)]
    counted = Counter(itertools.chain.from_iterable(values))
    return dict(sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:most])


def checked_pages(reader, node, filter, size, ranking):
    """Reads pages until none is left."""
    pages, after = [], None
    while len(pages) <= len(ranking):
        (page,) = reader.search([node], size, 1, [filter], after=[after])
        pages += pairs(page)
        if len(page.docids) < size:
            break
        after = pages[-1]
    assert pages == ranking


@given(fielded(), trees(EXCLUDED), FILTERS, st.integers(1, 7), st.integers(1, 4), st.integers(1, 3))
def test_counts_and_pages_are_those_of_a_ranking_of_all(tmp_path_factory, collected, node, only, size, most, threads):
    collection, fields = collected
    folder = write_index(
        tmp_path_factory.mktemp("index"), *collection.segments, deleted=collection.deleted, fields=fields
    )
    with ImpactReader(folder) as reader:
        ranking = pairs(reader.search([node], 1000, filters=[only])[0])
        checked_pages(reader, node, only, size, ranking)
        found = count_matches(reader, node, only, Counting(facets={"genre": most, "year": most}), threads)
        bound = count_matches(reader, node, only).total
    listed = {docid: {"genre": one["genre"], "year": [one["year"]]} for docid, one in fields.items()}
    wanted = [
        docid
        for docid, impacts in collection.live.items()
        if score(node, impacts, listed[docid]).matched and (only is None or allows(only, listed[docid]))
    ]
    assert found.total == bound == Total(len(wanted), "eq") == Total(len(ranking), "eq")
    hits = [fields[docid] for docid, _ in ranking]
    assert found.facets == {name: facet(hits, lambda one, name=name: one[name], most) for name in ("genre", "year")}
    assert all(
        list(found.facets[name]) == list(facet(hits, lambda one, name=name: one[name], most)) for name in found.facets
    )


@given(collections().filter(lambda one: one.live), trees(), FILTERS)
def test_bounds_without_counting(
    tmp_path_factory,
    collection,
    node,
    only,
):
    fields = {next(iter(collection.live)): {"genre": "war", "year": 1991}}
    folder = write_index(
        tmp_path_factory.mktemp("index"), *collection.segments, deleted=collection.deleted, fields=fields
    )
    with ImpactReader(folder) as reader, pytest.MonkeyPatch.context() as patched:
        patched.setattr("pyserini_compneg.search.matches._FEW_POSTINGS", -1)
        bound, exact = (count_matches(reader, node, only, Counting(total)).total for total in ("bound", "exact"))
    assert bound.relation == "gte"
    assert 0 <= bound.value <= exact.value
