"""``python -m pyserini_compneg.index``: builds an impact index."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import count, positive, run_main
from pyserini_compneg.index.indexer import MOST_PAIR_TERMS
from pyserini_compneg.model_options import add_model_options, chosen_model_options

_EXAMPLE = """examples:
  python -m pyserini_compneg.index --collection documents.jsonl.gz --index indexes/films --store-raw
  python -m pyserini_compneg.index --collection documents.jsonl.gz --index indexes/splade --encoder naver/splade-v3
  python -m pyserini_compneg.index --collection vectors/ --index indexes/other --encoder my-model --impact-scale 51.2

A collection is JSON Lines, plain or gzip, or a folder of such files. A line has an id in `id`, `_id` or `docid`, and
its text in `contents` or in `title` and `text`, or the `vector` {term: weight} that a model made of it.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    from pyserini_compneg.index import build_index

    manifest = build_index(
        args.collection,
        args.index,
        args.encoder,
        impact_scale=args.impact_scale,
        model_options=chosen_model_options(args),
        signed=args.signed,
        pair_terms=args.pair_terms,
        threads=args.threads,
        store_raw=args.store_raw,
        store_docvectors=args.store_docvectors,
        optimize=args.optimize,
        overwrite=args.overwrite,
        resume=args.resume,
        on_error=args.on_error,
    )
    empty = f" ({manifest.empty_documents} without a term)" if manifest.empty_documents else ""
    print(f"{args.index}: {manifest.documents} documents{empty}, encoder {manifest.encoder}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.index",
        description="Builds a Lucene impact index that stock Pyserini and Anserini can read too.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--collection", required=True, metavar="PATH", help="JSON Lines file, or folder of such files")
    parser.add_argument("--index", required=True, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--encoder",
        default="bm25",
        metavar="NAME",
        help="bm25 (default) or a model, a folder or a name of the Hugging Face hub, encodes the texts; for documents "
        "that bring vectors, the name of what made them",
    )
    parser.add_argument(
        "--impact-scale",
        type=positive,
        metavar="X",
        help="impact = round(weight * X); default 256 for bm25, 51.2 for models, and 1 for vectors, then whole numbers",
    )
    parser.add_argument(
        "--pair-terms",
        type=_pair_terms,
        default=0,
        metavar="N",
        help="also index the pairs of each document's N heaviest terms for search --cpt materialised",
    )
    parser.add_argument("--signed", action="store_true", help="take negative weights, under complement terms")
    parser.add_argument("--threads", type=count, metavar="N", help="threads (default one a processor)")
    parser.add_argument("--store-raw", action="store_true", help="keep each document's line, to be shown with its hit")
    parser.add_argument("--store-docvectors", action="store_true", help="keep each document's terms and impacts")
    parser.add_argument("--optimize", action="store_true", help="merge the index into one segment")
    parser.add_argument("--overwrite", action="store_true", help="replace an index that is there already")
    parser.add_argument("--resume", action="store_true", help="go on with a build that was killed, if there is one")
    parser.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a bad document ends the build (default), or is skipped and listed in the index",
    )
    add_model_options(parser, "documents")
    return parser


def _pair_terms(text: str) -> int:
    if not text.isdecimal() or not (int(text) == 0 or 2 <= int(text) <= MOST_PAIR_TERMS):
        raise argparse.ArgumentTypeError(f"must be 0, or from 2 to {MOST_PAIR_TERMS}, got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
