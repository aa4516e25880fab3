import json
import reprlib
from dataclasses import asdict

import pytest
from refusals import refusal

from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import MANIFEST_NAME, Manifest
from pyserini_compneg.support.errors import IndexFormatError

WHOLE = Manifest("bm25", {"k1": 0.9, "b": 0.4, "average_length": 12.5}, 256.0, False, 0, 7, 1)


def test_round_trip(tmp_path):
    assert Manifest.read(tmp_path) is None
    named = Manifest(
        "naver/splade-v3",
        impact_scale=51.2,
        signed=True,
        pair_terms=5,
        documents=3,
        filter_fields=("year",),
        pairs=("a∩b",),
    )
    for manifest in (WHOLE, named):
        manifest.write(tmp_path)
        assert Manifest.read(tmp_path) == manifest
    assert json.loads((tmp_path / MANIFEST_NAME).read_text())["format_version"] == 1


EVERY_KEY = """{
  "encoder": "splade",
  "settings": {
    "k1": 0.9
  },
  "impact_scale": 2.5,
  "signed": true,
  "pair_terms": 0,
  "documents": 1,
  "empty_documents": 0,
  "filter_fields": [
    "year"
  ],
  "pairs": [
    "bird∩fly"
  ],
  "pair_scale": 8,
  "language": "de",
  "format_version": 1
}
"""
OPTIONAL = {"filter_fields", "pairs", "pair_scale", "language"}


def test_the_file_has_the_settings_of_the_index(tmp_path):
    changes = {"impact_scale": 2.5, "signed": True, "pairs": ["bird∩fly"], "filter_fields": ["year"], "optimize": True}
    with ImpactIndexer(tmp_path / "a", "splade", settings={"k1": 0.9, "language": "de"}, **changes) as indexer:
        indexer.add("d1", {"bird": 2, "fly": 4}, {"id": "d1", "year": 1999})
    assert (tmp_path / "a" / MANIFEST_NAME).read_text(encoding="utf-8") == EVERY_KEY
    with ImpactIndexer(tmp_path / "b", "splade") as indexer:
        indexer.add("d1", {"bird": 2})
    assert list(Manifest.read(tmp_path / "b").to_json()) == [
        key for key in json.loads(EVERY_KEY) if key not in OPTIONAL
    ]


def changed(**changes):
    values = {name: value for name, value in {**asdict(WHOLE), **changes}.items() if value != "leave out"}
    return json.dumps(values)


BAD_VALUES = [
    (changed(**{name: value}), f"bad value for {name!r}: {reprlib.repr(value)}; rebuild the index")
    for name, values in {
        "encoder": [None, " ", "a\x1b[31m", "a\nb"],
        "settings": [[], {"k1": None}, {"k1": "x"}, {"b": -1}, {"average_length": -0.5}, {"model": []}],
        "impact_scale": ["256", 0, -1.5, 1048577, 10**400, True],
        "signed": [0],
        "pair_terms": [1.5, -1],
        "documents": ["7", -7],
        "empty_documents": [None, -1, 8],
        "filter_fields": ["year", [1]],
        "pairs": ["a∩b", ["a"]],
        "pair_scale": [0, -8, 3, 2048, 8.0, True],
        "passages": [[], {"words": 3}, {"words": 3, "overlap": 3}, {"words": 3, "overlap": -1}, {"words": 3.0}],
    }.items()
    for value in values
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON: Expecting value at column 1"),
        ('{"encoder": ', "not valid JSON: Expecting value at column 13"),
        ("[]", "expected a JSON object, got a list"),
        ('{"encoder": "a", "encoder": "b"}', "the key 'encoder' is given twice"),
        (changed(impact_scale=float("nan")), "not valid JSON: NaN is not a JSON number"),
        (changed(format_version=True), "format version True, but this release reads 1; rebuild the index"),
        ("{}", "format version None, but this release reads 1; rebuild the index"),
        (changed(format_version=2), "format version 2, but this release reads 1; upgrade pyserini_compneg"),
        (changed(colour="red"), "unknown key 'colour'; it was written by another release"),
        (changed(encoder="leave out"), "the key 'encoder' is missing; rebuild the index"),
        *BAD_VALUES,
    ],
)
def test_malformed_manifests(tmp_path, text, said):
    path = tmp_path / MANIFEST_NAME
    path.write_text(text)
    assert refusal(Manifest.read, tmp_path, error=IndexFormatError) == f"{path}: {said}"


def test_a_manifest_that_is_no_utf8(tmp_path):
    (tmp_path / MANIFEST_NAME).write_bytes(b'{"encoder": "\xff"}')
    with pytest.raises(IndexFormatError, match=r"cannot be read: 'utf-8' codec .*; rebuild the index$"):
        Manifest.read(tmp_path)
