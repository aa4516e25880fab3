"""What runs in the processes of a cluster: their set-up, and the actor that holds a shard."""

from __future__ import annotations

import math
import os
import platform
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.lucene.shards import Shard, ShardEntry
from pyserini_compneg.lucene.versions import anserini_version, build
from pyserini_compneg.support.errors import ClusterError, CompNegError, IndexReadError

JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"


class Setup(NamedTuple):
    """Settings that all processes share with the command: its versions, its working directory, and its node.

    The Java machine of a process may use ``heap_percent`` of its node's memory.
    """

    versions: Mapping[str, str]
    folder: str
    host: str
    heap_percent: float


@cache
def versions() -> Mapping[str, str]:
    """The versions that affect results: this package (a hash of its content), Python, and Anserini with its Lucene."""
    return {
        "pyserini_compneg": build(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Anserini": anserini_version(),
    }


def prepare(setup: Setup) -> None:
    """Prepares the process of a worker. May be called again. Refuses versions that differ from the command's."""
    for name, ours in versions().items():
        if ours != (theirs := setup.versions[name]):
            said = f"the node {socket.gethostname()} has {name} {ours}, and the command runs with {theirs}"
            raise ClusterError(said, remedy="install the same on all nodes")
    with suppress(OSError):  # absolute paths can still be read
        os.chdir(setup.folder)
    given = os.environ.get(JAVA_OPTIONS, "")
    if "-Xmx" not in given and "MaxRAM" not in given:
        os.environ[JAVA_OPTIONS] = f"{given} -XX:MaxRAMPercentage={setup.heap_percent:.3f}".lstrip()


def blame_node(error: CompNegError) -> None:
    """Adds to an error that this node may not reach the paths of the other nodes."""
    error.remedy = f"the node {socket.gethostname()} must reach the same paths as all others"


class ShardActor:
    """Holds a shard in a process of the cluster."""

    def __init__(self) -> None:
        self._reader: ImpactReader | None = None

    def open(self, setup: Setup, folder: str, entry: ShardEntry) -> tuple[tuple[str, str], CompNegError | None]:
        """Opens the shard. Returns the id and the name of the node, and the error, if there is one."""
        node = node_id(), socket.gethostname()
        try:
            prepare(setup)
            self._reader = Shard(Path(folder), entry).reader
        except ClusterError as error:
            return node, error
        except CompNegError as error:
            unreadable = error.recast(IndexReadError)
            blame_node(unreadable)
            return node, unreadable
        return node, None

    def ask(
        self, question: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], seconds: float = math.inf
    ) -> tuple[Any, CompNegError | None]:
        """The answer to a request to the reader, or the error in its place. A search ends after ``seconds``."""
        try:
            with _Cancellable(seconds).applied():
                return question(self._reader, *args, **kwargs), None
        except CompNegError as error:
            return None, error

    def heartbeat(self) -> None:
        """Shows that the process lives, however many searches run in it."""


class _Cancellable(Cancellation):
    """Also ends a search in an actor when its caller has the answer of another one."""

    def check(self) -> None:
        if call_is_cancelled():
            self.cancel()
        super().check()


def node_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def call_is_cancelled() -> bool:
    """Whether the caller has cancelled the call that this thread of an actor answers."""
    import ray

    return bool(ray.get_runtime_context().is_canceled())
