"""``compneg index``: builds an impact index."""

from __future__ import annotations

import argparse
from typing import Any

from pyserini_compneg.commands import clusters, flags
from pyserini_compneg.commands.running import command, say
from pyserini_compneg.lucene import LANGUAGES, IndexSettings
from pyserini_compneg.support.options import COUNT, FINITE, add_flags, given_options

_EPILOG = """\
A collection is JSON Lines, a JSON list, CSV or TSV with a header line, or TSV of an id and a text, plain, gzip or xz,
or parquet, or a folder of such files. Of a folder with queries and judgements only the corpus is read. A document has
an id in `id`, `_id` or `docid`. It has its text in `contents`, or in `title` and `text`; or it has a `vector`
{term: weight}, which a model made of its text.

examples:
  compneg index --collection pyserini_compneg/resources/sample/documents.jsonl.gz \\
      --index indexes/films --store-raw
  compneg index --collection documents.jsonl.gz --index indexes/splade --encoder naver/splade-v3
  compneg index --collection vectors/ --index indexes/other --encoder my-model --impact-scale 51.2
  compneg index --collection vectors/ --index indexes/large --encoder my-model --shards 64 \\
      --ray head:6379
  compneg index --collection books.jsonl.gz --index indexes/books --passages words=200,overlap=50
  compneg index --verify indexes/films
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from pyserini_compneg.index import asked_pairs, build_index, build_sharded_index, verify_index
    from pyserini_compneg.lucene import open_reader

    if args.verify is not None:
        if args.collection is not None or args.index is not None:
            parser.error("--verify does not build an index; leave out --collection and --index")
        documents = verify_index(args.verify, args.threads)
        with open_reader(args.verify) as reader:
            known = "the ids and the manifest" if reader.manifest else "the ids, without a manifest,"
            counted = "passages" if reader.manifest and reader.manifest.passages else "documents"
        say(f"{args.verify}: whole: the files, {known} of {documents} {counted}")
        return
    if args.collection is None or args.index is None:
        parser.error("--collection and --index are needed, or --verify")
    if args.ray is not None and args.shards is None:
        parser.error("--ray needs --shards N, the indexes that its machines build")
    options: dict[str, Any] = {
        "model_options": flags.chosen_model_options(args),
        "bm25": {name: getattr(args, name) for name in ("k1", "b", "language") if getattr(args, name) is not None},
        "collection_format": args.collection_format,
        "existing": flags.chosen_existing(args),
        **given_options(IndexSettings, args),
    }
    if args.pairs_from is not None and args.pair_terms:
        parser.error("--pairs-from and --pair-terms choose the pairs in two ways; leave one out")
    if args.pairs_from is not None:
        from pyserini_compneg.topics import read_topics, topic_query

        queries = list(map(topic_query, read_topics(args.pairs_from)))
        options["pairs"] = asked_pairs(
            queries,
            args.collection,
            args.encoder or "bm25",
            model_options=options["model_options"],
            source=args.pairs_from,
        )
    if args.shards is None:
        manifest = build_index(args.collection, args.index, args.encoder, **options)
    else:
        cpus = args.threads or 1
        options["threads"] = cpus if args.ray else args.threads
        with clusters.runner(args.ray, cpus, int(args.device == "cuda")) as run:
            manifest = build_sharded_index(args.collection, args.index, args.shards, args.encoder, run=run, **options)
    counted = "passages" if manifest.passages else "documents"
    empty = f" ({manifest.empty_documents} without a term)" if manifest.empty_documents else ""
    say(f"{args.index}: {manifest.documents} {counted}{empty}, encoder {manifest.encoder}")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "index",
        "(--collection PATH --index DIR | --verify DIR)",
        "Builds a Lucene impact index. Stock Pyserini and Anserini can read it, too.",
        _EPILOG,
    )
    flags.add_collection(parser, required=False)
    parser.add_argument("--index", metavar="DIR", help="folder to create")
    parser.add_argument("--verify", metavar="DIR", help="check a finished index completely, and build nothing")
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help=f"encodes the texts: bm25 (default), a model ({flags.MODEL}), or bm25+MODEL; for documents with "
        "vectors, the name of the model that made the vectors, or bm25 for the texts beside them",
    )
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        metavar="LANGUAGE",
        help=f"language of the texts for bm25, as Anserini names it: {', '.join(LANGUAGES)} (default en)",
    )
    add_flags(parser, IndexSettings, ("threads", "store_raw"))
    parser.add_argument(
        "--filter-fields",
        type=lambda text: [name.strip() for name in text.split(",")],
        action="extend",
        metavar="NAME,NAME",
        help="fields of the documents that search --filter can filter by: texts, numbers, or lists of these",
    )
    flags.add_passages(parser)
    text = "split the documents into N indexes, which are searched as one index (default: 1)"
    parser.add_argument("--shards", type=COUNT, metavar="N", help=text)
    clusters.add_ray(parser, "build the shards")
    parser.add_argument("--resume", action="store_true", help="continue a build that was killed")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing index")
    text = "replace an index; continue a killed build if nothing has changed since, else start again"
    parser.add_argument("--replace", action="store_true", help=text)
    group = flags.advanced(parser)
    add_flags(group, IndexSettings, ("impact_scale",))
    group.add_argument("--k1", type=FINITE, metavar="X", help="BM25's saturation of the term frequency (default 0.9)")
    group.add_argument("--b", type=FINITE, metavar="X", help="BM25's length normalisation, 0 to 1 (default 0.4)")
    add_flags(group, IndexSettings, ("pair_terms",))
    text = "also index the pairs that these queries ask for: expressions, or what compose writes"
    group.add_argument("--pairs-from", metavar="TOPICS", help=text)
    add_flags(group, IndexSettings, ("signed", "store_docvectors", "optimize", "reorder", "on_error"))
    flags.add_log_format(group)
    flags.add_model_options(group)
    return parser


main = command(_parser, _run)
