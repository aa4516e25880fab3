"""Kills a node, a worker and the driver of a cluster at random moments while it encodes, indexes and searches.

    python tests/cluster_kills.py [encode index search] [--victims node worker driver] [--kills 30] [--seed 1]

The cluster has two nodes on this machine. After up to six kills the work must end, by itself or, where the driver was
killed, when it is started again; and its result must be the one of an undisturbed run on one machine, byte for byte,
with nothing beside it.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from ray_nodes import Nodes, ray_nodes  # noqa: E402

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "pyserini_compneg" / "resources" / "sample"
KILLS_OF_A_RESULT = 6
WORKERS = {"encode": "ray::_part", "index": "ray::_part", "search": "ray::ShardActor"}


def command(*arguments):
    """A command, as a process."""
    program = [sys.executable, "-m", "pyserini_compneg", *map(str, arguments)]
    return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finished(*arguments):
    """Runs a command to its end, which must be good."""
    process = command(*arguments)
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{arguments[0]}: {said}")


def many_topics(home: Path) -> Path:
    """The sample's queries ten times, so that they are searched in several batches."""
    path = home / "topics.jsonl"
    if not path.exists():
        queries = (SAMPLE / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        repeated = [{**json.loads(line), "id": f"{n}-{i}"} for n in range(10) for i, line in enumerate(queries)]
        path.write_text("".join(f"{json.dumps(one)}\n" for one in repeated), encoding="utf-8")
    return path


def works(home: Path, address: str):
    """Each work: its command on the cluster, what it makes, and the same on one machine."""
    few = home / "few.jsonl"
    with gzip.open(SAMPLE / "documents.jsonl.gz", "rb") as lines:
        few.write_bytes(b"".join(line for _, line in zip(range(400), lines, strict=False)))
    topics = ["--topics", many_topics(home), "--hits", "1000"]
    encode = ["encode", "--collection", few, "--encoder", "bm25+mini", "--shards", "3"]
    index = ["index", "--collection", SAMPLE / "documents.jsonl.gz", "--shards", "3"]
    finished(*encode, "--output", home / "one" / "encode")
    finished(*index, "--index", home / "index")
    search = ["search", "--index", home / "index", *topics]
    finished(*search, "--output", home / "one" / "search" / "run.txt")
    ray = ["--ray", address]
    return {
        "encode": [*encode, "--output", home / "made" / "encode", *ray, "--resume"],
        "index": [*index, "--index", home / "made" / "index" / "index", *ray, "--resume"],
        "search": [*search, "--output", home / "made" / "search" / "run.txt", *ray],
    }


def fault(name: str, home: Path) -> str:
    """What is wrong with a result; empty if nothing is."""
    made, one = home / "made" / name, home / "one" / name
    if name == "index":
        found = home / "found.txt"
        topics = ["--topics", many_topics(home), "--hits", "1000"]
        finished("search", "--index", made / "index", *topics, "--output", found)
        if [path.name for path in made.iterdir()] != ["index"]:
            return f"left beside the index: {sorted(path.name for path in made.iterdir())}"
        if left := [path.name for path in (made / "index").rglob(".*")]:
            return f"left in the index: {left}"
        return "" if found.read_bytes() == (home / "one" / "search" / "run.txt").read_bytes() else "another index"
    there, wanted = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (made, one))
    if there.keys() != wanted.keys():
        return f"files {sorted(there)}"
    return "" if there == wanted else "another content"


def killed(victim: str, name: str, process, nodes: Nodes, choice: random.Random, seconds: float) -> bool:
    """Kills at a random moment; returns whether there was something to kill."""
    if victim == "worker":  # they come late, and do not stay long
        while not nodes.workers(WORKERS[name]) and process.poll() is None:
            time.sleep(0.1)
        seconds /= 4
    time.sleep(choice.uniform(0, seconds))
    if process.poll() is not None:
        return False
    if victim == "driver":
        process.kill()
        process.communicate()
    elif victim == "node":
        nodes.tell("remove")
        nodes.tell("add")
    elif there := nodes.workers(WORKERS[name]):
        os.kill(choice.choice(there), 9)
    else:
        return False
    return True


def main() -> int:
    """Kills; returns 1 if anything was lost, left or wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("works", nargs="*", help="encode, index, search (default: all)")
    parser.add_argument("--victims", nargs="+", default=["worker", "driver", "node"])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    choice, faults = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="cluster-kills-") as folder, ray_nodes() as nodes:
        home = Path(folder)
        for name, arguments in works(home, nodes.address).items():
            if name not in (options.works or [name]):
                continue
            started = time.monotonic()
            finished(*arguments)
            seconds = time.monotonic() - started
            for victim in options.victims:
                faults += series(name, arguments, victim, home, nodes, choice, (seconds, options.kills))
    return min(faults, 1)


def series(name, arguments, victim, home, nodes, choice, limits) -> int:
    """So many kills of one kind, several while a result is made; returns the number of faults."""
    (seconds, kills), done, again, faults, started = limits, 0, 0, 0, time.monotonic()
    while done < kills:
        subprocess.run(["rm", "-rf", home / "made" / name], check=True)
        process = command(*arguments)
        for _ in range(min(KILLS_OF_A_RESULT, kills - done)):
            if not killed(victim, name, process, nodes, choice, seconds):
                break
            done += 1
            if victim == "driver":
                process = command(*arguments)
        _, said = process.communicate()
        while process.returncode and victim == "driver" and again < 5 * kills:  # until killed drivers' workers are gone
            again += 1
            time.sleep(2)
            process = command(*arguments)
            _, said = process.communicate()
        wrong = said if process.returncode else fault(name, home)
        faults += bool(wrong)
        if wrong:
            print(f"{name}, {victim} killed: {wrong}", flush=True)
        print(f"{name}, {victim}: {done} of {kills}, {faults} faults", end="\r", file=sys.stderr, flush=True)
    print(
        f"{name}: {done} kills of a {victim}, {faults} faults, {again} refusals while a killed driver's workers ended, "
        f"{time.monotonic() - started:.0f} s",
        flush=True,
    )
    return faults


if __name__ == "__main__":
    sys.exit(main())
