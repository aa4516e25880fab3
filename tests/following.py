"""Runs a writer and two followers on this machine, changes documents, kills servers, and compares all answers.

    python tests/following.py [--updates 60] [--shards N] [--kill-every 5] [--seed 1]

Clients search both followers all the time. Each answer must be that which the writer gave for the same generation. The
lag of an update is the time from the writer's answer to the first answer of a follower with this or a later update. A
follower, and sometimes the writer, is killed and started again after every few updates. Ends with status 1 if an answer
is wrong or is missing while its server runs, or if the copies are not equal at the end.
"""

import argparse
import json
import math
import random
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
sys.path += [str(HERE / "helpers"), str(HERE.parent)]

from copied_index import content  # noqa: E402
from film_index import start  # noqa: E402

from pyserini_compneg.commands.demo import SAMPLE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.support.files import iter_jsonl  # noqa: E402

WRITES, COPIES = "key-of-writer", "key-of-copies"
FOLLOWERS = ("first", "second")
QUESTIONS = (
    *("spy films", "western films", "war films NOT comedies", "drama AND crime", "silent films OR musicals"),
    *("films of 1940 NOT! war", "horror", "love AND war NOT comedy", "animated films", "film", "science fiction"),
)

LONGEST_WAIT = 120


class Server:
    """A server that keeps its port when it is started again."""

    def __init__(self, home, name, settings):
        self.name, self.log, self.down = name, home / f"{name}.log", True
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.config = home / f"{name}.json"  # which is YAML, too
        self.config.write_text(json.dumps(settings))

    def start(self):
        arguments = ["serve", "--config", self.config, "--port", self.port, "--threads", 2, "--timeout", 60]
        with self.log.open("a") as log:
            self.process = start(*arguments, module="pyserini_compneg", stdout=log, stderr=log)
        self.wait()

    def wait(self):
        end = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < end:
            with suppress(OSError):
                self.get("/health")
                self.down = False
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not start:\n{self.log.read_text()[-2000:]}")

    def kill(self):
        self.down = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def get(self, path, data=None):
        headers = {"X-API-Key": WRITES, "Content-Type": "application/jsonl"}
        with urlopen(Request(f"http://127.0.0.1:{self.port}{path}", data, headers), timeout=60) as answer:
            return json.load(answer)

    def search(self, query):
        """The generation that answers, and its hits."""
        answer = self.get(f"/v1/films/search?{urlencode({'query': query, 'hits': 20})}")
        return answer["generation"], [(one["docid"], one["score"]) for one in answer["candidates"]]


class Clients:
    """Threads that search the followers, and notes of what was answered, and when a generation was first seen."""

    def __init__(self, followers, seed):
        self.answers, self.faults, self.stop = [], [], threading.Event()
        self.seen = {one.name: {} for one in followers}
        self._threads = [
            threading.Thread(target=self._search, args=(one, random.Random(f"{seed}{one.name}{number}")))
            for one in followers
            for number in range(2)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _search(self, server, choice):
        while not self.stop.is_set():
            query = choice.choice(QUESTIONS)
            was_down = server.down
            try:
                generation, hits = server.search(query)
            except (OSError, ValueError) as error:
                if not (was_down or server.down):
                    time.sleep(0.2)  # the one that kills says so at once
                    if not server.down:
                        self.faults.append(f"{server.name}: {error}")
                time.sleep(0.05)
                continue
            self.seen[server.name].setdefault(generation, time.monotonic())
            self.answers.append((server.name, generation, query, hits))
            time.sleep(choice.uniform(0, 0.02))


def change(documents, ids, choice):
    """The body of a request that adds and replaces documents, and ids to delete."""
    chosen = choice.sample(documents, 20)
    lines = [{**one, "text": f"{one['text']} {choice.choice(documents)['title']}"} for one in chosen]
    gone = choice.sample(sorted(ids - {one["id"] for one in chosen}), 5)
    return "\n".join(map(json.dumps, lines)).encode(), {one["id"] for one in chosen}, gone


def expectation(writer):
    """What the writer answers now. Nobody else changes it."""
    answers = {query: writer.search(query) for query in QUESTIONS}
    (generation,) = {generation for generation, _ in answers.values()}
    return generation, {query: hits for query, (_, hits) in answers.items()}


def told(seconds):
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)]
    return f"median {statistics.median(ordered):.2f} s, p95 {p95:.2f} s, longest {ordered[-1]:.2f} s ({len(ordered)})"


def run(options, home):
    choice = random.Random(options.seed)
    documents = [{"id": one.pop("docid"), **one} for _, one in iter_jsonl(SAMPLE / "documents.jsonl.gz")]
    (home / "first.jsonl").write_text("\n".join(map(json.dumps, documents[::2])))
    make, more = (build_sharded_index, [options.shards]) if options.shards else (build_index, [])
    make(home / "first.jsonl", home / "writer" / "films", *more, store_raw=True)
    ids = {one["id"] for one in documents[::2]}
    place = {"films": {"path": str(home / "writer" / "films")}}
    writer = Server(home, "writer.log", {"indexes": place, "write_keys": [WRITES], "copy_keys": [COPIES]})
    source = {"url": f"http://127.0.0.1:{writer.port}/v1/films", "key": COPIES}
    followers = [
        Server(home, name, {"indexes": {"films": {"path": str(home / name / "films"), "follows": source}}})
        for name in FOLLOWERS
    ]
    servers = [writer, *followers]
    expected, order, done, kills = {}, [], [], {one.name: 0 for one in servers}
    restarts, killings = [], []

    def note():
        generation, answers = expectation(writer)
        if generation not in expected:
            expected[generation] = answers
            order.append(generation)
        return generation

    def killed(server, after):
        time.sleep(after)
        begun = time.monotonic()
        server.kill()
        kills[server.name] += 1
        time.sleep(choice.uniform(0, 1))
        server.start()
        killings.append((server.name, begun, time.monotonic()))

    try:
        for server in servers:
            server.start()
        note()
        with Clients(followers, options.seed) as clients:
            for number in range(1, options.updates + 1):
                body, added, gone = change(documents, ids, choice)
                disturbed = number % options.kill_every == 0
                victim = writer if number % (3 * options.kill_every) == 0 else choice.choice(followers)
                if disturbed:  # before, during or after the update and its copies
                    thread = threading.Thread(target=killed, args=(victim, choice.uniform(0, 1.5)))
                    thread.start()
                    restarts.append(thread)
                try:
                    writer.get("/v1/films/documents", body)
                    ids |= added
                    if number % 3 == 0:
                        note()  # a follower may answer with this state
                        urls = urlencode([("docid", one) for one in gone])
                        request = Request(f"http://127.0.0.1:{writer.port}/v1/films/documents?{urls}", method="DELETE")
                        request.add_header("X-API-Key", WRITES)
                        urlopen(request, timeout=60).close()
                        ids -= set(gone)
                    begun = time.monotonic()
                except (URLError, OSError, ValueError):  # killed meanwhile; the documents are written, or not
                    begun = None
                if disturbed:
                    restarts.pop().join()
                generation = note()
                if begun is not None and (not done or done[-1][0] != generation):
                    done.append((generation, begun))
                time.sleep(choice.uniform(0, 2))
            end = time.monotonic() + LONGEST_WAIT
            while any(one.get("/health")["generations"]["films"] != order[-1] for one in followers):
                if time.monotonic() > end:
                    raise RuntimeError("a follower does not reach the last generation")
                time.sleep(0.1)
            time.sleep(1)
        written = content(home / "writer" / "films")  # with files of no commit, if the last kill was the writer's
        copies = [content(home / name / "films").items() <= written.items() for name in FOLLOWERS]
        left = [path.name for name in FOLLOWERS for path in (home / name).iterdir() if path.name != "films"]
        lucene = writer.get("/health")["build"]["lucene"]
    except BaseException:
        for server in servers:
            print(f"{server.name}: {server.process.poll()}", server.log.read_text()[-1000:], sep="\n")
        raise
    finally:
        for server in servers:
            with suppress(AttributeError):
                server.process.kill()
                server.process.wait()
    wrong = [one for one in clients.answers if expected.get(one[1], {}).get(one[2]) != one[3]]
    unknown = {one[1] for one in clients.answers} - expected.keys()
    lags = {True: [], False: []}
    for generation, begun in done:
        later = order[order.index(generation) :]
        for name in FOLLOWERS:
            times = [clients.seen[name][one] for one in later if one in clients.seen[name]]
            if times:
                seen = min(times)
                disturbed = any(
                    who in (name, writer.name) and killed_at < seen and back_at > begun
                    for who, killed_at, back_at in killings
                )
                lags[disturbed].append(max(0.0, seen - begun))
    of_kills = ", ".join(f"{name.removesuffix('.log')} {count}" for name, count in kills.items())
    print(f"Lucene {lucene}, {options.updates} updates, {len(order)} generations, kills: {of_kills}")
    for name in FOLLOWERS:
        print(f"{name}: {len({g for who, g, *_ in clients.answers if who == name})} generations answered")
    print(f"lag, no kill: {told(lags[False])}")
    print(f"lag, with a kill: {told(lags[True])}")
    of_them = f"{len(wrong)} wrong, {len(unknown)} unknown generations, {len(clients.faults)} missing"
    print(f"{len(clients.answers)} answers, {of_them}")
    for what in [*map(str, wrong[:3]), *clients.faults[:3], *left]:
        print(f"  {what[:300]}")
    print(f"copies equal to the writer's files: {copies}")
    return int(bool(wrong or clients.faults or left or not all(copies)))


def main() -> int:
    """Runs the servers; returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--shards", type=int, help="an index in so many shards")
    parser.add_argument("--kill-every", type=int, default=5, help="from kill to kill; each third is the writer's")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="following-") as home:
        return run(options, Path(home))


if __name__ == "__main__":
    sys.exit(main())
