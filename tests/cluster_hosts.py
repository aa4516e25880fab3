"""Builds, searches and serves on a cluster of hosts in network namespaces, also while one is cut off, frozen or killed.

    python tests/cluster_hosts.py [work incidents single refusals]                 # those parts; default: all
    python tests/cluster_hosts.py incidents --incidents cut freeze [--seconds 18] [--seed 1]
    python tests/cluster_hosts.py incidents --minutes 30          # one searcher, an incident a minute in random order
    python tests/cluster_hosts.py incidents --served              # the searches are requests to a server
    python tests/cluster_hosts.py incidents --index ONE --shards SHARDS --topics FILE [--hits 10] [--threads 4]
    python tests/cluster_hosts.py --quick --skip-ok               # under 90 s

- `work` encodes, indexes, searches and serves, and compares with one machine.
- `incidents` prints a line for each incident that hits a host while threads search: the searches and their milliseconds
  before it (quiet), over it, and after it, and at the end medians by kind. Each answer is compared with that of the one
  index.
- `single` says what happens without replicas while a host is cut off.
- `refusals` starts hosts with a wrong token, without the index, with another index, and with another package.

The index is that of the package's sample, unless others are given. Needs Linux, root and the extra `ray`; where hosts
are not allowed, --skip-ok makes that a line and no failure.
"""

import argparse
import gzip
import math
import pickle
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "helpers"), str(HERE.parent)]

from cluster_figures import HEADER, SHARES, medians, percentile, row  # noqa: E402
from cluster_load import Remote  # noqa: E402
from cluster_refusals import refusals  # noqa: E402
from network_hosts import HostError, lacking, network  # noqa: E402

from pyserini_compneg.commands.demo import QUERIES, SAMPLE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.lucene.shards import read_shards  # noqa: E402
from pyserini_compneg.search import SignedImpactSearcher  # noqa: E402
from pyserini_compneg.topics import read_topics  # noqa: E402

DOCUMENTS = SAMPLE / "documents.jsonl.gz"
ACTOR = "ray::ShardActor"
PARTS = ["work", "incidents", "single", "refusals"]
SHARDS, HOSTS = 2, 3
WARM_SECONDS, REJOIN_SECONDS, START_SECONDS, COMMAND_SECONDS, LONG_SECONDS = 3, 90, 120, 300, 120
INCIDENTS = {
    "cut": (lambda host: host.cut(), lambda host: host.join()),
    "freeze": (lambda host: host.freeze(), lambda host: host.thaw()),
    "freeze-actor": (lambda host: host.freeze(ACTOR), lambda host: host.thaw()),
    "kill": (lambda host: host.kill(), lambda host: host.start()),
    "delay": (lambda host: host.disturb(delay=0.1, jitter=0.1), lambda host: host.calm()),
    "lose": (lambda host: host.disturb(loss=0.1), lambda host: host.calm()),
}
"""How each incident begins and ends, given its host."""

SERVE_PORT = 8099

ASK = f"""
import json, sys, time
from urllib.parse import quote
from urllib.request import urlopen

def candidates(index, query):
    url = f"http://127.0.0.1:{SERVE_PORT}/v1/{{index}}/search?hits=20&query={{quote(query)}}"
    for _ in range(100):
        try:
            return json.load(urlopen(url, timeout=60))["candidates"]
        except OSError as error:
            time.sleep(0.5)
    raise error

queries = ["spy films AND comedies NOT animated films", "war OR western", "horror NOT! comedy", "films of 1930"]
differ = [query for query in queries if candidates(sys.argv[1], query) != candidates(sys.argv[2], query)]
print(differ or "same")
"""
"""Asks a server for the hits of two indexes."""


class Trial:
    """A cluster of hosts with an index, and the threads that search it."""

    def __init__(self, made, load, options, index):
        self.network, self.hosts, self.address = made, made.hosts, made.address
        self.load, self.options, self.index = load, options, index
        self.choice, self.faults, self.rows = random.Random(options.seed), 0, []
        self.server = None

    def fault(self, said):
        self.faults += 1
        print(f"FAULT: {said}", flush=True)

    def opened(self, **options):
        """Opens the index, and waits until all processes hold their shards."""
        options = {"replicas": self.options.replicas, **options}
        if self.options.served:
            self.serve(self.index, replicas=options["replicas"])
            self.load.ask(url=f"http://127.0.0.1:{SERVE_PORT}/v1/{self.index.name}", hits=self.options.hits)
        else:
            self.load.open(index=str(self.index), hits=self.options.hits, **options)
        wanted = len(read_shards(self.index)) * options["replicas"]
        deadline = time.monotonic() + START_SECONDS
        while True:
            error = self.load.search()[3]  # a server needs some time
            placed = {} if error else self.placed()
            if sum(placed.values()) == wanted and not any(host.processes(f"{ACTOR}.") for host in self.hosts):
                return
            if time.monotonic() > deadline:
                raise HostError(f"of {wanted} processes with shards there are {placed}")
            time.sleep(0.5)

    def rejoined(self, host):
        """Waits until a host belongs to the cluster, and starts it again if it has left; returns whether it had."""
        again, seen, deadline = False, 0, time.monotonic() + REJOIN_SECONDS
        while time.monotonic() < deadline:
            if not host.runs:
                again = True
                with suppress(HostError):  # the head may still know the node that was there
                    host.start()
            seen = seen + 1 if host.name in self.load.hosts() and host.runs else 0
            if seen == 4:
                return again
            time.sleep(1)
        raise HostError(f"{host.name} did not rejoin the cluster in {REJOIN_SECONDS} s")

    def placed(self):
        """The number of processes with shards on each host."""
        return {host.name: len(host.processes(ACTOR)) for host in self.hosts}

    def searched(self, options):
        """The rows of incidents, each with a searcher of its own."""
        for name in options.incidents:
            self.opened()
            self.load.start(threads=options.threads)
            time.sleep(WARM_SECONDS)
            self.load.taken()
            begun, ended = self.incident(name, options.seconds)
            self.told(f"{name} {options.seconds:g}s", self.load.stop(), begun, ended)

    def searched_long(self, options):
        """The rows of an incident a minute, with one searcher, whose replaced processes stay where they are."""
        self.opened()
        self.load.start(threads=options.threads)
        time.sleep(WARM_SECONDS)
        searches = self.load.taken()
        for _ in range(options.minutes):
            until = time.monotonic() + 60
            name = self.choice.choice(options.incidents)
            begun, ended = self.incident(name, options.seconds)
            time.sleep(max(0.0, until - time.monotonic()))
            found = self.load.taken()
            self.told(f"{name} {options.seconds:g}s", found, begun, ended)
            searches += found
        searches += self.load.stop()
        seconds = [end - start for start, end, *_ in searches]
        figures = ", ".join(f"{name} {percentile(seconds, share):.0f}" for name, share in SHARES.items())
        print(f"all {len(searches)} searches: {figures} ms", flush=True)

    def incident(self, name, seconds):
        """A quiet phase, an incident on a host that has actors, and a recovery. Returns its begin and end."""
        begin, end = INCIDENTS[name]
        time.sleep(self.options.quiet)
        placed = self.placed()
        victim = self.choice.choice([host for host in self.hosts if not host.is_head and placed[host.name]])
        begun = time.monotonic()
        begin(victim)
        time.sleep(seconds)
        end(victim)
        ended = time.monotonic()
        state = "started again" if self.rejoined(victim) else "back"
        print(f"    {victim.name} of {placed} was {state} after {time.monotonic() - ended:.0f} s", flush=True)
        time.sleep(self.options.quiet)
        return begun, ended

    def told(self, name, searches, begun, ended):
        """Prints the row of an incident, and its faults."""
        figures = row(searches, begun, ended)
        self.rows.append((name, figures))
        print(f"{name:<20}" + "".join(f"{figure:>9.0f}" for figure in figures), flush=True)
        for said in sorted({search[3] for search in searches if search[3]})[:5]:
            self.fault(said)
        for query in sorted({search[2] for search in searches if search[2]})[:5]:
            self.fault(f"another answer than that of one index: {query}")
        longest = max((end - start for start, end, *_ in searches), default=0)
        if longest > self.options.longest:
            self.fault(f"a search took {longest:.1f} s")

    def work(self, home, one):
        """Encodes, indexes, searches and serves, and compares with one machine."""
        there = ["--ray", self.address]
        if not self.options.quick:
            self._encode(home, there)
        index = home / "there"
        given = ["index", "--collection", DOCUMENTS, "--index", index, "--shards", SHARDS]
        self.ran(*given, *there)
        self.index = index
        if self.options.quick:  # the incidents search it
            return
        run = ["search", "--topics", self.options.topics.absolute(), "--hits", 100, "--output"]
        self.ran(*run, home / "there.txt", "--index", index, *there, "replicas=2")
        self.ran(*run, home / "here.txt", "--index", one)
        self.same("the run", home / "here.txt", home / "there.txt")
        self._serve(one, index)

    def _encode(self, home, there):
        lines = gzip.decompress(DOCUMENTS.read_bytes()).splitlines(keepends=True)[:400]
        (home / "few.jsonl").write_bytes(b"".join(lines))
        for name, more in (("vectors-here", ()), ("vectors-there", there)):
            given = ["--collection", home / "few.jsonl", "--encoder", "bm25+mini", "--shards", 3]
            self.ran("encode", *given, "--output", home / name, *more)
        here, away = (sorted((home / name).iterdir()) for name in ("vectors-here", "vectors-there"))
        if [path.name for path in here] != [path.name for path in away]:
            self.fault(f"other files were encoded: {away}")
        for one, other in zip(here, away, strict=False):
            self.same("what was encoded", one, other)

    def _serve(self, one, index):
        self.serve(one, index)
        asked = self.hosts[0].open(sys.executable, "-c", ASK, one.name, index.name, stdout=subprocess.PIPE)
        differ = asked.communicate(timeout=START_SECONDS)[0].decode().strip()
        self.end()
        print(f"served: {differ or 'nothing'}", flush=True)
        if differ != "same":
            self.fault("the server did not answer as with one index")

    def serve(self, *indexes, replicas=2):
        """Starts a server, in place of the one that runs."""
        self.end()
        given = ["serve", "--port", SERVE_PORT, "--index", *indexes, "--ray", self.address, f"replicas={replicas}"]
        self.server = self._command(*given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        """Ends the server, which closes what it has on the cluster."""
        if self.server is not None:
            self.server.terminate()
            self.server.wait(COMMAND_SECONDS)
            self.server = None

    def _command(self, name, *arguments, **options):
        return self.hosts[0].open(sys.executable, "-m", "pyserini_compneg", name, *arguments, **options)

    def said(self, *command):
        """Runs a command on the head's host; returns its exit code and what it said."""
        process = self._command(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = process.communicate(timeout=COMMAND_SECONDS)[1]
        return process.returncode, said.strip()

    def ran(self, *command):
        """Runs a command, which must succeed."""
        began = time.monotonic()
        code, said = self.said(*command)
        print(f"{command[0]} {'over hosts' if '--ray' in command else 'here'}: {time.monotonic() - began:.0f} s")
        if code:
            self.fault(f"{command[0]}: exit code {code}: {said}")

    def same(self, what, one, other):
        if not (other.exists() and one.read_bytes() == other.read_bytes()):
            self.fault(f"{what} is not that of one machine: {other.name}")

    def single(self):
        """What searches without replicas say while a host is cut off, and how long they take."""
        for partial in (False, True):
            self.opened(replicas=1, allow_partial=partial)
            placed = self.placed()
            victim = next(host for host in self.hosts if not host.is_head and placed[host.name])
            kind = "allow_partial" if partial else "replicas=1"
            victim.cut()
            try:
                for limit in (5, LONG_SECONDS):
                    start, end, wrong, error = self.load.search(seconds=limit)
                    answer = error or ("a partial answer" if wrong else "the whole answer")
                    print(f"{kind}, {victim.name} of {placed} cut, limit {limit} s: {end - start:.1f} s: {answer}")
                    if end - start > limit + 1 or (wrong and not partial):
                        self.fault(f"{answer} after {end - start:.1f} s")
            finally:
                victim.join()
            self.rejoined(victim)
            start, end, wrong, error = self.load.search(seconds=LONG_SECONDS)
            answer = error or ("a partial answer" if wrong else "the whole answer")
            print(f"{kind}, rejoined: {end - start:.1f} s: {answer}", flush=True)
        self.load.close()


def answers(one, topics, hits, path):
    """Writes the answers of one index."""
    with SignedImpactSearcher(one) as searcher:
        queries = [topic.expression for topic in read_topics(topics)]
        found = [(query, searcher.search(query, k=hits)) for query in queries]
    path.write_bytes(pickle.dumps(found))


def chosen(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="index, search, and one cut of 8 s")
    parser.add_argument("--incidents", nargs="+", default=list(INCIDENTS), choices=list(INCIDENTS))
    parser.add_argument("--served", action="store_true", help="the incidents hit a server that searches the cluster")
    parser.add_argument("--seconds", type=float, help="how long an incident takes (default: 18, with --quick 8)")
    parser.add_argument("--quiet", type=float, help="seconds before an incident and after it (default: 10, 4)")
    parser.add_argument("--longest", type=float, default=math.inf, help="a search that takes more seconds is a fault")
    parser.add_argument("--minutes", type=int, default=0, help="so many incidents, one a minute, in random order")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of hosts and incidents")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--hits", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=HOSTS, help="with the head, which holds no shard")
    parser.add_argument("--index", help="one index (default: of the sample)")
    parser.add_argument("--shards", help="the same in shards")
    parser.add_argument("--topics", type=Path, default=QUERIES)
    parser.add_argument("--skip-ok", action="store_true", help="succeed where hosts are not allowed")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"the parts are {', '.join(PARTS)}, not {unknown[0]}")
    if bool(options.index) != bool(options.shards):
        parser.error("--index and --shards belong together")
    if options.quick:
        options.parts, options.incidents = ["work", "incidents"], ["cut"]
    options.parts = options.parts or PARTS
    options.seconds = options.seconds or (8 if options.quick else 18)
    options.quiet = options.quiet or (4 if options.quick else 10)
    return options


def tried(options, home, stack) -> int:
    """Runs the parts; returns the number of faults."""
    one, shards = (Path(path).absolute() for path in (options.index or home / "one", options.shards or home / "shards"))
    if not options.index:
        build_index(DOCUMENTS, one)
        if not options.quick:
            build_sharded_index(DOCUMENTS, shards, SHARDS)
    answers(one, options.topics, options.hits, home / "answers.pickle")
    made = stack.enter_context(network(home, [0] + [2] * (options.hosts - 1)))
    trial = Trial(made, None, options, shards)
    if "work" in options.parts:
        trial.work(home, one)
    if not options.quick:
        trial.index = shards
    if {"incidents", "single"} & set(options.parts):
        with ExitStack() as searching:
            said = searching.enter_context((home / "load.log").open("w"))
            trial.load = Remote(made.hosts[0], made.address, str(home / "answers.pickle"), said)
            searching.callback(trial.load.end)
            if "incidents" in options.parts:
                print(HEADER, flush=True)
                (trial.searched_long if options.minutes else trial.searched)(options)
                print(*medians(trial.rows), sep="\n", flush=True)
                trial.end()
            if "single" in options.parts:
                trial.single()
    if "refusals" in options.parts:
        refusals(trial, home)
    return trial.faults


def main() -> int:
    """Runs the parts; returns 1 if an answer was wrong or missing."""
    options = chosen()
    if lacks := lacking():
        print(f"skipped: {lacks}")
        return 0 if options.skip_ok else 2
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hosts-")))
        faults = tried(options, home, stack)
    print(f"{faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
