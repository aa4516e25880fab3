"""Run files that are made once, named after what they depend on, and used again if their checksum is right."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_compneg.lab.experiments.provided import REMEDY
from pyserini_compneg.search import Hit, write_run
from pyserini_compneg.support.files import slug
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics import Topic

RUN_FORMAT = 3
"""Part of what a kept run depends on. Raise it with every change to the code after which a method of the same settings
ranks otherwise on the same index: runs of earlier versions are then made again."""

KEY_DIGITS = 12

_logger = logging.getLogger(__name__)


def kept_run(
    folder: Path,
    name: str,
    depends_on: Mapping[str, Any],
    topics: Sequence[Topic],
    search: Callable[[Sequence[Topic], int], Mapping[str, Sequence[Hit]]],
    hits: int,
) -> tuple[Path, bool]:
    """The run file of a method, which is made if it is not there or was changed, and whether it was there.

    The file's name holds a hash of all that its ranking depends on: the topics, the hits, ``RUN_FORMAT``, and whatever
    else ``depends_on`` says in JSON. Its checksum is kept in a folder beside that of the runs, as ``sha256sum`` writes
    it.
    """
    asked = [
        [topic.qid, str(topic.expression), topic.composed, topic.text if topic.decomposition else None]
        for topic in topics
    ]
    key = digest_of(json.dumps([RUN_FORMAT, depends_on, hits, asked], sort_keys=True, ensure_ascii=False))
    path = folder / "runs" / f"{slug(name)}-{key}.txt"
    proof = folder / "checksums" / f"{path.stem}.sha256"
    if path.exists() and proof.exists():
        if proof.read_text(encoding="utf-8", errors="replace") == _checksum(path):
            return path, True
        _logger.warning("%s: was changed since it was made; it is made again", path)
    results = search(topics, hits)
    for file in (path, proof):
        file.parent.mkdir(exist_ok=True)
    with atomic_writer(path, REMEDY) as handle:
        for qid, ranking in results.items():
            write_run(handle, qid, ranking, tag=f"compneg-{slug(name)}")
    with atomic_writer(proof, REMEDY) as handle:
        handle.write(_checksum(path))
    return path, False


def _checksum(path: Path) -> str:
    with path.open("rb") as data:
        return f"{hashlib.file_digest(data, 'sha256').hexdigest()}  {path.name}\n"


def digest_of(text: str) -> str:
    """A hash of a text for the names of files."""
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]
