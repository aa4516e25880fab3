"""Documents of programs: which values they may hold, what the index stores of them, and what is refused."""

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import numpy as np
import pytest
from refusals import refusal

from pyserini_compneg.index import ImpactIndexer, build_index, update_index
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.support.errors import ArgumentError, CompNegError, OutputError

WEIGHT = "cannot be written as JSON: the weight of"
CIRCLE = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("collection", "said"),
    [
        ({}, "the collection must be a path, got {}; build_index and update_index also take documents"),
        (3, "the collection must be a path, got 3; build_index and update_index also take documents"),
        ([], "documents: nothing to index: no documents"),
        (["a"], "documents:1: a document must be a dictionary, got 'a'"),
        ([{"id": 1, "contents": {1}}], "documents:1: `contents` cannot be written as JSON: a value of the type set"),
        ([{"id": 1, "contents": b"a"}], "documents:1: `contents` cannot be written as JSON: a value of the type bytes"),
        ([{"id": 1, "year": math.inf}], "documents:1: `year` cannot be written as JSON: inf is not a finite number"),
        ([{"id": 1, "tags": [[-math.inf]]}], "documents:1: `tags` cannot be written as JSON: -inf is not a finite n"),
        ([{"id": 1, "vector": {"a": np.float32("nan")}}], f"documents:1: `vector` {WEIGHT} 'a' is nan"),
        ([{"id": 1, "vectors": [{"a": 1}, {"b": math.inf}]}], f"documents:1: `vectors` {WEIGHT} 'b' is inf"),
        ([{"id": 1, "a": {2.5: math.nan}}], "documents:1: `a` cannot be written as JSON: the name 2.5 must be a text"),
        ([{"id": 1, "a": CIRCLE}], "documents:1: `a` cannot be written as JSON: too deep, or in itself"),
        ([{"id": 1, "contents": "\ud800"}], "documents:1: not valid JSON text: half of a surrogate pair"),
        ([{"contents": "a", "id": math.nan}], "documents:1: no document id; "),
        ([{"id": "a", "contents": "b"}, {"id": "c"}], "documents:2: "),
        ([{"id": "a", "contents": "b"}] * 2, "documents:2: document id 'a' was given at documents:1 already"),
    ],
)
def test_what_is_no_collection(collection, said, tmp_path):
    message = refusal(build_index, collection, tmp_path / "index", error=CompNegError)
    assert message.startswith(said)
    assert not any(tmp_path.iterdir())


VALUES = [
    (np.int64(1999), 1999),
    (np.float32(0.5), 0.5),
    (np.longdouble(2), 2.0),
    (np.bool_(True), True),
    (np.array([1.5, math.nan]), [1.5, None]),
    (np.array(["1999-05-01", "NaT"], "M8[D]"), ["1999-05-01", None]),
    (np.array([[1], [2]]), [[1], [2]]),
    (np.datetime64("1999-05-01T01:02:03.000000004"), "1999-05-01T01:02:03.000000004"),
    (np.timedelta64(3, "m"), 180.0),
    (date(1999, 5, 1), "1999-05-01"),
    (datetime(1999, 5, 1, 10, tzinfo=UTC), "1999-05-01T10:00:00+00:00"),
    (time(10, 30), "10:30:00"),
    (timedelta(minutes=3), 180.0),
    (Decimal("2.50"), 2.5),
    (Decimal("1E+3"), 1000),
    (Decimal("1E+40"), 1e40),
    (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (MappingProxyType({"a": math.nan, "b": [math.nan]}), {"b": [None]}),
    ({np.int64(7): np.int8(1), 8: 2}, {"7": 1, "8": 2}),
    (None, None),
    *((missing, ...) for missing in (math.nan, np.float32("nan"), np.datetime64("NaT"), Decimal("NaN"))),
]
"""Values of programs, and what the index stores of them; dots for nothing."""


def test_values_of_programs(tmp_path):
    """All doors take them alike, with the columns of a table of pandas too."""
    pandas = pytest.importorskip("pandas")
    values = [*VALUES, (pandas.NA, ...), (pandas.NaT, ...), (pandas.Timestamp("1999-05-01"), "1999-05-01T00:00:00")]
    documents = [{"id": np.int64(i), "contents": "birds é", "value": value} for i, (value, _) in enumerate(values)]
    expected = [
        {"id": i, "contents": "birds é"} | ({} if stored is ... else {"value": stored})
        for i, (_, stored) in enumerate(values)
    ]
    build_index(documents, tmp_path / "index", store_raw=True)
    update_index(tmp_path / "index", documents, delete=[])
    with ImpactIndexer(tmp_path / "vectors", "m", store_raw=True) as indexer:
        for document in documents:
            indexer.add(document["id"], {"bird": np.float32(1)}, raw=document)
    for index in ("index", "vectors"):
        with ImpactReader(tmp_path / index) as reader:
            stored = [json.loads(reader.raw(str(i))) for i in range(len(values))]
            assert list(map(json.dumps, stored)) == list(map(json.dumps, expected))  # 1, 1.0 and true are not the same
    report = update_index(tmp_path / "index", [documents[0] | {"value": 7}], delete=[1, np.int64(2), "3", UUID(int=3)])
    assert (report.replaced, report.deleted, report.not_found) == (1, 3, 1)
    for wrong in (1.0, True, None, b"1"):
        said = f"an id must be a text or a whole number, got {wrong!r}"
        assert refusal(update_index, tmp_path / "index", delete=[wrong], error=ArgumentError) == said


def test_a_table_of_pandas_is_indexed_as_its_csv(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = tmp_path / "films.csv"
    table.write_text("id,contents,year\n1,birds,1999\n2,bats,\n")
    build_index(pandas.read_csv(table).to_dict("records"), tmp_path / "one", store_raw=True, filter_fields=["year"])
    build_index(table, tmp_path / "other", store_raw=True, filter_fields=["year"])
    for index in ("one", "other"):
        with ImpactReader(tmp_path / index) as reader:
            assert "year" in json.loads(reader.raw("1"))
            assert "year" not in json.loads(reader.raw("2"))


def test_errors_of_a_program_are_its_own(tmp_path):
    """And its documents are not made if the index cannot be."""
    index = tmp_path / "index"
    build_index([{"id": "x", "contents": "birds"}], index)

    def documents():
        yield {"id": "d1", "contents": "birds"}
        (tmp_path / "missing").read_text()

    with pytest.raises(FileNotFoundError, match="missing"):
        build_index(documents(), tmp_path / "new")
    assert refusal(build_index, documents(), index, error=OutputError).startswith(f"{index}: exists already; ")
