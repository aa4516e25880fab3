"""Filters and NOT!: what Java finds is what the definitions say, whatever is allowed, deleted or tied."""

import json

import numpy as np
import pytest
from anserini_runs import COMPOSED, lucene_search, search_collection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from impact_indexes import pairs, write_index
from lookup_encoder import LookupEncoder
from random_searches import collections, trees
from refusals import refusal
from score_oracle import check_ranking, passes

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.compose import Excluding, Linear, Max, Sum, composed_line
from pyserini_compneg.expression import Filter
from pyserini_compneg.lucene import ImpactReader, ImpactWriter
from pyserini_compneg.support.errors import IndexFormatError

few = settings(
    max_examples=settings.default.max_examples // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TEXTS = st.sampled_from(["a", "b c", "é", "1..2"])
NUMBERS = st.sampled_from([-3, 0, 7, 1990, 1999])
VALUES = st.fixed_dictionaries(
    {}, optional={"g": TEXTS | st.lists(TEXTS | NUMBERS, max_size=2), "n": NUMBERS | st.lists(NUMBERS, max_size=3)}
)
RANGES = st.sampled_from(["0..1990", "..0", "7..", "1991..1998", "-3..-3", "0<..<1999", "..<7", "1989<.."])
FIELDS = {"g": TEXTS, "n": NUMBERS | RANGES}
ALWAYS = {"first": {"g": ["x", 5], "n": [0]}}  # so that an index has both fields, and numbers


def filters(docids):
    some = {name: st.lists(values, max_size=2) for name, values in FIELDS.items()}
    some["id"] = st.lists(st.sampled_from([*docids, "unknown"]), max_size=20)
    return st.dictionaries(st.sampled_from([*some]), st.none(), min_size=1).flatmap(
        lambda names: st.builds(Filter, st.fixed_dictionaries({name: some[name] for name in names}))
    )


@st.composite
def cases(draw):
    collection = draw(collections())
    collection.segments[0]["first"] = {}
    docids = [docid for segment in collection.segments for docid in segment]
    kinds = draw(st.lists(VALUES, min_size=1, max_size=5))
    choice = draw(st.randoms(use_true_random=False))
    fields = {docid: choice.choice(kinds) for docid in docids} | ALWAYS
    one = filters(docids)
    asked = draw(st.lists(st.tuples(trees(one), st.none() | one), min_size=1, max_size=10))
    return collection, fields, asked, draw(st.integers(1, 70))


def listed(values):
    return {name: value if isinstance(value, list) else [value] for name, value in values.items()}


@few
@given(cases())
def test_whatever_is_allowed_is_ranked_by_the_definitions(tmp_path_factory, anserini, case):
    collection, fields, asked, hits = case
    folder = tmp_path_factory.mktemp("filtered")
    index = write_index(folder / "index", *collection.segments, deleted=collection.deleted, fields=fields)
    of = {docid: listed(values) | {"id": [docid]} for docid, values in fields.items()}
    nodes, wanted = zip(*asked, strict=True)
    with SignedImpactSearcher(index, LookupEncoder({})) as searcher:
        reader = searcher.reader
        rankings = reader.search(nodes, hits, filters=wanted, threads=2)
        for node, filter, ranking in zip(nodes, wanted, rankings, strict=True):
            allowed = {docid for docid in collection.live if filter is None or passes(filter, of[docid])}
            live = {docid: impacts for docid, impacts in collection.live.items() if docid in allowed}
            check_ranking(node, live, ranking, hits, of)
            assert searcher.score(node, ranking.docids) == list(ranking.scores)
            if filter is not None:
                assert reader.filtered(filter).allowed == len(allowed)
                assert reader.filtered(filter).unknown == len(set(filter.fields.get("id", ())) - set(collection.live))
            for docid in list(collection.live)[:5]:
                explanation = searcher.explain(node, docid, filter=filter)
                whole = searcher.explain(node, docid)
                assert explanation.matched == (whole.matched and docid in allowed)
                assert explanation.score == whole.score
                if whole.matched and docid not in allowed:
                    conditions = [Filter({name: values}) for name, values in filter.fields.items()]
                    failed = [f"not {one}" for one in conditions if not passes(one, of[docid])]
                    assert explanation.filtered_out == ", ".join(failed)
    extra = [{} if filter is None else {"filter": filter.to_json()} for filter in wanted]
    lines = {f"q{i:03}": composed_line(f"q{i:03}", "", *pair) for i, pair in enumerate(zip(nodes, extra, strict=True))}
    assert lucene_search(index, lines.values(), hits) == [pairs(ranking) for ranking in rankings]
    (folder / "queries.jsonl").write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    found = search_collection(index, folder / "queries.jsonl", folder / "run.txt", hits, *COMPOSED)
    expected = dict(zip(lines, rankings, strict=True))
    assert found == {qid: ranking.docids for qid, ranking in expected.items() if ranking.docids}


def test_only_values_of_live_documents_and_no_ids_are_suggested(tmp_path):
    fields = {"d1": {"g": ["a", "b"]}, "d2": {"g": ["b", "c"]}}
    index = write_index(tmp_path / "i", {"d1": {"t": 1}, "d2": {"t": 1}}, deleted=["d2"], fields=fields)
    with ImpactReader(index) as reader:
        assert reader.filtered(Filter({"g": "x", "id": "none"})).values == {"g": ["a", "b"]}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Several windows in two segments, with ties and deletions; ``share`` of the documents have each value."""
    rng = np.random.default_rng(3)
    documents, fields = {}, {}
    for number in range(12_000):
        terms = rng.choice(40, 6, replace=False, p=np.arange(40, 0, -1) / 820)
        documents[f"d{number:05}"] = {f"t{term}": int(rng.integers(1, 5)) for term in terms}
        fields[f"d{number:05}"] = {"share": [share for share in (1, 5, 50, 95) if rng.random() < share / 100]}
    docids = list(documents)
    halves = [{docid: documents[docid] for docid in part} for part in (docids[:8_500], docids[8_500:])]
    deleted = docids[::97]
    index = write_index(tmp_path_factory.mktemp("large") / "i", *halves, deleted=deleted, fields=fields)
    with ImpactReader(index) as reader:
        yield reader, {docid: documents[docid] for docid in docids if docid not in set(deleted)}, fields


@pytest.mark.parametrize("share", [1, 5, 50, 95])
@pytest.mark.parametrize("hits", [1, 300])
def test_windows_with_few_and_with_many_allowed_documents(large, share, hits):
    reader, documents, fields = large
    rng = np.random.default_rng(share)
    allowed = {docid: impacts for docid, impacts in documents.items() if share in fields[docid]["share"]}
    for _ in range(3):
        weights = {f"t{term}": float(rng.integers(-2, 5)) for term in rng.choice(40, 8, replace=False)}
        barred = Excluding(
            Linear(weights), (Linear({"t1": 1.0}), Filter({"share": 50})), (2.0, 9.0)
        )  # a filter has no limit
        rare = Linear({"t39": 1.0})
        strict = Excluding(Linear(weights), required=(Linear({"t2": 1.0, "t30": 1.0}), Linear({"t3": 1.0})))
        for node in (Linear(weights), barred, strict, Max((barred, strict, rare)), Sum((barred, rare))):
            (ranking,) = reader.search([node], hits, filters=[Filter({"share": share})])
            check_ranking(node, allowed, ranking, hits, fields)


def test_a_filter_spares_work(large):
    reader = large[0]
    node = Linear({f"t{term}": 1.0 for term in range(40)})

    def work(filter):
        before = reader.work_done()
        reader.search([node], 1000, filters=[filter])
        return [after - earlier for after, earlier in zip(reader.work_done(), before, strict=True)]

    assert all(small < large for small, large in zip(work(Filter({"share": 1})), work(None), strict=True))
    assert work(Filter({"id": []})) == [0, 0]


def test_values_are_exact(tmp_path):
    values = {"d1": "Comedy", "d2": " Comedy\n", "d3": "comedy", "d4": 1990, "d5": "1990", "d6": 1990.0, "d7": 0.1}
    values |= {"d8": True, "d9": ["x", 2.5e3], "e1": None, "e2": [], "e3": "", "e4": 10**25, "e5": 1e-7, "1..2": -0.0}
    documents = dict.fromkeys(values, {"a": 1})
    index = write_index(tmp_path / "i", documents, fields={docid: {"f": value} for docid, value in values.items()})
    with ImpactReader(index) as reader:
        for asked, expected in [
            ("Comedy", ["d1", "d2"]),
            (1990, ["d4", "d5", "d6"]),
            ("1990.0", ["d4", "d6"]),
            ("0.1e0", ["d7"]),
            ("-0", ["1..2"]),
            ("1990..1990", ["d4", "d5", "d6"]),  # a text of four digits is a year
            ("1990.0..1990.5", ["d4", "d6"]),
            (0.1, ["d7"]),
            (True, ["d8"]),
            (2500, ["d9"]),
            ([10**25, 1e-7], ["e4", "e5"]),
            ("0.01..0.5", ["d7"]),
            ([0.0, -0.0], ["1..2"]),
            ("0..0", ["1..2"]),
            ("-0..0", ["1..2"]),
        ]:
            (ranking,) = reader.search([Linear({"a": 1.0})], 99, filters=[Filter({"f": asked})])
            assert ranking.docids == expected
        (ranking,) = reader.search([Linear({"a": 1.0})], 99, filters=[Filter({"id": ["1..2", "9..1"]})])
        assert ranking.docids == ["1..2"]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": 1}, '{"a":1}'),
        ([["x"]], '["x"]'),
        (["x", None], "null"),
        ("é" * 20_000, '"' + "é" * 59),
    ],
)
def test_values_that_are_none(tmp_path, value, fault):
    line = json.dumps({"id": "d", "vector": {"a": 1}, "f": value})
    with ImpactWriter(tmp_path, filter_fields=["f"]) as writer:
        said = "the field 'f' must be a text of at most 32766 bytes, a number, or a list of these, got "
        assert writer.add_lines(line.encode(), "c") + writer.drain() == [f"c:1: {said}{fault}"]


@pytest.mark.parametrize(
    ("fields", "asked", "message"),
    [
        ({}, {"f": 1}, "it has no filter fields, so none is 'f'; build it with --filter-fields f"),
        ({"g": 1, "h": 2}, {"f": 1}, "it has no filter field 'f', only g, h"),
        ({"g": 1}, {"contents": "a"}, "it has no filter field 'contents', only g"),
        ({"g": "x"}, {"g": "1..2"}, "the filter field 'g' has no numbers, so there is no range 1..2"),
        (
            {"g": "1999-05"},
            {"g": "0000.."},
            "the filter field 'g' has no numbers, so there is no range 0000.. (dates have years from 0001 to 9999)",
        ),
        ({"g": "x"}, {"g": "1999-05.."}, "the filter field 'g' has no dates, so there is no range 1999-05.."),
        ({"g": "99"}, {"g": "..1999"}, "the filter field 'g' has no numbers and no dates, so there is no range ..1999"),
        *[
            (
                {"g": value},
                {"g": [value, text]},
                f"the filter field 'g' has no text {text}, which is no range either; "
                "write a range as 1990..1999, 1990.. or ..1999",
            )
            for value, text in [(1960, "1960..x"), (1960, "x..1960"), (1960, "1960...1969"), ("1960-05", "1960..x")]
        ],
    ],
)
def test_fields_that_an_index_does_not_have(tmp_path, fields, asked, message):
    index = write_index(tmp_path / "i", {"d": {"a": 1}}, fields={"d": fields})
    with ImpactReader(index) as reader:
        refused = refusal(reader.search, [Linear({"a": 1.0})], 1, filters=[Filter(asked)], error=IndexFormatError)
        assert refused == f"{index}: cannot be filtered: {message}"
        barred = Excluding(Linear({"a": 1.0}), (Filter(asked),), (0.0,))
        assert refusal(reader.search, [barred], 1, error=IndexFormatError) == f"{index}: cannot be searched: {message}"


def test_texts_with_dots_that_are_no_ranges_are_texts(tmp_path):
    fields = {"d": {"g": ["1960..x", 1960], "h": 2001}, "e": {"g": "1960-05", "h": "2001"}}
    with ImpactReader(write_index(tmp_path / "i", {"d": {"a": 1}, "e": {"a": 1}}, fields=fields)) as reader:
        assert [reader.filtered(Filter({"g": text})).allowed for text in ("1960..x", "1960..1969")] == [1, 2]
        for text in ("wait..what", "Wait... What"):  # years may be titles
            assert reader.filtered(Filter({"h": text})).allowed == 0
