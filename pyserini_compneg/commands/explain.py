"""``compneg explain``: the composed form of a query, and the reasons for the ranks of documents."""

from __future__ import annotations

import argparse
import json

from pyserini_compneg.baselines import LateInteraction, PartMatches, check_pair_scorer
from pyserini_compneg.commands import flags, query_flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.options import COUNT
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

_EPILOG = f"""\
Without --docid the query is shown: its tree with the heaviest terms of each atom, and the composed terms. With --docid
each document is shown after the tree: what each term adds to its score or takes from it. The term a∩b counts where
both terms occur. Two documents are shown side by side, with the terms of the largest difference first. Weights and
scores are in the unit of the encoder; json has scores as runs have them.

{query_flags.SYNTAX}
examples:
  compneg explain --index indexes/sample --query 'spy films NOT comedies'
  compneg explain --index indexes/sample --query 'spy films NOT comedies' --docid Spy_Chasers
  compneg explain --index indexes/sample --topics topics.tsv --qid 7
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if (args.topics is None) != (args.qid is None):
        parser.error("--topics needs --qid, the topic to explain" if args.qid is None else "--qid needs --topics")
    if args.rerank and not args.docid:
        parser.error("--rerank needs --docid, the documents whose tokens are shown")
    from pyserini_compneg.baselines import token_matches
    from pyserini_compneg.display.drawing import documents_drawing, draw, matches_drawing, query_drawing
    from pyserini_compneg.display.hit_list import decomposition_lines, heading
    from pyserini_compneg.display.query_explanation import explain_query, to_object
    from pyserini_compneg.reading.decomposition import to_object as decomposition_object
    from pyserini_compneg.topics.batch import topic_query

    (topic,) = query_flags.chosen_topics(args, args.qid)
    keep_inputs(args.output, *query_flags.inputs(args, args.rerank))
    model = _late_interaction(args.rerank) if args.rerank else None
    with (
        query_flags.open_searcher(args) as searcher,
        atomic_writer(args.output, colours=args.output_format == "text") as handle,
    ):
        explained = explain_query(searcher, topic_query(topic), args.docid, topic.text, topic.filter)
        titles = {document.docid: document.title for document in explained.documents}
        matches = token_matches(searcher, model, topic_query(topic), list(titles)) if model else {}
        if args.output_format == "json":
            read = {"decomposition": decomposition_object(topic.decomposition)} if topic.decomposition else {}
            read |= {"matches": {docid: list(map(_object, parts)) for docid, parts in matches.items()}} if model else {}
            handle.write(json.dumps({**to_object(explained), **read}, ensure_ascii=False, indent=2) + "\n")
            return
        reading = [f"  {line}" for line in decomposition_lines(topic.decomposition)] if topic.decomposition else []
        drawing = (documents_drawing if explained.documents else query_drawing)(explained, args.terms)
        drawing += matches_drawing(titles, matches)
        draw(handle, [heading(explained.text, searcher, topic.filter), *reading, "", *drawing])


def _late_interaction(name: str) -> LateInteraction:
    if check_pair_scorer(name) != "late-interaction":
        what, remedy = "has no vectors of tokens", "explain takes a model of late interaction, such as ColBERT"
        raise EncodingError(what, where=name, remedy=remedy)
    return LateInteraction(name)


def _object(part: PartMatches) -> dict[str, object]:
    return {**part._asdict(), "tokens": [match._asdict() for match in part.tokens]}


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "explain",
        "--index DIR (--query EXPRESSION | --topics FILE --qid ID)",
        "Shows the composed form of a query, and why documents have their ranks.",
        _EPILOG,
    )
    flags.add_index(parser)
    query_flags.add_query_options(parser)
    parser.add_argument("--qid", metavar="ID", help="id of the topic to explain")
    parser.add_argument(
        "--docid", nargs="+", action="extend", default=[], metavar="ID", help="documents whose scores are explained"
    )
    text = "show which token of --docid each token of the query met, by a model of late interaction, such as ColBERT"
    parser.add_argument("--rerank", metavar="MODEL", help=text)
    group = flags.advanced(parser)
    text = "terms shown, the heaviest (default 20); json has all terms"
    group.add_argument("--terms", type=COUNT, default=20, metavar="N", help=text)
    flags.add_output(group, "where to write")
    group.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="text (default), or json with everything"
    )
    query_flags.add_advanced_query_options(group, batches=False)
    return parser


main = command(_parser, _run)
