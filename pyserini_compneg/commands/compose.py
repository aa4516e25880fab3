"""``compneg compose``: composes topics into queries that an index can run."""

from __future__ import annotations

import argparse
from functools import partial

from pyserini_compneg.commands import flags, query_flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.support.staging import keep_inputs
from pyserini_compneg.topics.batch import OUTPUT_FORMATS, compose_topics

_EPILOG = f"""\
Searching the composed queries gives the same ranking as searching the topics. Without --index, the queries suit an
index of unsigned documents, nothing checks that --encoder is the encoder of the index, and --read model does not change
the default of NOT. Stock Anserini searches the tsv form:
  SearchCollection -topicReader TsvString -impact -pretokenized
With this package's jar beside its own, it searches the jsonl form, too:
  SearchCollection -topicReader ComposedQuery -generator ComposedQueryGenerator -impact -pretokenized

{query_flags.SYNTAX}
examples:
  compneg compose --index indexes/sample --topics pyserini_compneg/resources/sample/queries.jsonl \\
      --output composed.jsonl
  compneg search --index indexes/sample --topics composed.jsonl --output run.txt
  compneg compose --encoder atoms.jsonl --query 'spy films NOT comedies'
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.index is None and args.encoder is None:
        parser.error("name the --index, whose encoder is used, or an --encoder")
    if args.min_idf is not None and args.index is None:
        parser.error("--min-idf needs --index, which says how many documents have a term")
    topics = query_flags.chosen_topics(args)
    keep_inputs(args.output, *query_flags.inputs(args))
    compose_file = partial(compose_topics, output_format=args.output_format, skip=args.on_error == "skip")
    if args.index is not None:
        with query_flags.open_searcher(args) as searcher:
            compose_file(topics, searcher.compose, args.output)
        return
    from pyserini_compneg.compose import compose_queries
    from pyserini_compneg.encode import query_encoder

    chosen = query_flags.chosen_settings(args)
    options = chosen.model_options, chosen.ablation, chosen.model_weight, chosen.language, chosen.latent_weight
    encoder = query_encoder(args.encoder, None, *options)
    compose = partial(
        compose_queries,
        encoder=encoder,
        operators=chosen.operators,
        cpt=chosen.cpt,
        weight_scale=chosen.weight_scale,
    )
    compose_file(topics, compose, args.output)


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "compose",
        "(--index DIR | --encoder NAME) (--topics FILE | --query EXPRESSION)",
        "Composes set-compositional and negated queries into the vectors and scoring trees that are run.",
        _EPILOG,
    )
    flags.add_index(parser, required=False)
    query_flags.add_query_options(parser)
    flags.add_output(parser, "file of composed queries")
    group = flags.advanced(parser)
    group.add_argument(
        "--output-format",
        choices=OUTPUT_FORMATS,
        default="jsonl",
        help="jsonl for search (default), or tsv of repeated tokens for stock Anserini",
    )
    query_flags.add_advanced_query_options(group)
    return parser


main = command(_parser, _run)
