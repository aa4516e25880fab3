"""Adopts an index of stock Anserini: what its manifest may say, and its documents by their stored sources."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pyserini_compneg.encode import BM25, split_name
from pyserini_compneg.lucene import ImpactWriter, IndexSettings, Manifest, Reader
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError
from pyserini_compneg.support.json_objects import stored_object
from pyserini_compneg.support.vectors import is_number


def known_manifest(reader: Reader, adopt: Manifest | None, place: str) -> Manifest:
    """The manifest of an index that is updated, or the manifest that adopts it."""
    known = reader.manifest
    if adopt is None:
        if known is None:
            said = "has no compneg.json (stock Anserini built it), so its encoder and settings are unknown"
            remedy = "name its model with --adopt --encoder MODEL, or build an index of its documents with index"
            raise IndexFormatError(said, where=place, remedy=remedy)
        return known
    _check(adopt)
    if known is not None and replace(known, documents=0, empty_documents=0) != adopt:
        said = f"has a compneg.json, which names its encoder, {known.encoder!r}"
        raise IndexFormatError(said, where=place, remedy="leave out --adopt")
    if adopt.encoder == BM25 or split_name(adopt.encoder)[0]:
        said = "bm25 cannot be adopted: stock Anserini stores term frequencies and rounded lengths, not weights"
        remedy = "name the model of its vectors, or build an index of its documents with index"
        raise IndexFormatError(said, where=place, remedy=remedy)
    if known is None and adopt.filter_fields and not reader.stored()[0]:
        what = "stores no sources of documents, so there are no values to filter by"
        raise IndexFormatError(what, where=place, remedy="build it with Anserini's -storeRaw, or with index")
    documents = reader.document_count
    return known or replace(adopt, documents=documents, empty_documents=documents - reader.field_document_count)


def _check(adopt: Manifest) -> None:
    fields, scale = adopt.filter_fields, adopt.impact_scale
    IndexSettings(impact_scale=scale, filter_fields=fields)  # checks them
    if not adopt.encoder.strip() or adopt != Manifest(adopt.encoder, impact_scale=scale, filter_fields=fields):
        what = "adopt is a manifest with an encoder, and perhaps an impact_scale and filter_fields, and no more"
        raise ArgumentError(what)
    if fields and scale != 1:
        what = "stored sources have impacts, which the impact scale would multiply again"
        raise ArgumentError(what, where="filter_fields", remedy="leave out --impact-scale, or --filter-fields")


def check_adopted(writer: ImpactWriter, place: str) -> None:
    """Refuses an index that has other fields, or other documents, than an index of this package."""
    said = writer.unfit()
    if said is None and (twice := writer.duplicate_ids(1)):
        said = f"has several documents with the id {twice[0]!r}"
    if said is not None:
        remedy = "build an index of its documents with index"
        raise IndexFormatError(f"{said}, so it cannot be adopted", where=place, remedy=remedy)


def stored_lines(docid: str, raw: str | None, place: str) -> tuple[bytes, bytes]:
    """A line with the impacts that Anserini indexed, which have no fractions, and the stored source as a line."""
    record = stored_object(raw)
    vector = {} if record is None else record.get("vector")
    if not isinstance(vector, dict) or not all(map(is_number, vector.values())) or not vector:
        what = f"the stored source of the document {docid!r} has no vector"
        raise IndexFormatError(what, where=place, remedy="build an index of its documents with index --filter-fields")
    impacts = {term: int(weight) for term, weight in vector.items() if weight >= 1}
    return _line({"id": docid, "vector": impacts}), _line(record)


def _line(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()
