"""``python -m pyserini_compneg.explain``: what a query became, and why documents stand where they stand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from pyserini_compneg.commands.flags import add_index, add_output, advanced, command_parser, count
from pyserini_compneg.commands.query_flags import (
    SYNTAX,
    add_advanced_query_options,
    add_query_options,
    chosen_decomposer,
    chosen_model,
    chosen_query,
    chosen_settings,
)
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.files import atomic_writer, keep_inputs

if TYPE_CHECKING:
    from pyserini_compneg.datasets.topics import Topic
    from pyserini_compneg.decompose import Decomposition
    from pyserini_compneg.search.query_explanation import ExplainedQuery

_EPILOG = f"""\
Without --docid the query is shown: its tree with the heaviest terms of each atom, and the composed terms, with weights
in the unit of the encoder. With --docid each document is shown: what each term adds to its score or takes from it. The
term a∩b means that both terms are there. Two documents are shown side by side; the terms that
decide between them come first.

{SYNTAX}
examples:
  python -m pyserini_compneg.explain --index indexes/films --query 'spy films NOT comedies'
  python -m pyserini_compneg.explain --index indexes/films --topics topics.tsv --qid 7 --docid Sky_Murder Pancho_Villa
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.topics is None) != (args.qid is None):
        parser.error("--topics needs --qid, the topic to explain" if args.qid is None else "--qid needs --topics")
    from pyserini_compneg.compose.batch import topic_query
    from pyserini_compneg.decompose import to_object as decomposition_object
    from pyserini_compneg.search.query_explanation import explain_query, to_object
    from pyserini_compneg.search.searcher import SignedImpactSearcher

    topic = chosen_query(args) or _topic(args)
    keep_inputs(args.output, args.index, *filter(None, [args.topics, args.encoder]))
    with (
        SignedImpactSearcher(args.index, args.encoder, **chosen_settings(args), **chosen_model(args)) as searcher,
        atomic_writer(args.output) as handle,
    ):
        explained = explain_query(searcher, topic_query(topic), args.docid, topic.text)
        if args.output_format == "json":
            read = {"decomposition": decomposition_object(topic.decomposition)} if topic.decomposition else {}
            handle.write(json.dumps({**to_object(explained), **read}, ensure_ascii=False, indent=2) + "\n")
        else:
            _show(handle, explained, topic.decomposition, args.terms)


def _topic(args: argparse.Namespace) -> Topic:
    """The topic that ``--qid`` names; only its text is decomposed."""
    from pyserini_compneg.datasets.topics import decompose_topics, read_topics

    topics = {topic.qid: topic for topic in read_topics(args.topics, args.plain)}
    if args.qid not in topics:
        known = ", ".join(list(topics)[:3]) + (", ..." if len(topics) > 3 else "")
        raise CollectionError(f"{args.topics}: no query {args.qid!r} among its {len(topics)}: {known}")
    decompose = chosen_decomposer(args)
    return topics[args.qid] if decompose is None else decompose_topics([topics[args.qid]], decompose)[0]


def _show(handle: TextIO, explained: ExplainedQuery, decomposition: Decomposition | None, most: int) -> None:
    from pyserini_compneg.search.display import decomposition_lines, printable
    from pyserini_compneg.search.drawing import documents_drawing, draw, query_drawing

    read = [f"  {line}" for line in decomposition_lines(decomposition)] if decomposition else []
    documents = explained.documents
    drawing = documents_drawing(documents, most) if documents else query_drawing(explained, most)
    draw(handle, [printable(explained.text), *read, "", *drawing])


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "explain",
        "--index DIR (--query EXPRESSION | --topics FILE --qid ID)",
        "Shows what a query became, and why documents stand where they stand in its ranking.",
        _EPILOG,
    )
    add_index(parser)
    add_query_options(parser)
    parser.add_argument("--qid", metavar="ID", help="id of the topic to explain")
    parser.add_argument(
        "--docid", nargs="+", action="extend", default=[], metavar="ID", help="documents whose scores are explained"
    )
    group = advanced(parser)
    text = "terms shown, the heaviest (default 20); json has all terms"
    group.add_argument("--terms", type=count, default=20, metavar="N", help=text)
    add_output(group, "where to write")
    group.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="text (default), or json with everything"
    )
    add_advanced_query_options(group, batches=False)
    return parser
