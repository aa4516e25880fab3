"""Our indexing beside stock Anserini's: documents a second, bytes, memory, and the same results.

    python benchmarks/index.py [--documents 100000] [--stock-documents N] [--rounds 3] [--threads N]

Both sides index the same JSON Lines files of synthetic SPLADE-shaped documents, which bring their vectors, with as many
threads, in turn: the whole of ``python -m pyserini_compneg.index``, and the whole of Anserini's ``IndexCollection``.
Net of start-up means less the time that the same command takes for one document. Stock takes some three minutes for
100,000 documents; --stock-documents N gives it the first N only. Then Anserini's ``SimpleImpactSearcher`` runs 200
queries on an index of each side, of the same documents; a hit or a score that differs is an error, with exit code 1.
Writes runs/index.json.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import stock
from measuring import Finished, folder_bytes, in_child, run_command
from reporting import INDEXES, describe, environment, megabytes, table, write_json
from synthetic import ENCODER, queries, write_collection

from pyserini_compneg.commands.flags import count
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.errors import CompNegError

QUERIES, HITS = 200, 1000
FILES_A_THREAD = 4


@dataclass
class Side:
    """One of the two, and what was measured of it.

    Attributes:
        name: Its name.
        documents: How many it indexes.
        runs: Its runs on all of them.
        starts: Its runs on one document.
        index_bytes: The size of its index.
    """

    name: str
    documents: int
    runs: list[Finished] = field(default_factory=list)
    starts: list[Finished] = field(default_factory=list)
    index_bytes: int = 0

    @property
    def rate(self) -> float:
        """Documents a second, by the median time of a run."""
        return self.documents / statistics.median(run.seconds for run in self.runs)

    @property
    def start_seconds(self) -> float:
        """The median time for one document."""
        return statistics.median(start.seconds for start in self.starts)

    @property
    def net_rate(self) -> float:
        """Documents a second, without the time for one document."""
        return self.documents / (self.documents / self.rate - self.start_seconds)

    @property
    def peak_bytes(self) -> int:
        """The most memory of any run."""
        return max(run.peak_bytes for run in self.runs)

    def figures(self) -> dict[str, object]:
        """What is written of it."""
        return {
            "documents": self.documents,
            "seconds": [run.seconds for run in self.runs],
            "start_seconds": [start.seconds for start in self.starts],
            "documents_per_second": self.rate,
            "documents_per_second_net": self.net_rate,
            "index_bytes": self.index_bytes,
            "peak_bytes": self.peak_bytes,
        }


class Comparison:
    """Builds with both sides in a folder for the time of the benchmark.

    Args:
        folder: The folder.
        threads: Threads that each side gets.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._folder = folder
        self._threads = threads

    def collection(self, documents: int) -> Path:
        """The files of a collection, written on first use."""
        folder = self._folder / f"documents-{documents}"
        return folder if folder.exists() else write_collection(folder, documents, FILES_A_THREAD * self._threads)

    def index(self, name: str) -> Path:
        """Where a side builds."""
        return self._folder / name

    def build(self, name: str, documents: int) -> Finished:
        """Builds an index in place of the last one."""
        index, collection = self.index(name), self.collection(documents)
        shutil.rmtree(index, ignore_errors=True)
        return run_command(
            ours_command(collection, index, self._threads)
            if name == "ours"
            else stock.index_command(collection, index, self._threads)
        )


def ours_command(collection: Path, index: Path, threads: int, *options: str) -> list[str]:
    """The command that builds our index."""
    command = [sys.executable, "-m", "pyserini_compneg.index", "--encoder", ENCODER, "--threads", str(threads)]
    return [*command, "--collection", str(collection), "--index", str(index), *options]


def compare_results(ours: Path, theirs: Path) -> None:
    """Makes sure that Anserini finds the same in both indexes.

    Raises:
        CompNegError: It does not.
    """
    asked = [query.positive for query in queries(QUERIES)["positive"]]
    found = zip(stock.impact_searches(ours, asked, HITS), stock.impact_searches(theirs, asked, HITS), strict=True)
    for number, (own, other) in enumerate(found):
        if own != other:
            rank = next((i for i, pair in enumerate(zip(own, other, strict=False)) if pair[0] != pair[1]), "the last")
            raise CompNegError(f"query {number}: the indexes give other hits or scores from rank {rank} on")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the comparison."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=count, default=100_000)
    parser.add_argument("--stock-documents", type=count, help="what stock indexes of them (default all)")
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--threads", type=count, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    sides = [Side("ours", args.documents), Side("stock", args.stock_documents or args.documents)]
    if sides[1].documents > args.documents:
        parser.error(f"--stock-documents must be at most the {args.documents} of --documents")
    INDEXES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".benchmark-", dir=INDEXES) as folder:
        comparison = Comparison(Path(folder), args.threads)
        for _ in range(args.rounds):
            for side in sides:
                side.starts.append(comparison.build(side.name, 1))
        quarter = comparison.build("ours", max(1, args.documents // 4))
        for _ in range(args.rounds):
            for side in sides:
                side.runs.append(comparison.build(side.name, side.documents))
                side.index_bytes = folder_bytes(comparison.index(side.name))
        if sides[1].documents < args.documents:
            comparison.build("ours", sides[1].documents)
        in_child(compare_results, comparison.index("ours"), comparison.index("stock"))
    report(sides, quarter, args.threads)


def report(sides: Sequence[Side], quarter: Finished, threads: int) -> None:
    """Prints and writes what was measured."""
    settings = environment()
    figures = {side.name: side.figures() for side in sides}
    ours, theirs = sides
    rows = [
        [
            f"{side.name}, {side.documents:,} documents",
            f"{side.rate:,.0f}",
            f"{side.net_rate:,.0f}",
            f"{side.start_seconds:.1f}",
            f"{side.index_bytes / side.documents:,.0f}",
            megabytes(side.peak_bytes),
        ]
        for side in sides
    ]
    rows.append(["ratio", f"{ours.rate / theirs.rate:.1f}", f"{ours.net_rate / theirs.net_rate:.1f}", "", "", ""])
    heads = ["side", "documents/s", "net of start-up", "start-up s", "bytes/document", "peak memory"]
    print(f"{threads} threads, {len(ours.runs)} rounds, medians; {describe(settings)}\n")
    print(table(heads, rows))
    print(f"\nours at a quarter of the documents: peak memory {megabytes(quarter.peak_bytes)}")
    print(f"{QUERIES} queries on both indexes of {theirs.documents:,} documents: the same {HITS} hits and scores")
    memory = {"peak_bytes_at_a_quarter": quarter.peak_bytes}
    print(write_json("index.json", {"environment": settings, "threads": threads, **figures, **memory}))


if __name__ == "__main__":
    sys.exit(main())
