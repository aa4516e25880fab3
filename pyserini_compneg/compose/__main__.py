"""``python -m pyserini_compneg.compose``: topics in, composed queries out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from pyserini_compneg.cli import run_main
from pyserini_compneg.compose.batch import OUTPUT_FORMATS, Compose, compose_topics
from pyserini_compneg.query_options import SYNTAX, add_query_options, chosen_encoder, chosen_operators, chosen_topics

_EXAMPLE = f"""examples:
  python -m pyserini_compneg.compose --index indexes/films --topics topics.tsv --output composed.jsonl
  python -m pyserini_compneg.search --index indexes/films --topics composed.jsonl --output runs/films.txt
  python -m pyserini_compneg.compose --encoder atoms.jsonl --query 'spy films NOT comedies'

The search of what is composed here gives the run of the topics themselves. Without --index the queries suit an index
of unsigned documents, and nothing checks that --encoder is that of the index; NOT is then as without --decompose, whose
damped asks an index. Stock Anserini searches the tsv form:
  SearchCollection -topicReader TsvString -impact -pretokenized
and with this package's jar beside its own the other form, too:
  SearchCollection -topicReader ComposedQuery -generator ComposedQueryGenerator -impact -pretokenized

{SYNTAX}"""


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
    """What ``search`` composes with, or the same without an index."""
    operators, settings = chosen_operators(args), {"cpt": args.cpt, "weight_scale": args.weight_scale}
    model = chosen_encoder(args)
    if args.index is not None:
        from pyserini_compneg.search import SignedImpactSearcher

        with SignedImpactSearcher(args.index, args.encoder, operators, **settings, **model) as searcher:
            yield searcher.compose
    else:
        from pyserini_compneg.compose import compose_queries
        from pyserini_compneg.encode import query_encoder

        encoder = query_encoder(args.encoder, None, **model)
        yield partial(compose_queries, encoder=encoder, operators=operators, **settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.compose",
        description="Composes set-compositional and negated queries into the vectors and scoring trees that are run.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--index", metavar="DIR", help="index folder, of this package or of Anserini, or the name of a prebuilt index"
    )
    add_query_options(parser)
    parser.add_argument("--output", metavar="FILE", help="file of composed queries (default standard output)")
    parser.add_argument(
        "--output-format",
        choices=OUTPUT_FORMATS,
        default="jsonl",
        help="jsonl for search (default), or tsv of repeated tokens for stock Anserini",
    )
    parser.add_argument("--explain", action="store_true", help="add to each line how --decompose reads the text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
