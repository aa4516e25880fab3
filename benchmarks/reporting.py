"""What benchmarks share for their results: aligned tables, and JSON with the machine that it was measured on."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.java_home import find_java
from pyserini_compneg.support.staging import atomic_writer

RUNS = Path("runs")
INDEXES = Path("indexes")
SAMPLES = 2000
TOLERANCE = 0.005
"""What a mean may lose to another before a benchmark lists it."""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (headers, *rows)) for column in range(len(headers))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return f"| {' | '.join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])} |"

    rule = f"|{'|'.join('-' * (width + 1) + (':' if column else '-') for column, width in enumerate(widths))}|"
    return "\n".join([line(headers), rule, *(line(row) for row in rows)])


def paired(now: Mapping[str, float], then: Mapping[str, float]) -> str:
    """The mean difference of the same queries, with the 95 % interval of the bootstrap (always the same samples)."""
    differences = np.array([now[qid] - then[qid] for qid in now])
    drawn = np.random.default_rng(0).integers(len(differences), size=(SAMPLES, len(differences)))
    low, high = np.percentile(differences[drawn].mean(axis=1), [2.5, 97.5])
    return f"{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def megabytes(size: float) -> str:
    """A size in megabytes, as text."""
    return f"{size / 1e6:,.0f} MB"


def environment() -> dict[str, Any]:
    """The machine and the versions that figures depend on."""
    return {
        "date": datetime.date.today().isoformat(),
        "processors": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "python": platform.python_version(),
        "java": find_java().major,
        "anserini": anserini_jar().stem.removesuffix("-fatjar"),
    }


def _processor() -> str:
    """The processor's model, where the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


def describe(values: Mapping[str, Any]) -> str:
    """The environment in one line."""
    return (
        f"{values['processors']} processors, {values['machine']}, Python {values['python']}, Java {values['java']}, "
        f"{values['anserini']}, {values['date']}"
    )


def write_json(name: str, values: Mapping[str, Any]) -> Path:
    """Writes results below runs/."""
    RUNS.mkdir(exist_ok=True)
    path = RUNS / name
    with atomic_writer(path) as handle:
        handle.write(json.dumps(values, indent=1) + "\n")
    return path
