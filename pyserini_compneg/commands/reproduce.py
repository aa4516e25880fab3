"""``compneg reproduce``: the tables and figures of the papers, on the user's data."""

from __future__ import annotations

import argparse
import logging
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.lab.experiments.inputs import (
    ALL_MINILM,
    MS_MARCO_MINILM,
    protocol_names,
    protocol_title,
    quick_dataset,
)
from pyserini_compneg.search import SearchSettings
from pyserini_compneg.support.errors import CompNegError, InputError
from pyserini_compneg.support.options import add_flags
from pyserini_compneg.support.processors import processors

_ALL, _BM25, _HYBRID = "all", "bm25", "bm25+mini"
_logger = logging.getLogger("pyserini_compneg.lab.experiments")

_EPILOG = """\
protocols:
{protocols}

The folder of the report has report.md with its plots, results.json with all
figures, the runs, and the judgements.

Existing runs are reused, so the same command continues after an interruption.

examples:
  compneg reproduce table1 --report reports/sample \\
      --dataset pyserini_compneg/resources/sample
  compneg reproduce table1 --report reports/quest \\
      --dataset data/quest --encoder naver/splade-v3
  compneg reproduce table4 --report reports/table4 --train \\
      --dataset data/filmsets --base models/splade-tiny
  compneg reproduce all --quick --report reports/quick
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    encoders = args.encoder or [_BM25]
    indexes = args.index or [None] * len(encoders)
    if len(indexes) != len(encoders):
        parser.error(f"--index must name one index for each --encoder, got {len(indexes)} for {len(encoders)}")
    pairs = list(zip(encoders, indexes, strict=True))
    if repeated := [encoder for encoder, index in pairs if pairs.count((encoder, index)) > 1]:
        parser.error(f"--encoder has {repeated[0]!r} twice for the same index")
    if args.quick == (args.dataset is not None):
        parser.error("give either --dataset, or --quick, which makes small datasets of its own")
    if args.base and not args.train:
        parser.error("--base is what --train starts from; give --train, too")
    if args.protocol == _ALL and (args.rows or args.query):
        said = "--rows chooses rows" if args.rows else "--query is the query"
        parser.error(f"{said} of one protocol; name it in place of {_ALL}")
    if args.domains and args.split:
        parser.error("--domains names what --split would; leave one out")
    from pyserini_compneg.lab.experiments.report import check_packages

    check_packages()
    if args.rerank:  # also where no row would be reranked
        from pyserini_compneg.baselines import check_pair_scorer

        check_pair_scorer(args.rerank)
    if args.protocol == _ALL:
        _reproduce_all(args)
    else:
        _reproduce(args, args.protocol, args.encoder, args.report, is_alone=True)


def _reproduce_all(args: argparse.Namespace) -> None:
    """Runs every protocol for the dataset's kind. If a protocol fails, the others still run."""
    from pyserini_compneg.lab.experiments.datasets import open_dataset
    from pyserini_compneg.lab.experiments.protocol import read_protocol

    kind = open_dataset(args.dataset).kind if args.dataset else None
    failed = []
    for name in protocol_names():
        protocol, started = read_protocol(name), time.monotonic()
        if kind is not None and kind not in protocol.datasets:
            continue
        is_default = protocol.weighs_model and args.encoder in (None, [_BM25])
        try:
            _reproduce(args, name, [_HYBRID] if is_default else args.encoder, args.report / name)
        except CompNegError as error:
            failed.append(name)
            _logger.error("%s: %s", name, error)
        else:
            print(f"{name}\t{time.monotonic() - started:.1f} s", flush=True)
    if failed:
        raise InputError(f"{len(failed)} protocols were not reproduced: {', '.join(failed)}; see the lines above")


def _reproduce(
    args: argparse.Namespace, name: str, encoders: Sequence[str] | None, report: Path, is_alone: bool = False
) -> None:
    from pyserini_compneg.eval.table import run_labels
    from pyserini_compneg.lab.experiments.datasets import open_dataset
    from pyserini_compneg.lab.experiments.datasets.dataset import DOMAIN
    from pyserini_compneg.lab.experiments.experiment import Experiment
    from pyserini_compneg.lab.experiments.protocol import read_protocol
    from pyserini_compneg.lab.experiments.report import write_report
    from pyserini_compneg.lab.experiments.results import warn_of_lost_rows, write_results
    from pyserini_compneg.lab.experiments.run_folder import Engine, RunOptions

    protocol = read_protocol(name)
    if args.query:
        protocol = protocol.asking(args.query)
    if args.rows:
        protocol = protocol.only(args.rows)
        warn_of_lost_rows(report, {row.title for row in protocol.rows})
    if args.quick:
        about = f"{protocol.about} Made with --quick, from little data: the figures and their order mean nothing."
        protocol = protocol.model_copy(update={"about": about})
        protocol = protocol.without([need for need in protocol.needs if need.model and not need.is_trained])
    if args.quick and protocol.interference:  # few queries fill few bins
        curve = protocol.interference.model_copy(update={"bins": min(2, protocol.interference.bins)})
        protocol = protocol.model_copy(update={"interference": curve})
    dataset = open_dataset(args.dataset or quick_dataset(protocol.datasets, args.report / "data"))
    train_domain, split = args.domains or (None, args.split)
    if args.domains:
        if dataset.of_domain is None:
            raise InputError(f"queries of the kind {dataset.kind} have no domains", where=dataset.folder)
        split = f"{DOMAIN}{split}"
    training = f"{DOMAIN}{train_domain}" if args.domains else None
    models = {}
    if args.train and is_alone and not any(row.model for row in protocol.rows):
        raise InputError(f"protocol {protocol.name}: no row has a model to train", remedy="leave --train out")
    if any(row.model for row in protocol.rows):
        from pyserini_compneg.lab.training.protocol_models import find_models, train_models

        place = args.models or args.report / "models"  # one place for all protocols
        if args.train:
            models = train_models(protocol, dataset, place, args.base, args.dense_encoder, split, train_domain)
        else:
            models = find_models(protocol, dataset, place, split, train_domain)
    if encoders is None and protocol.published_with in models:
        protocol = protocol.only_models
    encoders = encoders or [_BM25]
    labels = run_labels(encoders) if len(encoders) > 1 else [""]
    options = RunOptions(
        [Engine(*values) for values in zip(encoders, args.index or [None] * len(encoders), labels, strict=True)],
        dense_encoder=args.dense_encoder,
        reranker=args.rerank,
        wordnet=args.wordnet,
        models=models,
        model_options=flags.chosen_model_options(args),
        model_weight=args.model_weight,
        read=args.read or "expression",
        threads=args.threads,
    )
    command = f"compneg reproduce {shlex.join(args.arguments)}"
    results = Experiment(dataset, report, options, split, training, command).run(protocol)
    write_results(results, report / "results.json")
    write_report(results, report)
    _logger.info("%s", report / "report.md")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "reproduce",
        "PROTOCOL (--dataset DIR | --quick) --report DIR",
        "Runs the protocol of a table or figure, and writes its runs, its figures and a report.",
        _EPILOG.format(protocols=_listed()),
    )
    add = parser.add_argument
    text = "one of the protocols below, or the path of a YAML file like them; 'all' for all that suit the dataset"
    add("protocol", metavar="PROTOCOL", help=text)
    add("--dataset", metavar="DIR", help="folder with the dataset's official files")
    text = "instead of --dataset: small datasets made of the packaged sample, to try protocols; figures are meaningless"
    add("--quick", action="store_true", help=text)
    text = "bm25, models (folders or names on the Hugging Face hub), or bm25+MODEL; each row runs with each (default: "
    text += "bm25, or only the trained model of the protocol's published figures, if it is there)"
    add("--encoder", nargs="+", metavar="NAME", help=text)
    add("--report", required=True, type=Path, metavar="DIR", help="folder for the report, the runs and the indexes")
    text = (
        "run these rows only, in the sections that have them; * matches any text, so '*disentangled' also matches "
        "'cpt, disentangled' (default: all rows)"
    )
    add("--rows", nargs="+", metavar="ROW", help=text)
    text = "train missing models that rows name, on the dataset's split for training"
    add("--train", action="store_true", help=text)
    text = "the query whose terms are shown, for protocols with a query of their own, such as table2"
    add("--query", metavar="QUERY", help=text)
    flags.add_threads(parser, processors())
    group = flags.advanced(parser)
    text = "split (default: the first split of the protocol that the dataset has)"
    group.add_argument("--split", metavar="NAME", help=text)
    text = (
        "domains of queries to train on and to test on, such as 'films books' or 'films+books plants'; for QUEST's "
        "format (default: the whole splits; of QUEST, films and books to train on, plants and animals to test on)"
    )
    group.add_argument("--domains", nargs=2, metavar=("TRAIN", "TEST"), help=text)
    text = "an index for each encoder (default: built in the report's folder)"
    group.add_argument("--index", nargs="+", type=Path, metavar="DIR", help=text)
    group.add_argument(
        "--dense-encoder",
        metavar="NAME",
        help="the encoder of dense rows, and of the similarities of figure3: a folder or a name on the hub (default "
        f"{ALL_MINILM}; without it, dense rows are left out); with --train, dense models start from it",
    )
    group.add_argument(
        "--rerank",
        metavar="MODEL",
        help="the model of rows that are reranked, as in search (default "
        f"{MS_MARCO_MINILM}; without it, these rows are left out)",
    )
    text = "folder of trained models, by the names of their recipes (default: models in the report's folder)"
    group.add_argument("--models", type=Path, metavar="DIR", help=text)
    text = "with --train: sparse models start from this checkpoint instead of the one in the recipe"
    group.add_argument("--base", metavar="MODEL", help=text)
    text = "folder of WordNet's files (default: Debian's wordnet-base; without it, the synonyms are left out)"
    group.add_argument("--wordnet", type=Path, metavar="DIR", help=text)
    add_flags(group, SearchSettings, {"model_weight"})
    flags.add_read(
        group,
        "how texts are parsed in rows that take the dataset's expressions, as in search (default expression)",
    )
    flags.add_model_options(group)
    return parser


def _listed() -> str:
    names = protocol_names()
    width = max(map(len, names)) + 2
    return "\n".join(f"  {name:<{width}}{protocol_title(name)}" for name in names)


main = command(_parser, _run)
