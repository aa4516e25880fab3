"""The sentences of a collection as documents of their own: many short texts that are real.

    python benchmarks/sentences.py --collection data/filmsets/documents.jsonl.gz --output sentences.jsonl.gz

A sentence ends at ``.``, ``!`` or ``?`` before white space. Its id is that of its document, with its number. Those
below 20 characters are left out: most are initials. They keep the order of the collection, so neighbours are similar.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path

from pyserini_compneg.files import iter_jsonl

END = re.compile(r"(?<=[.!?])\s+")
SHORTEST = 20


def main() -> None:
    """Writes the sentences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, help="JSONL with the texts under 'text'")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    with gzip.open(args.output, "wt") as out:
        for _, record in iter_jsonl(args.collection):
            docid = record.get("id", record.get("docid"))
            for number, sentence in enumerate(END.split(record["text"].strip())):
                if len(sentence) >= SHORTEST:
                    print(json.dumps({"id": f"{docid}.{number}", "contents": sentence}), file=out)


if __name__ == "__main__":
    main()
