"""Our search beside stock Lucene's, on one synthetic impact index, in one run.

    python benchmarks/search.py [--documents 300000] [--queries 20] [--rounds 5]

The index is built on the first call, below indexes/. Its documents have about 75 terms, drawn by Zipf's law from
30,000, with log-normal impacts; queries have 25 positive and 20 negative terms, conjunctions 5 + 5. Each query runs
on both sides in turn. A line gives the median latencies, the ratio ours / stock of these, the median and the 90th
percentile of the ratio by query, and the work: postings read and documents scored in full, a query.

Stock is Lucene's IndexSearcher.search(query, k) with Anserini's ImpactSimilarity, which leaves ties undecided and
looks no id up, on the positive terms alone (for conjunctions: the sum of all ten), or Anserini's SimpleImpactSearcher
where it says so; with /generator it is our own query in the search that SearchCollection does. Ours includes parsing
the JSON query, ties by docid, and the ids of all hits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from stock import StockSearcher
from synthetic import SEED, Query, docid, queries, term_names, zipf

from pyserini_compneg.compose import to_json
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, Manifest, java_class
from pyserini_compneg.lucene.java_home import find_java

VOCABULARY = 30_000
DRAWS = 80


def build(folder: Path, documents: int) -> None:
    """Writes the synthetic index."""
    rng = np.random.default_rng(SEED)
    cumulative = np.cumsum(zipf(VOCABULARY))
    names = term_names(VOCABULARY)
    folder.mkdir(parents=True)
    with ImpactWriter(folder, threads=2) as writer:
        for start in range(0, documents, 1000):
            lines = []
            count = min(1000, documents - start)
            draws = np.searchsorted(cumulative, rng.random((count, DRAWS))).clip(max=VOCABULARY - 1)
            impacts = np.exp(rng.normal(3.8, 0.8, (count, DRAWS))).clip(1, 2000).astype(int)
            for i in range(count):
                vector = {names[t]: impact for t, impact in zip(draws[i].tolist(), impacts[i].tolist(), strict=True)}
                lines.append(json.dumps({"id": docid(start + i), "vector": vector}))
            writer.add_lines("\n".join(lines).encode(), "synthetic")
        writer.drain()
        writer.optimize()
        writer.commit()
    Manifest("synthetic", documents=documents).write(folder)


def compare(reader: ImpactReader, stock: StockSearcher, kind: str, asked: list[Query], k: int, rounds: int) -> None:
    """Times one kind of query and prints its line."""
    theirs = stock.anserini if kind == "positive/anserini" else stock.lucene
    lines = [json.dumps(to_json(query.node)) for query in asked]
    if kind.endswith("/generator"):
        runs = [(line, stock.composed(line, k)) for line in lines]
    else:
        runs = [(line, theirs(query.positive, k)) for line, query in zip(lines, asked, strict=True)]
    times = np.zeros((2, rounds, len(runs)))
    warm_up = 3
    for attempt in range(-warm_up, rounds):
        if attempt == 0:
            before = reader.work_done()
        for i, (line, search) in enumerate(runs):
            start = time.perf_counter()
            reader.search([line], k)
            middle = time.perf_counter()
            search()
            if attempt >= 0:
                times[:, attempt, i] = middle - start, time.perf_counter() - middle
    done = reader.work_done()
    ours, other = 1000 * np.median(times, axis=1)
    ratios = ours / other
    work = [(after - earlier) // (rounds * len(runs)) for earlier, after in zip(before, done, strict=True)]
    print(
        f"{kind:<23}{k:>6}{np.median(ours):>9.2f}{np.median(other):>9.2f}{np.median(ours) / np.median(other):>8.2f}"
        f"{np.median(ratios):>8.2f}{np.quantile(ratios, 0.9):>8.2f}{work[0]:>11,}{work[1]:>9,}",
        flush=True,
    )


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
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    folder = Path(f"indexes/synthetic-{args.documents}")
    if not (folder / "compneg.json").exists():
        build(folder, args.documents)
    version = java_class("org.apache.lucene.util.Version").LATEST.toString()
    java = java_class("java.lang.System").getProperty("java.version")
    print(f"{args.documents:,} documents, {args.queries} queries, {args.rounds} rounds; Lucene {version}, Java {java}")
    print(
        f"{'kind':<23}{'k':>6}{'ours ms':>9}{'stock ms':>9}{'ratio':>8}{'by qry':>8}{'p90':>8}"
        f"{'postings':>11}{'scored':>9}"
    )
    kinds = queries(args.queries, VOCABULARY)
    kinds |= {f"{kind}/generator": kinds[kind] for kind in ("signed", "cpt+maxpool")}
    kinds["positive/anserini"] = kinds["positive"]
    with ImpactReader(folder) as reader:
        stock = StockSearcher(folder)
        for kind, asked in kinds.items():
            for k in (10, 1000):
                compare(reader, stock, kind, asked, k, args.rounds)
    cold_start()
    return 0


if __name__ == "__main__":
    sys.exit(main())
