"""The head of a latent model: a sparse autoencoder over the token vectors of a dense model, whose latents are terms.

A folder of a latent model has the files of its base, a network of transformers with its tokenizer, and

- ``latent.json``, with the fields of :class:`LatentHead` and facts about the training;
- ``latent.safetensors``, with ``weight`` (latents, width of the base) and ``bias`` (latents,) of the encoder. Its unit
  is the median activation, so an activation of 1 is a usual one;
- ``concepts.json``, a list with the name of each latent: the words that light it most.

Source: Clavié, Lee, Shakir and Kato, Latent Terms, arXiv 2605.29384.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from pyserini_compneg.encode.models.configuration import required_json
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.vectors import is_number

LATENT_FILE = "latent.json"
LATENT_WEIGHTS = "latent.safetensors"
CONCEPTS_FILE = "concepts.json"

LATENT_SIGN = "~"
"""The first character of each latent's term, which a number follows. Lucene splits words at this sign, as at the prefix
of a model's terms."""


@dataclass(frozen=True, slots=True)
class LatentHead:
    """ReLU of the largest logits of each token, and the maximum over the tokens of a text, without special tokens.

    Attributes:
        latents: The number of latents.
        active: The number of latents that a token lights at most.
        mean_latents: The mean number of latents of a text, over the texts of the training. BM25's saturation takes it
            for the average length of a document.
    """

    latents: int
    active: int
    mean_latents: float

    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.latents) is not int or type(self.active) is not int or not 1 <= self.active <= self.latents:
            what = f"`active` must be a whole number from 1 to `latents`, got {self.active!r} of {self.latents!r}"
            raise EncodingError(what, where=LATENT_FILE)
        if not is_number(self.mean_latents) or not 1 <= self.mean_latents <= self.latents:
            what = f"`mean_latents` must be a number from 1 to `latents`, got {self.mean_latents!r}"
            raise EncodingError(what, where=LATENT_FILE)

    @property
    def terms(self) -> list[str]:
        """The term of each latent.

        >>> LatentHead(3, 1, 2.0).terms
        ['~0', '~1', '~2']
        """
        return [f"{LATENT_SIGN}{number}" for number in range(self.latents)]


def is_latent(folder: Path) -> bool:
    """Whether a folder has a latent model."""
    return (folder / LATENT_FILE).is_file()


def read_latent_head(folder: Path) -> LatentHead:
    """The head of a latent model.

    Raises:
        EncodingError: A file is missing or damaged.
    """
    values = required_json(folder / LATENT_FILE, dict)
    if missing := next((each.name for each in fields(LatentHead) if each.name not in values), None):
        raise EncodingError(f"{LATENT_FILE}: `{missing}` is missing", remedy="copy the model again")
    return LatentHead(**{each.name: values[each.name] for each in fields(LatentHead)})


def read_concepts(folder: Path) -> list[str]:
    """The name of each latent, such as "monarch, king, queen"."""
    names: list[str] = required_json(folder / CONCEPTS_FILE, list)
    if not all(isinstance(name, str) for name in names):
        raise EncodingError(f"{CONCEPTS_FILE}: expected a list of names", remedy="copy the model again")
    return names
