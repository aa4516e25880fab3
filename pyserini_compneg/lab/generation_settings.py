"""The settings of generated requests, apart from ``training``, which loads more than a help text needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.documents import Format
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.options import COUNT, WHOLE, check_options, option


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """What generated requests depend on, apart from the collection and the language model.

    Attributes:
        limit: The most questions to the language model. Kept answers of an earlier run count.
        seed: The seed of all draws.
        fields: The fields that make up a text; None for ``contents``, or ``title`` and ``text``.
        collection_format: ``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``; None to detect the format from the
            names and first bytes of the files.

    Raises:
        ArgumentError: A number is out of its range, or ``fields`` is a single text instead of a list.
    """

    limit: int = option(200, "the most questions to the language model, kept answers included (default 200)", COUNT)
    seed: int = option(1, "the seed of all draws (default 1)", WHOLE)
    fields: Sequence[str] | None = None
    collection_format: Format | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.fields is not None:
            object.__setattr__(self, "fields", checked_list("fields", self.fields))
