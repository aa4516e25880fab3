"""``compneg read``: shows how plain English is parsed. Nothing is searched."""

from __future__ import annotations

import argparse
import json

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command

_EPILOG = """\
W marks a wanted part, S a part that all wanted parts share, X an excluded part. A reading that may be wrong gives the
reason: a word such as 'without' is searched for, some words are in no part, or the model is unsure. In JSON,
`understood` is then false. Readings by llm are not checked in this way.

examples:
  compneg read 'French or Italian comedies, but not musicals'
  compneg read --topics topics.tsv --output-format jsonl --output readings.jsonl
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if bool(args.text) == (args.topics is not None):
        parser.error("give texts, or a file of them as --topics")
    from pyserini_compneg.display.hit_list import decomposition_lines
    from pyserini_compneg.expression import format_expression
    from pyserini_compneg.reading import reader
    from pyserini_compneg.reading.decomposition import to_object
    from pyserini_compneg.support.errors import InputError
    from pyserini_compneg.support.staging import atomic_writer, keep_inputs
    from pyserini_compneg.support.terminal import printable
    from pyserini_compneg.topics.topics import read_text, read_topics

    read = reader(args.read)
    if read is None:
        parser.error(f"--read: {args.read} does not parse plain English; name model, llm, or the folder of a reader")
    keep_inputs(args.output, *([args.topics] if args.topics else []))
    topics = (
        [read_text(str(number), text, "plain") for number, text in enumerate(args.text, 1)]
        if args.topics is None
        else [topic for topic in read_topics(args.topics, "plain") if topic.plain]
    )
    if not topics:
        raise InputError(f"{args.topics}: contains no text; composed queries cannot be parsed")
    with atomic_writer(args.output) as handle:
        for topic, reading in zip(topics, read([topic.text for topic in topics]), strict=True):
            if args.output_format == "jsonl":
                handle.write(json.dumps({"id": topic.qid, **to_object(reading)}, ensure_ascii=False) + "\n")
            else:
                lines = [format_expression(reading.expression), *(f"  {line}" for line in decomposition_lines(reading))]
                handle.writelines(f"{printable(line)}\n" for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "read",
        "(TEXT ... | --topics FILE)",
        "Shows how plain English is parsed: the wanted parts, the excluded parts, and how they are joined.",
        _EPILOG,
    )
    parser.add_argument("text", nargs="*", metavar="TEXT", help="a request in plain English")
    parser.add_argument("--topics", metavar="FILE", help="topics, as for search; every text in the file is parsed")
    text = "by the small model of the package (default), a reader of your own (its folder), or a language model (llm)"
    parser.add_argument("--read", default="model", metavar="{model,llm,FOLDER}", help=text)
    flags.add_output(parser, "file of readings")
    text = "a list for people (default), or JSON Lines"
    parser.add_argument("--output-format", choices=("text", "jsonl"), default="text", help=text)
    return parser


main = command(_parser, _run)
