"""Our indexing beside stock Anserini's: documents a second, bytes, memory, and the same results.

    python benchmarks/index.py [--documents 100000] [--stock-documents N] [--rounds 3] [--threads N]

Both sides index the same JSON Lines files of synthetic SPLADE-shaped documents, which bring their vectors, with as many
threads, in turn: the whole of ``compneg index``, and the whole of Anserini's ``IndexCollection``.
"Net of start-up" subtracts the time that the same command takes for one document. Stock takes some three minutes for
100,000 documents; --stock-documents N gives it the first N only. Then Anserini's ``SimpleImpactSearcher`` runs 200
queries on an index of each side, of the same documents. A hit or a score that differs is an error.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import stock
from measuring import Finished, folder_bytes, in_child, run_command
from reporting import INDEXES, describe, environment, megabytes, table
from synthetic import ENCODER, queries, write_collection

from pyserini_compneg.support.errors import CompNegError
from pyserini_compneg.support.processors import processors

SIDES = ("ours", "stock")
QUERIES, HITS = 200, 1000
FILES_A_THREAD = 4


def ours_command(collection: Path, index: Path, threads: int, *options: str) -> list[str]:
    """The command that builds our index."""
    command = [sys.executable, "-m", "pyserini_compneg.index", "--encoder", ENCODER, "--threads", str(threads)]
    return [*command, "--collection", str(collection), "--index", str(index), *options]


def build(folder: Path, side: str, documents: int, threads: int) -> Finished:
    """Builds the index ``folder/side`` anew; writes the collection on first use."""
    collection, index = folder / f"documents-{documents}", folder / side
    if not collection.exists():
        write_collection(collection, documents, FILES_A_THREAD * threads)
    shutil.rmtree(index, ignore_errors=True)
    command = ours_command if side == "ours" else stock.index_command
    return run_command(command(collection, index, threads))


def compare_results(ours: Path, theirs: Path) -> None:
    """Makes sure that Anserini finds the same in both indexes."""
    asked = [query.positive for query in queries(QUERIES)["positive"]]
    found = zip(stock.impact_searches(ours, asked, HITS), stock.impact_searches(theirs, asked, HITS), strict=True)
    for number, (own, other) in enumerate(found):
        if own != other:
            raise CompNegError(f"query {number}: the indexes give other hits or scores")


def main() -> int:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--stock-documents", type=int, help="how many of them stock indexes (default all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processors())
    args = parser.parse_args()
    documents = {"ours": args.documents, "stock": min(args.stock_documents or args.documents, args.documents)}
    starts: dict[str, list[Finished]] = {side: [] for side in SIDES}
    runs: dict[str, list[Finished]] = {side: [] for side in SIDES}
    sizes = {}
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as name:
        folder = Path(name)
        for _ in range(args.rounds):
            for side in SIDES:
                starts[side].append(build(folder, side, 1, args.threads))
        quarter = build(folder, "ours", max(1, args.documents // 4), args.threads)
        for _ in range(args.rounds):
            for side in SIDES:
                runs[side].append(build(folder, side, documents[side], args.threads))
                sizes[side] = folder_bytes(folder / side)
        if documents["stock"] < documents["ours"]:
            build(folder, "ours", documents["stock"], args.threads)
        in_child(compare_results, folder / "ours", folder / "stock")

    rows, rates = [], {}
    for side, count in documents.items():
        start, seconds = (median(run.seconds for run in which[side]) for which in (starts, runs))
        rates[side] = (count / seconds, count / (seconds - start))
        cells = [*(f"{rate:,.0f}" for rate in rates[side]), f"{start:.1f}", f"{sizes[side] / count:,.0f}"]
        rows.append([f"{side}, {count:,} documents", *cells, megabytes(max(run.peak_bytes for run in runs[side]))])
    ratios = [f"{ours / theirs:.1f}" for ours, theirs in zip(rates["ours"], rates["stock"], strict=True)]
    rows.append(["ratio", *ratios, "", "", ""])
    heads = ["side", "documents/s", "net of start-up", "start-up s", "bytes/document", "peak memory"]
    print(f"{args.threads} threads, {args.rounds} rounds, medians; {describe(environment())}\n\n{table(heads, rows)}")
    print(f"\nours at a quarter of the documents: peak memory {megabytes(quarter.peak_bytes)}")
    print(f"{QUERIES} queries on both indexes of {documents['stock']:,} documents: the same {HITS} hits and scores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
