"""The connection to a Ray cluster. Ray must start before Java in a process, and starts here."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from pyserini_compneg.cluster.worker import Setup, versions
from pyserini_compneg.lucene import machine_runs
from pyserini_compneg.support.arguments import whole_number
from pyserini_compneg.support.errors import ArgumentError, ClusterError, install_hint
from pyserini_compneg.support.terminal import captured_output, shown

LOCAL = "local"
"""The address that starts a cluster on this machine, which ends with the command."""

HEAP_PERCENT = 50.0
"""The share of a node's memory for the Java machines of all its workers. The files of indexes need the rest."""

_logger = logging.getLogger(__name__)
_CONNECT_SECONDS = 10.0
_lock = threading.RLock()
_users: list[RayCluster] = []  # users of the connection; the first opens it, the last closes it
_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_NO_TOKEN = "InvalidAuthToken"  # Ray prints this many times, then only reports a failure
_TOKEN = (
    "this Ray cluster asks for a token: set RAY_AUTH_MODE=token, and let all nodes have the file ~/.ray/auth_token of "
    "the head, or start the head with RAY_AUTH_MODE=disabled"
)
_HANDLER_BYTES = 512  # more than a struct sigaction has on any system
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # otherwise a late call would restart Ray while Java runs
}


class RayCluster:
    """A connection to a Ray cluster. Use it as a context manager.

    A process has one connection, which all users share. The last user closes it. A connection opened by other code
    stays open.

    Args:
        address: ``host:port``, ``auto`` for the cluster that this machine belongs to, or ``local``.

    Raises:
        ArgumentError: The address is malformed.
        ClusterError: Ray is not installed, Java already runs, there is no such cluster, or this process is connected to
            another cluster.
    """

    def __init__(self, address: str = LOCAL) -> None:
        self.address = address
        self.ray = _ray()
        with _lock:
            if _users and (other := _users[0].address) != address:
                said = f"this process is connected to the cluster {other}, and can have one connection only"
                raise ClusterError(said, where=address, remedy="close that one first")
            is_there = self.ray.is_initialized()
            if not is_there:
                self._connect()
            if _users or not is_there:
                _users.append(self)
                atexit.register(self.close)  # before Ray ends and removes Java's handlers of faults

    def _connect(self) -> None:
        if machine_runs():
            raise ClusterError(
                "Java runs in this process already, and then Ray's handling of signals would end the process",
                remedy="connect to the cluster before the first index is opened",
            )
        if self.address not in (LOCAL, "auto"):
            _check_address(self.address)
        handlers = _handlers()
        options: dict[str, Any] = {"include_dashboard": False} if self.address == LOCAL else {}
        try:
            self.ray._private.worker._worker_logs_enabled = (
                False  # workers' logs would appear among the results on standard output
            )
            with captured_output() as printed:
                try:
                    self.ray.init(self.address, logging_level=logging.ERROR, log_to_driver=False, **options)
                except Exception as cause:  # Ray raises many undocumented classes
                    with suppress(Exception):
                        self.ray.shutdown()
                    said = f"no Ray cluster can be used there: {' '.join(str(cause).split())[:200]}"
                    raise ClusterError(_TOKEN if _NO_TOKEN in printed() else said, where=self.address) from None
        finally:
            for number, handler in handlers.items():  # Ray's handlers end a command without a message
                signal.signal(number, handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the cluster if this is the last user, and ends a local cluster. May be called twice."""
        atexit.unregister(self.close)
        with _lock:
            if self not in _users:
                return
            _users.remove(self)
            if not _users:
                with _faults_kept():
                    self.ray.shutdown()

    def setup(self, cpus: float = 1.0) -> Setup:
        """The set-up for workers with this many processors each."""
        workers = Counter[str]()
        for node in self._nodes():
            workers[node["NodeManagerHostname"]] += max(1, int(node["Resources"].get("CPU", 0) // cpus))
        return Setup(versions(), os.getcwd(), socket.gethostname(), HEAP_PERCENT / max(workers.values()))

    def check_room(self, cpus: float, gpus: float = 0.0) -> None:
        """Refuses work that needs more processors than any node has, because the work would wait for ever.

        If no node of a cluster has a processor, nodes start on demand. Then the work waits, with a warning.

        Raises:
            ClusterError: No node has as many processors.
        """
        if not self.cpus:
            _logger.warning("%s: no node has a processor; the work waits until the cluster adds one", self.address)
        elif lacking := self.lacks(cpus, gpus):
            raise ClusterError(lacking, where=self.address, remedy="ask for less, or add a node")

    def lacks(self, cpus: float, gpus: float = 0.0) -> str:
        """A message if a part of the work needs more processors than any node has now; empty if a node has enough."""
        for kind, wanted in (("CPU", cpus), ("GPU", gpus)):
            most = max((node["Resources"].get(kind, 0) for node in self._nodes()), default=0)
            if most < wanted:
                return f"a part of the work needs {wanted:g} {kind}, and no node has more than {most:g}"
        return ""

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def worker_nodes(self) -> list[str]:
        """The ids of the nodes that have processors for work, in a fixed order."""
        return sorted(node["NodeID"] for node in self._nodes() if node["Resources"].get("CPU"))

    @property
    def cpus(self) -> float:
        return float(sum(node["Resources"].get("CPU", 0) for node in self._nodes()))


def _ray() -> Any:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ClusterError(f"Ray is not installed: {install_hint('ray')}") from None
    return ray


def _check_address(address: str) -> None:
    """Tries the address first, because Ray would try for a minute, with many messages."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in host or (number := whole_number(port)) is None:
        remedy = "expected local, auto, or HOST:PORT such as head:6379"
        raise ArgumentError("no address of a Ray cluster", where=shown(address), remedy=remedy)
    try:
        socket.create_connection((host.strip("[]"), number), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as cause:
        reason = str(getattr(cause, "strerror", None) or cause).lower()
        said, remedy = f"there is no Ray cluster: {reason}", "start one with ray start --head"
        raise ClusterError(said, where=address, remedy=remedy) from None


@contextmanager
def _faults_kept() -> Iterator[None]:
    """Preserves the handlers of faults. Java needs them, Ray resets them when it ends, and only C code can set them."""
    library = ctypes.CDLL(None)
    kept = [(number, ctypes.create_string_buffer(_HANDLER_BYTES)) for number in _FAULTS]
    for number, handler in kept:
        library.sigaction(number, None, handler)
    try:
        yield
    finally:
        for number, handler in kept:
            library.sigaction(number, handler, None)


def _handlers() -> dict[int, Any]:
    """The handlers of signals. Only the main thread can restore them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
