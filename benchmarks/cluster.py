"""What shards cost: latencies on this machine, and from them those of clusters that nobody here has.

    python benchmarks/cluster.py --one INDEX --shards INDEX --topics FILE [--queries 100] [--seed 1]

INDEX is one index of a collection, and one in shards of the same. Queries are composed once, with the default
operators. They are then searched (a) in the one index, (b) in the shards, one after the other, in this process, (c) on
a local Ray cluster, and (d) in each shard alone. All of (a) to (c) must find the same.

The simulation draws a query, and for each shard a time from (d): the query's median over the shards, times a ratio that
is drawn from all queries and shards. An answer waits for the slowest of n draws. Then comes what the coordinator does
for each shard and each hit, measured here, and a network, assumed. A shard of D documents takes (D / D₀)^0.87 times as
long as one of the D₀ here (docs/explanations/speed.md).
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from reporting import describe, environment, table

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.cluster import ShardedImpactSearcher
from pyserini_compneg.compose import ScoringNode
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.lucene.shards import read_shards
from pyserini_compneg.topics.batch import topic_query
from pyserini_compneg.topics.topics import read_topics

HITS = (10, 1000)
GROWTH = 0.87
ROUND_TRIP_MS = 0.5
BYTES_A_MS = 1.25e6  # 10 Gbit/s into the coordinator
CLUSTERS = ((10**7, 10), (10**8, 10), (10**8, 100), (10**9, 100), (10**9, 1000))
DRAWS = 2000

Ranking = tuple[list[str], list[float]]
"""The ids of documents, and their scores."""


def timed(reader: ImpactReader, nodes: Sequence[ScoringNode], k: int) -> tuple[np.ndarray, list[Ranking]]:
    """The milliseconds of each query, the better of two rounds, and what was found."""
    times: list[float] = []
    found: list[Ranking] = []
    for _ in range(2):
        found.clear()
        for node in nodes:
            start = time.perf_counter()
            (ranking,) = reader.search([node], k)
            times.append((time.perf_counter() - start) * 1e3)
            found.append((ranking.docids, list(ranking.scores)))
    return np.array(times).reshape(2, -1).min(axis=0), found


def nothing(reader: ImpactReader) -> None:
    """A question that takes no time."""


def per_call_ms(ask: Callable[[], object]) -> float:
    """The milliseconds of a call, the median of 200."""
    times = []
    for _ in range(200):
        start = time.perf_counter()
        ask()
        times.append((time.perf_counter() - start) * 1e3)
    return median(times)


def merging_ms(found: Sequence[Ranking], shards: int) -> float:
    """What merging costs for each hit that a shard sends."""
    rankings = [ranking for ranking in found if ranking[0]][:shards] * 4
    start = time.perf_counter()
    for _ in range(20):
        merged: list[tuple[float, str]] = []
        for docids, scores in rankings:
            merged += ((-score, docid) for docid, score in zip(docids, scores, strict=True))
        merged.sort()
    return (time.perf_counter() - start) * 1e3 / 20 / sum(len(docids) for docids, _ in rankings)


def simulated(times: np.ndarray, documents: float, cluster: tuple[int, int], costs: dict[str, float]) -> np.ndarray:
    """Milliseconds of queries on a cluster of so many documents and shards."""
    choice = np.random.default_rng(int(costs["seed"]))
    size, shards = cluster
    medians = np.median(times, axis=0)
    ratios = (times / medians).ravel()
    slowest = np.array([choice.choice(ratios, shards).max() for _ in range(DRAWS)])
    search = choice.choice(medians, DRAWS) * (size / shards / documents) ** GROWTH * slowest
    hits = costs["hits"]
    return search + ROUND_TRIP_MS + shards * (costs["call"] + hits * (costs["merge"] + costs["bytes"] / BYTES_A_MS))


def main() -> None:
    """Measures, and simulates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("one", "shards", "topics"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    topics = read_topics(args.topics)[:: max(1, len(read_topics(args.topics)) // args.queries)]
    entries = read_shards(Path(args.shards))
    with ShardedImpactSearcher(args.shards) as on_ray, SignedImpactSearcher(args.one) as one:
        nodes = one.compose([topic_query(topic) for topic in topics])
        with SignedImpactSearcher(args.shards) as in_turn:
            alone = [ImpactReader(Path(args.shards) / entry.path) for entry in entries]
            measured = {}
            rows = []
            for k in HITS:
                engines = {"one index": one.reader, "shards in turn": in_turn.reader, "shards on Ray": on_ray.reader}
                timed(one.reader, nodes, k), timed(in_turn.reader, nodes, k)  # Java compiles
                results = {name: timed(reader, nodes, k) for name, reader in engines.items()}
                assert all(found == results["one index"][1] for _, found in results.values()), "another ranking"
                shards = [timed(reader, nodes, k) for reader in alone]
                measured[k] = np.array([times for times, _ in shards]), shards[0][1]
                results["slowest shard alone"] = (measured[k][0].max(axis=0), [])
                rows += [
                    [name, str(k), f"{np.median(ms):.1f}", f"{np.percentile(ms, 99):.1f}"]
                    for name, (ms, _) in results.items()
                ]
        call = per_call_ms(lambda: on_ray.reader._ask(nothing)) / len(entries)
    print(describe(environment()))
    print(f"{len(nodes)} queries, {len(entries)} shards of {entries[0].documents:,} documents\n")
    print(table(["", "hits", "median ms", "p99 ms"], rows))
    rows = []
    for k, (times, found) in measured.items():
        size = len(pickle.dumps([found[0]])) / max(1, len(found[0][0]))
        costs = {"call": call, "merge": merging_ms(found, len(entries)), "bytes": size, "hits": k, "seed": args.seed}
        print(f"\nhits {k}: {call:.2f} ms a shard, {costs['merge'] * 1e3:.2f} µs and {size:.0f} bytes a hit")
        for cluster in CLUSTERS:
            ms = simulated(times, entries[0].documents, cluster, costs)
            kb = cluster[1] * k * size / 1e3
            cells = [f"{np.median(ms):,.0f}", f"{np.percentile(ms, 99):,.0f}", f"{kb:,.0f}"]
            rows.append([f"{cluster[0]:,}", f"{cluster[1]:,}", str(k), *cells])
    print("\n" + table(["documents", "shards", "hits", "median ms", "p99 ms", "kB a query"], rows))


if __name__ == "__main__":
    main()
