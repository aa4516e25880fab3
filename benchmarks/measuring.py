"""How the benchmarks measure: time in rounds, peak memory, processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.support.errors import CompNegError

WARM_UP_ROUNDS, WARM_UP_SECONDS = 2, 3.0
"""What is run before anything counts: this many rounds, and this much time of the processor, or Java has not compiled
its code yet."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Finished(NamedTuple):
    """What a command took, from its start to its end."""

    seconds: float
    peak_bytes: int


class Taken(NamedTuple):
    """What searches took, in milliseconds; both arrays are (rounds, queries)."""

    wall: NDArray[np.float64]
    processor: NDArray[np.float64]
    """That of the thread that asked. It hardly depends on what else the machine does."""


def timed(searches: Mapping[str, Sequence[Callable[[], object]]], rounds: int) -> dict[str, Taken]:
    """Times several engines on the same queries.

    In each round every engine runs all queries, one engine after the other, so that all of them see the same machine.
    """
    warm, number = time.thread_time() + WARM_UP_SECONDS, 0
    while number < WARM_UP_ROUNDS or time.thread_time() < warm:
        for runs in searches.values():
            _milliseconds(runs)
        number += 1
    taken: dict[str, list[NDArray[np.float64]]] = {name: [] for name in searches}
    for _ in range(rounds):
        for name, runs in searches.items():
            taken[name].append(_milliseconds(runs))
    return {name: Taken(*np.stack(rows, axis=1)) for name, rows in taken.items()}


def _milliseconds(runs: Sequence[Callable[[], object]]) -> NDArray[np.float64]:
    """The times of both clocks, (2, queries)."""
    taken = []
    for run in runs:
        wall, processor = time.perf_counter(), time.thread_time()
        run()
        taken.append((time.perf_counter() - wall, time.thread_time() - processor))
    return 1000 * np.array(taken).T


def run_command(command: Sequence[str]) -> Finished:
    """Runs a command to its end."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "nothing")
            raise CompNegError(f"{Path(command[0]).name} ended with exit code {process.returncode} and said: {last}")
    return Finished(seconds, usage.ru_maxrss * _RSS_UNIT)


def in_child(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Calls a function in a process of its own, whose memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            raise CompNegError("a process ended early; if the system ended it for its memory, use less") from None


def peak_bytes() -> int:
    """The most memory that this process has had resident, mapped parts of indexes included."""
    status = Path("/proc/self/status")
    if status.exists():  # which, unlike getrusage, does not count what the process that started this one had
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def resident_bytes() -> int:
    """The memory that this process has resident now, on Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
