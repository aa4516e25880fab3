"""``python -m pyserini_compneg.serve``: serves indexes to programs, to language models, and to people."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.support.arguments import whole_number

if TYPE_CHECKING:
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.serve.served_index import OpenIndex

_EPILOG = """\
Programs find Pyserini's routes, GET /v1/{index}/search and GET /v1/{index}/doc/{docid}, and ours beside them, which
/docs lists. A browser finds a page to search. --mcp adds tools for language models.

The file of --config has the keys of Pyserini's server:

  indexes:
    films: indexes/films
    papers: {path: indexes/papers, encoder: naver/splade-v3}
  api_keys: [a-secret-of-yours]

and of ours limits, what a request may cost (docs/serving.md).

examples:
  python -m pyserini_compneg.serve --index indexes/sample
  python -m pyserini_compneg.serve --index films=indexes/sample --mcp http
  python -m pyserini_compneg.serve --config server.yaml --host 0.0.0.0
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    flags.check_replicas(parser, args)
    if not args.index and args.config is None:
        parser.error("name an index with --index, or a file of indexes with --config")
    from pyserini_compneg.support.errors import InputError, install_hint

    try:
        from pyserini_compneg.serve.server import serve
        from pyserini_compneg.serve.settings import named_indexes, read_server_settings
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: {install_hint('serve')}") from None
    settings = read_server_settings(args.config) if args.config else None
    indexes = {**(settings.indexes if settings else {}), **named_indexes(args.index)}
    if not indexes:
        raise InputError(f"{args.config}: names no index, so there is nothing to serve")
    with _opener(args, [index.path for index in indexes.values()]) as open_index:
        serve(
            indexes,
            settings.api_keys if settings else (),
            host=args.host,
            port=args.port,
            mcp=args.mcp,
            threads=args.threads,
            queue=args.queue,
            seconds=args.timeout,
            limits=settings.limits if settings else None,
            open_index=open_index,
        )


@contextmanager
def _opener(args: argparse.Namespace, folders: Sequence[str]) -> Iterator[OpenIndex]:
    """What opens an index: with ``--ray`` the cluster searches those in shards, and this process the others."""
    from pyserini_compneg.lucene import SHARDS_NAME
    from pyserini_compneg.search import SignedImpactSearcher

    if args.ray is None:
        yield SignedImpactSearcher
        return
    from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher
    from pyserini_compneg.support.errors import InputError

    def is_sharded(folder: str) -> bool:
        return (Path(folder) / SHARDS_NAME).is_file()

    def opened(folder: str, encoder: str | None) -> SignedImpactSearcher:
        if is_sharded(folder):
            return ShardedImpactSearcher(folder, encoder, ray=args.ray, replicas=args.replicas)
        return SignedImpactSearcher(folder, encoder)

    if not any(map(is_sharded, folders)):
        said = f"none of the indexes is in shards ({', '.join(folders)})"
        raise InputError(f"--ray {args.ray}: {said}; build one with index --shards N, or leave out --ray")
    with RayCluster(args.ray):  # before the first index, whose Java must not run yet
        yield opened


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "serve",
        "(--index [NAME=]DIR | --config FILE)",
        "Serves indexes: a REST interface with Pyserini's routes, tools for language models, and a page to search.",
        _EPILOG,
    )
    add = parser.add_argument
    text = "index folder, or name of a prebuilt index, and its name in URLs (default: that of the folder)"
    add("--index", nargs="+", action="extend", default=[], metavar="[NAME=]DIR", help=text)
    add("--config", metavar="FILE", help="YAML file with indexes and API keys")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen at (default 127.0.0.1, this machine)")
    add("--port", type=_port, default=8081, metavar="N", help="port to listen at (default 8081)")
    text = "tools for language models: http adds the route /mcp; stdio serves nothing but them, on standard input"
    add("--mcp", choices=("http", "stdio"), help=text)
    group = flags.advanced(parser)
    flags.add_threads(group, os.cpu_count() or 1)
    text = "searches that may wait; more are refused with status 429 (default 64)"
    group.add_argument("--queue", type=flags.count, default=64, metavar="N", help=text)
    text = "limit for a search, waiting included (default 10)"
    group.add_argument("--timeout", type=flags.positive, default=10.0, metavar="SECONDS", help=text)
    flags.add_ray(group, "search indexes in shards")
    flags.add_replicas(group)
    flags.add_log_format(group)
    return parser


def _port(text: str) -> int:
    if (value := whole_number(text)) is None or not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, got {text}")
    return value


main = command(_parser, _run)
