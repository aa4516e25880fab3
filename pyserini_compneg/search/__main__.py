"""``python -m pyserini_compneg.search``: searches composed queries and writes a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import count, run_main
from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS, UNIONS, Operators
from pyserini_compneg.search.run_writer import OUTPUT_FORMATS

_EXAMPLE = """examples:
  python -m pyserini_compneg.search --index indexes/films --query 'spy films AND comedies NOT animated films'
  python -m pyserini_compneg.search --index indexes/films --topics topics.tsv --output runs/films.txt --threads 2

Expressions use AND, OR, NOT in capitals, parentheses, and "quotes" around phrases that hold these. AND and NOT bind
alike, from left to right, tighter than OR. Topics are TSV (id and expression) or JSON Lines (`expression`, QUEST's
`original_query`, plain `query` or `text`, or a composed `vector` or `score`).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.query is not None and args.output is not None:
        parser.error("--output takes the run of --topics; the list of --query goes to standard output")
    from pyserini_compneg.errors import QuerySyntaxError
    from pyserini_compneg.expression import Atom, parse
    from pyserini_compneg.search.batch import search_topics
    from pyserini_compneg.search.display import show_hits
    from pyserini_compneg.search.searcher import SignedImpactSearcher

    operators = Operators(args.union, args.intersection, args.difference)
    query = None
    if args.query is not None:
        if args.query != args.query.encode(errors="replace").decode():
            raise QuerySyntaxError("the query is not valid UTF-8 text")
        query = Atom(args.query) if args.plain else parse(args.query)
    with SignedImpactSearcher(args.index, args.encoder, operators) as searcher:
        if query is not None:
            show_hits(sys.stdout, searcher, query, searcher.search(query, args.hits or 10))
        else:
            search_topics(
                searcher,
                args.topics,
                args.output,
                plain=args.plain,
                hits=args.hits or 1000,
                threads=args.threads,
                batch_size=args.batch_size,
                output_format=args.output_format,
                tag=args.tag,
            )


def _parser() -> argparse.ArgumentParser:
    defaults = Operators()
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.search",
        description="Searches set-compositional and negated queries on a Lucene impact index, exactly.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--index", required=True, metavar="DIR", help="index folder, of this package or of Anserini")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topics", metavar="FILE", help="topics, TSV or JSON Lines, or - for standard input")
    what.add_argument("--query", metavar="EXPRESSION", help="one query, answered with a readable list")
    parser.add_argument("--output", metavar="RUN", help="run file (default standard output)")
    parser.add_argument("--hits", type=count, metavar="N", help="hits a query (default 1000, with --query 10)")
    parser.add_argument("--threads", type=count, default=1, metavar="N", help="queries at once (default 1)")
    parser.add_argument("--batch-size", type=count, default=64, metavar="N", help="queries a batch (default 64)")
    parser.add_argument(
        "--encoder", metavar="NAME", help="bm25, or JSON Lines of encoded atoms (default: the index's own encoder)"
    )
    for kind, sign, names in (
        ("union", "OR", UNIONS),
        ("intersection", "AND", INTERSECTIONS),
        ("difference", "NOT", DIFFERENCES),
    ):
        default = getattr(defaults, kind)
        listed = ", ".join(names)
        parser.add_argument(
            f"--{kind}", choices=names, default=default, metavar="NAME", help=f"{sign}: {listed} (default {default})"
        )
    parser.add_argument("--plain", action="store_true", help="queries are plain text; nothing in them is an operator")
    parser.add_argument(
        "--output-format", choices=OUTPUT_FORMATS, default="trec", help="format of the run (default trec)"
    )
    parser.add_argument("--tag", default="compneg", help="name of the run, its last column (default compneg)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
