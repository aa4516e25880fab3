"""``compneg doc``: shows documents of an index."""

from __future__ import annotations

import argparse
import json
import logging
from typing import TYPE_CHECKING

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

if TYPE_CHECKING:
    from pyserini_compneg.lucene import Reader

_EPILOG = """\
Each document is a JSON object on a line of its own, in the order of the ids. Without --vector it is the source that
index --store-raw keeps. With --vector it has the terms and their impacts, the largest first: a term ¬t has the impact
of a negative weight of t, and a∩b is a pair. An index without stored vectors is searched for the terms, which takes
longer.

examples:
  compneg doc --index indexes/sample Spy_Chasers
  compneg doc --index indexes/sample Spy_Chasers Sky_Murder --vector
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from pyserini_compneg.lucene import ImpactReader, open_reader

    keep_inputs(args.output, args.index)
    with open_reader(args.index) as reader:
        for docid in args.docid:
            if not reader.has(docid):
                raise reader.unknown_document(docid)
        if isinstance(reader, ImpactReader) and reader.manifest is None and (repeated := reader.repeated(args.docid)):
            said = "%s: several documents have the same id, such as %r: the first of each id is shown"
            logging.getLogger(__name__).warning(said, reader.folder, min(repeated))
        shown = _vector if args.vector else _source
        with atomic_writer(args.output) as handle:
            for docid in args.docid:
                handle.write(shown(reader, docid) + "\n")


def _source(reader: Reader, docid: str) -> str:
    """The source in one line. A source that is no JSON object, in an index of another program, is put into one."""
    from pyserini_compneg.support.errors import InputError
    from pyserini_compneg.support.json_objects import stored_object

    raw = reader.raw(docid)
    if raw is None:
        remedy = "index --store-raw stores it; --vector shows the terms"
        raise InputError(f"the source of {docid!r} is not stored", where=reader.folder, remedy=remedy)
    source = stored_object(raw)
    if source is None:
        return json.dumps({"id": docid, "raw": raw}, ensure_ascii=False)
    return raw if "\n" not in raw else json.dumps(source, ensure_ascii=False)


def _vector(reader: Reader, docid: str) -> str:
    vector = reader.vector(docid) or {}
    heaviest_first = dict(sorted(vector.items(), key=lambda one: (-one[1], one[0])))
    return json.dumps({"id": docid, "vector": heaviest_first}, ensure_ascii=False)


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "doc", "--index DIR ID [ID ...]", "Shows documents of an index: their sources, or their terms.", _EPILOG
    )
    flags.add_index(parser)
    parser.add_argument("docid", nargs="+", metavar="ID", help="document id")
    parser.add_argument("--vector", action="store_true", help="show the terms and their impacts instead of the source")
    flags.add_output(parser, "where to write")
    return parser


main = command(_parser, _run)
