"""``compneg update``: inserts, replaces and deletes documents of an index."""

from __future__ import annotations

import argparse
import logging

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command, say
from pyserini_compneg.encode.models import ModelOptions
from pyserini_compneg.expression.filters import checked_fields
from pyserini_compneg.lucene import IndexSettings, Manifest
from pyserini_compneg.lucene.index_settings import SCALE
from pyserini_compneg.support.options import add_flags

_EPILOG = """\
The documents have the form that the command index takes. A document replaces the document with its id. Documents that
have not changed are skipped, so the collection may be the whole collection as it is now. All settings are those of the
index. Searches find the old index until the update is complete; a killed update can be given again.

examples:
  compneg update --index indexes/films --collection changes.jsonl.gz
  compneg update --index indexes/films --delete ids.txt
  compneg update --index indexes/films --collection all.jsonl.gz --delete-missing
  compneg update --index indexes/films --optimize
  compneg update --index indexes/stock --adopt --encoder naver/splade-v3
  compneg update --index indexes/stock --adopt --encoder naver/splade-v3 --filter-fields year,genre
"""
_logger = logging.getLogger(__name__)


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from pyserini_compneg.index import update_index
    from pyserini_compneg.index.update import REBUILD_FROM

    if args.collection is None and args.delete is None and not (args.optimize or args.adopt):
        parser.error("--collection or --delete is needed, or both, or --optimize or --adopt")
    if args.delete_missing and args.collection is None:
        parser.error("--delete-missing needs --collection, all documents of the index from now on")
    if args.adopt and not args.encoder:
        parser.error("--adopt needs --encoder MODEL, the model that made the vectors of the index")
    if args.impact_scale and not args.adopt:
        parser.error("--impact-scale is for --adopt; other indexes know their scale")
    if args.filter_fields and not args.adopt:
        parser.error("--filter-fields is for --adopt; other indexes keep the fields of their build")
    fields = checked_fields(args.filter_fields.split(",")) if args.filter_fields else ()
    adopted = Manifest(args.encoder or "", impact_scale=args.impact_scale or 1.0, filter_fields=fields)
    adopt = adopted if args.adopt else None
    report = update_index(
        args.index,
        args.collection,
        args.delete,
        delete_missing=args.delete_missing,
        optimize=args.optimize,
        encoder=None if adopt else args.encoder,
        adopt=adopt,
        collection_format=args.collection_format,
        model_options=flags.chosen_model_options(args),
        threads=args.threads,
        upgrade=args.upgrade,
    )
    if report.not_found:
        ids = "1 id to delete was" if report.not_found == 1 else f"{report.not_found} ids to delete were"
        _logger.warning("%s: %s not in the index", args.index, ids)
    if report.changes and report.drift and abs(report.drift) >= 0.01:
        advice = (
            "a rebuild may pay" if abs(report.drift) >= REBUILD_FROM else f"a rebuild pays from {REBUILD_FROM:.0%} on"
        )
        guess = f"by an estimated {report.drift:+.0%} since the build, as if what was replaced had average length"
        say(f"{args.index}: the average document length has changed {guess}; {advice}")
    counted = "passages" if report.manifest.passages else "documents"
    done = f"{report.inserted:,} inserted, {report.replaced:,} replaced, {report.unchanged:,} unchanged"
    say(f"{args.index}: {done}, {report.deleted:,} deleted, {report.manifest.documents:,} {counted} now")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "update",
        "--index DIR [--collection PATH] [--delete FILE] [--delete-missing] [--optimize] [--adopt]",
        "Inserts, replaces and deletes documents of an index. Searches find the old index or the new one.",
        _EPILOG,
    )
    parser.add_argument("--index", required=True, metavar="DIR", help="folder of the index")
    flags.add_collection(parser, required=False)
    parser.add_argument("--delete", metavar="FILE", help="file of ids to delete, one on a line; - is standard input")
    text = "delete the documents that are not in the collection, which is the whole collection as it is now"
    parser.add_argument("--delete-missing", action="store_true", help=text)
    text = "merge the index, and order its documents again if they were ordered; useful after many updates"
    parser.add_argument("--optimize", action="store_true", help=text)
    text = "take an impact index that stock Anserini built for one of --encoder; its documents then come as vectors"
    parser.add_argument("--adopt", action="store_true", help=text)
    add_flags(parser, IndexSettings, ("threads",))
    group = flags.advanced(parser)
    text = "where the model of the index is now, if it was moved; with --adopt, the model that made its vectors"
    group.add_argument("--encoder", metavar="NAME", help=text)
    text = "with --adopt, impact = round(weight * X) for vectors to come (default 1: they have whole numbers)"
    group.add_argument("--impact-scale", type=SCALE, metavar="X", help=text)
    text = "with --adopt, fields of the stored sources to filter by; all documents are written again"
    group.add_argument("--filter-fields", metavar="NAME,NAME", help=text)
    text = "also update an index that Lucene 9 wrote, with Lucene 10, after which Lucene 9 cannot read it any more"
    group.add_argument("--upgrade", action="store_true", help=text)
    add_flags(group, ModelOptions, ("backend", "device"))
    flags.add_log_format(group)
    return parser


main = command(_parser, _run)
