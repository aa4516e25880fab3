"""Small indexes of vectors, with the pairs of their documents, or with signed documents."""

import json

from pyserini_compneg.algebra import document_pairs
from pyserini_compneg.index import ImpactIndexer


def with_pairs(documents, top):
    """What an index holds of documents: their terms, and the pairs of their heaviest."""
    return {
        docid: {**impacts, **{term: round(impact) for term, impact in document_pairs(impacts, top).items()}}
        for docid, impacts in documents.items()
    }


def write(folder, documents, **options):
    """An index of the documents."""
    with ImpactIndexer(folder, "letters", **options) as indexer:
        for docid, vector in documents.items():
            indexer.add(docid, vector)
    return folder


def write_atoms(path, vectors):
    """A file of encoded atoms."""
    lines = ({"text": text, "vector": vector, "encoder": "letters"} for text, vector in vectors.items())
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path
