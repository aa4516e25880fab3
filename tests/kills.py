"""Kills index, update, encode, search and train at random moments, and looks at what is left.

    python tests/kills.py --kills 100 [--seed 1] [index update shards encode search train]

`shards` is `update` of an index in shards.

After each kill the result is the old one, or the new one, whole. After the last one each command is run to its end:
the result is that of a command that nobody killed, and nothing is left beside it. Needs POSIX and the extra `train`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "helpers"), str(HERE.parent)]

from checkpoints import write_masked_lm  # noqa: E402
from tiny_training import write_dataset  # noqa: E402

from pyserini_compneg.commands.demo import QUERIES, SAMPLE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index, verify_index  # noqa: E402
from pyserini_compneg.search import SignedImpactSearcher  # noqa: E402

RECIPE = """
about: A try.
model: {{base: {base}, head: "relu:max", max_length: 32}}
data: [{{dataset: films, split: train}}]
dev: {{dataset: films, split: train, measures: [recip_rank]}}
training: {{steps: 4, batch_size: 8, evaluate_every: 1, learning_rate: 1.0e-3, query_flops: 0, document_flops: 0}}
"""


@dataclass
class Work:
    """A command, what it makes, and how to tell whether that is whole. Several commands take turns."""

    commands: list[list[str]]
    result: Path
    state: Callable[[Path], object]
    share: int
    turn: int = 0

    def start(self) -> subprocess.Popen[str]:
        """Starts the command."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "pyserini_compneg", *self.commands[self.turn % len(self.commands)]]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, text=True, env=environment, **pipes)

    def run(self) -> float:
        """Runs it to its end; returns the seconds."""
        start = time.monotonic()
        process = self.start()
        said = process.communicate()[1]
        assert process.returncode == 0, said
        return time.monotonic() - start

    def now(self) -> object:
        """The state of the result; None if there is none."""
        return self.state(self.result) if self.result.exists() else None


def index_state(folder: Path) -> object:
    """Whether it is whole, and what it finds."""
    verify_index(folder)
    with SignedImpactSearcher(folder) as searcher:
        return searcher.batch_search(["spy films", "war films NOT comedy films"], ["1", "2"], 100)


def file_state(path: Path) -> str:
    """A hash of its content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def model_state(folder: Path) -> object:
    """A hash of the weights, and the figures of all evaluations."""
    log = json.loads((folder / "training_log.json").read_text())["log"]
    return file_state(folder / "model.safetensors"), [e["eval_recip_rank"] for e in log if "eval_recip_rank" in e]


def works(home: Path) -> dict[str, Work]:
    """The commands, in folders of their own."""
    for name in ("index", "update", "shards", "encode", "search", "train"):
        (home / name).mkdir()
    base = str(write_masked_lm(home / "base"))
    documents = write_dataset(home / "many", 400) / "documents.jsonl"
    write_dataset(home / "data" / "films", 24)
    (home / "c.yaml").write_text(RECIPE.format(base=base))
    sample = home / "index" / "sample"
    vectors = home / "encode" / "vectors"
    model, run = home / "train" / "model", home / "search" / "run.txt"
    index = [
        "index",
        "--collection",
        str(SAMPLE / "documents.jsonl.gz"),
        "--index",
        str(sample),
        "--pair-terms",
        "16",
        "--replace",
    ]
    encode = ["encode", "--collection", str(documents), "--output", str(vectors), "--encoder", base]
    encode += ["--backend", "torch", "--resume", "--overwrite"]
    search = ["search", "--index", str(sample), "--topics", str(QUERIES), "--output", str(run)]
    train = ["train", str(home / "c.yaml"), "--data", str(home / "data"), "--output", str(model)]
    return {
        "index": Work([index], sample, index_state, 32),
        "update": Work(updates(home / "update"), home / "update" / "index", index_state, 32),
        "shards": Work(updates(home / "shards", 2), home / "shards" / "index", index_state, 32),
        "encode": Work([encode], vectors / "vectors-0-of-1.jsonl.gz", file_state, 30),
        "search": Work([search], run, file_state, 30),
        "train": Work([[*train, "--resume", "--overwrite"]], model, model_state, 8),
    }


def updates(home: Path, shards: int = 0) -> list[list[str]]:
    """Updates of an index from one state to the other and back; the first also merges the index."""
    lines = gzip.decompress((SAMPLE / "documents.jsonl.gz").read_bytes()).decode().splitlines()
    changed = [line.replace(" film ", " spy film ") for line in lines[20:]]
    commands = []
    for name, kept, gone in (("a", lines[:-20], lines[-20:]), ("b", changed, lines[:20])):
        (home / f"{name}.jsonl").write_text("\n".join(kept))
        (home / f"{name}.txt").write_text("\n".join(json.loads(line)["docid"] for line in gone))
        told = ["--collection", str(home / f"{name}.jsonl"), "--delete", str(home / f"{name}.txt")]
        commands.append(["update", "--index", str(home / "index"), *told, *["--optimize"] * (name == "a")])
    if shards:
        build_sharded_index(home / "a.jsonl", home / "index", shards)
    else:
        build_index(home / "a.jsonl", home / "index")
    return commands


def main() -> int:
    """Kills; returns 1 if anything was lost or left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("works", nargs="*", help="index, update, shards, encode, search, train (default: all)")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    choice, faults = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        os.environ |= {"COMPNEG_CACHE": f"{folder}/cache", "HF_HUB_OFFLINE": "1"}
        for name, work in works(Path(folder)).items():
            if name == "index" and "search" in options.works and "index" not in options.works:
                work.run()  # what it searches
            if name not in (options.works or [name]):
                continue
            expected = []
            for turn in range(len(work.commands)):
                work.turn = turn
                seconds = work.run()
                expected.append(work.now())
            beside = sorted(work.result.parent.iterdir())
            wanted, killed, ended = max(1, round(options.kills * work.share / 100)), 0, 0
            while killed < wanted:
                work.turn = expected.index(work.now()) + 1
                process, start = work.start(), time.monotonic()
                try:
                    ended += process.wait(timeout=choice.uniform(0.1, 1.1 * seconds)) == 0
                    seconds = time.monotonic() - start
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    killed += process.wait() == -signal.SIGKILL
                faults += work.now() not in expected
            work.turn = 0
            work.run()
            left = sorted(set(work.result.parent.iterdir()) - set(beside))
            faults += bool(left) + (work.now() != expected[0])
            print(f"{name}: {killed} kills, {ended} ended before, faults {faults}, left {left}", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
