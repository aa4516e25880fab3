"""Trains and evaluates the candidate for a small encoder of the package's own, in stages that can be ended at any time.

    python tools/train_mini.py prepare mini --data DATASETS --base MODEL [--size gpu|cpu]
    python tools/train_mini.py train mini [--minutes 9]           until it says that the model is done
    python tools/train_mini.py evaluate mini [--minutes 9]        until it says that all is evaluated

``prepare`` gathers everything in one folder of less than 60 MB that can be taken to another machine: the texts, the
trunk in 16 bits, and the configuration. DATASETS has the folders filmsets, scifact and pairs; MODEL is the folder of
all-MiniLM-L6-v2. ``train`` goes on from the last checkpoint. ``evaluate`` compares with BM25 on FilmSets dev, by every
operator, and on SciFact.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyserini_compneg.cli import count, run_main
from pyserini_compneg.errors import CompNegError
from pyserini_compneg.files import atomic_writer, iter_jsonl

LARGEST_BYTES = 60_000_000
FILES = {
    "filmsets": ("documents.jsonl.gz", "train.jsonl", "dev.jsonl"),
    "scifact": ("corpus.jsonl.gz", "queries.jsonl", "qrels/test.tsv"),
    "pairs": ("train.jsonl.gz",),
}
TITLES = 4000
SIZES = {
    "gpu": {"max_length": 192, "steps": 12000, "batch_size": 64, "evaluate_every": 500},
    "cpu": {"max_length": 96, "steps": 1500, "batch_size": 24, "evaluate_every": 100},
}
CONFIG = """\
about: >-
  The candidate for a small encoder of the package's own: films by their genres, years and cast, questions and passages,
  titles and leads.
model:
  base: base
  head: relu:max
  max_length: {max_length}
data:
  - dataset: filmsets
    split: train-nc
    negatives: bm25
  - dataset: pairs/train.jsonl.gz
  - dataset: titles.jsonl
dev:
  dataset: filmsets
  split: dev
  documents: 5000
training:
  steps: {steps}
  batch_size: {batch_size}
  learning_rate: 5.0e-5
  head_learning_rate: 1.0e-3
  query_flops: 1.0e-3
  document_flops: 1.0e-3
  evaluate_every: {evaluate_every}
"""


def prepare(folder: Path, data: Path, base: Path, size: str) -> None:
    """Gathers what the other stages need.

    Raises:
        CompNegError: The folder is there, or becomes too large.
    """
    if folder.exists():
        raise CompNegError(f"{folder}: exists already; name another folder")
    for name, files in FILES.items():
        for file in files:
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data / name / file, folder / name / file)
    films = [record for _, record in iter_jsonl(folder / "filmsets" / "documents.jsonl.gz")]
    with atomic_writer(folder / "titles.jsonl") as lines:
        for film in random.Random(0).sample(films, min(TITLES, len(films))):
            lines.write(json.dumps({"query": film["title"], "positive": film["text"]}) + "\n")
    _halve(base, folder / "base")
    (folder / "mini.yaml").write_text(CONFIG.format(**SIZES[size]), encoding="utf-8")
    size_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size_bytes >= LARGEST_BYTES:
        raise CompNegError(f"{folder}: has {size_bytes / 1e6:.0f} MB, {LARGEST_BYTES / 1e6:.0f} MB are the limit")
    print(f"{folder}: {size_bytes / 1e6:.1f} MB")


def _halve(base: Path, target: Path) -> None:
    """The trunk in 16 bits; it is trained in 32 all the same."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as reports

    reports.disable_progress_bar()
    reports.set_verbosity_error()
    AutoModel.from_pretrained(base, dtype=torch.float16, add_pooling_layer=False).save_pretrained(target)
    AutoTokenizer.from_pretrained(base).save_pretrained(target)


def commands(folder: Path, stage: str) -> list[tuple[Path, list[str]]]:
    """What a stage runs: for each command the file that is there when it is done, and its arguments."""
    model = str(folder / "model")
    if stage == "train":
        names = ["mini.yaml", "--data", ".", "--base", "base", "--output", "model", "--resume"]
        return [(folder / "model" / "modules.json", ["train", *names])]
    steps = []
    gpu = ["--backend", "torch", "--device", "cuda"] if _has_gpu() else []
    for name, encoder, options in (("bm25", "bm25", []), ("mini", model, gpu)):
        report, index, run = folder / f"report-{name}", folder / f"scifact-{name}", folder / f"scifact-{name}.txt"
        films = ["--dataset", str(folder / "filmsets"), "--split", "dev"]
        steps.append(
            (
                report / "report.md",
                ["reproduce", "table1", *films, "--encoder", encoder, "--report", str(report), *options],
            )
        )
        corpus = ["--collection", str(folder / "scifact" / "corpus.jsonl.gz"), "--index", str(index)]
        steps.append((index / "compneg.json", ["index", *corpus, "--encoder", encoder, "--resume", *options]))
        topics = ["--topics", str(folder / "scifact" / "queries.jsonl"), "--plain", "--output", str(run)]
        steps.append((run, ["search", "--index", str(index), *topics, *options]))
        qrels = ["--qrels", str(folder / "scifact" / "qrels" / "test.tsv"), "--run", str(run)]
        result = folder / f"scifact-{name}.json"
        steps.append((result, ["eval", *qrels, "--output-format", "json", "--output", str(result)]))
    return steps


def _has_gpu() -> bool:
    import torch

    available: bool = torch.cuda.is_available()
    return available


def run_stage(folder: Path, stage: str, minutes: int) -> bool:
    """Runs the commands that are not done yet; whether all are at the end.

    Raises:
        CompNegError: One failed.
    """
    for done, arguments in commands(folder.resolve(), stage):
        if done.exists():
            continue
        command = [sys.executable, "-m", f"pyserini_compneg.{arguments[0]}", *arguments[1:]]
        try:
            code = subprocess.run(command, cwd=folder, timeout=60 * minutes).returncode
        except subprocess.TimeoutExpired:
            return False
        if code:
            raise CompNegError(f"{' '.join(arguments)} ended with exit code {code}")
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a stage."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["prepare", "train", "evaluate"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, help="prepare: where the datasets are")
    parser.add_argument("--base", type=Path, help="prepare: the folder of all-MiniLM-L6-v2")
    parser.add_argument("--size", choices=SIZES, default="gpu", help="prepare: for which machine")
    parser.add_argument("--minutes", type=count, default=9, help="a command is ended after these, to be gone on with")
    args = parser.parse_args(argv)
    if args.stage == "prepare":
        if not (args.data and args.base):
            parser.error("prepare needs --data and --base")
        prepare(args.folder, args.data, args.base, args.size)
        return
    done = run_stage(args.folder, args.stage, args.minutes)
    print(f"{args.stage}: {'done' if done else 'not done yet; run it again'}")


if __name__ == "__main__":
    sys.exit(main())
