"""Trains and evaluates the candidate for a small encoder of the package's own, in stages that can be ended at any time.

    python tools/train_mini.py prepare mini --data DATASETS --base MODEL [--size gpu|cpu]
    python tools/train_mini.py train mini [--minutes 9]           until it says that the model is done
    python tools/train_mini.py pack mini                          where a GPU is lent: the model in 16 bits, mini/packed
    python tools/train_mini.py evaluate mini --data DATASETS [--minutes 9]    until it says that all is evaluated

``prepare`` gathers what training needs in one folder of less than 55 MB that can be taken to another machine: the texts
with their negatives, the trunk in 16 bits, and the configuration. DATASETS has the folders filmsets, scifact and pairs;
MODEL is the folder of all-MiniLM-L6-v2. ``train`` needs neither Java nor a network, and goes on from the last
checkpoint. ``evaluate`` compares ``mini/model``, or what was packed of it, with BM25 on FilmSets dev, by operators,
and on SciFact; on a processor in int8.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyserini_compneg.commands.flags import count
from pyserini_compneg.commands.running import run_main
from pyserini_compneg.errors import CompNegError
from pyserini_compneg.files import iter_jsonl
from pyserini_compneg.train.config import SourceConfig
from pyserini_compneg.train.examples import read_examples

LARGEST_BYTES = 55_000_000
TITLES = 3000
POSITIVES = 5
DEV_QUERIES, DEV_DOCUMENTS = 50, 2000
SIZES = {
    "gpu": {
        "reads": 256,
        "max_length": 192,
        "steps": 12000,
        "batch_size": 64,
        "evaluate_every": 500,
        "negatives": "bm25",
    },
    "cpu": {
        "reads": 256,
        "max_length": 96,
        "steps": 1400,
        "batch_size": 32,
        "evaluate_every": 300,
        "negatives": "none",
    },
}
CONFIG = """\
about: >-
  The candidate for a small encoder of the package's own: films by their genres, years and cast, questions and passages,
  sentences and what surrounds them, titles and leads. Queries need no network.
model:
  base: base
  head: relu:max
  query_encoder: static
  max_length: {reads}
data:
  - dataset: films.jsonl.gz
  - dataset: pairs.jsonl.gz
  - dataset: passages.jsonl.gz
  - dataset: titles.jsonl.gz
dev:
  dataset: filmsets
  split: dev
training:
  steps: {steps}
  batch_size: {batch_size}
  max_length: {max_length}
  learning_rate: 5.0e-5
  head_learning_rate: 1.0e-3
  query_flops: 0
  document_flops: 2.0e-3
  evaluate_every: {evaluate_every}
"""


def prepare(folder: Path, data: Path, base: Path, size: str) -> None:
    """Gathers what training needs.

    Raises:
        CompNegError: The folder is there, or becomes too large, or a dataset is not there.
    """
    if folder.exists():
        raise CompNegError(f"{folder}: exists already; name another folder")
    if not (base / "config.json").is_file():
        raise CompNegError(f"{base}: has no config.json; give the folder of all-MiniLM-L6-v2")
    with tempfile.TemporaryDirectory(dir=folder.resolve().parent) as place:
        try:
            _gather(Path(place, "mini"), data, base, size)
        except KeyError as cause:
            raise CompNegError(f"{data}: a record of filmsets or pairs has no field {cause}") from None
        Path(place, "mini").rename(folder)
    print(f"{folder}: {_size(folder) / 1e6:.1f} MB")


def _gather(folder: Path, data: Path, base: Path, size: str) -> None:
    films = [record for _, record in iter_jsonl(data / "filmsets" / "documents.jsonl.gz")]
    draw = random.Random(0)
    titles = [
        {"query": film["title"], "positive": film["text"]} for film in draw.sample(films, min(TITLES, len(films)))
    ]
    source = SourceConfig(str(data / "filmsets"), "train-nc", str(SIZES[size]["negatives"]), POSITIVES)
    examples = [
        {"query": one.query, "positive": one.positive, "negative": list(one.negatives)}
        for one in read_examples(source, seed=0)
    ]
    pairs = [record for _, record in iter_jsonl(data / "pairs" / "train.jsonl.gz")]
    texts = dict.fromkeys(pair[side] for pair in pairs for side in ("positive", "negative") if pair.get(side))
    queries = [
        record for _, record in iter_jsonl(data / "filmsets" / "dev.jsonl") if record["metadata"]["template"] == "_"
    ][:DEV_QUERIES]
    judged = {docid for query in queries for docid in query["docs"]}
    others = draw.sample(films, min(DEV_DOCUMENTS, len(films)))
    kept = judged | {film["docid"] for film in others[: max(0, DEV_DOCUMENTS - len(judged))]}
    (folder / "filmsets").mkdir(parents=True)
    _write(folder / "films.jsonl.gz", examples)
    _write(folder / "pairs.jsonl.gz", [{"query": pair["query"], "positive": pair["positive"]} for pair in pairs])
    _write(folder / "passages.jsonl.gz", [pair for text in texts if (pair := sentence_and_rest(text, draw))])
    _write(folder / "titles.jsonl.gz", titles)
    _write(folder / "filmsets" / "documents.jsonl.gz", [film for film in films if film["docid"] in kept])
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    (folder / "filmsets" / "dev.jsonl").write_text(lines, encoding="utf-8")
    _halve_trunk(base, folder / "base")
    (folder / "mini.yaml").write_text(CONFIG.format(**SIZES[size]), encoding="utf-8")
    if _size(folder) >= LARGEST_BYTES:
        raise CompNegError(f"gathered {_size(folder) / 1e6:.0f} MB, {LARGEST_BYTES / 1e6:.0f} MB are the limit")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def sentence_and_rest(text: str, draw: random.Random) -> dict[str, str] | None:
    """A sentence of a passage as a query for those around it; None of a passage of fewer than three.

    One time in five the sentence is left in (Lee et al. 2019, inverse cloze task, there one in ten).
    """
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", text) if len(part.split()) > 5]
    if len(sentences) < 3:
        return None
    place = draw.randrange(min(len(sentences), 6))
    rest = sentences if draw.random() < 0.2 else sentences[:place] + sentences[place + 1 :]
    first = max(0, min(place - 2, len(rest) - 3))
    return {"query": sentences[place], "positive": " ".join(rest[first : first + 4])}


def _write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as lines:  # the same bytes of the same records
        for record in records:
            lines.write(json.dumps(record).encode() + b"\n")


def _halve_trunk(base: Path, target: Path) -> None:
    """The trunk in 16 bits; it is trained in 32 all the same."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as reports

    reports.disable_progress_bar()
    reports.set_verbosity_error()
    try:
        model = AutoModel.from_pretrained(base, dtype=torch.float16, add_pooling_layer=False, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    except Exception as cause:  # of torch, safetensors, transformers: without a common class
        line = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise CompNegError(f"{base}: no trunk can be loaded: {line[:200]}") from None
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def pack(folder: Path) -> None:
    """Writes the trained model in 16 bits, which loses nothing that matters, and half of its size.

    Raises:
        CompNegError: It is not trained yet.
    """
    from safetensors.torch import load_file, save_file

    model, packed = folder / "model", folder / "packed"
    if not _trained(model).is_file():
        raise CompNegError(f"{model}: there is no model yet; run the stage train until it is done")
    shutil.rmtree(packed, ignore_errors=True)
    shutil.copytree(model, packed)
    for file in packed.rglob("*.safetensors"):
        save_file({name: weight.half() for name, weight in load_file(file).items()}, file, {"format": "pt"})


def _trained(model: Path) -> Path:
    """What a model's folder has if it is whole."""
    return model / "modules.json"


def commands(folder: Path, stage: str, data: Path) -> list[tuple[Path, list[str]]]:
    """What a stage runs: for each command the file that is there when it is done, and its arguments."""
    if stage == "train":
        names = ["mini.yaml", "--data", ".", "--base", "base", "--output", "model", "--resume"]
        return [(_trained(folder / "model"), ["train", *names])]
    steps = []
    model = folder / "model" if _trained(folder / "model").is_file() else folder / "packed"
    how = ["--backend", "torch", "--device", "cuda"] if _has_gpu() else ["--precision", "int8"]
    for name, encoder, options in (("bm25", "bm25", []), ("mini", str(model), how)):
        report, index, run = folder / f"report-{name}", folder / f"scifact-{name}", folder / f"scifact-{name}.txt"
        films = ["--dataset", str(data / "filmsets"), "--split", "dev"]
        steps.append(
            (
                report / "report.md",
                ["reproduce", "table1", *films, "--encoder", encoder, "--report", str(report), *options],
            )
        )
        corpus = ["--collection", str(data / "scifact" / "corpus.jsonl.gz"), "--index", str(index)]
        steps.append((index / "compneg.json", ["index", *corpus, "--encoder", encoder, "--resume", *options]))
        topics = ["--topics", str(data / "scifact" / "queries.jsonl"), "--plain", "--output", str(run)]
        steps.append((run, ["search", "--index", str(index), *topics, *options]))
        qrels = ["--qrels", str(data / "scifact" / "qrels" / "test.tsv"), "--run", str(run)]
        result = folder / f"scifact-{name}.json"
        steps.append((result, ["eval", *qrels, "--output-format", "json", "--output", str(result)]))
    return steps


def _has_gpu() -> bool:
    import torch

    available: bool = torch.cuda.is_available()
    return available


def run_stage(folder: Path, stage: str, minutes: int, data: Path) -> bool:
    """Runs the commands that are not done yet; whether all are at the end.

    Raises:
        CompNegError: One failed.
    """
    for done, arguments in commands(folder.resolve(), stage, data.resolve()):
        if done.exists():
            continue
        command = [sys.executable, "-m", f"pyserini_compneg.{arguments[0]}", *arguments[1:]]
        former = _checkpoints(folder)
        try:
            code = subprocess.run(command, cwd=folder, timeout=60 * minutes).returncode
        except subprocess.TimeoutExpired:
            if stage == "train" and _checkpoints(folder) == former:
                raise CompNegError(f"{folder}: no checkpoint was reached in {minutes} minutes; give more") from None
            return False
        if code:
            raise CompNegError(f"{' '.join(arguments)} ended with exit code {code}")
    return True


def _checkpoints(folder: Path) -> set[Path]:
    """The checkpoints that are whole, where ``train`` keeps them."""
    return set(folder.glob("model.training/checkpoints/*/whole"))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a stage."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["prepare", "train", "pack", "evaluate"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path(), help="prepare and evaluate: where the datasets are")
    parser.add_argument("--base", type=Path, help="prepare: the folder of all-MiniLM-L6-v2")
    parser.add_argument("--size", choices=SIZES, default="gpu", help="prepare: for which machine")
    parser.add_argument("--minutes", type=count, default=9, help="a command is ended after these, to be gone on with")
    args = parser.parse_args(argv)
    if args.stage == "prepare":
        if not args.base:
            parser.error("prepare needs --base")
        prepare(args.folder, args.data, args.base, args.size)
    elif args.stage == "pack":
        pack(args.folder)
    else:
        done = run_stage(args.folder, args.stage, args.minutes, args.data)
        print(f"{args.stage}: {'done' if done else 'not done yet; run it again'}")


if __name__ == "__main__":
    sys.exit(main())
