"""An impact index of stock Anserini that is adopted finds, after updates, what a new index of its documents does."""

import json
from dataclasses import replace
from random import Random

import pytest
from impact_indexes import write_index, write_stock_index, write_text_index
from index_folders import contents
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from refusals import refusal
from steps import as_steps
from updated_indexes import FILTERS, build, draw_document, draw_update, told
from works import killed_at_steps

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.compose import Linear
from pyserini_compneg.index import update_index, verify_index
from pyserini_compneg.lucene import ImpactWriter, Manifest, open_reader
from pyserini_compneg.lucene.gate import java_class
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


def write_with_years(folder, flags="-storeRaw", years=(1990, "1991", [1992, "x"], None)):
    """An index of stock Anserini of vectors, some of whose weights have fractions, with a field beside them."""
    vectors = [{"t": 3 + number, "u": 1.7, "v": 0.4} for number in range(len(years))]
    lines = [
        {"id": f"d{number}", "contents": "", "vector": vector, "year": year}
        for number, (vector, year) in enumerate(zip(vectors, years, strict=True))
    ]
    write_jsonl(folder / "collection" / "documents.jsonl", *lines)
    options = f"-collection JsonVectorCollection -input {folder / 'collection'} -index {folder / 'index'}".split()
    options += f"-generator DefaultLuceneDocumentGenerator -threads 1 -impact -pretokenized {flags}".split()
    java_class("io.anserini.index.IndexCollection").main(options)
    return folder / "index"


def test_filter_fields_of_an_adopted_index_come_from_its_sources(tmp_path):
    """No score changes. Documents of the same update have their own values, and later ones have some, too."""
    index = write_with_years(tmp_path)
    query, every = Linear({"t": 2.0, "u": 1.0, "v": 5.0}), [f"d{number}" for number in range(4)]
    with open_reader(index) as reader:
        before = reader.search([query], 10), reader.raws(every)
    adopt = Manifest("m", filter_fields=("year",))
    report = update_index(index, [{"id": "d3", "vector": {"t": 6, "u": 1}, "year": 1999}], ["d9"], adopt=adopt)
    assert (report.replaced, report.not_found, report.manifest.filter_fields) == (4, 1, ("year",))
    update_index(index, [{"id": "d4", "vector": {"t": 1}, "year": 2000}])
    with SignedImpactSearcher(open_reader(index), encoder=LookupEncoder({})) as searcher:
        assert verify_index(index) == 5
        (ranking,) = before[0]
        assert searcher.batch_score([query], [ranking.docids]) == [list(ranking.scores)]
        assert [json.loads(one) for one in searcher.reader.raws(every[:3])] == list(map(json.loads, before[1][:3]))
        found = {
            year: {hit.docid for hit in searcher.search("*", filter={"year": year})}
            for year in ("1990..1999", "1992", "1991", "x", "2000")
        }
        assert found == {
            "1990..1999": {"d0", "d1", "d2", "d3"},
            "1992": {"d2"},
            "1991": {"d1"},
            "x": {"d2"},
            "2000": {"d4"},
        }
        assert [hit.docid for hit in searcher.search("*", sort="year:desc")][-1] == "d0"


def test_a_killed_adoption_with_filter_fields_is_repeated(tmp_path, monkeypatch):
    index, adopt = write_with_years(tmp_path), Manifest("m", filter_fields=("year",))
    as_steps(monkeypatch, ImpactWriter, "commit", "release")
    with killed_at_steps(index, tmp_path) as killed:
        update_index(index, adopt=adopt)
    assert len(killed) > 2
    for folder in [*killed, index]:
        update_index(folder, adopt=adopt)
        assert verify_index(folder) == 4
        with SignedImpactSearcher(open_reader(folder), encoder=LookupEncoder({})) as searcher:
            assert [hit.docid for hit in searcher.search("*", filter={"year": "1992"})] == ["d2"]


def test_filter_fields_that_an_adopted_index_cannot_have(tmp_path):
    """It stays as it was."""
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
    without, with_sources = write_with_years(tmp_path / "without", ""), write_with_years(tmp_path / "with")
    kept = contents(without), contents(with_sources)
    adopt = Manifest("m", filter_fields=("year",))
    said = "stores no sources of documents, so there are no values to filter by"
    assert refusal(update_index, without, adopt=adopt, error=IndexFormatError).startswith(f"{without}: {said}")
    said = refusal(update_index, with_sources, adopt=replace(adopt, impact_scale=2.0), error=ArgumentError)
    assert said.startswith("filter_fields: stored sources have impacts, which the impact scale would multiply again")
    said = refusal(update_index, with_sources, adopt=replace(adopt, filter_fields=("vector",)), error=CompNegError)
    assert "the field 'vector' must be a text" in said
    said = refusal(update_index, with_sources, adopt=replace(adopt, filter_fields=("yaer",)), error=CompNegError)
    assert said == f"{with_sources}: no document has the filter field 'yaer'; leave it out"
    assert (contents(without), contents(with_sources)) == kept


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
    assert text == "adopt is a manifest with an encoder, and perhaps an impact_scale and filter_fields, and no more"
    text = refusal(update_index, index, adopt=Manifest("m", impact_scale=0), error=ArgumentError)
    assert text.startswith("impact_scale must be a finite number above 0")
    update_index(index, adopt=Manifest("m"))
    text = refusal(update_index, index, adopt=Manifest("n"), error=IndexFormatError)
    assert text == f"{index}: has a compneg.json, which names its encoder, 'm'; leave out --adopt"
