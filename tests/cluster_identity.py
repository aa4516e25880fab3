"""Compares the runs of one index with those of the same documents in shards, on a cluster of two local nodes.

    python tests/cluster_identity.py --one INDEX --shards INDEX... --topics FILE [--hits 10 1000] [--output FOLDER]

Every setting of each operator is run with each number of hits. All runs must be the same files, byte for byte. Runs of
the one index that the output folder has already are not made again.
"""

import argparse
import filecmp
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from ray_nodes import ray_nodes  # noqa: E402

from pyserini_compneg import Operators, SignedImpactSearcher  # noqa: E402
from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher  # noqa: E402
from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS, UNIONS  # noqa: E402
from pyserini_compneg.topics.topic_runs import search_topics  # noqa: E402
from pyserini_compneg.topics.topics import read_topics  # noqa: E402

SETTINGS = {"difference": DIFFERENCES, "intersection": INTERSECTIONS, "union": UNIONS}
OPERATORS = {f"{kind}-{name}": Operators(**{kind: name}) for kind, names in SETTINGS.items() for name in names}


def make_runs(searcher, topics, output: Path, hits: list[int]) -> list[Path]:
    """The runs of all settings, made where they are not there yet."""
    output.mkdir(parents=True, exist_ok=True)
    runs = []
    for k in hits:
        for name, searcher.operators in OPERATORS.items():
            runs.append(output / f"{name}-{k}.txt")
            if not runs[-1].exists():
                search_topics(searcher, topics, runs[-1], hits=k, threads=2)
    return runs


def main() -> int:
    """Compares; returns 1 if a run differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--one", required=True, help="one index")
    parser.add_argument("--shards", required=True, nargs="+", help="the same in shards")
    parser.add_argument("--topics", required=True)
    parser.add_argument("--hits", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--output", help="where the runs of the one index are kept (default: nowhere)")
    options = parser.parse_args()
    topics, differ = read_topics(options.topics), 0
    with tempfile.TemporaryDirectory() as folder, ray_nodes() as nodes, RayCluster(nodes.address):
        kept = Path(options.output or f"{folder}/one")
        for index in options.shards:
            started = time.monotonic()
            with ShardedImpactSearcher(index, ray=nodes.address) as searcher:
                made = make_runs(searcher, topics, Path(folder) / Path(index).name, options.hits)
                seconds = time.monotonic() - started
            with SignedImpactSearcher(options.one) as searcher:
                wanted = make_runs(searcher, topics, kept, options.hits)
            pairs = zip(made, wanted, strict=True)
            wrong = [run.name for run, one in pairs if not filecmp.cmp(run, one, shallow=False)]
            differ += len(wrong)
            print(
                f"{index}: {len(made)} runs of {len(topics)} queries, {seconds:.0f} s, different: {wrong}", flush=True
            )
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
