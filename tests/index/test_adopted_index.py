"""An impact index of stock Anserini that is adopted finds, after updates, what a new index of its documents does."""

from random import Random

import pytest
from impact_indexes import write_index, write_stock_index, write_text_index
from index_folders import contents
from json_lines import write_jsonl
from refusals import refusal
from updated_indexes import FILTERS, build, draw_document, draw_update, told

from pyserini_compneg.index import update_index, verify_index
from pyserini_compneg.lucene import Manifest, open_reader
from pyserini_compneg.support.errors import ArgumentError, CompNegError, IndexFormatError

BUILD = "build an index of its documents with index"


@pytest.mark.parametrize("options", ["", "-storeRaw -storeContents -storeDocvectors"])
def test_an_adopted_index_is_updated(options, tmp_path):
    random = Random(options)
    drawn = [draw_document(random, f"d{i:04}", False) for i in range(60)]
    there = {one["id"]: one for one in drawn if one["vector"]}  # Anserini leaves out documents without a term
    index = write_stock_index(tmp_path, {docid: one["vector"] for docid, one in there.items()}, *options.split())
    first = len(there)
    with open_reader(index) as reader:
        for update in range(1, 4):
            documents, ids, _ = draw_update(random, there, 20, False)
            changes, deletes = write_jsonl(tmp_path / "changes.jsonl", *documents), tmp_path / "ids.txt"
            deletes.write_text("\n".join(ids))
            report = update_index(index, changes, deletes, adopt=Manifest("m"), threads=1)
            assert update_index(index, changes).changes == 0
            assert reader.reopen()
            assert reader.manifest == report.manifest
            assert verify_index(index) == reader.document_count
            build(tmp_path / f"new{update}", there.values(), 0, {})
            with open_reader(tmp_path / f"new{update}") as fresh:
                kept = [one for one in FILTERS if list(one.fields) == ["id"]]
                assert told(reader, filters=kept) == told(fresh, filters=kept)
    assert Manifest.read(index) == Manifest("m", documents=first)


IMPACTS = {"a": {"t": 3, "u": 2}, "b": {"t": 2}, "c": {"t": 9}}
NO_BM25 = "bm25 cannot be adopted: stock Anserini stores term frequencies and rounded lengths, not weights"
OF_TEXTS = "has frequencies of terms, as texts have (many are 1 in every document), not impacts"
NO_MANIFEST = "has no compneg.json (stock Anserini built it), so its encoder and settings are unknown"
REFUSED = {
    f"{NO_MANIFEST}; name its model with --adopt --encoder MODEL, or {BUILD}": (write_stock_index, IMPACTS, None),
    f"{NO_BM25}; name the model of its vectors, or {BUILD}": (write_stock_index, IMPACTS, "bm25+m"),
    f"has several documents with the id 'b', so it cannot be adopted; {BUILD}": (
        write_stock_index,
        [*IMPACTS.items(), ("b", {"t": 7})],
        "m",
    ),
    f"{OF_TEXTS}; {BUILD}, which has BM25, too": (
        write_text_index,
        "-storeRaw",
        "m",
    ),
    f"has no document with a term, so it cannot be adopted; {BUILD}": (write_index, {"a": {}}, "m"),
    f"has positions of terms, so it cannot be adopted; {BUILD}": (
        lambda folder, impacts: write_stock_index(folder, impacts, "-storePositions"),
        IMPACTS,
        "m",
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_adopted(said, tmp_path):
    write, what, encoder = REFUSED[said]
    index = write(tmp_path, what)
    before = contents(index)
    adopt = encoder and Manifest(encoder)
    assert refusal(update_index, index, optimize=True, adopt=adopt, error=CompNegError) == f"{index}: {said}"
    assert contents(index) == before


def test_a_manifest_that_adopts(tmp_path):
    index = write_stock_index(tmp_path, IMPACTS)
    text = refusal(update_index, index, adopt=Manifest("m", signed=True), error=ArgumentError)
    assert text == "adopt is a manifest with an encoder, and perhaps an impact_scale, and no more"
    text = refusal(update_index, index, adopt=Manifest("m", impact_scale=0), error=ArgumentError)
    assert text.startswith("impact_scale must be a finite number above 0")
    update_index(index, adopt=Manifest("m"))
    text = refusal(update_index, index, adopt=Manifest("n"), error=IndexFormatError)
    assert text == f"{index}: has a compneg.json, which names its encoder, 'm'; leave out --adopt"
