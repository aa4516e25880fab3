"""How many threads a process may use."""

from __future__ import annotations

import os

from pyserini_compneg.support.arguments import whole_number


def processors() -> int:
    """The processors on which this process may run: fewer than the machine has, under ``taskset`` or Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bounded_threads(asked: int | None) -> int:
    """``asked`` threads, but at most four for each processor. None means one for each."""
    return min(asked or processors(), 4 * processors())


def model_threads() -> int:
    """``OMP_NUM_THREADS``, which Ray sets for each of its tasks, or :func:`processors`.

    onnxruntime itself would count the machine's processors.
    """
    told = whole_number(os.environ.get("OMP_NUM_THREADS", ""))
    return told if told and told > 0 else processors()
