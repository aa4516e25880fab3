"""The tables, the fitted growth and the plot of ``scale.py``."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import brute_force
import numpy as np
import seismic_engine
from reporting import RUNS, megabytes, table
from scale_measures import BRUTE_FORCE, HITS, KINDS, OURS, SEISMIC

ABILITIES = {
    OURS: "any scoring tree, exactly, with negative weights, conjunctions and alternatives; the index stays on disk",
    BRUTE_FORCE: brute_force.ABILITIES,
    SEISMIC: f"{seismic_engine.ABILITIES}; {seismic_engine.SETTINGS}",
}

Sizes: TypeAlias = Mapping[int, Mapping[str, Any]]
"""For each number of documents what was measured: ``build``, if the index was built here, and ``search``."""


def report(sizes: Sizes) -> str:
    """All tables."""
    parts = ["Indexes", _index_table(sizes)]
    for k in HITS:
        parts += [f"Latency in ms, k = {k}", _latency_table(sizes, k)]
    if len(sizes) > 1:
        parts += ["Growth: latency = a * n^b for n documents, by least squares of logarithms", _growth_table(sizes)]
        per_document, constant = _bytes_growth(sizes)
        parts.append(f"Index bytes = {per_document:,.1f} a document and {megabytes(constant)}, by least squares")
    parts += [f"{name}: {what}" for name, what in ABILITIES.items()]
    parts += _skipped(sizes)
    return "\n\n".join(parts)


def _index_table(sizes: Sizes) -> str:
    heads = ["documents", "documents/s", "merge s", "bytes/document", "build's memory", "search's memory"]
    heads += ["first hit s", "brute force's memory", "its load s", "Seismic's memory", "its build s"]
    rows = []
    for documents, measured in sizes.items():
        build, search = measured.get("build"), measured["search"]
        full, other = search[BRUTE_FORCE], search[SEISMIC]
        rows.append(
            [
                f"{documents:,}",
                f"{build['documents_per_second']:,.0f}" if build else "",
                f"{build['merge_seconds']:.0f}" if build else "",
                f"{search['index_bytes'] / documents:,.0f}",
                megabytes(build["peak_bytes"]) if build else "",
                megabytes(search["peak_bytes"]),
                f"{search['first_hit_seconds']:.1f}",
                megabytes(full["resident_bytes"]) if "resident_bytes" in full else "",
                f"{full['load_seconds']:.1f}" if "load_seconds" in full else "",
                megabytes(other["peak_bytes"]) if "peak_bytes" in other else "",
                f"{other['build_seconds']:.0f}" if "build_seconds" in other else "",
            ]
        )
    return table(heads, rows)


def _latency_table(sizes: Sizes, k: int) -> str:
    heads = ["query, engine", "documents", "median", "p99", "postings read", "documents scored", "of the exact hits"]
    rows = []
    for kind in KINDS:
        for documents, measured in sizes.items():
            for line in measured["search"]["runs"]:
                if line["kind"] == kind and line["k"] == k:
                    rows.append(
                        [
                            f"{kind}, {line['engine']}",
                            f"{documents:,}",
                            f"{line['median_ms']:.2f}",
                            f"{line['p99_ms']:.2f}",
                            f"{line['postings']:,.0f}" if "postings" in line else "",
                            f"{line['scored']:,.0f}" if "scored" in line else "",
                            f"{line['share']:.1%}" if "share" in line else "all",
                        ]
                    )
    return table(heads, rows)


def _medians(sizes: Sizes) -> dict[tuple[str, int, str], dict[int, float]]:
    """By kind, k and engine, for each size."""
    medians: dict[tuple[str, int, str], dict[int, float]] = {}
    for documents, measured in sizes.items():
        for line in measured["search"]["runs"]:
            medians.setdefault((line["kind"], line["k"], line["engine"]), {})[documents] = line["median_ms"]
    return medians


def _growth_table(sizes: Sizes) -> str:
    rows = []
    for (kind, k, engine), medians in _medians(sizes).items():
        if len(medians) > 1:
            power, logarithm = np.polyfit(np.log(list(medians)), np.log(list(medians.values())), 1).tolist()
            fitted = np.exp(logarithm + power * np.log(1e6))
            rows.append([f"{kind}, {engine}", str(k), f"{power:.2f}", f"{np.exp(logarithm):.2g}", f"{fitted:.1f}"])
    return table(["query, engine", "k", "b", "a, ms", "fitted at 1,000,000, ms"], rows)


def _bytes_growth(sizes: Sizes) -> tuple[float, float]:
    total = [measured["search"]["index_bytes"] for measured in sizes.values()]
    per_document, constant = np.polyfit(list(sizes), total, 1).tolist()
    return per_document, constant


def _skipped(sizes: Sizes) -> list[str]:
    return [
        f"{name} is left out at {documents:,} documents: {measured['search'][name]['skipped']}"
        for name in (BRUTE_FORCE, SEISMIC)
        for documents, measured in sizes.items()
        if "skipped" in measured["search"][name]
    ]


def _size_curves(sizes: Sizes) -> dict[str, dict[int, float]]:
    """Bytes by number of documents, for each thing that has a size."""
    searches = {documents: measured["search"] for documents, measured in sizes.items()}
    builds = {documents: measured["build"] for documents, measured in sizes.items() if measured.get("build")}
    return {
        "index on disk": {documents: search["index_bytes"] for documents, search in searches.items()},
        "memory of the build": {documents: build["peak_bytes"] for documents, build in builds.items()},
        "memory of the search, mapped index included": {
            documents: search["peak_bytes"] for documents, search in searches.items()
        },
        "memory of brute force": {
            documents: search[BRUTE_FORCE]["resident_bytes"]
            for documents, search in searches.items()
            if "resident_bytes" in search[BRUTE_FORCE]
        },
    }


def plot(sizes: Sizes) -> Path | None:
    """Draws latencies and sizes to runs/scale.png; None where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, 3, figsize=(16, 5), layout="constrained")
    colours = dict(zip(KINDS, ("tab:blue", "tab:red", "tab:green"), strict=True))
    for axis, k in zip(axes, HITS, strict=False):
        for (kind, hits, engine), medians in _medians(sizes).items():
            if hits == k:
                style = {OURS: "o-", BRUTE_FORCE: "s--"}.get(engine, "^:")
                axis.plot(list(medians), list(medians.values()), style, color=colours[kind], label=f"{kind}, {engine}")
        axis.set(title=f"median latency, k = {k}", xlabel="documents", ylabel="ms", xscale="log", yscale="log")
    for name, values in _size_curves(sizes).items():
        axes[2].plot(list(values), [size / 1e9 for size in values.values()], "o-", label=name)
    axes[2].set(title="sizes", xlabel="documents", ylabel="GB", xscale="log", yscale="log")
    for axis in axes:
        axis.set_xticks(list(sizes), [f"{documents:,}" for documents in sizes])
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.yaxis.set_minor_formatter(ticker.NullFormatter())
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=7)
    path = RUNS / "scale.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
