"""Small indexes of vectors, with the pairs of their documents, or with signed documents."""

import json

from pyserini_compneg.algebra import document_pairs
from pyserini_compneg.lucene import ImpactWriter, Manifest


def with_pairs(documents, top):
    """What an index holds of documents: their terms, and the pairs of their heaviest."""
    return {
        docid: {**impacts, **{term: round(impact) for term, impact in document_pairs(impacts, top).items()}}
        for docid, impacts in documents.items()
    }


def with_complements(documents):
    return {
        docid: {term if weight > 0 else f"¬{term}": abs(weight) for term, weight in vector.items()}
        for docid, vector in documents.items()
    }


def write(folder, stored, **manifest):
    """An index of what the documents are to hold."""
    folder.mkdir(parents=True)
    with ImpactWriter(folder) as writer:
        for docid, impacts in stored.items():
            writer.add(docid, impacts)
        writer.finish()
    Manifest("letters", documents=len(stored), **manifest).write(folder)
    return folder


def write_atoms(path, vectors):
    """A file of encoded atoms."""
    lines = ({"text": text, "vector": vector, "encoder": "letters"} for text, vector in vectors.items())
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path
