"""How search, indexes and memory grow with the collection, beside a full scan and another sparse engine.

    python benchmarks/scale.py [--sizes 30000 300000 1000000 3000000] [--queries 100] [--rounds 3] [--threads N]
                               [--memory-gb 16] [--seismic-documents 300000] [--fresh]

For each size an index of synthetic SPLADE-shaped documents, merged to one segment, is built below indexes/ from
documents that are generated on the way, and stays there; an index that is there is used again. Then queries of 25
positive terms, of 25 positive and 20 negative ones, and conjunctions of 5 + 5 terms run on three engines in turn: ours;
a full scan with scipy (exact, in memory; a size for which that needs more than --memory-gb is left out); and Seismic,
an approximate engine, if ``pyseismic-lsr`` is installed, up to --seismic-documents, for vectors only. Ours includes
parsing the JSON query and the ids of all hits, and has to find what the full scan finds: for vectors the same documents
and scores, for conjunctions the same scores up to rounding; else the exit code is 1.

What is measured goes to runs/scale.json, and a size is not measured again with the same settings, unless --fresh says
so, which builds the index anew, too. At the end come tables, the fitted growth, and runs/scale.png.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import in_child
from reporting import INDEXES, RUNS, describe, environment, write_json
from scale_measures import Settings, build, search
from scale_report import plot, report

from pyserini_compneg.commands.flags import count
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.errors import RunFormatError
from pyserini_compneg.lucene import MANIFEST_NAME

RESULTS = "scale.json"


def read_results(path: Path) -> dict[str, Any]:
    """The results of earlier calls, by number of documents.

    Raises:
        RunFormatError: A file of something else.
    """
    try:
        sizes: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["sizes"]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        raise RunFormatError(f"{path}: no results of this benchmark; delete it") from None
    return sizes


def measure(sizes: dict[str, Any], documents: int, settings: Settings, fresh: bool) -> None:
    """Builds and searches one size, and writes what is known after each step."""
    index = INDEXES / f"scale-{documents}"
    measured = sizes.setdefault(str(documents), {})
    if fresh or not (index / MANIFEST_NAME).exists():
        print(f"{documents:,} documents: indexing", file=sys.stderr, flush=True)
        measured.clear()
        measured["build"] = in_child(build, index, documents, settings.threads)
        write_json(RESULTS, {"sizes": sizes})
    print(f"{documents:,} documents: searching", file=sys.stderr, flush=True)
    measured["search"] = in_child(search, index, documents, settings)
    measured |= {"settings": settings._asdict(), "environment": environment()}
    write_json(RESULTS, {"sizes": sizes})


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the report."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    settings = Settings(args.queries, args.rounds, args.threads, args.memory_gb, args.seismic_documents)
    INDEXES.mkdir(exist_ok=True)
    sizes = read_results(RUNS / RESULTS)
    wanted = sorted(set(args.sizes))
    for documents in wanted:
        if args.fresh or sizes.get(str(documents), {}).get("settings") != settings._asdict():
            measure(sizes, documents, settings, args.fresh)
    chosen = {documents: sizes[str(documents)] for documents in wanted}
    print(f"{args.queries} queries, {args.rounds} rounds, {args.threads} threads to index, 1 to search")
    print(f"{describe(chosen[wanted[-1]]['environment'])}\n\n{report(chosen)}\n")
    print(plot(chosen) or "no plot: pip install matplotlib")
    print(RUNS / RESULTS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [30_000, 300_000, 1_000_000, 3_000_000]
    parser.add_argument("--sizes", type=count, nargs="+", default=sizes, metavar="N")
    parser.add_argument("--queries", type=count, default=100)
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--threads", type=count, default=os.cpu_count() or 1)
    parser.add_argument("--memory-gb", type=count, default=16, help="the most that an engine beside ours may need")
    parser.add_argument("--seismic-documents", type=count, default=300_000, help="the largest collection it gets")
    parser.add_argument("--fresh", action="store_true", help="build and measure again what was measured before")
    return parser


if __name__ == "__main__":
    sys.exit(main())
