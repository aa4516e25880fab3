"""``compneg encode``: encodes a collection with a model."""

from __future__ import annotations

import argparse

from pyserini_compneg.commands import clusters, flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.encode.corpus import EncodeSettings
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.support.options import COUNT, add_flags, given_options

_EPILOG = """\
Shards are for several machines: each shard is every N-th line of the collection, in a file of its own. --shards N
encodes all of them, with --ray on the machines of a cluster; --shard-id encodes one. With one machine, index --encoder
MODEL does both steps in one.

examples:
  compneg encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3
  compneg encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3 \\
    --precision int8 --shard-id 0 --shard-num 4
  compneg encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3 \\
    --shards 64 --ray head:6379 --device cuda
  compneg encode --collection documents.jsonl.gz --output vectors --encoder naver/splade-v3 --update
  compneg encode --collection books.jsonl.gz --output books --encoder naver/splade-v3 \\
    --passages words=200,overlap=50
  compneg index --collection vectors --index indexes/splade --encoder naver/splade-v3
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.ray is not None and args.shards is None:
        parser.error("--ray needs --shards N, the parts that its machines encode")
    if args.shards is not None and (args.shard_num or 1) > 1:
        parser.error("--shards encodes all shards, but --shard-id and --shard-num encode one; give either")
    if args.update and (args.resume or args.overwrite):
        parser.error("--update replaces the file and continues what it began; leave out --resume and --overwrite")
    from pyserini_compneg.encode.corpus import encode_collection
    from pyserini_compneg.encode.sharded import encode_in_shards

    model_options = flags.chosen_model_options(args, batch_size=args.batch_size)
    options = given_options(EncodeSettings, args) | {"existing": flags.chosen_existing(args)}
    settings = EncodeSettings(**options, model_options=model_options)
    if args.shards is None:
        print(encode_collection(args.collection, args.output, args.encoder, settings))
        return
    with clusters.runner(args.ray, gpus=int(args.device == "cuda")) as run:
        paths = encode_in_shards(args.collection, args.output, args.encoder, args.shards, run=run, settings=settings)
    print(*paths, sep="\n")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "encode",
        "--collection PATH --output DIR --encoder MODEL",
        "Encodes the texts of a collection into sparse vectors, JSON Lines that the index command takes.",
        _EPILOG,
    )
    flags.add_collection(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the file of vectors")
    parser.add_argument("--encoder", required=True, metavar="MODEL", help=f"{flags.MODEL}, or bm25+MODEL")
    add_flags(parser, EncodeSettings, {"shard_id", "shard_num", "language"})
    flags.add_passages(parser)
    parser.add_argument("--shards", type=COUNT, metavar="N", help="encode all of N shards")
    clusters.add_ray(parser, "encode the shards")
    parser.add_argument("--resume", action="store_true", help="continue a run that was killed")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    text = "replace an existing file, and take from it the vectors of documents whose texts have not changed"
    parser.add_argument("--update", action="store_true", help=text)
    group = flags.advanced(parser)
    text = "fields that make up the text (default contents, or title and text)"
    group.add_argument("--fields", nargs="+", metavar="NAME", help=text)
    add_flags(group, ModelOptions, {"batch_size"})
    flags.add_log_format(group)
    flags.add_model_options(group)
    return parser


main = command(_parser, _run)
