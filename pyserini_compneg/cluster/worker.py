"""What every process of a cluster does before it works: it looks at its versions, and leaves memory to the others."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pyserini_compneg.lucene.gate import anserini_jar, companion_jar
from pyserini_compneg.support.errors import ClusterError

JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"


class Setup(NamedTuple):
    """What all processes have in common.

    Attributes:
        versions: What they must have installed.
        folder: The working directory of the command, to which relative paths refer.
        heap_percent: How much of its node's memory the Java machine of a process may take.
    """

    versions: Mapping[str, str]
    folder: str
    heap_percent: float


@cache
def versions() -> Mapping[str, str]:
    """What decides what is computed here: this package, known by its content, Python, and Anserini with its Lucene."""
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    content = b"".join(path.read_bytes() for path in [*sources, companion_jar()])
    return {
        "pyserini_compneg": hashlib.sha256(content).hexdigest()[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Anserini": anserini_jar().name.removeprefix("anserini-").removesuffix("-fatjar.jar"),
    }


def prepare(setup: Setup) -> None:
    """Prepares the process of a worker; may be called again.

    Raises:
        ClusterError: It has other versions than the process that runs the command.
    """
    for name, ours in versions().items():
        if ours != (theirs := setup.versions[name]):
            said = f"has {name} {ours}, and the command runs with {theirs}; install the same on all nodes"
            raise ClusterError(f"the node {socket.gethostname()} {said}")
    with suppress(OSError):  # paths that are not relative can still be read
        os.chdir(setup.folder)
    given = os.environ.get(JAVA_OPTIONS, "")
    if "-Xmx" not in given and "MaxRAM" not in given:
        os.environ[JAVA_OPTIONS] = f"{given} -XX:MaxRAMPercentage={setup.heap_percent:.3f}".lstrip()
