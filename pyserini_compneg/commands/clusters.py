"""``--ray``: work and indexes on a cluster. No other module of the commands imports Ray."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_compneg.commands import flags
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.options import COUNT, FACTOR
from pyserini_compneg.support.progress import Runner, in_turn

if TYPE_CHECKING:
    from pyserini_compneg.search import SignedImpactSearcher
    from pyserini_compneg.serve.served_index import OpenIndex

_ADDRESS = (
    "on a Ray cluster: its address, such as head:6379, auto for this machine's cluster, or local to start one here"
)


def add_ray(group: flags.Flags, what: str) -> None:
    """Adds ``--ray`` for a command that builds something."""
    group.add_argument("--ray", metavar="ADDRESS", help=f"{what} {_ADDRESS} (docs/how-to/cluster.md)")


def add_ray_search(group: flags.Flags, what: str) -> None:
    """Adds ``--ray`` for a command that searches."""
    group.add_argument(
        "--ray",
        action=flags.with_settings(replicas=COUNT, hedge=FACTOR),
        metavar=("ADDRESS", "replicas=N"),
        help=f"{what} {_ADDRESS}; replicas=N has N processes hold each shard (default 1), and hedge=X asks another one "
        "of them after X times the usual time (default 2; docs/how-to/cluster.md)",
    )


@contextmanager
def runner(address: str | None, cpus: int = 1, gpus: int = 0) -> Iterator[Runner]:
    """Runs the parts of a job on the cluster, each with this many processors, or in this process without an address."""
    if address is None:
        yield in_turn
        return
    from pyserini_compneg.cluster import RayCluster, RayRunner

    with RayCluster(address) as cluster:
        yield RayRunner(cluster, cpus, gpus)


def open_searcher(args: argparse.Namespace, settings: dict[str, Any]) -> SignedImpactSearcher:
    """The searcher of ``--index`` with ``--encoder``, in this process or on the cluster of ``--ray``."""
    from pyserini_compneg.lucene import open_reader
    from pyserini_compneg.search import SignedImpactSearcher

    partial = getattr(args, "allow_partial", False)
    if (ray := getattr(args, "ray", None)) is None:
        return SignedImpactSearcher(open_reader(args.index, partial), args.encoder, **settings)
    from pyserini_compneg.cluster import ShardedImpactSearcher

    address, replicas = ray
    return ShardedImpactSearcher(args.index, args.encoder, ray=address, allow_partial=partial, **replicas, **settings)


@contextmanager
def opener(ray: tuple[str, dict[str, Any]] | None, folders: Sequence[str]) -> Iterator[OpenIndex]:
    """Opens the indexes of a server. The cluster searches indexes in shards; this process searches the others."""
    from pyserini_compneg.lucene import SHARDS_NAME
    from pyserini_compneg.search import SignedImpactSearcher

    if ray is None:
        yield SignedImpactSearcher
        return
    from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher

    address, replicas = ray

    def is_sharded(folder: str) -> bool:
        return (Path(folder) / SHARDS_NAME).is_file()

    def opened(folder: str, encoder: str | None, **settings: Any) -> SignedImpactSearcher:
        if is_sharded(folder):
            return ShardedImpactSearcher(folder, encoder, ray=address, **replicas, **settings)
        return SignedImpactSearcher(folder, encoder, **settings)

    if not any(map(is_sharded, folders)):
        what = f"none of the indexes is in shards ({', '.join(folders)})"
        remedy = "build one with index --shards N, or leave out --ray"
        raise InputError(what, where=f"--ray {address}", remedy=remedy)
    with RayCluster(address):  # Ray must start before the first index starts Java
        yield opened
