"""Shards that are searched by actors of a cluster, one or several for each shard. Lost actors are replaced."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.cluster.connection import RayCluster
from pyserini_compneg.cluster.worker import Setup, blame_node, prepare
from pyserini_compneg.lucene import SHARDS_NAME, ImpactReader, ShardedReader, resolve_index
from pyserini_compneg.lucene.cancellation import Cancellation, check_cancelled, remaining_seconds
from pyserini_compneg.lucene.shards import Answer, Asked, Question, Shard, ShardEntry, read_shards
from pyserini_compneg.support.errors import ArgumentError, ClusterError, CompNegError, IndexFormatError, IndexReadError

ATTEMPTS = 3
"""How often a request is repeated with replaced actors before the shard counts as gone."""

MOST_REPLICAS = 100
"""The most replicas of a shard. Each is a process with a Java machine."""

START_SECONDS = 120.0
"""The time limit for starting an actor. With room in the cluster, it takes about 4 seconds."""

_logger = logging.getLogger(__name__)
_SLICE_SECONDS = 0.1
_CALLS_AT_ONCE = 8
_CPU_PARTS = 1000  # Ray's smallest share of a processor is 1/1000


class ShardActor:
    """Holds a shard in a process of the cluster."""

    def __init__(self) -> None:
        self._reader: ImpactReader | None = None

    def open(self, setup: Setup, folder: str, entry: ShardEntry) -> CompNegError | None:
        """Opens the shard. Returns the error, if there is one."""
        try:
            prepare(setup)
            self._reader = Shard(Path(folder), entry).reader
        except ClusterError as error:
            return error
        except CompNegError as error:
            unreadable = error.recast(IndexReadError)
            blame_node(unreadable)
            return unreadable
        return None

    def ask(
        self, question: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], seconds: float = math.inf
    ) -> tuple[Any, CompNegError | None]:
        """The answer to a request to the reader, or the error in its place. A search ends after ``seconds``."""
        try:
            with Cancellation(seconds).applied():
                return question(self._reader, *args, **kwargs), None
        except CompNegError as error:
            return None, error


@dataclass(eq=False, slots=True)
class _Replica:
    """An actor that holds a shard or is about to open it."""

    actor: Any
    opening: Any
    is_open: bool = False


class RayShard(Shard):
    """A shard in a cluster. One or several actors hold it and take turns.

    All nodes must reach the folder by the same path. Each actor has ``cpus`` processors.
    """

    def __init__(
        self, cluster: RayCluster, setup: Setup, folder: Path, entry: ShardEntry, replicas: int, cpus: float
    ) -> None:
        self.folder = folder
        self._entry, self._ray, self._setup = entry, cluster.ray, setup
        options = {"num_cpus": cpus, "max_restarts": 0, "max_concurrency": _CALLS_AT_ONCE}
        self._actor = self._ray.remote(ShardActor).options(scheduling_strategy="SPREAD", **options)
        self._lock = threading.RLock()
        self._turn = 0
        self._replicas = [self._start() for _ in range(replicas)]

    def _start(self) -> _Replica:
        actor = self._actor.remote()
        return _Replica(actor, actor.open.remote(self._setup, os.path.abspath(self.folder), self._entry))

    def ask(self, question: Question[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Callable[[], Answer]:
        replica = self._next()
        asked = replica.actor.ask.remote(question, args, kwargs, remaining_seconds()) if replica.is_open else None
        return lambda: self._answer(replica, asked, question, args, kwargs)

    def _next(self) -> _Replica:
        """The next open replica in turn."""
        with self._lock:
            if not self._replicas:
                raise ArgumentError("the searcher is closed", where=self.folder, remedy="open another one")
            self._turn += 1
            for replica in list(self._replicas):
                if not replica.is_open and self._ray.wait([replica.opening], timeout=0)[0]:
                    try:
                        replica.is_open = self._ray.get(replica.opening) is None
                    except self._ray.exceptions.RayError:  # the actor was lost before it was open
                        self._replace(replica)
            open_ones = [replica for replica in self._replicas if replica.is_open] or self._replicas
            return open_ones[self._turn % len(open_ones)]

    def _answer(self, replica: _Replica, asked: Any, question: Any, args: Any, kwargs: Any) -> Any:
        """The answer to a request. If an actor is lost, another replica is asked."""
        most = len(self._replicas) + ATTEMPTS  # all may be lost at once without notice
        for _ in range(most):
            try:
                if asked is None:
                    if not replica.is_open and (error := self._get(replica.opening, START_SECONDS)) is not None:
                        raise error
                    replica.is_open = True
                    asked = replica.actor.ask.remote(question, args, kwargs, remaining_seconds())
                answer, error = self._get(asked)
            except self._ray.exceptions.RayTaskError:
                raise
            except self._ray.exceptions.RayError:
                self._replace(replica)
                replica, asked = self._next(), None
                continue
            if error is not None:
                check_cancelled()  # its message has the total time
                raise error
            return answer
        gone = f"the shard is gone: {most} actors that searched it were lost in turn"
        raise IndexReadError(gone, where=self.folder)

    def _get(self, asked: Any, seconds: float = math.inf) -> Any:
        """Waits for the answer of an actor. A search can be cancelled during the wait."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._ray.get(asked, timeout=_SLICE_SECONDS)
            except self._ray.exceptions.GetTimeoutError:
                check_cancelled()
                if time.monotonic() > deadline:
                    said = f"the cluster has started no actor for the shard in {START_SECONDS:g} s"
                    raise IndexReadError(said, where=self.folder, remedy="it may lack processors or nodes") from None

    def _replace(self, lost: _Replica) -> None:
        """Starts another actor in place of a lost actor. Only one thread does this."""
        with self._lock:
            if lost in self._replicas:
                self._replicas[self._replicas.index(lost)] = self._start()
                said = "%s: a process that searched this shard was lost; another one takes its place"
                _logger.warning(said, self.folder)

    def close(self) -> None:
        replicas, self._replicas = self._replicas, []
        for replica in replicas:
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(replica.actor)


def ray_reader(cluster: RayCluster, index: str | Path, replicas: int = 1, allow_partial: bool = False) -> ShardedReader:
    """Opens an index in shards on a cluster. All nodes must reach the index by the same path."""
    if not 1 <= replicas <= MOST_REPLICAS:
        raise ArgumentError(f"a shard has from 1 to {MOST_REPLICAS} replicas, got {replicas}")
    folder = Path(os.path.abspath(resolve_index(index)))  # the form in which actors name it in messages
    check_sharded(folder)
    actors = replicas * len(read_shards(folder))
    # The actors fit on half of the nodes, or beside the actors of a replaced index.
    cpus = min(0.5, cluster.cpus / (4 * actors))
    cpus = max(1.0, math.floor(cpus * _CPU_PARTS)) / _CPU_PARTS
    open_shard = partial(RayShard, cluster, cluster.setup(cpus), replicas=replicas, cpus=cpus)
    return ShardedReader(folder, open_shard, None, allow_partial)


def check_sharded(folder: Path) -> None:
    if not (folder / SHARDS_NAME).is_file():
        said = f"has no {SHARDS_NAME}, so there are no shards for a cluster"
        raise IndexFormatError(said, where=folder, remedy="build it with index --shards N, or leave out --ray")
