"""``python -m pyserini_compneg.reproduce.demo``: the sample, from documents to scores, as ``make search`` runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from pyserini_compneg.commands.running import run_main

SAMPLE = Path(str(resources.files("pyserini_compneg") / "resources" / "sample"))
DOCUMENTS, QUERIES = SAMPLE / "documents.jsonl.gz", SAMPLE / "queries.jsonl"

_EXAMPLES = (
    "silent films AND western films",
    "films starring Alicia Silverstone OR films starring Damon Wayans Jr.",
    "1930s fantasy films NOT musical films",
    "1940s war films AND spy films NOT thriller films",
    "(western films OR war films) AND comedy films NOT silent films",
)
_HITS_SHOWN = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    from pyserini_compneg.datasets import open_dataset
    from pyserini_compneg.datasets.topics import Topic, read_topics
    from pyserini_compneg.expression import parse
    from pyserini_compneg.index import build_index
    from pyserini_compneg.reproduce.experiment import Engine
    from pyserini_compneg.reproduce.protocol_file import read_protocol
    from pyserini_compneg.reproduce.reproduction import reproduce
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.search.batch import search_topics
    from pyserini_compneg.search.display import show_hits

    if not args.index.exists():
        manifest = build_index(DOCUMENTS, args.index, threads=2, store_raw=True)
        print(f"Indexed {manifest.documents} film leads as BM25 impacts in {args.index}.\n")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with SignedImpactSearcher(args.index) as searcher:
        print("Scores are sums of what each term (a∩b: both terms together) adds, +, or takes away, -.\n")
        for text in _EXAMPLES:
            show_hits(sys.stdout, searcher, Topic("1", text, parse(text)), _HITS_SHOWN)
            print()
        search_topics(searcher, read_topics(QUERIES), args.output, threads=2)
    results = reproduce(read_protocol("table1"), open_dataset(SAMPLE), [Engine("bm25", args.index)], args.report)
    for section in results.sections:
        print(f"{section.title:<40}" + "".join(f"{measure:>9}" for measure in results.measures))
        for row in section.rows:
            print(f"  {row.name:<38}" + "".join(f"{row.cells[name].value:>9.3f}" for name in results.measures))
    print(f"\nThe run with the default operators is {args.output}. Score it again, or search for yourself:")
    print(f"  python -m pyserini_compneg.eval --qrels {QUERIES} --run {args.output} --by template")
    print(f"  python -m pyserini_compneg.search --index {args.index} --query 'spy films NOT comedies'")
    print("The table as a report with plots, significance and examples (pip install 'pyserini_compneg[report]'):")
    print(
        f"  python -m pyserini_compneg.reproduce table1 --dataset {SAMPLE} --index {args.index} --report {args.report}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.reproduce.demo",
        description="Indexes the sample that comes with the package (4,000 film leads), searches and scores it.",
        epilog="example:\n  python -m pyserini_compneg.reproduce.demo --index indexes/sample",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--index", type=Path, default=Path("indexes/sample"), metavar="DIR", help="folder of the index")
    parser.add_argument("--output", type=Path, default=Path("runs/sample.txt"), metavar="RUN", help="the run to write")
    parser.add_argument(
        "--report", type=Path, default=Path("runs/sample"), metavar="DIR", help="folder for the runs of all operators"
    )
    return parser
