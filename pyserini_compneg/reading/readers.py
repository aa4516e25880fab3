"""The ways to read texts, by the names that flags and protocols have for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pyserini_compneg.reading.decomposition import READINGS, Decomposition
from pyserini_compneg.reading.llm import LlmReader
from pyserini_compneg.reading.model_reader import ModelReader, packaged_reader
from pyserini_compneg.support.errors import QueryError

ReadTexts = Callable[[Sequence[str]], list[Decomposition]]
"""Reads texts, all at once."""


def reader(name: str, cache: Path) -> ReadTexts | None:
    """What takes plain texts apart. Make one for all texts of a run, because that of ``llm`` counts its failures.

    Args:
        name: One of ``READINGS``, or the folder of a reader of one's own.
        cache: The package's cache folder, where answers of a language model are kept.

    Returns:
        The function; None for ``expression`` and ``plain``, which take nothing apart.

    Raises:
        QueryError: An unknown name, a reader that cannot be loaded, or no language model in the environment.

    >>> reader("model", Path("cache"))(["spy films but not comedies"])[0].expression
    Difference(left=Atom(text='spy films'), right=Atom(text='comedies'))
    >>> reader("plain", Path("cache"))
    """
    if name in ("expression", "plain"):
        return None
    if name == "llm":
        return LlmReader(os.environ, cache / "decompositions").read
    if name == "model":
        return packaged_reader().read
    if not os.path.isdir(name):
        known = ", ".join(READINGS)
        raise QueryError(f"no way to read texts is named {name!r}: known are {known}, or a reader's folder")
    return ModelReader(name).read
