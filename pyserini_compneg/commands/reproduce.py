"""``python -m pyserini_compneg.reproduce``: the tables and figures of the papers, on the user's data."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
from collections.abc import Collection
from pathlib import Path

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.experiments.provided import ALL_MINILM, MS_MARCO_MINILM, protocol_names, protocol_title

_logger = logging.getLogger("pyserini_compneg.experiments")

_EPILOG = """\
protocols:
{protocols}

The folder of the report has report.md with its plots, results.json with all
figures, the runs, and the judgements.

A run that is there already is not made again. So the same command continues
after an interruption.

examples:
  python -m pyserini_compneg.reproduce table1 --report reports/sample \\
      --dataset pyserini_compneg/resources/sample
  python -m pyserini_compneg.reproduce table1 --report reports/quest \\
      --dataset data/quest --encoder naver/splade-v3
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    indexes = args.index or [None] * len(args.encoder)
    if len(indexes) != len(args.encoder):
        parser.error(f"--index must name one index for each --encoder, got {len(indexes)} for {len(args.encoder)}")
    pairs = list(zip(args.encoder, indexes, strict=True))
    if repeated := [encoder for encoder, index in pairs if pairs.count((encoder, index)) > 1]:
        parser.error(f"--encoder has {repeated[0]!r} twice for the same index")
    from pyserini_compneg.eval.table import run_labels
    from pyserini_compneg.experiments.datasets import open_dataset
    from pyserini_compneg.experiments.experiment import reproduce
    from pyserini_compneg.experiments.protocol import read_protocol
    from pyserini_compneg.experiments.report import check_packages, write_report
    from pyserini_compneg.experiments.results import write_results
    from pyserini_compneg.experiments.workplace import Engine

    check_packages()
    protocol = read_protocol(args.protocol)
    if args.rows:
        protocol = protocol.only(args.rows)
        _warn_of_other_rows(args.report, {row.title for section in protocol.sections for row in section.rows})
    labels = run_labels(args.encoder) if len(args.encoder) > 1 else [""]
    engines = [Engine(*values) for values in zip(args.encoder, indexes, labels, strict=True)]
    results = reproduce(
        protocol,
        open_dataset(args.dataset),
        engines,
        args.report,
        split=args.split,
        dense_encoder=args.dense_encoder,
        reranker=args.rerank,
        threads=args.threads,
        model_options=flags.chosen_model_options(args),
        read=args.read or "expression",
        model_weight=args.model_weight,
        command=f"python -m pyserini_compneg.reproduce {shlex.join(args.arguments)}",
    )
    write_results(results, args.report / "results.json")
    write_report(results, args.report)
    _logger.info("%s", args.report / "report.md")


def _warn_of_other_rows(report: Path, chosen: Collection[str]) -> None:
    """Says that a report which is there will lose rows. A name may end with the encoder's label, as in ``row [a]``."""
    try:
        sections = json.loads((report / "results.json").read_text("utf-8"))["sections"]
        names = [row["name"] for section in sections for row in section["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if others := {name for name in names if not {name, name.rpartition(" [")[0]} & {*chosen}}:
        said = "%s: the report that is there loses its other rows (%d, such as %r); their runs stay, so the command "
        said += "without --rows gives a report with all"
        _logger.warning(said, report, len(others), min(others))


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "reproduce",
        "PROTOCOL --dataset DIR --report DIR",
        "Runs the protocol of a table or figure, and writes its runs, its figures and a report.",
        _EPILOG.format(protocols=_listed()),
    )
    add = parser.add_argument
    add("protocol", metavar="PROTOCOL", help="one of the protocols below, or the path of a YAML file like them")
    add("--dataset", required=True, metavar="DIR", help="folder with the dataset's official files")
    text = "bm25 (default), models, folders or names on the Hugging Face hub, or bm25+MODEL; each row is run with each"
    add("--encoder", nargs="+", default=["bm25"], metavar="NAME", help=text)
    add("--report", required=True, type=Path, metavar="DIR", help="folder for everything that is made")
    text = (
        "run these rows only, in the sections that have them; * stands for any letters, so '*disentangled' is also "
        "'cpt, disentangled' (default: all rows)"
    )
    add("--rows", nargs="+", metavar="ROW", help=text)
    flags.add_threads(parser, os.cpu_count() or 1)
    group = flags.advanced(parser)
    text = "split (default: the first split of the protocol that the dataset has)"
    group.add_argument("--split", metavar="NAME", help=text)
    text = "an index for each encoder (default: built in the report's folder)"
    group.add_argument("--index", nargs="+", type=Path, metavar="DIR", help=text)
    group.add_argument(
        "--dense-encoder",
        metavar="NAME",
        help="the encoder of dense rows, and of the similarities of figure3: a folder or a name on the hub (default "
        f"{ALL_MINILM}; where it cannot be had, there are no dense rows)",
    )
    group.add_argument(
        "--rerank",
        metavar="MODEL",
        help="the model of rows that are reranked, as in search (default "
        f"{MS_MARCO_MINILM}; where it cannot be had, there are no such rows)",
    )
    flags.add_model_weight(group)
    flags.add_read(
        group,
        "how texts are read in rows of the dataset's expressions, as in search (default expression)",
    )
    flags.add_model_options(group, "queries and documents")
    return parser


def _listed() -> str:
    names = protocol_names()
    width = max(map(len, names)) + 2
    return "\n".join(f"  {name:<{width}}{protocol_title(name)}" for name in names)


main = command(_parser, _run)
