"""A large collection mixed from real vectors, to measure at scale.

    python benchmarks/mixed.py --vectors VECTORS --documents 1000000 --output mixed

VECTORS is what the command ``encode`` writes. Each document has three quarters of the terms of one vector and a third
of those of a vector of similar content, with impacts that vary by 15 %. So documents have neighbours, as real ones do,
and terms that occur together. "Similar" is near in the order of ``index --reorder``. Documents come in random order.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from pathlib import Path

import numpy as np

from pyserini_compneg.index import ImpactIndexer
from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.files import iter_jsonl

NEAR = 300
KEPT, ADDED, VARIATION = 0.75, 0.35, 0.15
SCALE = 100


def ids_in_order(index: Path) -> list[str]:
    """The ids of the documents of an index of one segment, in its order."""
    directory = java_class("org.apache.lucene.store.FSDirectory").open(
        java_class("java.nio.file.Paths").get(str(index))
    )
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    try:
        fields = reader.storedFields()
        return [fields.document(number).get("id") for number in range(reader.maxDoc())]
    finally:
        reader.close()


def main() -> None:
    """Writes the collection."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    vectors = {
        record["id"]: record["vector"]
        for path in sorted(args.vectors.glob("*.jsonl.gz"))
        for _, record in iter_jsonl(path)
    }
    with tempfile.TemporaryDirectory() as folder:
        with ImpactIndexer(Path(folder) / "index", "mixed", impact_scale=SCALE, reorder=True) as indexer:
            for docid, vector in vectors.items():
                indexer.add(docid, vector)
        ordered = [vectors[docid] for docid in ids_in_order(Path(folder) / "index")]
    parts = [(list(vector), np.fromiter(vector.values(), float)) for vector in ordered]
    draw = np.random.default_rng(args.seed)
    args.output.mkdir(parents=True)
    with gzip.open(args.output / "mixed.jsonl.gz", "wt", compresslevel=1) as out:
        for number in range(args.documents):
            one = draw.integers(len(parts))
            other = np.clip(one + draw.integers(-NEAR, NEAR + 1), 0, len(parts) - 1)
            mixed: dict[str, float] = {}
            for place, share in ((one, KEPT), (other, ADDED)):
                terms, weights = parts[place]
                chosen = np.flatnonzero(draw.random(len(terms)) < share)
                varied = weights[chosen] * np.exp(draw.normal(0, VARIATION, len(chosen)))
                for term, weight in zip((terms[i] for i in chosen), varied.round(3).tolist(), strict=True):
                    mixed[term] = max(weight, mixed.get(term, 0.0))
            print(json.dumps({"id": f"d{number:09}", "vector": mixed}), file=out)


if __name__ == "__main__":
    main()
