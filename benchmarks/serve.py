"""Does the server hold under load? Many clients, mixed queries, an index that is replaced, and every answer checked.

    python benchmarks/serve.py [--clients 64] [--seconds 600] [--replace 10]
    python benchmarks/serve.py --collection documents.jsonl.gz --documents 300000 --topics topics.jsonl

Without ``--documents`` the sample is served, with its BM25 and mini vectors. With it, documents are made of the texts
of a collection, each of two that are drawn at random, with BM25 vectors and a filter field that ten percent share;
every fourth query has a filter then. Half of the queries are expressions, half plain words that are taken apart.

At the end the server is killed under load, started again at the same port, and asked on.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import httpx2
import numpy as np

from pyserini_compneg import SignedImpactSearcher, decompose
from pyserini_compneg.commands.demo import ENCODER, QUERIES, VECTORS
from pyserini_compneg.expression import format_expression
from pyserini_compneg.index import build_index
from pyserini_compneg.topics.topics import read_topics

_HITS = 10
_PAUSE_AFTER_REFUSAL = 0.05
_SEED = 1
_DOCUMENTS = VECTORS.parent / "documents.jsonl.gz"
_TENTHS = "tenth"
"""The filter field of documents that are made here: their number, modulo ten."""


def made_index(collection: Path, documents: int, folder: Path) -> None:
    """Indexes documents, each of the texts of two that are drawn from a collection."""
    with gzip.open(collection, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    drawn = random.Random(_SEED)
    with (folder / "made.jsonl").open("w", encoding="utf-8") as made:
        for number in range(documents):
            one, other = drawn.choice(texts), drawn.choice(texts)
            document = {"id": f"d{number}", "title": one["title"], "text": f"{one['text']} {other['text']}"}
            made.write(json.dumps({**document, _TENTHS: number % 10}) + "\n")
    build_index(folder / "made.jsonl", folder / "index", store_raw=True, filter_fields=[_TENTHS])


def queries(topics: Path, has_filters: bool) -> list[dict[str, str]]:
    """The expressions of topics, and their texts in plain words, as parameters of a search."""
    found = []
    for topic in read_topics(topics):
        if topic.expression is not None:
            found.append({"query": format_expression(topic.expression), "read": "expression"})
            found.append({"query": topic.text[:500].replace("\n", " "), "read": "model"})
    if has_filters:
        for place in range(0, len(found), 4):
            found[place + place // 4 % 2]["filter"] = f"{_TENTHS}={place // 4 % 10}"
    return found


def expected(index: Path, asked: Sequence[dict[str, str]]) -> list[list[tuple[str, float]]]:
    """The rankings that the command gives."""
    rankings = []
    with SignedImpactSearcher(index) as searcher:
        for one in asked:
            query = decompose(one["query"]) if one["read"] == "model" else one["query"]
            wanted = dict([one["filter"].split("=")]) if "filter" in one else None
            rankings.append([(hit.docid, hit.score) for hit in searcher.search(query, _HITS, filter=wanted)])
    return rankings


class Load:
    """Clients that search without a pause, until the time is over."""

    def __init__(self, url: str, asked: list[dict[str, str]], rankings: list[list[tuple[str, float]]]) -> None:
        self.url, self.asked, self.rankings = url, asked, rankings
        self.statuses: Counter[int | str] = Counter()
        self.milliseconds: list[float] = []
        self.wrong: list[tuple[object, ...]] = []

    async def client(self, seed: int, until: float) -> None:
        """One client."""
        drawn = random.Random(seed)
        async with httpx2.AsyncClient(timeout=60) as client:
            while time.monotonic() < until:
                place = drawn.randrange(len(self.asked))
                begun = time.perf_counter()
                try:
                    answer = await client.get(self.url, params={**self.asked[place], "hits": _HITS})
                except httpx2.TransportError as error:
                    self.statuses[type(error).__name__] += 1
                    await asyncio.sleep(_PAUSE_AFTER_REFUSAL)
                    continue
                self.statuses[answer.status_code] += 1
                if answer.status_code != 200:
                    await asyncio.sleep(_PAUSE_AFTER_REFUSAL)
                    continue
                self.milliseconds.append(1000 * (time.perf_counter() - begun))
                found = [(one["docid"], one["score"]) for one in answer.json()["candidates"]]
                if found != self.rankings[place]:
                    self.wrong.append((self.asked[place], found, self.rankings[place], answer.json()["query"]))

    async def run(self, clients: int, seconds: float) -> None:
        """All clients."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.client(seed, until) for seed in range(clients)))


async def replaced(index: Path, times: int, seconds: float) -> None:
    """Exchanges the index with a copy of itself some times."""
    for number in range(times):
        await asyncio.sleep(seconds / (times + 1))
        copy = await asyncio.to_thread(shutil.copytree, index, index.with_name(f"copy{number}"))
        index.rename(index.with_name(f"old{number}"))
        copy.rename(index)
        await asyncio.to_thread(shutil.rmtree, index.with_name(f"old{number}"))


def started(index: Path, threads: int, log: IO[str], port: int = 0) -> tuple[subprocess.Popen[bytes], str, float]:
    """A server, where it listens, and the seconds until then."""
    command = [sys.executable, "-m", "pyserini_compneg.serve", "--index", str(index), "--port", str(port)]
    begun, before = time.perf_counter(), Path(log.name).stat().st_size
    server = subprocess.Popen([*command, "--threads", str(threads)], stderr=log)
    while "listening at" not in (said := Path(log.name).read_text()[before:]):
        time.sleep(0.02)
    return server, said.partition("listening at ")[2].split()[0], time.perf_counter() - begun


def resident_bytes(process: int) -> int:
    """The memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def processor_seconds(process: int) -> float:
    """The time that the processors spent on a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """The time that the processors of this machine have worked, for whomever."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Runs the server and the clients, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, help="documents that are made (default: the sample is served)")
    parser.add_argument(
        "--collection", type=Path, default=_DOCUMENTS, help="what they are made of (default: the sample)"
    )
    parser.add_argument("--topics", type=Path, default=QUERIES, help="topics (default: those of the sample)")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--replace", type=int, default=10, help="times that the index is replaced")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, (Path(name) / "log").open("w") as log:
        index = Path(name) / "index"
        if args.documents:
            made_index(args.collection, args.documents, Path(name))
        else:
            build_index(VECTORS, index, encoder=ENCODER, store_raw=True)
        asked = queries(args.topics, bool(args.documents))
        rankings = expected(index, asked)
        server, url, ready = started(index, args.threads, log)
        load, again = (Load(f"{url}/v1/index/search", asked, rankings) for _ in range(2))
        memory: list[int] = []
        before = busy_seconds() - processor_seconds(server.pid) - time.process_time()
        asyncio.run(held(load, server.pid, index, args, memory))
        processor = processor_seconds(server.pid)
        others = busy_seconds() - processor - time.process_time() - before
        server, restart = asyncio.run(killed(again, server, index, args, log))
        server.terminate()
        code = server.wait(60)
        reloads = Path(log.name).read_text().count(": reloaded, ")
    p50, p99 = np.percentile(load.milliseconds, [50, 99])
    print(f"{len(asked)} queries; start {ready:.1f} s; {args.clients} clients for {args.seconds:g} s")
    print(
        f"answers {dict(load.statuses)}, {len(load.milliseconds) / args.seconds:.0f} a second, {len(load.wrong)} wrong"
    )
    print(f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {max(load.milliseconds):.0f} ms")
    print(f"processors: {1000 * processor / len(load.milliseconds):.1f} ms an answer, start and refusals included")
    print(f"others on this machine: {others / args.seconds:.1f} of {os.cpu_count()} processors")
    print(f"{reloads} reloads; memory in MB {[round(one / 1e6) for one in memory]}")
    print(f"killed: again after {restart:.1f} s; answers {dict(again.statuses)}, {len(again.wrong)} wrong")
    print(f"stopped: code {code}")
    for wrong in [*load.wrong, *again.wrong][:3]:
        print("asked, found, expected, answered:", *wrong, sep="\n  ")


async def held(load: Load, process: int, index: Path, args: argparse.Namespace, memory: list[int]) -> None:
    """The load, while the index is replaced and the memory of the server is watched."""

    async def watched() -> None:
        for _ in range(10):
            await asyncio.sleep(args.seconds / 11)
            memory.append(resident_bytes(process))

    await asyncio.gather(load.run(args.clients, args.seconds), replaced(index, args.replace, args.seconds), watched())


async def killed(
    load: Load, server: subprocess.Popen[bytes], index: Path, args: argparse.Namespace, log: IO[str]
) -> tuple[subprocess.Popen[bytes], float]:
    """The load, while the server is killed and started again; returns the new one, and the seconds until it listens."""
    port = int(load.url.split("/")[2].rpartition(":")[2])
    running = asyncio.create_task(load.run(args.clients, math.inf))
    await asyncio.sleep(5)
    server.kill()
    server.wait()
    fresh, _, seconds = await asyncio.to_thread(started, index, args.threads, log, port)
    await asyncio.sleep(10)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return fresh, seconds


if __name__ == "__main__":
    main()
