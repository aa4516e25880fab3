"""The processors of the process, not of the machine, decide the default number of threads."""

import os
import subprocess
import sys

import pytest

from pyserini_compneg.support import processors

SEVEN = "import os\nos.sched_getaffinity = lambda process: set(range(7))\n"


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_affinity_is_respected(three, monkeypatch):
    assert processors.processors() == processors.model_threads() == processors.bounded_threads(None) == 3
    assert [processors.bounded_threads(asked) for asked in (2, 100)] == [2, 12]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert (processors.processors(), processors.model_threads()) == (3, 5)


def test_a_system_without_affinities_counts_the_processors_of_the_machine(three, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    assert processors.processors() == 9


@pytest.mark.parametrize("command", ["serve", "reproduce"])
def test_it_is_the_default_of_the_flag(command):
    script = f"{SEVEN}from pyserini_compneg.commands.main import main\nmain([{command!r}, '-h'])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "queries searched at once (default 7)" in " ".join(said.split())


@pytest.mark.parametrize(
    ("flags", "exact"),
    [("fpu avx2 avx512_vnni", True), ("avx2 avx_vnni fma", True), ("fpu avx2 avx512f", False), (None, False)],
)
def test_which_processors_add_int8_exactly(tmp_path, flags, exact):
    described = tmp_path / "cpuinfo"
    if flags is not None:
        described.write_text(f"processor\t: 0\nvendor_id\t: X\nflags\t\t: {flags}\nbugs\t\t: avx512_vnni_bug\n")
    assert processors.adds_int8_exactly(described) is exact
    processors.adds_int8_exactly.cache_clear()


@pytest.mark.parametrize(
    ("described", "whole", "left"),
    [
        ("MemTotal: 16 kB\nMemAvailable:      7 kB\n", 9000, 7168),
        ("MemTotal: 16 kB\nMemAvailable:      7 kB\n", 5000, 5000),
        ("MemTotal: 16 kB\n", 9000, 9000),
        (None, 9000, 9000),
    ],
)
def test_the_memory_that_is_left(tmp_path, monkeypatch, described, whole, left):
    monkeypatch.setattr(processors, "memory_bytes", lambda: whole)
    if described:
        (tmp_path / "meminfo").write_text(described)
    assert processors.memory_left(tmp_path / "meminfo") == left
