"""Our search beside stock Lucene's, on the same documents, in one run.

    python benchmarks/search.py [--documents 300000] [--queries 20] [--rounds 5]
    python benchmarks/search.py --collection VECTORS --encoder MODEL --topics TOPICS [--queries 100]
    python benchmarks/search.py --collection VECTORS --encoder MODEL --topics TOPICS --damped [--queries 150]
    python benchmarks/search.py --plain | --filters | --reordered | --updated N | --threads N

With ``--collection`` documents and queries are real: the collection is what the command ``index`` takes, texts or
vectors, and each kind of query has the topics of its form, of two atoms (unions: two or more). Otherwise they are
synthetic. The documents have about 75 terms, drawn by Zipf's law from 30,000, with log-normal impacts. Queries have 25
positive and 20 negative terms, conjunctions and unions 5 + 5. The Lucene at hand builds the index on the first call,
below indexes/, merged into one segment. Stock Lucene searches it as it is. Our search has an index that was reordered,
as ``index`` makes it of many documents. With ``--plain`` both search the index of stock Lucene.

In each round both sides run all queries of a kind, one side after the other. A line gives the median and the 99th
percentile of the latencies of all queries and rounds, and the median time of the processor in the searching thread.
The ratio is ours / stock of the medians by query, once by the clock and once by the processor. Our work is postings
read and documents scored in full, a query.

Stock is Lucene's ``IndexSearcher.search(query, k)`` with Anserini's ``ImpactSimilarity``, which leaves ties undecided
and looks no id up, on the positive terms alone (for conjunctions and unions: the sum of all terms of both sides). The
row "positive/anserini" compares with Anserini's ``SimpleImpactSearcher``, a row with "/generator" with our own query in
the search that ``SearchCollection`` does. Ours writes and parses the query as JSON, orders
ties by docid, and gives the ids of all hits.

With ``--filters`` our search is compared with itself: a filter that allows 1, 10 or 90 % of the documents, by a field
of the synthetic index, beside none. With ``--reordered`` it is compared with itself in the reordered index, and with
``--threads`` with itself on several threads for each query; both may be given. With ``--updated N`` it is compared with
itself in the same index after N updates, each of which replaces 30 documents of ``--collection``, a file of JSON lines,
by equal texts or vectors. A line has the median times, of the
processor or with ``--threads`` by the clock, their ratios to the first, and the postings that are read. With
``--threads`` a second table has the queries a second if all of a kind are asked at once.

With ``--damped`` whole calls of ``search`` are timed, of the texts of topics with NOT: the default difference beside
``disentangled``, by the processor in the searching thread. ``damped`` looks up the best scores of what a query
excludes, and keeps them. In the column "repeated" they are known, in "run" they are forgotten before each round, so
that only the queries of the round share them, and in "first" before each query.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measuring import timed
from real_queries import real_queries
from reporting import INDEXES, describe, environment, table
from stock import StockSearcher
from synthetic import ENCODER, SEED, Query, docid, queries, term_names, zipf

from pyserini_compneg.compose import DEFAULT_OPERATORS, Operators, query_line
from pyserini_compneg.encode import BM25
from pyserini_compneg.expression import Filter, format_expression
from pyserini_compneg.index import ImpactIndexer, build_index, update_index
from pyserini_compneg.lucene import MANIFEST_NAME, ImpactReader
from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.java_home import find_java
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.topics import read_topics

VOCABULARY = 30_000
DRAWS = 80
HITS = (10, 1000)
SHARES = (1, 10, 90)
"""Percent of the documents that a filter allows."""

BLOCK = 1000


def real_index(collection: Path, encoder: str, impact_scale: float | None, reorder: bool = False) -> Path:
    """The folder of the index of a collection, which is built on the first call."""
    name = "-".join([collection.absolute().name.partition(".")[0], Path(encoder).name, anserini_jar().stem])
    folder = INDEXES / (f"{name}-reordered" if reorder else name)
    if not (folder / MANIFEST_NAME).exists():
        build_index(collection, folder, encoder, impact_scale=impact_scale, optimize=True, reorder=reorder)
    return folder


def updated_index(fresh: Path, collection: Path, updates: int) -> Path:
    """A copy of an index after some updates, each of which replaces 30 documents by others that score the same."""
    folder = fresh.with_name(f"{fresh.name}-updated-{updates}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(fresh, folder)
    with (gzip.open if collection.suffix == ".gz" else open)(collection, "rt", encoding="utf-8") as handle:
        lines = [json.loads(line) for line in handle]
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as temporary:
        part = Path(temporary, "part.jsonl")
        for number in range(updates):
            drawn = draw.sample(lines, 30)
            part.write_text("".join(json.dumps(line | {"revision": number}) + "\n" for line in drawn), encoding="utf-8")
            update_index(folder, part)
    return folder


def synthetic_index(documents: int, reorder: bool = False) -> Path:
    """The folder of the synthetic index, which is built on the first call."""
    folder = INDEXES / f"synthetic-{'reordered' if reorder else 'fields'}-{documents}-{anserini_jar().stem}"
    if (folder / MANIFEST_NAME).exists():
        return folder
    rng = np.random.default_rng(SEED)
    cumulative = np.cumsum(zipf(VOCABULARY))
    names = term_names(VOCABULARY)
    options = {"optimize": True, "reorder": reorder, "filter_fields": ["share"]}
    with ImpactIndexer(folder, ENCODER, threads=2, **options) as indexer:
        for start in range(0, documents, BLOCK):
            count = min(BLOCK, documents - start)
            draws = np.searchsorted(cumulative, rng.random((count, DRAWS))).clip(max=VOCABULARY - 1)
            impacts = np.exp(rng.normal(3.8, 0.8, (count, DRAWS))).clip(1, 2000).astype(int)
            lines = []
            for i in range(count):
                vector = {names[t]: impact for t, impact in zip(draws[i].tolist(), impacts[i].tolist(), strict=True)}
                chance = np.random.default_rng([SEED, start + i]).random()
                shares = [share for share in SHARES if chance < share / 100]
                lines.append(json.dumps({"id": docid(start + i), "vector": vector, "share": shares}))
            indexer.add_lines("\n".join(lines).encode(), ENCODER, start + 1)
    return folder


def compare(index: Path, plain: Path, kinds: Mapping[str, Sequence[Query]], rounds: int) -> str:
    """Times all kinds of queries on both sides, ours in one index and stock in another; returns the table."""
    stock = StockSearcher(plain)
    rows = []
    with ImpactReader(index) as reader:
        for kind, asked in kinds.items():
            for k in HITS:
                rows.append([kind, str(k), *_compare_kind(reader, stock, kind, asked, k, rounds)])
                print(*rows[-1], file=sys.stderr, flush=True)
    sides = [f"{side} {figure}" for side in ("ours", "stock") for figure in ("ms", "p99", "cpu")]
    return table(["kind", "k", *sides, "ratio", "cpu ratio", "postings", "scored"], rows)


def _compare_kind(
    reader: ImpactReader, stock: StockSearcher, kind: str, asked: Sequence[Query], k: int, rounds: int
) -> list[str]:
    nodes = [query.node for query in asked]
    before = reader.work_done()
    reader.search(nodes, k)
    after = reader.work_done()
    work = [(later - earlier) // len(asked) for earlier, later in zip(before, after, strict=True)]
    if kind.endswith("/generator"):
        theirs = [stock.composed(query_line(node), k) for node in nodes]
    else:
        engine = stock.anserini if kind.endswith("/anserini") else stock.lucene
        theirs = [engine(query.positive, k) for query in asked]
    taken = timed({"ours": [partial(reader.search, [node], k) for node in nodes], "stock": theirs}, rounds)
    latencies = [
        value
        for side in ("ours", "stock")
        for value in (*np.quantile(taken[side].wall, (0.5, 0.99)), np.median(taken[side].processor))
    ]
    ratios = [
        np.median(np.median(ours, axis=0)) / np.median(np.median(stock, axis=0))
        for ours, stock in zip(taken["ours"], taken["stock"], strict=True)
    ]
    return [*(f"{value:.2f}" for value in latencies + ratios), *(f"{value:,}" for value in work)]


class Variant(NamedTuple):
    """A way to search."""

    reader: ImpactReader
    asked: Filter | None = None
    threads: int = 1


def compare_ours(variants: Mapping[str, Variant], kinds: Mapping[str, Sequence[Query]], rounds: int) -> str:
    """Times all kinds of queries in several ways, beside the first; returns the table."""
    rows = []
    base, *others = variants
    clock = "wall" if any(variant.threads > 1 for variant in variants.values()) else "processor"
    for kind, asked in kinds.items():
        nodes = [query.node for query in asked]
        for k in HITS:
            searches = {
                name: [partial(one.reader.search, [node], k, one.threads, [one.asked]) for node in nodes]
                for name, one in variants.items()
            }
            taken = timed(searches, rounds)
            medians = {name: np.median(np.median(getattr(taken[name], clock), axis=0)) for name in variants}
            work = []
            for name, (reader, *_) in variants.items():
                before = reader.work_done().postings_read
                for run in searches[name]:
                    run()
                work.append(f"{(reader.work_done().postings_read - before) // len(nodes):,}")
            ratios = [f"{medians[name] / medians[base]:.2f}" for name in others]
            rows.append([kind, str(k), *(f"{value:.2f}" for value in medians.values()), *ratios, *work])
            print(*rows[-1], file=sys.stderr, flush=True)
    header = [*(f"{name} ms" for name in variants), *others, *(f"{name} postings" for name in variants)]
    return table(["kind", "k", *header], rows)


def compare_damped(index: Path, topics: Path, count: int, rounds: int) -> str:
    """Times whole calls under ``damped`` beside ``disentangled``, in three states of memory; returns the table."""
    expressions = [topic.expression for topic in read_topics(topics) if topic.expression]
    texts = [text for text in map(format_expression, expressions) if " NOT " in text][:count]
    subtracted, rows = Operators(difference="disentangled"), []
    with SignedImpactSearcher(index) as searcher:

        def search(text: str, k: int, operators: Operators, forget: bool) -> None:
            if forget:
                searcher.reader._top_scores.clear()
            searcher.search(text, k, operators=operators)

        for k in HITS:
            searches = {
                "disentangled": [partial(search, text, k, subtracted, False) for text in texts],
                "repeated": [partial(search, text, k, DEFAULT_OPERATORS, False) for text in texts],
                "run": [partial(search, text, k, DEFAULT_OPERATORS, place == 0) for place, text in enumerate(texts)],
                "first": [partial(search, text, k, DEFAULT_OPERATORS, True) for text in texts],
            }
            taken = {name: one.processor.mean(axis=0) for name, one in timed(searches, rounds).items()}
            base = taken.pop("disentangled")
            cells = [f"{one.mean():.2f}, {one.mean() / base.mean():.2f}" for one in taken.values()]
            rows.append([f"k = {k:,}", f"{base.mean():.2f}", *cells])
    return table(["ms, ratio of the means", "disentangled", *taken], rows)


def throughput(reader: ImpactReader, kinds: Mapping[str, Sequence[Query]], most: int, rounds: int) -> str:
    """The queries a second of each kind on 1, 2, 4, ... threads; returns the table."""
    counts = [2**power for power in range(most.bit_length())]
    rows = []
    for kind, asked in kinds.items():
        nodes = [query.node for query in asked]
        for k in HITS:
            taken = timed({str(count): [partial(reader.search, nodes, k, count)] for count in counts}, rounds)
            rates = [1000 * len(nodes) / float(np.median(taken[str(count)].wall)) for count in counts]
            rows.append([kind, str(k), *(f"{rate:,.0f}" for rate in rates)])
            print(*rows[-1], file=sys.stderr, flush=True)
    return table(["kind", "k", *(f"{count} threads" for count in counts)], rows)


def cold_start() -> None:
    """Times a whole process from nothing to the first hit on the sample, beside the import of Pyserini's search."""
    index = Path("indexes/sample")
    if not index.exists():
        subprocess.run([sys.executable, "-m", "pyserini_compneg", "demo"], check=True, stdout=subprocess.DEVNULL)
    ours = [sys.executable, "-m", "pyserini_compneg.search", "--index", str(index), "--query", "spy films NOT comedies"]
    pyserini = [sys.executable, "-c", "import pyserini.search.lucene"]
    java = {"JAVA_HOME": str(find_java().home)}  # Pyserini takes the first Java it finds, and fails if that is too old
    for name, command in (("ours, first hit", ours), ("import pyserini.search.lucene", pyserini)):
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, check=False, env=os.environ | java)
            seconds.append(time.perf_counter() - start)
        failed = "" if done.returncode == 0 else "  (it failed)"
        print(f"cold start, {name}: median {statistics.median(seconds):.2f} s of 5{failed}", flush=True)


def main() -> int:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--collection", type=Path, metavar="PATH", help="real documents, in place of synthetic ones")
    parser.add_argument("--encoder", default=BM25, metavar="NAME", help="of the collection (default bm25)")
    parser.add_argument("--impact-scale", type=float, metavar="X", help="of the collection, as for the command index")
    parser.add_argument("--topics", type=Path, metavar="FILE", help="real queries")
    parser.add_argument("--filters", action="store_true", help="filters beside none, in place of ours beside stock")
    text = "the reordered index beside the same in its own order, in place of ours beside stock"
    parser.add_argument("--reordered", action="store_true", help=text)
    text = "the index after N updates of 30 documents beside the same index before"
    parser.add_argument("--updated", type=int, default=0, metavar="N", help=text)
    parser.add_argument("--damped", action="store_true", help="whole calls: the default NOT beside disentangled")
    parser.add_argument("--plain", action="store_true", help="our search uses the plain index of stock Lucene")
    text = "several threads for each query beside one, in place of ours beside stock"
    parser.add_argument("--threads", type=int, default=1, metavar="N", help=text)
    parser.add_argument("--queries", type=int, default=20, help="the most of a kind (default 20)")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if (args.collection is None) != (args.topics is None):
        parser.error("--collection and --topics go together")
    if args.filters and args.collection:
        parser.error("--filters takes the synthetic documents")

    if (args.updated or args.damped) and not args.collection:
        parser.error("--updated and --damped take a --collection")

    def index_of(reorder: bool = False) -> Path:
        if args.collection:
            return real_index(args.collection, args.encoder, args.impact_scale, reorder)
        return synthetic_index(args.documents, reorder)

    if args.damped:
        compared = compare_damped(index_of(reorder=True), args.topics, args.queries, args.rounds)
        print(f"{args.queries} queries with NOT, {args.rounds} rounds; {describe(environment())}\n\n{compared}")
        return 0
    index = index_of()
    if args.collection:
        kinds = real_queries(index, args.topics, args.queries)
        said = f"{args.collection.name} by {Path(args.encoder).name}"
    else:
        kinds = queries(args.queries, VOCABULARY)
        said = f"{args.documents:,} synthetic documents"
    said += f", up to {args.queries} queries a kind, {args.rounds} rounds; {describe(environment())}\n"
    if args.updated:
        fresh = index_of(reorder=True)
        with ImpactReader(fresh) as reader, ImpactReader(updated_index(fresh, args.collection, args.updated)) as other:
            variants = {"fresh": Variant(reader), f"after {args.updated} updates": Variant(other)}
            print(f"{said}\n{compare_ours(variants, kinds, args.rounds)}")
        return 0
    if args.filters or args.reordered or args.threads > 1:
        with ImpactReader(index) as reader, ImpactReader(index_of(reorder=args.reordered)) as other:
            variants = {"all": Variant(reader)}
            if args.filters:
                variants |= {f"{share} %": Variant(reader, Filter({"share": share})) for share in SHARES}
            if args.reordered:
                variants["reordered"] = Variant(other)
            if args.threads > 1:
                variants |= {
                    f"{name}, {args.threads} threads": Variant(variant.reader, threads=args.threads)
                    for name, variant in variants.items()
                    if variant.asked is None
                }
            print(f"{said}\n{compare_ours(variants, kinds, args.rounds)}")
            if args.threads > 1:
                print(f"\nqueries a second\n\n{throughput(other, kinds, args.threads, args.rounds)}")
        return 0
    kinds |= {f"{kind}/generator": kinds[kind] for kind in ("signed", "cpt beside maxpool")}
    kinds["positive/anserini"] = kinds["positive"]
    measured = compare(index if args.plain else index_of(reorder=True), index, kinds, args.rounds)
    print(f"{said}\n{measured}\n")
    if not args.collection:
        cold_start()
    return 0


if __name__ == "__main__":
    sys.exit(main())
