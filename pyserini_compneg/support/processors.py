"""How many threads and how much memory a process may use, and what its processor can do."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

from pyserini_compneg.support.arguments import whole_number

_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


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


def memory_bytes() -> int:
    """The memory of this machine, or the limit of its container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 32]
    for file in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(Path(file).read_text(encoding="ascii")))
    return min(limits)


def memory_left(described: Path = Path("/proc/meminfo")) -> int:
    """The bytes of memory that the machine has left, or the limit of the container, if that is less."""
    left = memory_bytes()
    with suppress(OSError):
        said = re.search(r"^MemAvailable: *(\d+) kB", described.read_text(encoding="ascii"), re.M)
        left = min(left, int(said[1]) * 1024) if said else left
    return left


@cache
def adds_int8_exactly(described: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has VNNI, whose sums of products of int8 have 32 bits. False where the system does not say.

    Without it, x86 adds two products at a time in 16 bits, and cuts the sum off at 32,767.
    """
    try:
        with described.open(encoding="ascii", errors="replace") as lines:
            flags = next(line for line in lines if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(flags.split())
