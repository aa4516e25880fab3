"""``python -m pyserini_compneg.search``: searches composed queries and writes a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import count, run_main
from pyserini_compneg.files import atomic_writer, keep_inputs
from pyserini_compneg.query_options import (
    SYNTAX,
    add_query_options,
    chosen_decomposer,
    chosen_encoder,
    chosen_operators,
    chosen_query,
)
from pyserini_compneg.search.run_writer import OUTPUT_FORMATS

_EXAMPLE = f"""examples:
  python -m pyserini_compneg.search --index indexes/films --query 'spy films AND comedies NOT animated films'
  python -m pyserini_compneg.search --index indexes/films --topics topics.tsv --output runs/films.txt --threads 2
  python -m pyserini_compneg.search --index indexes/films --decompose cues --query 'spy films other than comedies'

{SYNTAX}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.query is not None and args.output is not None:
        parser.error("--output takes the run of --topics; the list of --query goes to standard output")
    if args.explain and args.query is None and args.output_format != "json":
        parser.error("--explain needs --query or --output-format json")
    from pyserini_compneg.search.batch import search_topics
    from pyserini_compneg.search.display import show_hits
    from pyserini_compneg.search.searcher import SignedImpactSearcher

    query = chosen_query(args)
    decompose = chosen_decomposer(args) if query is None else None
    keep_inputs(args.output, *filter(None, [args.encoder]))
    settings = {"cpt": args.cpt, "weight_scale": args.weight_scale, **chosen_encoder(args)}
    with SignedImpactSearcher(args.index, args.encoder, chosen_operators(args), **settings) as searcher:
        if query is not None:
            with atomic_writer(None) as handle:
                show_hits(handle, searcher, query, args.hits or 10, explain=args.explain, guard=args.guard)
        else:
            search_topics(
                searcher,
                args.topics,
                args.output,
                plain=args.plain,
                decompose=decompose,
                explain=args.explain,
                guard=args.guard,
                hits=args.hits or 1000,
                threads=args.threads,
                batch_size=args.batch_size,
                output_format=args.output_format,
                tag=args.tag,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.search",
        description="Searches set-compositional and negated queries on a Lucene impact index, exactly. "
        "--query prints a readable list, --topics writes a run.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--index",
        required=True,
        metavar="DIR",
        help="index folder, of this package or of Anserini, or the name of a prebuilt index",
    )
    add_query_options(parser)
    parser.add_argument("--output", metavar="RUN", help="run file (default standard output)")
    parser.add_argument("--hits", type=count, metavar="N", help="hits a query (default 1000, with --query 10)")
    parser.add_argument("--threads", type=count, default=1, metavar="N", help="queries at once (default 1)")
    parser.add_argument(
        "--output-format", choices=OUTPUT_FORMATS, default="trec", help="format of the run (default trec)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="say how --decompose reads each text; of topics in the json format"
    )
    parser.add_argument(
        "--guard",
        action="store_true",
        help="of the five best documents for a query's whole wording, and of those without its exclusions, none leaves "
        "the first ten",
    )
    parser.add_argument("--tag", default="compneg", help="name of the run, its last column (default compneg)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
