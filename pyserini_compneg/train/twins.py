"""Twins: two examples of which each has the other's relevant document as its negative, as NevIR's pairs give them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler, NoDuplicatesBatchSampler

from pyserini_compneg.train.examples import Example

TWINS = "twins"
"""The description of a table whose rows 2i and 2i + 1 are twins."""


def split_twins(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """The twins, one behind the other and without their negatives, and the other examples.

    In the same batch each one's document is the other's negative, and is encoded once instead of twice.
    """
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    twins, paired = list[Example](), set[int]()
    for number, one in enumerate(examples):
        if len(one.negatives) != 1:
            continue
        (negative,) = one.negatives
        others = [at for at in waiting[negative, one.positive] if examples[at].query != one.query]
        if others:
            waiting[negative, one.positive].remove(others[0])
            paired.update((others[0], number))
            twins += [replace(examples[at], negatives=()) for at in (others[0], number)]
        else:
            waiting[one.positive, negative].append(number)
    return twins, [one for number, one in enumerate(examples) if number not in paired]


class TwinBatchSampler(DefaultBatchSampler):  # type: ignore[misc]  # mypy is told nothing of sentence-transformers
    """Batches of a table of twins that separate none of them; no text stands in a batch twice.

    Args:
        dataset: The table, with columns ``query`` and ``positive``.
        batch_size: Examples in a batch; of an odd number, one less.
        drop_last: Whether a smaller last batch is left out.
        more: As sentence-transformers' samplers have it.
    """

    def __init__(self, dataset: Dataset, batch_size: int, drop_last: bool, **more: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **more)
        columns = {name: dataset[name] for name in ("query", "positive")}
        halves = {f"{name} {side}": list(values)[side::2] for name, values in columns.items() for side in (0, 1)}
        self._pairs = NoDuplicatesBatchSampler(Dataset.from_dict(halves), max(1, batch_size // 2), drop_last, **more)

    def __iter__(self) -> Iterator[list[int]]:
        """The rows of each batch."""
        self._pairs.set_epoch(self.epoch)
        for pairs in self._pairs:
            yield [2 * pair + side for pair in pairs for side in (0, 1)]

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._pairs)
