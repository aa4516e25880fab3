"""Kills commands at random moments, and with --ray also the workers and nodes of a Ray cluster, and looks at the rest.

    python tests/kills.py [index update shards encode search train] [--kills 30] [--seed 1]
    python tests/kills.py --ray [encode index search] [--victims worker command node] [--kills 30] [--seed 1]

`shards` is `update` of an index in shards. The cluster has two nodes on this machine.

After each kill the result is the old one or the new one, whole. A command that was killed is started again. After at
most six kills the work must end, by itself or when it is started again. Then the result is that of one undisturbed
machine, and nothing is left beside it. Needs POSIX and the extras `train` and `ray`.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "helpers"), str(HERE.parent)]

from checkpoints import write_masked_lm  # noqa: E402
from film_index import start  # noqa: E402
from ray_nodes import Nodes, ray_nodes  # noqa: E402
from tiny_training import training_log, write_dataset  # noqa: E402
from works import Work  # noqa: E402

from pyserini_compneg.commands.demo import QUERIES, SAMPLE  # noqa: E402
from pyserini_compneg.documents.vector_files import VECTORS_FILE, shard_path  # noqa: E402
from pyserini_compneg.encode.sharded import PLAN_FILE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index, verify_index  # noqa: E402
from pyserini_compneg.search import SignedImpactSearcher  # noqa: E402
from pyserini_compneg.support.files import content_digest  # noqa: E402
from pyserini_compneg.topics import read_topics  # noqa: E402

DOCUMENTS, SHARDS = SAMPLE / "documents.jsonl.gz", 3
KILLS_OF_A_RESULT = 6
RETRIES = 30
ONE_MACHINE = ("index", "update", "shards", "encode", "search", "train"), ("command",)
CLUSTER = ("encode", "index", "search"), ("worker", "command", "node")
"""The names of the works and of the victims, in the order in which they take turns."""

RECIPE = """
about: A try.
model: {{base: {base}, head: "relu:max", max_length: 32}}
data: [{{dataset: films, split: train}}]
dev: {{dataset: films, split: train, measures: [recip_rank]}}
training: {{steps: 4, batch_size: 8, evaluate_every: 1, learning_rate: 1.0e-3, query_flops: 0, document_flops: 0}}
"""


@dataclass(frozen=True)
class Command(Work):
    """A command, which is started with an input, a folder and flags.

    Attributes:
        inputs: The inputs, which take turns. Each has a result of its own.
        flags: The flags that continue it, where an old result is removed before it starts. Without them it replaces it.
        worker: The title of its workers on a cluster.
    """

    inputs: tuple[Path, ...] = (DOCUMENTS,)
    flags: tuple[str, ...] = ()
    worker: str = ""

    def begin(self, turn, folder):
        return self.start(self.inputs[turn % len(self.inputs)], folder, *self.flags)


def command(name, *arguments):
    """A command as a process."""
    return start(name, *arguments, module="pyserini_compneg", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def index_state(folder):
    """Whether it is whole, and what it finds."""
    verify_index(folder)
    topics = read_topics(QUERIES)
    with SignedImpactSearcher(folder) as searcher:
        return searcher.batch_search([t.expression for t in topics], [t.qid for t in topics], 1000)


def shards_state(folder):
    """The content of all shards, with their description and plan; None if one is to come."""
    if not all(shard_path(folder, number, SHARDS).exists() for number in range(SHARDS)):
        return None
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name == PLAN_FILE or path.name[0] != "."}


def model_state(folder):
    """A hash of the weights, and the figures of all evaluations."""
    figures = [entry["eval_recip_rank"] for entry in training_log(folder) if "eval_recip_rank" in entry]
    return content_digest(folder / "model.safetensors"), figures


def update(changes, folder, *flags):
    """Starts an update; every other one merges the index, too."""
    told = ["--collection", changes, "--delete", changes.with_suffix(".txt"), *flags]
    return command("update", "--index", folder / "index", *told, *["--optimize"] * (changes.stem == "a"))


def search(topics, folder, *flags):
    hits = ["--hits", 1000, "--output", folder / "run.txt"]
    return command("search", "--index", folder / "index", "--topics", topics, *hits, *flags)


def commands(home):
    """The commands of one machine, and what they work on."""
    base = write_masked_lm(home / "base")
    many = write_dataset(home / "many", 400) / "documents.jsonl"
    write_dataset(home / "data" / "films", 24)
    (home / "c.yaml").write_text(RECIPE.format(base=base))
    changes = (home / "a.jsonl", home / "b.jsonl")  # from one state to the other and back
    lines = gzip.decompress(DOCUMENTS.read_bytes()).decode().splitlines()
    changed = [line.replace(" film ", " spy film ") for line in lines[20:]]
    for path, kept, gone in zip(changes, (lines[:-20], changed), (lines[-20:], lines[:20]), strict=True):
        path.write_text("\n".join(kept))
        path.with_suffix(".txt").write_text("\n".join(json.loads(line)["docid"] for line in gone))
    update_whole = Command(
        *(update, "index", index_state, lambda folder: build_index(changes[0], folder / "index")), inputs=changes
    )
    return {
        "index": Command(
            lambda documents, folder: command(
                *("index", "--collection", documents, "--index", folder / "index", "--pair-terms", 16, "--replace")
            ),
            *("index", index_state),
        ),
        "update": update_whole,
        "shards": replace(update_whole, prepare=lambda folder: build_sharded_index(changes[0], folder / "index", 2)),
        "encode": Command(
            lambda documents, folder: command(
                *("encode", "--collection", documents, "--output", folder, "--encoder", base, "--backend", "torch"),
                *("--resume", "--overwrite"),
            ),
            *(shard_path(".").name, content_digest),
            beside=(VECTORS_FILE,),
            inputs=(many,),
        ),
        "search": Command(
            *(search, "run.txt", content_digest, lambda folder: build_index(DOCUMENTS, folder / "index")),
            beside=("index",),
            inputs=(QUERIES,),
        ),
        "train": Command(
            lambda recipe, folder: command(
                "train", recipe, "--data", home / "data", "--output", folder / "model", "--resume", "--overwrite"
            ),
            *("model", model_state),
            inputs=(home / "c.yaml",),
        ),
    }


def cluster_commands(home, address):
    """The commands of a cluster, and what they work on."""
    few, topics = home / "few.jsonl", home / "topics.jsonl"
    few.write_bytes(b"\n".join(gzip.decompress(DOCUMENTS.read_bytes()).splitlines()[:400]))
    queries = list(map(json.loads, QUERIES.read_text(encoding="utf-8").splitlines()))
    repeated = [{**one, "id": f"{n}-{i}"} for n in range(10) for i, one in enumerate(queries)]  # several batches
    topics.write_text("".join(f"{json.dumps(one)}\n" for one in repeated), encoding="utf-8")
    ray, part = ("--ray", address), "ray::_part"
    return {
        "encode": Command(
            lambda documents, folder, *flags: command(
                *("encode", "--collection", documents, "--output", folder / "vectors", "--encoder", "bm25+mini"),
                *("--shards", SHARDS, *flags),
            ),
            *("vectors", shards_state),
            beside=(PLAN_FILE,),
            inputs=(few,),
            flags=(*ray, "--resume"),
            worker=part,
        ),
        "index": Command(
            lambda documents, folder, *flags: command(
                *("index", "--collection", documents, "--index", folder / "index", "--shards", SHARDS, *flags)
            ),
            *("index", index_state),
            flags=(*ray, "--resume"),
            worker=part,
        ),
        "search": Command(
            *(search, "run.txt", content_digest),
            prepare=lambda folder: build_sharded_index(DOCUMENTS, folder / "index", SHARDS),
            beside=("index",),
            inputs=(topics,),
            flags=ray,
            worker="ray::ShardActor",
        ),
    }


def killed(victim: str, work: Command, process, nodes: Nodes | None, choice: random.Random, seconds: float) -> bool:
    """Kills at a random moment; returns whether there was something to kill."""
    if victim == "worker":  # they come late, and do not stay long
        while not nodes.workers(work.worker) and process.poll() is None:
            time.sleep(0.1)
        seconds /= 4
    time.sleep(choice.uniform(0, seconds))
    if process.poll() is not None:
        return False
    if victim == "command":
        process.kill()
        process.communicate()
    elif victim == "node":
        nodes.tell("remove")
        nodes.tell("add")
    elif there := nodes.workers(work.worker):
        os.kill(choice.choice(there), 9)
    else:
        return False
    return True


def finished(process) -> str:
    """Waits for the end of a process; returns what it said if the end is not a good one."""
    said = process.communicate()[1]
    return f"exit code {process.returncode}: {said}" if process.returncode else ""


def removed(result: Path) -> None:
    if result.is_dir():
        shutil.rmtree(result)
    else:
        result.unlink(missing_ok=True)


def series(work: Command, victim: str, folder: Path, expected, nodes, choice, seconds: float, kills: int):
    """So many kills of one kind, several for each result; yields what is wrong."""
    done = turn = ended_before = 0
    while done < kills:
        turn += 1
        if work.flags:
            removed(folder / work.result)
        old, new, retries = work.look(folder), expected[turn % len(expected)], 0
        process = work.begin(turn, folder)
        for _ in range(min(KILLS_OF_A_RESULT, kills - done)):
            if not killed(victim, work, process, nodes, choice, 1.1 * seconds):
                ended_before += 1
                break
            done += 1
            if (there := work.look(folder)) != old and there != new:
                yield "after a kill, the result is neither the old one nor the new one"
            if victim == "command":
                process = work.begin(turn, folder)
        wrong = finished(process)
        while wrong and nodes and victim == "command" and retries < RETRIES:  # until the killed command's workers go
            retries += 1
            time.sleep(2)
            wrong = finished(work.begin(turn, folder))
        if wrong or work.look(folder) != new:
            yield wrong or "another result"
        if left := work.left(folder):
            yield f"left: {sorted(left)}"
    print(f"{done} kills of a {victim} for {turn} results; {ended_before} ended before the next kill", flush=True)


def chosen(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line, checked before anything starts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("works", nargs="*", help="index, update, shards, encode, search, train (default: all)")
    parser.add_argument("--ray", action="store_true", help="encode, index and search on a cluster")
    parser.add_argument("--victims", nargs="+", help="worker, command, node (default: all; without --ray: command)")
    parser.add_argument("--kills", type=int, default=30, help="of each victim of each work")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    for name, known in zip(("works", "victims"), CLUSTER if options.ray else ONE_MACHINE, strict=True):
        given = getattr(options, name) or known
        if unknown := [one for one in given if one not in known]:
            setup = "with --ray" if options.ray else "without --ray"
            parser.error(f"{setup}, the {name} are {', '.join(known)}, not {unknown[0]}")
        setattr(options, name, given)
    return options


def main() -> int:
    """Kills; returns 1 if anything was lost, left or wrong."""
    options = chosen()
    choice, faults = random.Random(options.seed), 0
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-")))
        os.environ |= {"COMPNEG_CACHE": f"{home}/cache", "HF_HUB_OFFLINE": "1"}
        nodes = stack.enter_context(ray_nodes()) if options.ray else None
        works = cluster_commands(home, nodes.address) if nodes else commands(home)
        for name in options.works:
            work, expected = works[name], []
            undisturbed, folder = home / f"{name}-undisturbed", home / name
            for place in (undisturbed, folder):
                place.mkdir()
                work.prepare(place)
            for given in work.inputs:
                if wrong := finished(work.start(given, undisturbed)):
                    raise RuntimeError(f"{name}: {wrong}")
                expected.append(work.look(undisturbed))
            assert None not in expected
            started = time.monotonic()
            if wrong := finished(work.begin(0, folder)):
                raise RuntimeError(f"{name}: {wrong}")
            seconds = time.monotonic() - started
            for victim in options.victims:
                print(f"{name}: ", end="", flush=True)
                for fault in series(work, victim, folder, expected, nodes, choice, seconds, options.kills):
                    faults += 1
                    print(f"FAULT: {fault}; ", end="", flush=True)
    print(f"{faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
