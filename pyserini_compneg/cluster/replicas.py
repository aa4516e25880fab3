"""The actors that hold a shard, and where and when they start."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyserini_compneg.support.errors import CompNegError

HEARTBEAT_SECONDS = 0.5  # a process that works answers in a few milliseconds

START_SECONDS = 120.0
"""The time limit for starting an actor. With room in the cluster, it takes about 4 seconds."""


@dataclass(eq=False, slots=True)
class Replica:
    """An actor that holds a shard or is about to open it."""

    actor: Any
    opening: Any
    node: str  # the id of the one that it was sent to, and then of the one that it runs on
    heard: float  # when it gave the last sign of life, or was started
    host: str = ""  # the name of that one, once it is known
    is_open: bool = False
    fault: CompNegError | None = None  # why it cannot open the shard
    heartbeat: Any = None  # one that was asked for and has not come
    called: float = 0.0  # when it was asked for
    pause: float = 0.0  # how long it is left out if it is late again
    paused_until: float = 0.0

    def is_silent(self, now: float) -> bool:
        return self.heartbeat is not None and now - self.called > HEARTBEAT_SECONDS


class Sent(NamedTuple):
    """To whom a request was sent, and when."""

    to: Replica
    at: float


class Starts:
    """The starts of actors of all shards of an index: on one node after the other, and one replacement at a time.

    ``last`` took the place of another actor last. ``lock`` is held from :meth:`is_free` until ``last`` is set.
    """

    def __init__(self) -> None:
        self._turn = itertools.count()
        self.lock = threading.Lock()
        self.last: Replica | None = None

    def next_node(self, nodes: Sequence[str], taken: Collection[str]) -> str:
        """The next node in turn, if possible one that is not taken; empty if there is no node."""
        first = next(self._turn)
        in_turn = [nodes[(first + place) % len(nodes)] for place in range(len(nodes))]
        return min(in_turn, key=taken.__contains__, default="")

    def is_free(self, now: float) -> bool:
        """Whether no actor is starting in the place of another one. Its shard may be asked no more, so time counts."""
        last = self.last
        return last is None or last.is_open or last.fault is not None or now - last.heard > START_SECONDS
