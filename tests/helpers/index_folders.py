"""What tests of indexing write and look at: collections, what an index holds, and what a build leaves behind."""

from pathlib import Path

from pyserini_compneg.compose import Linear
from pyserini_compneg.lucene import ImpactReader


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def hidden(folder: Path) -> list[str]:
    """The names in a folder that a build may leave behind."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def postings(index: Path, term: str) -> dict[str, float]:
    """The documents that hold a term, best first, with its impacts."""
    with ImpactReader(index) as reader:
        docids, scores = reader.search([Linear({term: 1.0})], 10_000)[0]
    return dict(zip(docids, scores, strict=True))


def impacts(index: Path, docid: str, terms: list[str]) -> dict[str, float]:
    """The impact of each term that a document has."""
    found = {term: postings(index, term) for term in terms}
    return {term: documents[docid] for term, documents in found.items() if docid in documents}
