"""Runs parts of a long job as tasks of a cluster, with one progress bar. If a worker is lost, its part is repeated."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyserini_compneg.cluster.connection import RayCluster
from pyserini_compneg.cluster.worker import Setup, blame_node, prepare
from pyserini_compneg.support.errors import ClusterError, CompNegError
from pyserini_compneg.support.progress import DOCUMENTS, Done, progress, reported
from pyserini_compneg.support.staging import lock_seconds

RETRIES = 10
"""How often a part is continued after the loss of its worker."""

_SECONDS = 0.5
_logger = logging.getLogger(__name__)
_END_SECONDS = 30.0
_LOCK_SECONDS = 60.0
_LOST = ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError")
_UNREACHED = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors that a node raises if it cannot reach the paths of the other nodes."""


class RayRunner:
    """Runs parts of work on a cluster. It is a :class:`pyserini_compneg.support.progress.Runner`.

    Args:
        cluster: The cluster.
        cpus: The processors that a part uses.
        gpus: The graphics processors that a part uses.

    Raises:
        ClusterError: No node has this many.
    """

    def __init__(self, cluster: RayCluster, cpus: int = 1, gpus: int = 0) -> None:
        cluster.check_room(cpus, gpus)
        self._cluster, self._ray, self._setup = cluster, cluster.ray, cluster.setup(cpus)
        self._needs = cpus, gpus
        self._options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": RETRIES}

    def __call__(self, work: Callable[..., Done], parts: Sequence[Sequence[Any]], doing: str) -> list[Done]:
        ray = self._ray
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        counter = ray.remote(_Counter).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here).remote()
        task = ray.remote(_part).options(scheduling_strategy="SPREAD", **self._options)
        running = [task.remote(self._setup, counter, number, work, part) for number, part in enumerate(parts)]
        try:
            return self._results(running, counter, doing)
        finally:
            self._end(running, counter)

    def _results(self, running: Sequence[Any], counter: Any, doing: str) -> list[Any]:
        """Waits until all parts are done or one has failed."""
        left = list(running)
        results: dict[Any, Any] = {}
        lacking = self._cluster.lacks(*self._needs)
        with progress(None, None, DOCUMENTS, doing, summary=len(running) > 1) as bar:
            while left:
                done, left = self._ray.wait(left, timeout=_SECONDS)
                results |= {one: self._result(one) for one in done}
                if left:
                    lacked, lacking = lacking, self._cluster.lacks(*self._needs)
                    if lacking and lacking != lacked:
                        _logger.warning("%s; the work waits until the cluster adds one", lacking)
                with suppress(self._ray.exceptions.RayError):  # the counter may be gone
                    bar.update(max(0, self._ray.get(counter.total.remote()) - bar.n))
        return [results[one] for one in running]

    def _result(self, done: Any) -> Any:
        """The result of a part. Logs its warnings and raises its error."""
        errors = self._ray.exceptions
        try:
            result, error, warnings = self._ray.get(done)
        except errors.RayTaskError as lost:
            if isinstance(lost.cause, CompNegError):
                raise lost.cause from None
            raise
        except errors.RayError as lost:
            line = " ".join(str(lost).split())[:200]
            how = f"was lost more than {RETRIES} times" if type(lost).__name__ in _LOST else "could not be run"
            raise ClusterError(f"a part of the work {how}: {line}") from None
        for warning in warnings:
            _logger.warning("%s", warning)
        if error is not None:
            raise error
        return result

    def _end(self, running: Sequence[Any], counter: Any) -> None:
        _, left = self._ray.wait(list(running), num_returns=len(running), timeout=0)
        for one in left:
            self._ray.cancel(one, force=True)
        if left:
            self._ray.wait(left, num_returns=len(left), timeout=_END_SECONDS)
        self._ray.kill(counter)


class _Warnings(logging.Handler):
    """Collects warnings, because the output of a worker is not read."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    @contextmanager
    def kept(self) -> Iterator[None]:
        logger = logging.getLogger("pyserini_compneg")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


class _Counter:
    """Counts the progress of the parts. A repeated part continues its own count."""

    def __init__(self) -> None:
        self._done: dict[int, int] = {}

    def set(self, part: int, done: int) -> None:
        self._done[part] = done

    def total(self) -> int:
        return sum(self._done.values())


def _part(
    setup: Setup, counter: Any, number: int, work: Callable[..., Done], part: Sequence[Any]
) -> tuple[Done | None, CompNegError | None, list[str]]:
    """A task: returns the result of a part or its error, and the warnings."""
    warnings = _Warnings()
    lock_seconds.set(_LOCK_SECONDS)
    try:
        prepare(setup)
        with warnings.kept(), reported(lambda done: counter.set.remote(number, done)):
            return work(*part), None, warnings.messages
    except CompNegError as error:
        if isinstance(error.__cause__ or error.__context__, _UNREACHED) and socket.gethostname() != setup.host:
            blame_node(error)
        return None, error, warnings.messages
