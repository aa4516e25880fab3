"""Sets up the processes of a cluster: checks versions, and limits their memory."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from pyserini_compneg.lucene.versions import anserini_version, build
from pyserini_compneg.support.errors import ClusterError, CompNegError

JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"


class Setup(NamedTuple):
    """Settings that all processes share with the command: its versions, its working directory, and its node.

    The Java machine of a process may use ``heap_percent`` of its node's memory.
    """

    versions: Mapping[str, str]
    folder: str
    host: str
    heap_percent: float


@cache
def versions() -> Mapping[str, str]:
    """The versions that affect results: this package (a hash of its content), Python, and Anserini with its Lucene."""
    return {
        "pyserini_compneg": build(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Anserini": anserini_version(),
    }


def prepare(setup: Setup) -> None:
    """Prepares the process of a worker. May be called again. Refuses versions that differ from the command's."""
    for name, ours in versions().items():
        if ours != (theirs := setup.versions[name]):
            said = f"the node {socket.gethostname()} has {name} {ours}, and the command runs with {theirs}"
            raise ClusterError(said, remedy="install the same on all nodes")
    with suppress(OSError):  # absolute paths can still be read
        os.chdir(setup.folder)
    given = os.environ.get(JAVA_OPTIONS, "")
    if "-Xmx" not in given and "MaxRAM" not in given:
        os.environ[JAVA_OPTIONS] = f"{given} -XX:MaxRAMPercentage={setup.heap_percent:.3f}".lstrip()


def blame_node(error: CompNegError) -> None:
    """Adds to an error that this node may not reach the paths of the other nodes."""
    error.remedy = f"the node {socket.gethostname()} must reach the same paths as all others"
