"""Bring vectors of your own, negative weights included: no model and no text analysis is involved.

python examples/own_vectors.py
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from pyserini_compneg import SignedImpactSearcher, build_index

DOCUMENTS = [
    {"id": "owl", "vector": {"bird": 2.0, "night": 1.5, "song": -0.5}},
    {"id": "nightingale", "vector": {"bird": 2.1, "night": 1.0, "song": 2.0}},
    {"id": "bat", "vector": {"bird": -1.0, "night": 1.8}},
]
ATOMS = [
    {"text": "birds", "vector": {"bird": 1.0}, "encoder": "mine"},
    {"text": "night animals", "vector": {"night": 1.0}, "encoder": "mine"},
    {"text": "singers", "vector": {"song": 1.0}, "encoder": "mine"},
]


def write(path: Path, records: list[dict]) -> Path:
    """Writes records as JSON Lines, and returns the path."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


with TemporaryDirectory() as name:
    folder = Path(name)
    documents, atoms = write(folder / "documents.jsonl", DOCUMENTS), write(folder / "atoms.jsonl", ATOMS)
    build_index(documents, folder / "index", encoder="mine", impact_scale=100, signed=True)
    with SignedImpactSearcher(folder / "index", str(atoms)) as searcher:
        for query in ("birds AND night animals", "night animals NOT singers"):
            print(query, [(hit.docid, hit.score) for hit in searcher.search(query)])
