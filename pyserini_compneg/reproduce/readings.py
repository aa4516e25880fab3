"""What rows of a protocol make of the texts of queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyserini_compneg.datasets.topics import Topic, decompose_topics
from pyserini_compneg.decompose import LlmReader, decompose, or_undivided
from pyserini_compneg.expression import Atom
from pyserini_compneg.models.cache import cache_home


def topics_as(reads: str, topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """The topics by their ids, with what is made of their texts.

    To be called once for all topics: each call with ``llm`` makes a reader of its own, with its own count of failures.

    Args:
        reads: One of ``READINGS``. A text that only says what it does not ask for stays one atom.
        topics: The topics of a dataset.

    Raises:
        DecompositionError: There is no language model in the environment.
    """
    read: Sequence[Topic] = topics
    if reads != "expression":
        read = [replace(topic, expression=Atom(topic.text), composed=None, plain=True) for topic in topics]
    if reads in {"cues", "llm"}:
        reader = decompose if reads == "cues" else LlmReader(os.environ, cache_home() / "decompositions")
        read = decompose_topics(read, or_undivided(reader))
    return {topic.qid: topic for topic in read}
