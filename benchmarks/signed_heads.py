"""Table 5's question, small enough for a processor: do negative term scores help to tell passages from their negations?

    python benchmarks/signed_heads.py --dataset NEVIR --report DIR [--words 24] [--heads unsigned absmax sum]

The recipes nevir-split-unsigned, -absmax and -sum train the trunk of all-MiniLM-L6-v2 with a new head on the split
`train` of NevIR's pairs, all with the same settings, and are compared on `dev`. To save time, passages are first cut to
the words around the place where the two of a pair differ most. `--words 0` keeps them whole, up to 256 tokens, and
takes several times as long.

Paired accuracy is also measured with the weights above 0 alone, and with those below 0 alone, of queries and documents:
two negative weights of a term agree as two positive ones do.

A head that is trained already is not trained again. DIR gets the table, and for each head the run of both documents of
each query, and the curve of its loss. Trained models are below runs/signed_heads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from checkpoints import trunk_folder
from reporting import RUNS, table

from pyserini_compneg.commands.flags import count
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.encode.models import ModelOptions, read_checkpoint
from pyserini_compneg.encode.sides import load_side
from pyserini_compneg.errors import CompNegError
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.measures import mean, observations
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.eval.significance import compare, confidence_interval
from pyserini_compneg.experiments.datasets import Dataset, open_dataset
from pyserini_compneg.files import atomic_writer, iter_jsonl, reason_of
from pyserini_compneg.search import Hit, write_run
from pyserini_compneg.training import train
from pyserini_compneg.training.config import LOG_FILE, TrainConfig
from pyserini_compneg.training.recipe_file import located, read_config

HEADS = ("unsigned", "absmax", "sum")
PUBLISHED = {"unsigned": 23.07, "absmax": 37.09, "sum": 42.73}
"""Krasakis et al., Table 5: pairwise accuracy on NevIR's test set, of SPLADE fine-tuned on its train set."""

MEASURES = ("paired_accuracy", "right_rank")
TOKENS_A_WORD = 2


def cut(first: str, second: str, words: int) -> tuple[str, str]:
    """Some words of two passages, around the place where they differ most.

    >>> cut("a b c d e f g", "a b c d e not f g", 3)
    ('e f g', 'e not f')
    """
    left, right = first.split(), second.split()
    changes = [one for one in SequenceMatcher(None, left, right, False).get_opcodes() if one[0] != "equal"]
    _, start, end, other_start, other_end = max(
        changes, key=lambda one: max(one[2] - one[1], one[4] - one[3]), default=("", 0, 0, 0, 0)
    )

    def around(passage: list[str], middle: int) -> str:
        begin = max(0, min(middle - words // 2, len(passage) - words))
        return " ".join(passage[begin : begin + words])

    return around(left, (start + end) // 2), around(right, (other_start + other_end) // 2)


def check(dataset: Dataset, report: Path) -> None:
    """Reads all pairs, and makes the folder for the results, before the long training.

    Raises:
        CompNegError: Pairs that cannot be used, or a folder that cannot be made.
    """
    if dataset.kind != "nevir":
        raise CompNegError(f"{dataset.folder}: has no pairs of NevIR; its kind is {dataset.kind}")
    for split in ("train", "dev"):
        dataset.qrels(split)
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise CompNegError(f"{report}: the folder cannot be made: {reason_of(cause)}") from None


def write_cut(source: Path, target: Path, words: int) -> None:
    """Writes the pairs of a folder, train.jsonl and dev.jsonl, with cut passages."""
    target.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        with atomic_writer(target / f"{split}.jsonl") as lines:
            for _, pair in iter_jsonl(source / f"{split}.jsonl"):
                pair["doc1"], pair["doc2"] = cut(pair["doc1"], pair["doc2"], words)
                lines.write(json.dumps(pair) + "\n")


def head_config(head: str, data: Path, words: int) -> TrainConfig:
    """The recipe, evaluated only at its end, so that no checkpoint is chosen by its result on dev."""
    config = located(read_config(f"nevir-split-{head}"), base=str(trunk_folder()))
    settings = config.model_dump()
    if words:
        settings["model"]["max_length"] = TOKENS_A_WORD * words
    for source in settings["data"]:
        source["dataset"] = str(data)
    settings["training"]["evaluate_every"] = config.training.steps
    settings["dev"] = {"dataset": str(data), "split": "dev", "measures": MEASURES}
    return TrainConfig.model_validate(settings)


def train_head(config: TrainConfig, folder: Path) -> None:
    """Trains a model in a folder, unless it is trained already.

    Raises:
        CompNegError: The folder has a model with other settings.
    """
    if not (folder / LOG_FILE).is_file():
        train(config, folder, overwrite=True)
    elif _log(folder)["config"] | {"about": config.about} != config.model_dump(mode="json"):
        raise CompNegError(f"{folder}: was trained with other settings; delete it to train it again")


def accuracy_by_sign(model: Path, dataset: Dataset) -> list[float]:
    """Paired accuracy by the weights above 0 alone, of queries and documents, and by those below 0 alone."""
    side = load_side(read_checkpoint(model).document, ModelOptions(backend="torch"))
    topics, documents = dataset.topics("dev"), list(dataset.documents("dev"))
    queries = dict(zip((one.qid for one in topics), side.encode_batch([one.text for one in topics]), strict=True))
    texts = side.encode_batch([one.text or "" for one in documents])
    vectors = dict(zip((one.docid for one in documents), texts, strict=True))
    qrels, measures = dataset.qrels("dev"), parse_measures(MEASURES[:1])
    accuracies = []
    for sign in (1, -1):
        run = {
            qid: {docid: _score(queries[qid], vectors[docid], sign) for docid in judged}
            for qid, judged in qrels.items()
        }
        accuracies.append(mean(evaluate(qrels, run, measures), measures[0], list(qrels)))
    return accuracies


def _score(query: dict[str, float], document: dict[str, float], sign: int) -> float:
    pairs = ((weight, document.get(term, 0.0)) for term, weight in query.items())
    return sum(weight * other for weight, other in pairs if weight * sign > 0 and other * sign > 0)


def _log(folder: Path) -> dict[str, Any]:
    log: dict[str, Any] = json.loads((folder / LOG_FILE).read_text(encoding="utf-8"))
    return log


def write_report(models: dict[str, Path], data: Path, passages: str, report: Path) -> str:
    """Writes the runs of judged documents, the learning curves, and the report, which is returned."""
    dataset, measures = open_dataset(data), parse_measures(MEASURES)
    qrels = dataset.qrels("dev")
    values: dict[str, dict[str, list[float]]] = {measure.name: {} for measure in measures}
    rows = []
    for head, model in models.items():
        run = read_run(model / "dev_run.txt")
        kept = {qid: {docid: run[qid][docid] for docid in judged} for qid, judged in qrels.items()}
        with atomic_writer(report / f"{head}.txt") as lines:
            for qid, scores in kept.items():
                ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
                write_run(lines, qid, [Hit(docid, score) for docid, score in ranked])
        shutil.copyfile(model / "learning_curve.png", report / f"{head}.png")
        evaluated = evaluate(qrels, kept, measures)
        for measure in measures:
            qids = observations(measure, qrels, list(evaluated))
            values[measure.name][head] = [evaluated[qid][measure.name] for qid in qids]
        log = _log(model)
        losses = [entry["base_loss"] for entry in log["log"] if "base_loss" in entry][-10:]
        cells = [_percent(values[measure.name][head]) for measure in measures]
        terms = f"{log['results']['document_terms']:.0f}"
        by_sign = [f"{100 * value:.1f}" for value in accuracy_by_sign(model, dataset)]
        rows.append([head, *cells, *by_sign, terms, f"{sum(losses) / len(losses):.2f}", f"{PUBLISHED[head]:.2f}"])
    headers = ["head", "paired accuracy", "right rank", "by weights above 0", "below 0", "terms", "loss", "paper"]
    shown = table(headers, rows)
    text = f"# Signed heads on NevIR's split\n\n{len(qrels) // 2} pairs of dev, {passages}, one seed.\n\n{shown}\n"
    accuracy = values[measures[0].name]
    if len(accuracy) > 1:
        text += "\n" + "".join(
            f"- {one.run} over {one.other}: {100 * one.difference:+.1f} points, p = {one.t_test.holm:.3f}\n"
            for one in compare(accuracy, randomise=False)
            if list(accuracy).index(one.run) > list(accuracy).index(one.other)
        )
    with atomic_writer(report / "report.md") as handle:
        handle.write(text)
    return text


def _percent(values: Sequence[float]) -> str:
    low, high = confidence_interval(values)
    return f"{100 * sum(values) / len(values):.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the heads that are not trained yet, and writes the report."""
    return run_main(_main, argv)


def _words(text: str) -> int:
    return 0 if text == "0" else count(text)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True, help="a folder with NevIR's train.jsonl and dev.jsonl")
    parser.add_argument("--report", type=Path, required=True, help="the folder for the results")
    parser.add_argument("--words", type=_words, default=24, help="of a passage; 0 for all (default: %(default)s)")
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS), help="default: all")
    args = parser.parse_args(argv)
    data, folder = args.dataset, RUNS / "signed_heads" / f"{args.words}"
    check(open_dataset(data), args.report)
    if args.words:
        data = folder / "nevir"
        write_cut(args.dataset, data, args.words)
    models = {head: folder / head for head in args.heads}
    for head, model in models.items():
        train_head(head_config(head, data, args.words), model)
    passages = f"passages of {args.words} words" if args.words else "passages of up to 256 tokens"
    print(write_report(models, data, passages, args.report))


if __name__ == "__main__":
    sys.exit(main())
