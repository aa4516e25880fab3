"""The head of a latent model: a sparse autoencoder over the token vectors of a dense model, whose latents are terms.

A folder of a latent model has the files of its base, a network of transformers with its tokenizer, and

- ``latent.json``, with the fields of :class:`LatentHead` and facts about the training;
- ``latent.safetensors``, with ``weight`` (latents, width of the base) and ``bias`` (latents,) of the encoder. Its unit
  is the median activation, so an activation of 1 is a usual one;
- ``concepts.json``, a list with the name of each latent: the words that light it most.

Source: Clavié, Lee, Shakir and Kato, Latent Terms, arXiv 2605.29384.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from pyserini_compneg.encode.models.configuration import required_json
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.surrogates import has_half
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import is_number

LATENT_FILE = "latent.json"
LATENT_WEIGHTS = "latent.safetensors"
CONCEPTS_FILE = "concepts.json"

MOST_LATENTS = 1_000_000
"""More latents than any model has. Memory would run out before a wrong number is noticed."""

LATENT_SIGN = "~"
"""The first character of each latent's term, which a number follows. Lucene splits words at this sign, as at the prefix
of a model's terms."""


@dataclass(frozen=True, slots=True)
class LatentHead:
    """ReLU of the largest logits of each token, and the maximum over the tokens of a text that are not silent.

    Attributes:
        latents: The number of latents.
        active: The number of latents that a token lights at most.
        mean_latents: The mean number of latents of a text, over the texts of the training. BM25's saturation takes it
            for the average length of a document.
        k1: Saturation of an activation.
        b: Strength of the normalisation by the number of a document's latents, 0 to 1.
        levels: The impacts of latents in documents are 1 to ``levels``.
        silent: The ids of tokens that light no latent, such as punctuation and stop words, besides special tokens.
    """

    latents: int
    active: int
    mean_latents: float
    k1: float = 0.3
    b: float = 0.4
    levels: int = 15
    silent: tuple[int, ...] = ()

    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        latents = self.latents if _is_count(self.latents) else 0
        expected = {
            "latents": (f"a whole number from 1 to {MOST_LATENTS:,}", 1 <= latents <= MOST_LATENTS),
            "active": ("a whole number from 1 to `latents`", _is_count(self.active) and self.active <= latents),
            "mean_latents": (
                "a finite number from 1",
                is_number(self.mean_latents) and 1 <= self.mean_latents < math.inf,
            ),
            "k1": ("a finite number, 0 or more", is_number(self.k1) and 0 <= self.k1 < math.inf),
            "b": ("a number from 0 to 1", is_number(self.b) and 0 <= self.b <= 1),
            "silent": ("a list of token ids", all(type(number) is int and number >= 0 for number in self.silent)),
            "levels": ("a whole number from 1 to 256", _is_count(self.levels) and self.levels <= 256),
        }
        if wrong := next((name for name, (_, fits) in expected.items() if not fits), None):
            what = f"{LATENT_FILE}: `{wrong}` must be {expected[wrong][0]}, got {shown(getattr(self, wrong))}"
            raise EncodingError(what)

    @property
    def terms(self) -> list[str]:
        """The term of each latent.

        >>> LatentHead(3, 1, 2.0).terms
        ['~0', '~1', '~2']
        """
        return [f"{LATENT_SIGN}{number}" for number in range(self.latents)]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def is_latent(folder: Path) -> bool:
    """Whether a folder has a latent model."""
    return (folder / LATENT_FILE).is_file()


def read_latent_head(folder: Path) -> LatentHead:
    """The head of a latent model. Refuses values out of their ranges."""
    values = required_json(folder / LATENT_FILE, dict)
    known = {each.name: values[each.name] for each in fields(LatentHead) if each.name in values}
    if missing := next((each.name for each in fields(LatentHead)[:3] if each.name not in known), None):
        raise EncodingError(f"{LATENT_FILE}: `{missing}` is missing", remedy="copy the model again")
    if not isinstance(silent := known.get("silent", []), list):
        raise EncodingError(f"{LATENT_FILE}: `silent` must be a list of token ids, got {shown(silent)}")
    return LatentHead(**{**known, "silent": tuple(silent)})


def read_concepts(folder: Path, latents: int) -> list[str]:
    """The name of each latent, such as "monarch, king, queen". Refuses the names of another number of latents."""
    names: list[str] = required_json(folder / CONCEPTS_FILE, list, str(folder))
    if len(names) != latents or not all(isinstance(name, str) and not has_half(name) for name in names):
        what = f"{CONCEPTS_FILE}: expected a list of {latents:,} names"
        raise EncodingError(what, where=folder, remedy="take the files of one model")
    return names
