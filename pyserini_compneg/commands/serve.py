"""``compneg serve``: serves indexes to programs, to language models, and to people."""

from __future__ import annotations

import argparse

from pyserini_compneg.commands import clusters, flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.support.options import add_flags, given_options

_EPILOG = """\
Programs use Pyserini's routes, GET /v1/{index}/search and GET /v1/{index}/doc/{docid}, and further routes, which /docs
lists. A browser shows a search page. --mcp adds tools for language models.

The file of --config has the keys of Pyserini's server:

  indexes:
    films: indexes/films
    papers: {path: indexes/papers, encoder: naver/splade-v3}
  api_keys: [a-secret-of-yours]

and four more: write_keys, for requests that change indexes; copy_keys, for servers whose indexes follow this one, by
follows: {url, key} of an index (docs/how-to/deploy.md); limits, what a request may cost (docs/how-to/serving.md); and
allowed_origins, whose web pages may ask (docs/how-to/proxy.md).

examples:
  compneg serve --index indexes/sample
  compneg serve --index films=indexes/sample --mcp http
  compneg serve --config server.yaml --host 0.0.0.0
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
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
    follower = next((name for name, index in settings.indexes.items() if index.follows), None)
    if follower and args.ray:
        said = f"index {follower} follows another server, and its copy is on this machine alone"
        raise InputError(said, where="--ray", remedy="leave out --ray, or serve the index without follows")
    options = ServeOptions(**given_options(ServeOptions, args))
    with clusters.opener(args.ray, [index.path for index in settings.indexes.values()]) as open_index:
        serve(settings, options, open_index, args.config)


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "serve",
        "(--index [NAME=]DIR | --config FILE)",
        "Serves indexes: a REST interface with Pyserini's routes, tools for language models, and a page to search.",
        _EPILOG,
    )
    add = parser.add_argument
    text = "index folder, or name of a prebuilt index, and its name in URLs (default: the folder's name)"
    add("--index", nargs="+", action="extend", default=[], metavar="[NAME=]DIR", help=text)
    add("--config", metavar="FILE", help="YAML file with indexes and API keys")
    add_flags(parser, ServeOptions, ("host", "port", "mcp"))
    group = flags.advanced(parser)
    add_flags(group, ServeOptions, ("threads", "queue", "timeout", "log_queries"))
    clusters.add_ray_search(group, "search indexes in shards")
    flags.add_log_format(group)
    return parser


main = command(_parser, _run)
