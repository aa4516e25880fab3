"""``python -m pyserini_compneg.compose``: topics in, composed queries out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from pyserini_compneg.commands.flags import add_index, add_output, advanced, command_parser
from pyserini_compneg.commands.query_flags import (
    SYNTAX,
    add_advanced_query_options,
    add_query_options,
    chosen_model,
    chosen_settings,
    chosen_topics,
)
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.compose.batch import OUTPUT_FORMATS, Compose, compose_topics

_EPILOG = f"""\
The search of the composed queries gives the run of the topics themselves. Without --index, the queries suit an index of
unsigned documents, nothing checks that --encoder is the encoder of the index, and --decompose does not change the
default of NOT. Stock Anserini searches the tsv form:
  SearchCollection -topicReader TsvString -impact -pretokenized
With this package's jar beside its own, it searches the jsonl form, too:
  SearchCollection -topicReader ComposedQuery -generator ComposedQueryGenerator -impact -pretokenized

{SYNTAX}
examples:
  python -m pyserini_compneg.compose --index indexes/films --topics topics.tsv --output composed.jsonl
  python -m pyserini_compneg.search --index indexes/films --topics composed.jsonl --output runs/films.txt
  python -m pyserini_compneg.compose --encoder atoms.jsonl --query 'spy films NOT comedies'
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.index is None and args.encoder is None:
        parser.error("name the --index, whose encoder is used, or an --encoder")
    if args.explain and args.output_format != "jsonl":
        parser.error("--explain needs --output-format jsonl")
    from pyserini_compneg.files import keep_inputs

    topics = chosen_topics(args)
    keep_inputs(args.output, *filter(None, (args.index, args.encoder)))
    with _composer(args) as compose:
        compose_topics(
            topics,
            compose,
            args.output,
            batch_size=args.batch_size,
            output_format=args.output_format,
            explain=args.explain,
        )


@contextmanager
def _composer(args: argparse.Namespace) -> Iterator[Compose]:
    """The ``compose`` of a searcher, or the same without an index."""
    settings, model = chosen_settings(args), chosen_model(args)
    if args.index is not None:
        from pyserini_compneg.search import SignedImpactSearcher

        with SignedImpactSearcher(args.index, args.encoder, **settings, **model) as searcher:
            yield searcher.compose
    else:
        from pyserini_compneg.compose import compose_queries
        from pyserini_compneg.encode import query_encoder

        yield partial(compose_queries, encoder=query_encoder(args.encoder, None, **model), **settings)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "compose",
        "(--index DIR | --encoder NAME) (--topics FILE | --query EXPRESSION)",
        "Composes set-compositional and negated queries into the vectors and scoring trees that are run.",
        _EPILOG,
    )
    add_index(parser, required=False)
    add_query_options(parser)
    add_output(parser, "file of composed queries")
    group = advanced(parser)
    group.add_argument(
        "--output-format",
        choices=OUTPUT_FORMATS,
        default="jsonl",
        help="jsonl for search (default), or tsv of repeated tokens for stock Anserini",
    )
    group.add_argument("--explain", action="store_true", help="add to each line how --decompose reads the text")
    add_advanced_query_options(group)
    return parser
