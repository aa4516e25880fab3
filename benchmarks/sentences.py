"""The sentences of a collection as documents of their own: many short texts that are real.

    python benchmarks/sentences.py --collection data/filmsets/documents.jsonl.gz --output sentences.jsonl

A sentence ends at ``.``, ``!`` or ``?`` before white space. Its id is that of its document, with its number. Those
below 20 characters are left out: most are initials. They keep the order of the collection, so neighbours are similar.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_jsonl
from pyserini_compneg.support.staging import atomic_writer

END = re.compile(r"(?<=[.!?])\s+")
SHORTEST = 20


def main() -> None:
    """Writes the sentences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, help="JSONL with the texts under 'text'")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    with atomic_writer(args.output) as out:
        for line, record in iter_jsonl(args.collection):
            docid = record.get("id", record.get("docid"))
            if docid is None or "text" not in record:
                raise InputError(f"{args.collection}:{line}: a document needs an id and a `text`")
            for number, sentence in enumerate(END.split(record["text"].strip())):
                if len(sentence) >= SHORTEST:
                    print(json.dumps({"id": f"{docid}.{number}", "contents": sentence}), file=out)


if __name__ == "__main__":
    main()
