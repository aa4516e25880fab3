"""``python -m pyserini_compneg.serve``: serves indexes to programs, to language models, and to people."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.support.options import add_flags, given_options

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
        from pyserini_compneg.serve.settings import ServerSettings, named_indexes, read_server_settings
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: {install_hint('serve')}") from None
    settings = read_server_settings(args.config) if args.config else ServerSettings(indexes={})
    settings = settings.model_copy(update={"indexes": {**settings.indexes, **named_indexes(args.index)}})
    if not settings.indexes:
        raise InputError("names no index, so there is nothing to serve", where=args.config)
    options = ServeOptions(**given_options(ServeOptions, args))
    with _opener(args, [index.path for index in settings.indexes.values()]) as open_index:
        serve(settings, options, open_index)


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
        remedy = "build one with index --shards N, or leave out --ray"
        raise InputError(said, where=f"--ray {args.ray}", remedy=remedy)
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
    add_flags(parser, ServeOptions, ("host", "port", "mcp"))
    group = flags.advanced(parser)
    add_flags(group, ServeOptions, ("threads", "queue", "timeout"))
    flags.add_ray(group, "search indexes in shards")
    flags.add_replicas(group)
    flags.add_log_format(group)
    return parser


main = command(_parser, _run)
