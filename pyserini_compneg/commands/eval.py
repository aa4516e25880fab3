"""``compneg eval``: a table of measures for one or more runs."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command
from pyserini_compneg.eval.measures import DEFAULT_MEASURES, Measure, coverage, evaluate, parse_measures
from pyserini_compneg.eval.qrels import Qrels, read_groups, read_qrels
from pyserini_compneg.eval.rows import PerQuery, make_rows
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.eval.table import TABLE_FORMATS, per_query_csv, render, run_labels
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.staging import atomic_writer, keep_inputs

_logger = logging.getLogger("pyserini_compneg.eval")

_FEW_FOUND = 0.05
"""A run that has a smaller share of the judged documents than this may be of another collection."""

_EPILOG = """\
As with trec_eval -c, means are over all queries of the qrels: a query that a run lacks scores 0.
Several runs are compared. A letter after a value means: significantly better than the run with that letter
(paired t-test, p < 0.05, corrected by Holm's method). With two runs, the table shows the p-values, too. JSON has all
p-values and confidence intervals.

example:
  compneg eval --qrels pyserini_compneg/resources/sample/queries.jsonl \\
      --run runs/sample/default.txt runs/sample/vanilla.txt -m ndcg_cut.10 -m recall.100 --by template
"""


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.groups and not args.by:
        parser.error("--groups needs --by")
    as_csv = args.output_format == "csv"
    if args.by and (args.per_query or as_csv):
        other = "--output-format csv" if as_csv else "--per-query"
        parser.error(f"--by makes a row for each class, {other} makes a row for each query; choose one of them")
    keep_inputs(args.output, *filter(None, (args.qrels, args.groups, *args.run)))
    measures = parse_measures(args.measures or DEFAULT_MEASURES)
    qrels = read_qrels(args.qrels)
    groups = {qid: qid for qid in qrels} if args.per_query else {}
    if args.by:
        groups = _groups(args.groups or args.qrels, args.by, qrels)
    labels = run_labels(args.run)
    with atomic_writer(args.output) as handle:
        results = {label: _evaluate_run(path, qrels, measures) for label, path in zip(labels, args.run, strict=True)}
        if as_csv:
            handle.write(per_query_csv(results, measures))
            return
        as_json = args.output_format == "json"
        compared = qrels if as_json or len(results) > 1 else None
        rows = make_rows(results, measures, groups, compared, randomise=as_json)
        handle.write(render(rows, "query" if args.per_query else args.by, args.output_format))


def _groups(path: str, key: str, qrels: Qrels) -> dict[str, str]:
    groups = read_groups(path, key)
    for qid in qrels:
        if qid not in groups:
            raise InputError(f"{path}: no {key} for query {qid!r} of the qrels")
    return groups


def _evaluate_run(path: str, qrels: Qrels, measures: Sequence[Measure]) -> PerQuery:
    run = read_run(path)
    missing, unjudged = coverage(qrels, run)
    if missing and run:
        share = f"{len(missing)} of {len(qrels)}"
        _logger.warning("%s: %s queries are missing and score 0: %s", path, share, _few(missing))
    common = [qid for qid in qrels if qid in run]
    possible = sum(min(len(qrels[qid]), len(run[qid])) for qid in common)
    found = sum(docid in run[qid] for qid in common for docid in qrels[qid])
    if found < _FEW_FOUND * possible:
        some = f"{found:,} of {possible:,} judged documents that the run could have are"
        seen = some if found else "no judged document is"
        _logger.warning("%s: %s in the run; check that the run and the qrels use the same ids", path, seen)
    if unjudged:
        _logger.warning("%s: ignored %d queries that the qrels lack: %s", path, len(unjudged), _few(unjudged))
    return evaluate(qrels, run, measures)


def _few(qids: Sequence[str]) -> str:
    return ", ".join(qids[:3]) + (", ..." if len(qids) > 3 else "")


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "eval", "--qrels FILE --run FILE [FILE ...]", "Evaluates and compares runs against judgements.", _EPILOG
    )
    parser.add_argument("--qrels", required=True, metavar="FILE", help="judgements: TREC, BEIR tsv or QUEST jsonl")
    runs = "one run or more: trec, msmarco or json, plain or .gz"
    parser.add_argument("--run", required=True, nargs="+", action="extend", metavar="FILE", help=runs)
    measures = "a name of trec_eval or ir_measures (capitals do not matter), or paired_accuracy, right_rank, "
    measures += "delta_recall@N, delta_mrr@N; repeatable (default: ndcg_cut.10 and recall.100)"
    parser.add_argument("-m", "--measure", dest="measures", action="append", metavar="MEASURE", help=measures)
    parser.add_argument("--by", metavar="KEY", help="a row for each value of metadata.KEY, for example template")
    parser.add_argument("--per-query", action="store_true", help="a row for each query")
    group = flags.advanced(parser)
    group.add_argument("--groups", metavar="FILE", help="jsonl with the metadata for --by (default: the qrels)")
    flags.add_output(group, "where to write the table")
    text = "format of the table (default text); csv has the unrounded values of each run and query"
    group.add_argument("--output-format", choices=(*TABLE_FORMATS, "csv"), default="text", help=text)
    return parser


main = command(_parser, _run)
