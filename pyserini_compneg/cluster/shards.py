"""Shards that are searched by actors of a cluster, one or several for each shard.

A request that is not answered in the usual time goes to another actor of the shard, too, and the first answer counts.
An actor that is late is left out for a while, and one that is lost or silent is replaced.

Source: Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013 (hedged requests).
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from pyserini_compneg.cluster.connection import RayCluster
from pyserini_compneg.cluster.replicas import START_SECONDS, Replica, Sent, Starts
from pyserini_compneg.cluster.worker import Setup, ShardActor
from pyserini_compneg.lucene import SHARDS_NAME, ShardedReader, resolve_index
from pyserini_compneg.lucene.cancellation import check_cancelled, remaining_seconds
from pyserini_compneg.lucene.requests import ComposedSearch
from pyserini_compneg.lucene.shards import Answer, Asked, Question, Shard, ShardEntry, read_shards
from pyserini_compneg.support.errors import (
    ArgumentError,
    ClusterError,
    CompNegError,
    IndexFormatError,
    IndexReadError,
    SearchTimeout,
)

ATTEMPTS = 3
"""How often a request is repeated with replaced actors before the shard counts as gone."""

MOST_REPLICAS = 100
"""The most replicas of a shard. Each is a process with a Java machine."""

HEDGE = 2.0
"""An answer is late after so many times the seconds in which 95 of the last 100 like it came."""

SILENT_SECONDS = 10.0
"""An actor whose heartbeat stays away for so long counts as lost."""

PARTIAL_SECONDS = 2.0
"""The same where partial results are allowed: the shard is left out then."""

_NOT_STARTED = f"did not start in {START_SECONDS:g} s"
_logger = logging.getLogger(__name__)
_SLICE_SECONDS = 0.1
_CALLS_AT_ONCE = 8
_CPU_PARTS = 1000  # Ray's smallest share of a processor is 1/1000
_HEARTBEATS = "heartbeats"  # the calls of this group do not wait for searches
_LEAST_SECONDS = 0.05  # no answer is late before
_FIRST_SECONDS = 1.0  # until it is known what is usual, and between the heartbeats of long requests
_LONGEST_PAUSE = 10.0
_SPREAD_SECONDS = 10.0  # between two looks at how the replicas are spread over the nodes
_INSTANT = 0.001

_Request: TypeAlias = tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]


class RayShard(Shard):
    """A shard in a cluster. One or several actors hold it and take turns.

    All nodes must reach the folder by the same path. Each actor has ``cpus`` processors. ``starts`` is shared by the
    shards of an index.
    """

    def __init__(
        self,
        cluster: RayCluster,
        setup: Setup,
        folder: Path,
        entry: ShardEntry,
        replicas: int,
        cpus: float,
        hedge: float = HEDGE,
        starts: Starts | None = None,
        allow_partial: bool = False,
    ) -> None:
        self.folder = folder
        self._entry, self._cluster, self._ray, self._setup = entry, cluster, cluster.ray, setup
        self._hedge, self._starts, self._allow_partial = hedge, starts or Starts(), allow_partial
        options = {"num_cpus": cpus, "max_restarts": 0, "max_concurrency": _CALLS_AT_ONCE}
        self._actor = self._ray.remote(concurrency_groups={_HEARTBEATS: 1}, **options)(ShardActor)
        self._lock = threading.RLock()
        self._turn = 0
        self._usual: dict[Hashable, deque[float]] = defaultdict(partial(deque, maxlen=100))
        self._count, self._replicas = replicas, list[Replica]()
        for _ in range(replicas):
            self._replicas.append(self._start(self._replicas))
        self._missing: list[str] = []  # for each replica that is to be replaced, the node to be avoided
        self._retired: list[Replica] = []
        self._spread_at = time.monotonic() + _SPREAD_SECONDS

    def _start(self, others: Sequence[Replica], avoided: str = "") -> Replica:
        """A new actor, if possible on a node that has none of the others, but not on the one to be avoided."""
        nodes = [node for node in self._cluster.worker_nodes() if node != avoided]
        node = self._starts.next_node(nodes, {replica.node for replica in others})
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        strategy = affinity(node, soft=True, _spill_on_unavailable=True) if node else "SPREAD"
        actor = self._actor.options(scheduling_strategy=strategy).remote()
        opening = actor.open.remote(self._setup, os.path.abspath(self.folder), self._entry)
        return Replica(actor, opening, node, time.monotonic())

    def ask(self, question: Question[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Callable[[], Answer]:
        request, sent = (question, args, kwargs), dict[Any, Sent]()
        self._send(request, sent)
        return partial(self._answer, request, sent)

    def _send(self, request: _Request, sent: dict[Any, Sent], failed: Collection[Replica] = ()) -> None:
        """Sends a request to the next replica that does not have it, if there is one, or begins to wait for that."""
        if (replica := self._next({*failed, *(one.to for one in sent.values())})) is not None:
            if replica.is_open:
                self._ask(replica, request, sent)
            else:
                sent[replica.opening] = Sent(replica, time.monotonic())

    def _ask(self, replica: Replica, request: _Request, sent: dict[Any, Sent]) -> None:
        sent[replica.actor.ask.remote(*request, remaining_seconds())] = Sent(replica, time.monotonic())

    def _next(self, besides: Collection[Replica] = ()) -> Replica | None:
        """The next open replica in turn, if possible one that is neither paused nor silent."""
        with self._lock:
            if not self._count:
                raise ArgumentError("the searcher is closed", where=self.folder, remedy="open another one")
            now = time.monotonic()
            for replica in list(self._replicas):
                self._hear(replica, now)
            if self._missing:
                self._fill(now)
            if now >= self._spread_at:
                self._spread(now)
            others = [replica for replica in self._replicas if replica not in besides]
            others = [replica for replica in others if replica.fault is None] or ([] if besides else others)
            open_ones = [replica for replica in others if replica.is_open] or others
            best = [one for one in open_ones if one.heartbeat is None and now >= one.paused_until] or open_ones
            self._turn += 1
            return best[self._turn % len(best)] if best else None

    def _spread(self, now: float) -> None:
        """Moves a replica that shares its node with another one to a node that has none, such as one that came back."""
        self._spread_at = now + _SPREAD_SECONDS
        while self._retired:
            self._kill(self._retired.pop())  # its last searches have ended meanwhile
        nodes = [replica.node for replica in self._replicas]
        second = next((one for at, one in enumerate(self._replicas) if one.node in nodes[:at]), None)
        if second is None or self._missing or not all(replica.is_open for replica in self._replicas):
            return
        if len(self._replicas) > self._count:
            self._replicas.remove(second)
            self._retired.append(second)
            return
        with self._starts.lock:
            if self._starts.is_free(now) and {*self._cluster.worker_nodes()} - {*nodes}:
                self._starts.last = self._start(self._replicas)
                self._replicas.append(self._starts.last)

    def _hear(self, replica: Replica, now: float) -> None:
        """Takes note of what a replica has answered meanwhile. Replaces it if it is lost, or silent for too long."""
        awaited = replica.heartbeat if replica.is_open or replica.fault else replica.opening
        try:
            if awaited is not None and self._ray.wait([awaited], timeout=0)[0]:
                answer = self._ray.get(awaited)
                replica.heartbeat, replica.heard = None, now
                if not replica.is_open:
                    self._opened(replica, *answer)
            elif replica.heartbeat is not None and now - replica.called > SILENT_SECONDS:
                self._replace(replica, "is silent", elsewhere=True)
            elif not (replica.is_open or replica.fault) and now - replica.heard > START_SECONDS:
                self._replace(replica, _NOT_STARTED, elsewhere=True)
        except self._ray.exceptions.RayError:
            self._replace(replica, "was lost")

    def _opened(self, replica: Replica, place: tuple[str, str], fault: CompNegError | None) -> None:
        replica.node, replica.host = place
        if fault is not None and replica.fault is None and len(self._replicas) > 1:
            _logger.warning("%s; other processes of the shard are asked", fault)
        replica.fault, replica.is_open = fault, fault is None

    def _answer(self, request: _Request, sent: dict[Any, Sent]) -> Any:
        """The first answer to a request. If an actor is late, silent or lost, another one is asked, too."""
        kind, lost, failed = _kind(*request[:2]), 0, set[Replica]()
        limit, begun = self._limit(kind), time.monotonic()
        late = min(one.at for one in sent.values()) + limit
        most = self._count + ATTEMPTS  # all may be lost at once without notice
        try:
            while lost < most:
                wait = min(_SLICE_SECONDS, late - time.monotonic())
                if not (ready := self._ray.wait([*sent], timeout=max(0.0, wait))[0]):
                    now = time.monotonic()
                    lost += self._drop_lost(sent, now)
                    self._check([one.to for one in sent.values()], now)
                    if now >= late or all(one.to.is_silent(now) for one in sent.values()):
                        late = now + limit
                        self._pause([one.to for one in sent.values()], now)
                        self._send(request, sent, failed)
                    continue
                replica, at = sent.pop(ready[0])
                try:
                    answer, error = self._ray.get(ready[0])
                except self._ray.exceptions.RayTaskError:
                    raise
                except self._ray.exceptions.RayError:
                    self._replace(replica, "was lost")
                    lost += 1
                    if not sent:
                        self._send(request, sent)
                    continue
                now = replica.heard = time.monotonic()
                if ready[0] is replica.opening:
                    self._opened(replica, answer, error)
                if error is not None:
                    check_cancelled()  # its message has the total time
                    failed.add(replica)
                    if not sent and isinstance(error, IndexReadError | ClusterError):  # a fault of its node
                        self._send(request, sent, failed)
                    if not sent or not isinstance(error, IndexReadError | ClusterError):
                        raise error
                elif ready[0] is replica.opening:
                    self._ask(replica, request, sent)
                else:
                    if now - begun > _INSTANT or begun - at < _INSTANT:  # else it came when nobody looked
                        self._usual[kind].append(now - at)
                    if now - at <= limit:
                        replica.pause = 0.0
                    return answer
        finally:
            for ref in [ref for ref, one in sent.items() if ref is not one.to.opening]:
                with suppress(Exception):  # the cluster may be gone
                    self._ray.cancel(ref)
        gone = f"the shard is gone: {most} actors that searched it were lost in turn"
        raise IndexReadError(gone, where=self.folder)

    def _limit(self, kind: Hashable) -> float:
        """The seconds after which an answer to such a request is late."""
        if len(known := sorted(self._usual[kind])) < 10:
            return _FIRST_SECONDS
        return max(_LEAST_SECONDS, self._hedge * known[(len(known) - 1) * 95 // 100])

    def _check(self, asked: Collection[Replica], now: float) -> None:
        """Raises SearchCancelled if the search must end. Names the nodes that do not answer."""
        try:
            check_cancelled()
        except SearchTimeout:
            if not (silent := _names(replica for replica in asked if replica.is_silent(now) or not replica.is_open)):
                raise
            what = f"the time of the search is over, and {silent} did not answer"
            raise SearchTimeout(what, where=self.folder, remedy="ask again later, or search with replicas=2") from None

    def _drop_lost(self, sent: dict[Any, Sent], now: float) -> int:
        """Forgets replicas that were replaced while they were asked, and returns their number. Calls for heartbeats."""
        for replica in [one.to for one in sent.values()]:
            if replica.heartbeat is not None:
                self._hear(replica, now)
            elif replica.is_open and now - max(replica.heard, replica.called) > _FIRST_SECONDS:
                self._call(replica, now)
            elif not replica.is_open and now - replica.heard > START_SECONDS:
                self._replace(replica, _NOT_STARTED, elsewhere=True)
                said = f"the cluster has started no actor for the shard in {START_SECONDS:g} s"
                raise IndexReadError(said, where=self.folder, remedy="it may lack processors or nodes")
        if self._allow_partial:
            silent = [one for one in self._replicas if one.is_silent(now) and now - one.called > PARTIAL_SECONDS]
            if len(silent) == len(self._replicas):
                raise IndexReadError(f"{_names(silent)} did not answer", where=self.folder)
        gone = [ref for ref, one in sent.items() if one.to not in self._replicas]
        for ref in gone:
            del sent[ref]
        return len(gone)

    def _call(self, replica: Replica, now: float) -> None:
        replica.called = now
        replica.heartbeat = replica.actor.heartbeat.options(concurrency_group=_HEARTBEATS).remote()

    def _pause(self, late: Collection[Replica], now: float) -> None:
        """Leaves out replicas that are late until they give a sign of life, and for longer each time."""
        for replica in late:
            if replica.is_open and now >= replica.paused_until:
                replica.pause = min(max(_SLICE_SECONDS, 2 * replica.pause), _LONGEST_PAUSE)
                replica.paused_until = now + replica.pause
                said = "%s: the process on %s is late, and is left out for %g s"
                _logger.info(said, self.folder, replica.host, replica.pause)
                if replica.heartbeat is None:
                    self._call(replica, now)

    def _replace(self, replica: Replica, why: str, elsewhere: bool = False) -> None:
        """Has another actor take the place of one that is lost or silent, maybe on another node. One thread does."""
        with self._lock:
            if replica not in self._replicas:
                return
            self._replicas.remove(replica)
            self._missing.append(replica.node if elsewhere else "")
            self._release(replica)
            self._fill(time.monotonic())
        who = f"the process that searched this shard on {replica.host}" if replica.host else "a process for this shard"
        _logger.warning("%s: %s %s; another one takes its place", self.folder, who, why)
        self._kill(replica)

    def _fill(self, now: float) -> None:
        """Starts actors for those that were lost: one at a time of all shards, but at once if no other one answers.

        A start takes processors from searches for some seconds.
        """
        with self._starts.lock:
            while self._missing and (
                self._starts.is_free(now) or not any(one.is_open and not one.is_silent(now) for one in self._replicas)
            ):
                self._starts.last = self._start(self._replicas, self._missing[-1])
                self._replicas.append(self._starts.last)
                self._missing.pop()  # not before the start, which may fail

    def _release(self, *replicas: Replica) -> None:
        """Lets others start if one of these was starting."""
        with self._starts.lock:
            if self._starts.last in replicas:
                self._starts.last = None

    def _kill(self, replica: Replica) -> None:
        with suppress(Exception):  # the cluster may be gone
            self._ray.kill(replica.actor)

    def close(self) -> None:
        with self._lock:
            replicas, self._count = [*self._replicas, *self._retired], 0
            self._replicas, self._retired, self._missing = [], [], []
            self._release(*replicas)
        for replica in replicas:
            self._kill(replica)


def _kind(question: Callable[..., Any], args: Sequence[Any]) -> Hashable:
    """Requests of a kind take about as long: the same question about about as much."""
    first = args[0] if args else None
    if isinstance(first, ComposedSearch):
        return question.__name__, len(first.queries).bit_length(), first.hits.bit_length()
    return question.__name__, len(first).bit_length() if isinstance(first, Collection) else 0


def _names(replicas: Iterable[Replica]) -> str:
    return " and ".join(sorted({replica.host or "a starting process" for replica in replicas}))


def ray_reader(
    cluster: RayCluster, index: str | Path, replicas: int = 1, allow_partial: bool = False, hedge: float = HEDGE
) -> ShardedReader:
    """Opens an index in shards on a cluster. All nodes must reach the index by the same path."""
    if not 1 <= replicas <= MOST_REPLICAS:
        raise ArgumentError(f"a shard has from 1 to {MOST_REPLICAS} replicas, got {replicas}")
    if not 1 <= hedge < math.inf:
        raise ArgumentError(f"hedge is a number of 1 or more, got {hedge!r}")
    folder = Path(os.path.abspath(resolve_index(index)))  # the form in which actors name it in messages
    check_sharded(folder)
    actors = replicas * len(read_shards(folder))
    # The actors fit on half of the nodes, or beside the actors of a replaced index.
    cpus = min(0.5, cluster.cpus / (4 * actors))
    cpus = max(1.0, math.floor(cpus * _CPU_PARTS)) / _CPU_PARTS
    setup, starts = cluster.setup(cpus), Starts()

    def open_shard(folder: Path, entry: ShardEntry) -> RayShard:
        return RayShard(cluster, setup, folder, entry, replicas, cpus, hedge, starts, allow_partial)

    return ShardedReader(folder, open_shard, None, allow_partial)


def check_sharded(folder: Path) -> None:
    if not (folder / SHARDS_NAME).is_file():
        said = f"has no {SHARDS_NAME}, so there are no shards for a cluster"
        raise IndexFormatError(said, where=folder, remedy="build it with index --shards N, or leave out --ray")
