"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.stages import Stages

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The figures of one server.

    Args:
        pool: What is running and waiting now.
    """

    def __init__(self, pool: SearchPool) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter("compneg_requests", "Requests answered", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "compneg_request_seconds", "Time of a request", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self._stages = Histogram(
            "compneg_stage_seconds", "Time of a stage of it", ["stage"], buckets=_SECONDS, registry=self._registry
        )
        self._documents = Gauge("compneg_index_documents", "Documents in an index", ["index"], registry=self._registry)
        self._reloads = Counter(
            "compneg_index_reloads", "Times an index was replaced", ["index"], registry=self._registry
        )
        self._warnings = Counter(
            "compneg_index_warnings",
            "Searches that warned of an index or failed in it",
            ["index"],
            registry=self._registry,
        )
        self._degraded = Gauge(
            "compneg_index_degraded", "1 where /health says what is wrong", ["index"], registry=self._registry
        )
        for name, now in (("running", lambda: pool.running), ("waiting", lambda: pool.waiting)):
            Gauge(f"compneg_searches_{name}", f"Searches {name} now", registry=self._registry).set_function(now)

    def answered(self, route: str, status: int, seconds: float, stages: Stages) -> None:
        """Counts a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        for stage, milliseconds in stages.milliseconds.items():
            self._stages.labels(stage).observe(milliseconds / 1000)

    def opened(self, documents: Mapping[str, int]) -> None:
        """Notes how many documents the indexes have."""
        for name, count in documents.items():
            self._documents.labels(name).set(count)

    def reloaded(self, name: str, documents: int) -> None:
        """Counts an index that took the place of another."""
        self._reloads.labels(name).inc()
        self.opened({name: documents})

    def warned(self, name: str) -> None:
        """Counts a warning of an index, or a failure."""
        self._warnings.labels(name).inc()

    def watch(self, name: str, is_degraded: Callable[[], bool]) -> None:
        """Shows the health of an index."""
        self._warnings.labels(name)
        self._degraded.labels(name).set_function(is_degraded)

    def text(self) -> bytes:
        """All figures."""
        return generate_latest(self._registry)
