"""Run files that are kept, named by their inputs, and reused if their checksum is right."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_compneg.lab.experiments.inputs import REMEDY
from pyserini_compneg.search import Hit, write_run
from pyserini_compneg.support.files import content_digest, slug
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics import Topic

RUN_FORMAT = 3
"""An input of every kept run. Increase it with every code change that alters rankings for the same settings and index,
so that older runs are not reused."""

KEY_DIGITS = 12

_logger = logging.getLogger(__name__)


def cached_run(
    folder: Path,
    name: str,
    depends_on: Mapping[str, Any],
    topics: Sequence[Topic],
    search: Callable[[Sequence[Topic], int], Mapping[str, Sequence[Hit]]],
    hits: int,
) -> tuple[Path, bool]:
    """The run file of a method, and whether it existed. A missing or changed file is made again.

    The file's name contains a hash of all inputs of its ranking: the topics, the hits, ``RUN_FORMAT``, and
    ``depends_on``, which is JSON. Its checksum is kept in a folder beside the runs, in the format of ``sha256sum``.
    """
    asked = [
        [topic.qid, str(topic.expression), topic.composed, topic.text if topic.decomposition else None]
        for topic in topics
    ]
    inputs = json.dumps([RUN_FORMAT, depends_on, hits, asked], sort_keys=True, ensure_ascii=False)
    key = content_digest(inputs, digits=KEY_DIGITS)
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
    return f"{content_digest(path)}  {path.name}\n"
