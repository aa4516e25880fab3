"""How many threads a process may use, and what its processor can do."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

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


@cache
def adds_int8_exactly(described: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has VNNI, whose sums of products of int8 have 32 bits. False where the system does not say.

    Without it, x86 adds two products at a time in 16 bits, and cuts the sum off at 32,767.
    """
    try:
        flags = next(line for line in described.read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(flags.split())
