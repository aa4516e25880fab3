"""The ways to read texts, by the names that flags and protocols have for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pyserini_compneg.expression.decomposition import Decomposition
from pyserini_compneg.reading.decomposing import decompose
from pyserini_compneg.reading.llm import LlmReader

READINGS = ("expression", "plain", "cues", "llm")
"""How a text can be read: operators in it are parsed; it is one atom; cue phrases or a language model take it apart."""


def reader(name: str, cache: Path) -> Callable[[str], Decomposition] | None:
    """What takes plain texts apart. Make one for all texts of a run, because that of ``llm`` counts its failures.

    Args:
        name: One of ``READINGS``.
        cache: The package's cache folder, where answers of a language model are kept.

    Returns:
        The function; None for ``expression`` and ``plain``, which take nothing apart.

    Raises:
        DecompositionError: There is no language model in the environment.

    >>> reader("cues", Path("cache"))("spy films but not comedies").expression
    Difference(left=Atom(text='spy films'), right=Atom(text='comedies'))
    >>> reader("plain", Path("cache"))
    """
    if name == "llm":
        return LlmReader(os.environ, cache / "decompositions")
    return decompose if name == "cues" else None
