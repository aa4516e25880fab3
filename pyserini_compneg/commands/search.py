"""``compneg search``: searches composed queries and writes a run."""

from __future__ import annotations

import argparse
import sys

from pyserini_compneg.commands import clusters, flags, query_flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.search.matches import Counting
from pyserini_compneg.search.run_writer import OUTPUT_FORMATS
from pyserini_compneg.support.options import COUNT, NOT_BELOW_0, add_flags
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

_EPILOG = f"""{query_flags.SYNTAX}
examples:
  compneg search --index indexes/sample --query 'spy films AND comedies NOT animated films'
  compneg search --index indexes/sample --topics pyserini_compneg/resources/sample/queries.jsonl \\
      --output run.txt
  compneg search --index indexes/sample --query 'spy films AND comedies' \\
      --rerank cross-encoder/ms-marco-MiniLM-L6-v2
  compneg search --index indexes/films --query 'spy films' --facets genre,year:20
  compneg search --index indexes/films --query '*' --filter genre=western --sort year:desc
  compneg search --index indexes/sample --read model --query 'spy films other than comedies'
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    as_list = args.query is not None and args.output_format is None
    if as_list and args.output is not None:
        parser.error("--output takes a run: name its --output-format, or let the list of --query go to standard output")
    if args.offset is not None and not as_list:
        parser.error("--offset has no place in a run: it is for the list of --query")
    if args.sort is not None and not as_list and args.output_format != "json":
        parser.error(
            "--sort needs the list of --query, or --output-format json: a run of another format is sorted by score"
        )
    if args.remove_query and as_list:
        parser.error("--remove-query is for runs; the list of --query has no topics")
    if args.allow_partial and args.output_format == "msmarco":
        parser.error("--allow-partial needs --output-format trec or json; msmarco cannot say that a ranking is partial")
    if as_list and sys.argv[-len(args.arguments) :] == args.arguments:  # the process runs only this command
        from pyserini_compneg.lucene.gate import expect_one_search

        expect_one_search(args.index)
    from pyserini_compneg.display.hit_list import show_hits
    from pyserini_compneg.topics.topic_runs import search_topics

    counting = query_flags.chosen_counting(args, as_list)
    topics = query_flags.chosen_topics(args)
    reranker = args.rerank[0] if args.rerank else None
    keep_inputs(args.output, *query_flags.inputs(args, args.method[1].get("judged"), reranker))
    method = query_flags.chosen_method(args)
    with query_flags.open_searcher(args) as searcher:
        if as_list:
            with atomic_writer(None) as handle:
                show_hits(
                    handle,
                    searcher,
                    topics[0],
                    args.hits or 10,
                    args.threads,
                    offset=args.offset or 0,
                    method=method,
                    counting=counting,
                    sort=args.sort,
                )
        else:
            search_topics(
                searcher,
                topics,
                args.output,
                hits=args.hits or (1000 if args.query is None else 10),
                threads=args.threads,
                output_format=args.output_format or "trec",
                tag=query_flags.run_tag(args, searcher),
                skip=args.on_error == "skip",
                method=method,
                counting=counting,
                remove_query=args.remove_query,
                sort=args.sort,
            )


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "search",
        "--index DIR (--topics FILE | --query EXPRESSION)",
        "Searches set-compositional and negated queries on a Lucene impact index, exactly. --query prints a readable "
        "list, with scores in the encoder's unit. --topics writes a run.",
        _EPILOG,
    )
    flags.add_index(parser)
    query_flags.add_query_options(parser)
    query_flags.add_method_options(parser)
    flags.add_output(parser, "run file")
    parser.add_argument("--hits", type=COUNT, metavar="N", help="hits of a query (default 1000, for --query 10)")
    text = "show the hits behind the first N; for the list of --query"
    parser.add_argument("--offset", type=NOT_BELOW_0, metavar="N", help=text)
    text = "count the values of filter fields in all matching documents, and show the N most frequent (default 10)"
    order = "order hits by a filter field, ascending, or descending with :desc, in place of their scores"
    parser.add_argument("--sort", metavar="FIELD[:desc]", help=order)
    parser.add_argument("--facets", metavar="FIELD:N,...", help=text)
    flags.add_threads(parser, 1, "queries searched at once; with fewer queries, threads search parts of a large index")
    text = "leave out of each topic's hits the document that has the topic's id, as in ArguAna and Quora"
    parser.add_argument("--remove-query", action="store_true", help=text)
    clusters.add_ray_search(parser, "search an index of index --shards")
    group = flags.advanced(parser)
    group.add_argument(
        "--allow-partial",
        action="store_true",
        help="search without shards that are lost; the tags of such rankings end with -partial (json: a field partial)",
    )
    text = "format of the run (default trec; --query prints a readable list without it)"
    group.add_argument("--output-format", choices=OUTPUT_FORMATS, help=text)
    text = "name of the run, its last column (default: compneg, the encoder, and the flags that change the ranking)"
    group.add_argument("--tag", help=text)
    add_flags(group, Counting)
    query_flags.add_advanced_query_options(group)
    return parser


main = command(_parser, _run)
