"""Rounds the weights of a reader to few values, as in the reader of the package, and calibrates its confidence again.

    python tools/round_reader.py READER BASE [--requests FOLDER] [--output FOLDER]

READER is the folder ``model`` that ``compneg train reader`` wrote, and BASE the checkpoint from which it was trained.
The requests are ``train.txt`` and ``dev-*.jsonl`` of ``data/requests``. How much the scores
depend on which weights is measured on some requests, and on sentences of the sample, which have other words.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyserini_compneg.commands.demo import SAMPLE
from pyserini_compneg.lab.training.judged_requests import read_judged
from pyserini_compneg.lab.training.reader_rounding import round_reader
from pyserini_compneg.lab.training.tagged_requests import read_requests
from pyserini_compneg.reading.model_reader import PACKAGED
from pyserini_compneg.support.files import iter_jsonl

REQUEST_OF, SENTENCE_OF = 150, 70
LONGEST = 200


def main() -> int:
    """Writes the folder of the smaller reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", type=Path, metavar="READER")
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("--requests", type=Path, default=Path("data/requests"), metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=PACKAGED, metavar="FOLDER")
    args = parser.parse_args()
    texts = [request.text for request in read_requests(args.requests / "train.txt")]
    judged = [request for path in sorted(args.requests.glob("dev-*.jsonl")) for request in read_judged(path)]
    leads = [record["text"] for _, record in iter_jsonl(SAMPLE / "documents.jsonl.gz")]
    sentences = [sentence for lead in leads if len(sentence := lead.split(". ")[0]) < LONGEST]
    others = sorted([*texts[::REQUEST_OF], *sentences[::SENTENCE_OF]], key=len)
    round_reader(args.reader, args.base, texts, others, judged, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
