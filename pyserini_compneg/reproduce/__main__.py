"""``python -m pyserini_compneg.reproduce``: the tables and figures of the papers, on the user's data."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.cli import count, run_main
from pyserini_compneg.model_options import add_model_options, chosen_model_options
from pyserini_compneg.reproduce.protocol import ALL_MINILM

_EPILOG = """\
examples:
  python -m pyserini_compneg.reproduce table1 --dataset data/filmsets --encoder bm25 --report reports/table1
  python -m pyserini_compneg.reproduce table1 --dataset data/quest --encoder naver/splade-v3 --report reports/quest

protocols:
{protocols}

The report's folder has report.html to look at, report.md and tables.tex, results.json with all figures, the runs, and
the judgements they are scored by. A run that is there is not made again: what was interrupted goes on where it was.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.parse_args(argv)
    indexes = args.index or [None] * len(args.encoder)
    if len(indexes) != len(args.encoder):
        parser.error(f"--index must name one index for each --encoder, got {len(indexes)} for {len(args.encoder)}")
    from pyserini_compneg.datasets import open_dataset
    from pyserini_compneg.eval.table import run_labels
    from pyserini_compneg.reproduce.experiment import Engine
    from pyserini_compneg.reproduce.protocol_file import read_protocol
    from pyserini_compneg.reproduce.report import check_packages, write_report
    from pyserini_compneg.reproduce.reproduction import reproduce
    from pyserini_compneg.reproduce.results import write_results

    check_packages()
    labels = run_labels(args.encoder) if len(args.encoder) > 1 else [""]
    engines = [Engine(*values) for values in zip(args.encoder, indexes, labels, strict=True)]
    results = reproduce(
        read_protocol(args.protocol),
        open_dataset(args.dataset),
        engines,
        args.report,
        split=args.split,
        dense_encoder=args.dense_encoder,
        threads=args.threads,
        model_options=chosen_model_options(args),
        decompose=args.decompose,
        command=f"python -m pyserini_compneg.reproduce {shlex.join(sys.argv[1:] if argv is None else argv)}",
    )
    write_results(results, args.report / "results.json")
    write_report(results, args.report)
    logging.getLogger("pyserini_compneg.reproduce").info("%s", args.report / "report.html")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.reproduce",
        description="Runs the protocol of a table or figure, and writes its runs, figures and a report.",
        epilog=_EPILOG.format(protocols=_listed()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("protocol", metavar="PROTOCOL", help="one of those below, or the path of a YAML file like them")
    parser.add_argument("--dataset", required=True, metavar="DIR", help="folder with the dataset's official files")
    parser.add_argument("--split", metavar="NAME", help="split (default: the protocol's first that the dataset has)")
    parser.add_argument(
        "--encoder",
        nargs="+",
        default=["bm25"],
        metavar="NAME",
        help="bm25 (default), or models, folders or names of the Hugging Face hub; each row is run with each of them",
    )
    parser.add_argument(
        "--index", nargs="+", type=Path, metavar="DIR", help="an index for each encoder (default: built in the report)"
    )
    parser.add_argument(
        "--dense-encoder",
        metavar="NAME",
        help="of dense rows, and of the similarities of figure3: a folder, a name of the hub, or an ONNX file (default "
        f"{ALL_MINILM}, and no such rows where it cannot be had)",
    )
    parser.add_argument(
        "--decompose",
        choices=("off", "cues", "llm"),
        default="off",
        help="for rows that take the dataset's expressions, read its plain texts instead, as search does; texts that "
        "only say what they do not ask for stay whole (default off)",
    )
    parser.add_argument("--report", required=True, type=Path, metavar="DIR", help="folder for everything that is made")
    parser.add_argument(
        "--threads",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="queries at once (default: all processors)",
    )
    add_model_options(parser, "queries and documents")
    return parser


def _listed() -> str:
    from pyserini_compneg.reproduce.protocol_file import protocol_names, read_protocol

    return "\n".join(f"  {name:<12}{read_protocol(name).title}" for name in protocol_names())


if __name__ == "__main__":
    sys.exit(main())
