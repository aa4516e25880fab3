"""The settings of the training of a latent model, apart from ``training``, which loads more than a help text needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.documents import Format
from pyserini_compneg.encode.models import MOST_LATENTS
from pyserini_compneg.support.arguments import checked_list, whole_number
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.existing_work import Existing, ExistingWork, existing_option
from pyserini_compneg.support.options import COUNT, Number, check_options, option

_SEED = Number("a whole number from 0 to 4294967295", whole_number, lambda value: 0 <= value < 2**32)


@dataclass(frozen=True, slots=True)
class LatentSettings(ExistingWork):
    """The settings of the training of a latent model.

    Attributes:
        latents: The number of latents. Those that no token of the texts lights in the end are left out.
        active: The number of latents that a token lights at most.
        tokens: The most tokens to learn from. If the texts have more, some texts are drawn at random.
        steps: The number of steps; None for a number that fits the tokens.
        seed: The seed of all random numbers.
        existing: How to treat the folder of a former model, and an unfinished training, as in ``train``.
        fields: The fields that make up a text; None for ``contents``, or ``title`` and ``text``.
        collection_format: ``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``; None to detect the format from the
            names and first bytes of the files.

    Raises:
        ArgumentError: A number is out of its range, or ``fields`` is a single text instead of a list.
    """

    latents: int = option(8192, "number of latents (default 8192)", COUNT)
    active: int = option(6, "how many latents a token lights at most (default 6)", COUNT)
    tokens: int = option(
        2_000_000, "the most tokens to learn from (default 2000000); of more texts, some are drawn at random", COUNT
    )
    steps: int | None = option(None, "number of steps", COUNT)
    seed: int = option(0, "seed of all random numbers", _SEED)
    existing: Existing = existing_option()
    fields: Sequence[str] | None = None
    collection_format: Format | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.latents > MOST_LATENTS:
            raise ArgumentError(f"latents must be at most {MOST_LATENTS:,}, got {self.latents}")
        if self.active > self.latents:
            raise ArgumentError(f"active must be at most the number of latents, {self.latents}, got {self.active}")
        if self.fields is not None:
            object.__setattr__(self, "fields", checked_list("fields", self.fields))
