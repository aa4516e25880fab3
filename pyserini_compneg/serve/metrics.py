"""The metrics of the server, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from pyserini_compneg.serve.search_pool import SearchPool
from pyserini_compneg.serve.served_index import ServedIndex

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one server. Gauges read the indexes and the pool when metrics are requested."""

    def __init__(self, indexes: Mapping[str, ServedIndex], pool: SearchPool) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter("compneg_requests", "Requests answered", ["route", "status"], registry=registry)
        self._seconds, self._stages = (
            Histogram(f"compneg_{name}_seconds", text, [label], buckets=_SECONDS, registry=registry)
            for name, text, label in (("request", "Time of a request", "route"), ("stage", "Time of a stage", "stage"))
        )
        documents = Gauge("compneg_index_documents", "Documents in an index", ["index"], registry=registry)
        self.reloads = Counter("compneg_index_reloads", "Times an index was replaced", ["index"], registry=registry)
        text = "Searches that warned of an index or failed in it"
        self.warnings = Counter("compneg_index_warnings", text, ["index"], registry=registry)
        text = "1 where /health says what is wrong"
        degraded = Gauge("compneg_index_degraded", text, ["index"], registry=registry)
        text = "Seconds since the copy was known to be equal to the index that it follows; 0 while it is equal"
        behind = Gauge("compneg_index_behind_seconds", text, ["index"], registry=registry)
        text = "1 for the content that is searched"
        self._generations = Gauge("compneg_index_generation", text, ["index", "generation"], registry=registry)
        self._indexes = indexes
        for name, index in indexes.items():
            if index.follows:
                behind.labels(name).set_function(partial(_behind, index))
            self.warnings.labels(name)
            documents.labels(name).set_function(partial(_documents, index))
            degraded.labels(name).set_function(partial(_is_degraded, index))
        for name, now in (("running", lambda: pool.running), ("waiting", lambda: pool.waiting)):
            Gauge(f"compneg_searches_{name}", f"Searches {name} now", registry=registry).set_function(now)

    def answered(self, route: str, status: int, seconds: float, stages: Mapping[str, float]) -> None:
        """Counts a request, with the milliseconds of its stages."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        for name, milliseconds in stages.items():
            self._stages.labels(name).observe(milliseconds / 1000)

    def text(self) -> bytes:
        self._generations.clear()  # a generation that is not searched any more has no line
        for name, index in self._indexes.items():
            self._generations.labels(name, index.generation).set(1)
        return generate_latest(self._registry)


def _documents(index: ServedIndex) -> int:
    return index.documents


def _behind(index: ServedIndex) -> float:
    return index.behind_seconds


def _is_degraded(index: ServedIndex) -> bool:
    return index.degraded is not None
