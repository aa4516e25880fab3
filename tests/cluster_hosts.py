"""Searches on a cluster of hosts in network namespaces, while one of them is cut off, frozen, killed, slow or lossy.

    python tests/cluster_hosts.py [--incidents cut freeze freeze-actor kill delay lose] [--seconds 18] [--seed 1]
    python tests/cluster_hosts.py --minutes 30                          # an incident a minute, in random order
    python tests/cluster_hosts.py --index ONE --shards SHARDS --topics FILE [--hits 10] [--threads 4] [--replicas 2]

Threads search in a loop, and each answer is compared with that of the one index. A line is printed for each incident:
its searches and their milliseconds before it (quiet), over it, and after it. The default index is that of the package's
sample. Needs Linux, root and the extra `ray`; where hosts are not allowed, --skip-ok makes that a line and no failure.
"""

import argparse
import math
import pickle
import random
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "helpers"), str(HERE.parent)]

from cluster_load import Remote  # noqa: E402
from network_hosts import HostError, lacking, network  # noqa: E402

from pyserini_compneg.commands.demo import QUERIES, SAMPLE  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.lucene.shards import read_shards  # noqa: E402
from pyserini_compneg.search import SignedImpactSearcher  # noqa: E402
from pyserini_compneg.topics import read_topics  # noqa: E402

ACTOR = "ray::ShardActor"
SHARDS, HOSTS = 2, 3
WARM_SECONDS, REJOIN_SECONDS, START_SECONDS = 3, 90, 120
INCIDENTS = {
    "cut": (lambda host: host.cut(), lambda host: host.join()),
    "freeze": (lambda host: host.freeze(), lambda host: host.thaw()),
    "freeze-actor": (lambda host: host.freeze(ACTOR), lambda host: host.thaw()),
    "kill": (lambda host: host.kill(), lambda host: host.start()),
    "delay": (lambda host: host.disturb(delay=0.1, jitter=0.1), lambda host: host.calm()),
    "lose": (lambda host: host.disturb(loss=0.1), lambda host: host.calm()),
}
"""How each incident begins and ends, given its host."""

COLUMNS = ["quiet", "p50", "p99", "over", "p50", "p99", "longest", "after", "p50", "longest", "wrong", "errors"]


def percentile(durations, share):
    """In milliseconds; NaN if there are none."""
    ordered = sorted(durations)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def row(searches, begun, ended):
    """The figures of an incident: of the searches before it, of those that overlap it, and of those after it."""
    parts = {
        "quiet": [end - start for start, end, *_ in searches if end <= begun],
        "over": [end - start for start, end, *_ in searches if end > begun and start <= ended],
        "after": [end - start for start, end, *_ in searches if start > ended],
    }
    quiet, over, after = parts.values()
    return [
        *(len(quiet), percentile(quiet, 0.5), percentile(quiet, 0.99)),
        *(len(over), percentile(over, 0.5), percentile(over, 0.99), percentile(over, 1)),
        *(len(after), percentile(after, 0.5), percentile(after, 1)),
        *(sum(bool(search[which]) for search in searches) for which in (2, 3)),
    ]


def shown(name, figures):
    return f"{name:<20}" + "".join(f"{figure:>9.0f}" for figure in figures)


class Trial:
    """A cluster of hosts with an index, and the threads that search it."""

    def __init__(self, hosts, load, options, index):
        self.hosts, self.load, self.options, self.index = hosts, load, options, index
        self.faults = 0

    def fault(self, said):
        self.faults += 1
        print(f"FAULT: {said}", flush=True)

    def opened(self, **options):
        """Opens the index, and waits until all processes hold their shards."""
        options = {"replicas": self.options.replicas, **options}
        self.load.open(index=str(self.index), hits=self.options.hits, **options)
        wanted = len(read_shards(self.index)) * options["replicas"]
        deadline = time.monotonic() + START_SECONDS
        while True:
            there = [len(host.processes(ACTOR)) for host in self.hosts]
            self.load.search()
            if sum(there) == wanted and not any(host.processes(f"{ACTOR}.") for host in self.hosts):
                return dict(zip([host.name for host in self.hosts], there, strict=True))
            if time.monotonic() > deadline:
                raise HostError(f"of {wanted} processes with shards there are {there}")
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

    def incident(self, name, choice, seconds):
        """A quiet phase, an incident on a host that has actors, and a recovery."""
        begin, end = INCIDENTS[name]
        placed = self.opened()
        victim = choice.choice([host for host in self.hosts if not host.is_head and placed[host.name]])
        self.load.start(threads=self.options.threads)
        time.sleep(WARM_SECONDS + self.options.quiet)
        begun = time.monotonic()
        begin(victim)
        time.sleep(seconds)
        end(victim)
        ended = time.monotonic()
        again = self.rejoined(victim)
        back = time.monotonic() - ended
        time.sleep(self.options.quiet)
        found = [search for search in self.load.stop() if search[0] > begun - self.options.quiet]
        print(shown(f"{name} {seconds:g}s", row(found, begun, ended)), flush=True)
        state = "started again" if again else "back"
        print(f"    {victim.name} of {placed} was {state} after {back:.0f} s", flush=True)
        for said in sorted({search[3] for search in found if search[3]})[:5]:
            self.fault(said)
        for query in sorted({search[2] for search in found if search[2]})[:5]:
            self.fault(f"another answer than that of one index: {query}")


def answers(one, topics, hits, path):
    """Writes the answers of one index."""
    with SignedImpactSearcher(one) as searcher:
        queries = [topic.expression for topic in read_topics(topics)]
        found = [(query, searcher.search(query, k=hits)) for query in queries]
    path.write_bytes(pickle.dumps(found))


def chosen(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--incidents", nargs="*", default=list(INCIDENTS), choices=list(INCIDENTS))
    parser.add_argument("--seconds", type=float, default=18, help="how long an incident takes")
    parser.add_argument("--quiet", type=float, default=10, help="seconds before an incident and after it")
    parser.add_argument("--minutes", type=int, default=0, help="so many incidents, one a minute, in random order")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--hits", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=HOSTS, help="with the head, which holds no shard")
    parser.add_argument("--index", help="one index (default: one of the sample)")
    parser.add_argument("--shards", help="the same in shards")
    parser.add_argument("--topics", default=QUERIES)
    parser.add_argument("--skip-ok", action="store_true", help="succeed where hosts are not allowed")
    options = parser.parse_args(arguments)
    if bool(options.index) != bool(options.shards):
        parser.error("--index and --shards belong together")
    return options


def main() -> int:
    """Searches; returns 1 if an answer was wrong or missing."""
    options = chosen()
    choice = random.Random(options.seed)
    if lacks := lacking():
        print(f"skipped: {lacks}")
        return 0 if options.skip_ok else 2
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hosts-")))
        one, shards = Path(options.index or home / "one"), Path(options.shards or home / "shards")
        if not options.index:
            build_index(SAMPLE / "documents.jsonl.gz", one)
            build_sharded_index(SAMPLE / "documents.jsonl.gz", shards, SHARDS)
        answers(one, options.topics, options.hits, home / "answers.pickle")
        made = stack.enter_context(network(home, [0] + [2] * (options.hosts - 1)))
        said = stack.enter_context((home / "load.log").open("w"))
        load = Remote(made.hosts[0], made.address, str(home / "answers.pickle"), said)
        stack.callback(load.end)
        trial = Trial(made.hosts, load, options, shards)
        print(f"{'incident':<20}" + "".join(f"{name:>9}" for name in COLUMNS), flush=True)
        for name in options.incidents:
            trial.incident(name, choice, options.seconds)
        print(f"{trial.faults} faults")
    return min(trial.faults, 1)


if __name__ == "__main__":
    sys.exit(main())
