"""``python -m pyserini_compneg.encode``: encodes a collection with a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import count, run_main
from pyserini_compneg.model_options import add_model_options, chosen_model_options

_EXAMPLE = """examples:
  python -m pyserini_compneg.encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3
  python -m pyserini_compneg.encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3 \\
    --precision int8 --shard-id 0 --shard-num 4
  python -m pyserini_compneg.index --collection vectors --index indexes/splade --encoder naver/splade-v3

index --encoder MODEL does both steps in one, without files in between. Shards are for several machines: each encodes
every N-th line of the collection into a file of its own.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.shard_id >= args.shard_num:
        parser.error(f"--shard-id goes from 0 to --shard-num - 1, so to {args.shard_num - 1}, got {args.shard_id}")
    from pyserini_compneg.encode.corpus import Shard, encode_collection

    place = encode_collection(
        args.collection,
        args.output,
        args.encoder,
        model_options=chosen_model_options(args, batch_size=args.batch_size),
        shard=Shard(args.shard_id, args.shard_num),
        fields=args.fields,
        overwrite=args.overwrite,
        resume=args.resume,
    )
    print(place)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.encode",
        description="Encodes the texts of a collection into sparse vectors, JSON Lines that the index command takes.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--collection", required=True, metavar="PATH", help="JSON Lines file, or folder of such files")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the file of vectors")
    parser.add_argument("--encoder", required=True, metavar="MODEL", help="a folder, or a name of the Hugging Face hub")
    parser.add_argument(
        "--fields", nargs="+", metavar="NAME", help="fields of a text (default contents, or title and text)"
    )
    parser.add_argument("--batch-size", type=count, metavar="N", help="texts a batch, fewer if long (default 32)")
    parser.add_argument("--shard-id", type=_shard_id, default=0, metavar="I", help="which shard, from 0 (default 0)")
    parser.add_argument("--shard-num", type=count, default=1, metavar="N", help="of how many shards (default 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there already")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was killed, if there is one")
    add_model_options(parser, "documents")
    return parser


def _shard_id(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
