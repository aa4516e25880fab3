"""Does the server hold under load? Many clients, mixed queries, an index that is replaced, and every answer checked.

    python benchmarks/serve.py [--clients 64] [--seconds 600] [--replace 10]
    python benchmarks/serve.py --collection documents.jsonl.gz --documents 300000 --topics topics.jsonl
    python benchmarks/serve.py --updates 100 --clients 16 --seconds 300 [--documents 3000]

Without ``--documents`` the sample is served, with its BM25 and mini vectors. With it, documents are made of the texts
of a collection, each of two that are drawn at random, with BM25 vectors and a filter field that ten percent share;
every fourth query has a filter then. Half of the queries are expressions, half plain words that are decomposed.

At the end the server is killed under load, started again at the same port, and asked on.

With ``--updates`` the index is updated instead: documents are inserted, replaced and deleted at random, one update
after the other, until there are so many or the time is over. A fifth of the time is before the first. Every answer is
compared with BM25 computed here from the documents of the generation that the answer names.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx2
import numpy as np

from pyserini_compneg import SignedImpactSearcher, decompose
from pyserini_compneg.commands.demo import ENCODER, QUERIES, VECTORS
from pyserini_compneg.encode import Bm25DocumentEncoder
from pyserini_compneg.encode.bm25 import lucene_idf
from pyserini_compneg.expression import format_expression
from pyserini_compneg.index import build_index, update_index
from pyserini_compneg.lucene import analyze
from pyserini_compneg.serve.served_index import generation
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
                said = answer.json()
                self.take(place, said, [(one["docid"], one["score"]) for one in said["candidates"]])

    def take(self, place: int, said: dict[str, Any], found: list[tuple[str, float]]) -> None:
        """Compares an answer with the expected ranking."""
        if found != self.rankings[place]:
            self.wrong.append((self.asked[place], found, self.rankings[place], said["query"]))

    async def run(self, clients: int, seconds: float) -> None:
        """All clients."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.client(seed, until) for seed in range(clients)))


class UpdatedLoad(Load):
    """Keeps the answers of each generation, since one may be served before the update that made it has returned."""

    def __init__(self, url: str, asked: list[dict[str, str]]) -> None:
        super().__init__(url, asked, [])
        self.answers: Counter[tuple[str, int, tuple[tuple[str, float], ...]]] = Counter()

    def take(self, place: int, said: dict[str, Any], found: list[tuple[str, float]]) -> None:
        """Keeps an answer."""
        self.answers[said["generation"], place, tuple(found)] += 1


class Model:
    """The documents of an index, each with a text and its filter field, and the rankings that BM25 gives."""

    def __init__(self, collection: Path, documents: int, folder: Path) -> None:
        self.drawn, self.folder, self.index = random.Random(_SEED), folder, folder / "index"
        with gzip.open(collection, "rt", encoding="utf-8") as lines:
            self.texts = [json.loads(line)["text"] for line in lines]
        self.documents = {f"d{number}": self._draw() for number in range(documents)}
        self.made = documents
        manifest = build_index(self._written(self.documents), self.index, filter_fields=[_TENTHS])
        self.encoder = Bm25DocumentEncoder(float(manifest.settings["average_length"]))
        scale = manifest.impact_scale
        self.impacts = [
            {term: round(weight * scale) for term, weight in vector.items()}
            for vector in self.encoder.encode_batch(self.texts)
        ]

    def _draw(self) -> tuple[int, int]:
        return self.drawn.randrange(len(self.texts)), self.drawn.randrange(10)

    def _written(self, documents: dict[str, tuple[int, int]]) -> Path:
        lines = [
            json.dumps({"id": docid, "contents": self.texts[text], _TENTHS: tenth})
            for docid, (text, tenth) in documents.items()
        ]
        (self.folder / "changes.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return self.folder / "changes.jsonl"

    def change(self) -> tuple[Path, Path, Path]:
        """Draws an update; what :func:`updated_generation` takes."""
        known = self.drawn.sample(sorted(self.documents), 40)
        gone, replaced = known[: self.drawn.randrange(1, 20)], known[20 : self.drawn.randrange(21, 40)]
        new = [f"d{self.made + number}" for number in range(self.drawn.randrange(1, 20))]
        self.made += len(new)
        changes = {docid: self._draw() for docid in [*replaced, *new]}
        self.documents = {docid: one for docid, one in self.documents.items() if docid not in gone} | changes
        (self.folder / "gone.txt").write_text("\n".join(gone))
        return self.index, self._written(changes), self.folder / "gone.txt"

    def queries(self, count: int) -> list[dict[str, str]]:
        """Queries of one to three words of the texts; a third has a filter."""
        found = []
        while len(found) < count:
            words = re.findall(r"[a-z]{4,}", self.drawn.choice(self.texts).lower())
            query = " ".join(self.drawn.sample(words, min(len(words), 1 + len(found) % 3)))
            if self.encoder.encode_batch([query])[0]:
                found.append({"query": query, "read": "expression"})
                if len(found) % 3 == 0:
                    found[-1]["filter"] = f"{_TENTHS}={len(found) % 10}"
        return found

    def ranking(self, documents: dict[str, tuple[int, int]], asked: dict[str, str]) -> tuple[tuple[str, float], ...]:
        """The ranking over some documents: idf in hundredths times impacts, ties by id."""
        terms = Counter(analyze([asked["query"]])[0])
        live = [self.impacts[text] for text, _ in documents.values()]
        known = {term: count for term in terms if (count := sum(term in impacts for impacts in live))}
        weights = {term: round(100 * terms[term] * lucene_idf(count, len(live))) for term, count in known.items()}
        tenth = int(asked["filter"].split("=")[1]) if "filter" in asked else None
        scores = [
            (docid, sum(weights[term] * self.impacts[text][term] for term in weights if term in self.impacts[text]))
            for docid, (text, its_tenth) in documents.items()
            if tenth in (None, its_tenth)
        ]
        best = sorted(((docid, float(score)) for docid, score in scores if score), key=lambda one: (-one[1], one[0]))
        return tuple(best[:_HITS])


def updated_generation(index: Path, changes: Path | None = None, gone: Path | None = None) -> str:
    """Updates an index; returns its generation. Runs in another process."""
    if changes:
        update_index(index, changes, gone)
    with SignedImpactSearcher(index) as searcher:
        return generation(searcher)


def updates(args: argparse.Namespace) -> None:
    """Asks a server while its index is updated, compares every answer, and prints a table."""
    with (
        tempfile.TemporaryDirectory() as name,
        (Path(name) / "log").open("w") as log,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as updater,
    ):
        model = Model(args.collection, args.documents or 3000, Path(name))
        states = {updater.submit(updated_generation, model.index).result(): model.documents}
        server, url, _ = started(model.index, args.threads, log)
        before, during = (UpdatedLoad(f"{url}/v1/index/search", model.queries(60)) for _ in range(2))
        during.asked = before.asked

        async def updating() -> None:
            until = time.monotonic() + 0.8 * args.seconds
            asking = asyncio.create_task(during.run(args.clients, 0.8 * args.seconds))
            loop = asyncio.get_running_loop()
            while len(states) <= args.updates and time.monotonic() < until:
                named = await loop.run_in_executor(updater, updated_generation, *model.change())
                states[named] = model.documents
            await asking

        asyncio.run(before.run(args.clients, 0.1 * args.seconds))  # Java compiles what is hot
        before.milliseconds.clear()
        asyncio.run(before.run(args.clients, 0.1 * args.seconds))
        busy = busy_seconds() - processor_seconds(server.pid)
        asyncio.run(updating())
        busy = busy_seconds() - processor_seconds(server.pid) - busy
        server.terminate()
        code, reloads = server.wait(60), Path(log.name).read_text().count(": reloaded, ")
    wrong = []
    rankings: dict[tuple[str, int], object] = {}
    for (named, place, found), count in (before.answers + during.answers).items():
        if (named, place) not in rankings:
            rankings[named, place] = model.ranking(states[named], before.asked[place]) if named in states else None
        if found != rankings[named, place]:
            wrong.append((count, named, before.asked[place], found, rankings[named, place]))
    served = len({named for named, *_ in during.answers})
    print(f"{len(states) - 1} updates, {reloads} reloads, {served} generations in answers; {args.clients} clients")
    for name, load in (("before", before), ("during", during)):
        p50, p99 = np.percentile(load.milliseconds, [50, 99])
        print(f"{name}: answers {dict(load.statuses)}; p50 {p50:.0f} ms, p99 {p99:.0f} ms", end="")
        print(f", at most {max(load.milliseconds):.0f} ms")
    answers = (before.answers + during.answers).total()
    print(f"{sum(count for count, *_ in wrong)} wrong of {answers}, by {len(rankings)} rankings")
    others = busy / args.seconds / 0.8
    print(f"all but the server: {others:.1f} of {os.cpu_count()} processors; stopped: code {code}")
    for one in wrong[:3]:
        print("answers, generation, asked, found, expected:", *one, sep="\n  ")


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
    command = [sys.executable, "-m", "pyserini_compneg", "serve", "--index", str(index), "--port", str(port)]
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
    parser.add_argument("--updates", type=int, help="update the index so many times instead")
    args = parser.parse_args()
    if args.updates:
        updates(args)
        return
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
