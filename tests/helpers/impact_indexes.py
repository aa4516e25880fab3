"""Small impact indexes with several segments and deleted documents, and indexes that stock Anserini builds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from json_lines import write_jsonl

from pyserini_compneg.lucene import ImpactWriter, Ranking, java_class

Documents = Mapping[str, Mapping[str, int]]


def write_index(
    folder: Path,
    *segments: Documents,
    deleted: Iterable[str] = (),
    raw: bool = False,
    fields: Mapping[str, Mapping[str, object]] | None = None,
) -> Path:
    """An index with a segment for each group of documents; the deleted ones stay in theirs, marked.

    ``fields`` has the filter fields of documents, by their ids.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({name for one in (fields or {}).values() for name in one})
    with ImpactWriter(folder, store_raw=raw, filter_fields=names) as writer:
        for documents in segments:
            titles = [
                {"id": docid, "title": f"title of {docid}", **(fields or {}).get(docid, {})} for docid in documents
            ]
            add_documents(writer, documents, json_lines(titles))
            writer.commit()
    if deleted := list(deleted):
        delete_documents(folder, deleted)
    return folder


def add_documents(writer: ImpactWriter, documents: Documents, sources: bytes | None = None) -> None:
    """Adds documents in their order; none may be bad."""
    lines = json_lines({"id": docid, "vector": impacts} for docid, impacts in documents.items())
    assert writer.add_lines(lines, "documents", sources=sources) + writer.drain() == []


def json_lines(records: Iterable[object]) -> bytes:
    """One record a line."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()


def delete_documents(folder: Path, docids: Iterable[str]) -> None:
    """Deletes documents without merging the segments that hold them."""
    writer, term = _lucene_writer(folder), java_class("org.apache.lucene.index.Term")
    query = java_class("org.apache.lucene.search.TermQuery")
    writer.deleteDocuments(*[query(term("id", docid)) for docid in docids])
    writer.close()


def _lucene_writer(folder: Path) -> Any:
    """Lucene's own writer, which leaves segments as they are. Closing it commits."""
    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    config.setMergePolicy(java_class("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    return java_class("org.apache.lucene.index.IndexWriter")(_directory(folder), config)


def _directory(folder: Path) -> Any:
    return java_class("org.apache.lucene.store.FSDirectory").open(java_class("java.io.File")(str(folder)).toPath())


def join_indexes(folder: Path, *indexes: Path) -> Path:
    """An index with the segments of some indexes."""
    writer = _lucene_writer(folder)
    for index in indexes:
        writer.addIndexes(_directory(index))
    writer.close()
    return folder


def write_stock_index(
    folder: Path, documents: Documents | Iterable[tuple[str, Mapping[str, int]]], *flags: str
) -> Path:
    """What Pyserini's documentation says to run for an impact index of vectors."""
    collection, index = folder / "collection", folder / "index"
    pairs = documents.items() if isinstance(documents, Mapping) else documents
    lines = ({"id": docid, "contents": "", "vector": impacts} for docid, impacts in pairs)
    write_jsonl(collection / "documents.jsonl", *lines)
    options = f"-collection JsonVectorCollection -input {collection} -index {index}".split()
    options += ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-impact", "-pretokenized", *flags]
    java_class("io.anserini.index.IndexCollection").main(options)
    return index


def write_text_index(folder: Path, *flags: str, texts: int = 9) -> Path:
    """An index of the texts' term frequencies, as BM25 of Anserini searches it."""
    write_jsonl(folder / "texts" / "a.jsonl", *({"id": f"d{i}", "contents": f"spy film {i}"} for i in range(texts)))
    options = f"-collection JsonCollection -input {folder / 'texts'} -index {folder / 'index'} -threads 1".split()
    java_class("io.anserini.index.IndexCollection").main([*options, *flags])
    return folder / "index"


def stock_search(index: Path, query: Mapping[str, int], hits: int) -> list[tuple[str, float]]:
    """What ``SimpleImpactSearcher`` finds."""
    weights = java_class("java.util.HashMap")()
    for term, weight in query.items():
        weights.put(term, java_class("java.lang.Integer")(weight))
    searcher = java_class("io.anserini.search.SimpleImpactSearcher")(str(index))
    found = [(hit.docid, hit.score) for hit in searcher.search(weights, hits)]
    searcher.close()
    return found


def pairs(ranking: Ranking) -> list[tuple[str, float]]:
    """Hits as pairs, to be compared bit by bit."""
    return list(zip(ranking.docids, ranking.scores, strict=True))
