import json
import math
from dataclasses import asdict

import pytest

from pyserini_compneg.errors import IndexFormatError
from pyserini_compneg.lucene import MANIFEST_NAME, Manifest

WHOLE = Manifest("bm25", {"k1": 0.9, "b": 0.4, "average_length": 12.5}, 256.0, False, 0, 7, 1)


def test_round_trip(tmp_path):
    assert Manifest.read(tmp_path) is None
    named = Manifest("naver/splade-v3", impact_scale=51.2, signed=True, pair_terms=5, documents=3)
    for manifest in (WHOLE, named):
        manifest.write(tmp_path)
        assert Manifest.read(tmp_path) == manifest
    assert json.loads((tmp_path / MANIFEST_NAME).read_text())["format_version"] == 1


def changed(**changes):
    values = {name: value for name, value in {**asdict(WHOLE), **changes}.items() if value != "leave out"}
    return json.dumps(values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read: Expecting value: line 1 column 1 (char 0); rebuild the index"),
        ('{"encoder": ', "cannot be read: Expecting value: line 1 column 13 (char 12); rebuild the index"),
        ("[]", "expected a JSON object, got list; rebuild the index"),
        ("{}", "format version None, but this release reads 1"),
        (changed(format_version=2), "format version 2, but this release reads 1"),
        (changed(colour="red"), "unknown key 'colour'; it was written by another release"),
        (changed(encoder="leave out"), "the key 'encoder' is missing; rebuild the index"),
        (changed(encoder=None), "bad value for 'encoder': None; rebuild the index"),
        (changed(settings=[]), "bad value for 'settings': []; rebuild the index"),
        (changed(impact_scale="256"), "bad value for 'impact_scale': '256'; rebuild the index"),
        (changed(signed=0), "bad value for 'signed': 0; rebuild the index"),
        (changed(pair_terms=1.5), "bad value for 'pair_terms': 1.5; rebuild the index"),
        (changed(documents="7"), "bad value for 'documents': '7'; rebuild the index"),
        (changed(empty_documents=None), "bad value for 'empty_documents': None; rebuild the index"),
        (changed(encoder=" "), "bad value for 'encoder': ' '; rebuild the index"),
        (changed(impact_scale=0), "bad value for 'impact_scale': 0; rebuild the index"),
        (changed(impact_scale=-1.5), "bad value for 'impact_scale': -1.5; rebuild the index"),
        (changed(impact_scale=math.nan), "bad value for 'impact_scale': nan; rebuild the index"),
        (changed(impact_scale=math.inf), "bad value for 'impact_scale': inf; rebuild the index"),
        (changed(pair_terms=-1), "bad value for 'pair_terms': -1; rebuild the index"),
        (changed(documents=-7), "bad value for 'documents': -7; rebuild the index"),
        (changed(empty_documents=-1), "bad value for 'empty_documents': -1; rebuild the index"),
        (changed(empty_documents=8), "bad value for 'empty_documents': 8; rebuild the index"),
    ],
)
def test_malformed_manifests(tmp_path, text, said):
    path = tmp_path / MANIFEST_NAME
    path.write_text(text)
    with pytest.raises(IndexFormatError) as caught:
        Manifest.read(tmp_path)
    assert str(caught.value) == f"{path}: {said}"


def test_a_manifest_that_is_no_utf8_or_no_file(tmp_path):
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(b'{"encoder": "\xff"}')
    with pytest.raises(IndexFormatError, match=r"cannot be read: 'utf-8' codec .*; rebuild the index$"):
        Manifest.read(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(IndexFormatError, match=r"cannot be read: .*Is a directory.*; rebuild the index$"):
        Manifest.read(tmp_path)
