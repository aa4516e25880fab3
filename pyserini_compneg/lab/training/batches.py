"""Tables of examples, and batches that keep contrastive pairs together.

A contrastive pair is two examples of which each has the other's relevant document as its negative, as in NevIR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from datasets import Dataset, DatasetDict, DatasetInfo
from sentence_transformers.base.sampler import DefaultBatchSampler, NoDuplicatesBatchSampler

from pyserini_compneg.lab.training.config import TrainConfig
from pyserini_compneg.lab.training.examples import Example
from pyserini_compneg.lab.training.teacher import margins
from pyserini_compneg.support.errors import InputError

CONTRASTIVE_PAIRS = "contrastive pairs"
"""The description of a table whose rows 2i and 2i + 1 are a contrastive pair."""


def example_tables(config: TrainConfig, sources: Sequence[Sequence[Example]]) -> DatasetDict:
    """The examples as tables of texts: one for each source and number of negatives, and for its contrastive pairs.

    A batch is of one table, because documents of one source are harder to tell apart than those of several.

    Args:
        config: What to train.
        sources: The examples of each source.

    Returns:
        Tables with the columns ``query``, ``positive``, ``negative_1`` and so on, and with a teacher ``label``.

    Raises:
        InputError: A table without anything to tell its documents from.
    """
    groups: dict[tuple[int, str, int], list[Example]] = defaultdict(list)
    for source, examples in enumerate(sources):
        pairs, others = ([], examples) if config.teacher else split_contrastive_pairs(examples)
        if pairs:
            groups[source, CONTRASTIVE_PAIRS, 0] = pairs
        for one in others:
            groups[source, "", len(one.negatives)].append(one)
    tables = {}
    for (source, kind, count), examples in sorted(groups.items()):
        if not count and len({one.positive for one in examples}) < 2:
            raise InputError(
                f"{config.data[source].dataset}: its examples without negatives have only one document, and there is "
                "no other to tell it from; add examples with other documents, or negatives"
            )
        columns: dict[str, Any] = {
            "query": [one.query for one in examples],
            "positive": [one.positive for one in examples],
        }
        for number in range(count):
            columns[f"negative_{number + 1}"] = [one.negatives[number] for one in examples]
        if config.teacher:
            columns["label"] = margins(config.teacher, examples)
        tables[f"{source}-{kind or count}"] = Dataset.from_dict(columns, info=DatasetInfo(description=kind))
    return DatasetDict(tables)


def split_contrastive_pairs(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """The contrastive pairs, one example behind the other and without negatives, and the other examples.

    In the same batch each one's document is the other's negative, and is encoded once instead of twice.
    """
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    pairs, paired = list[Example](), set[int]()
    for number, one in enumerate(examples):
        if len(one.negatives) != 1:
            continue
        (negative,) = one.negatives
        partner = next((at for at in waiting[negative, one.positive] if examples[at].query != one.query), None)
        if partner is None:
            waiting[one.positive, negative].append(number)
        else:
            waiting[negative, one.positive].remove(partner)
            paired.update((partner, number))
            pairs += [replace(examples[at], negatives=()) for at in (partner, number)]
    return pairs, [one for number, one in enumerate(examples) if number not in paired]


class ContrastivePairSampler(DefaultBatchSampler):  # type: ignore[misc]  # mypy is told nothing of sentence-transformers
    """Batches of a table of contrastive pairs that separate no pair; no text stands in a batch twice.

    Args:
        dataset: The table, with columns ``query`` and ``positive``.
        batch_size: The number of examples in a batch; one less if it is odd.
        drop_last: Whether a smaller last batch is left out.
        more: Further arguments of sentence-transformers' samplers.
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
