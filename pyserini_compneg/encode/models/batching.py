"""Batches of texts of similar length, to compute little padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pyserini_compneg.encode.models.options import BATCH_SIZE
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.progress import count_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Entries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
    """The nonzero weights of a batch: the numbers of the texts, ascending, the ids of the terms, and the weights."""

MOST_TOKENS = {"cpu": 1024, "cuda": 16384}
"""The largest number of tokens in a batch, including padding. It bounds the memory that each takes. The limit for a
processor is small, so that the data of a batch stay in the processor's cache."""

DECIMALS = 5
"""The decimals of a weight. They are finer than any impact scale, and keep files of vectors small."""


class SparseModel(Protocol):
    """A network and its head, on one of the backends."""

    device: str
    """``cpu`` or ``cuda``."""

    unpadded: bool
    """Whether padding would change a text's vector, so that the texts of a batch must have one length."""

    together: int
    """How many batches run at once."""

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Entries:
        """The vectors for token ids and their mask, 1 for tokens and 0 for padding, both (batch, tokens)."""


def encode_tokens(
    model: SparseModel, ids: Sequence[Sequence[int]], terms: Sequence[str], batch_size: int = BATCH_SIZE
) -> list[dict[str, float]]:
    """The vectors of texts that are given as token ids. ``terms`` names the columns of the model."""
    import numpy as np  # takes longer to import than a search with cached queries

    vectors: list[dict[str, float]] = [{} for _ in ids]
    numbers = [number for number, text in enumerate(ids) if text]
    lengths = [len(ids[number]) for number in numbers]

    def encode(chosen: Sequence[int]) -> int:
        batch = [numbers[position] for position in chosen]
        padded = np.zeros((len(batch), len(ids[batch[0]])), np.int64)
        mask = np.zeros_like(padded)
        for row, number in enumerate(batch):
            padded[row, : len(ids[number])] = ids[number]
            mask[row, : len(ids[number])] = 1
        for number, vector in zip(batch, _vectors(model(padded, mask), len(batch), terms), strict=True):
            vectors[number] = vector
        return int(mask.sum())

    groups = list(batches(lengths, batch_size, MOST_TOKENS[model.device], model.unpadded))
    with ThreadPoolExecutor(model.together, "model") as pool:
        for tokens in pool.map(encode, groups) if min(model.together, len(groups)) > 1 else map(encode, groups):
            count_tokens(tokens)
    return vectors


def batches(lengths: Sequence[int], batch_size: int, most_tokens: int, unpadded: bool = False) -> Iterator[list[int]]:
    """Groups positions of texts into batches. Long texts come first, so that a lack of memory shows at once.

    >>> list(batches([3, 9, 4, 4], 2, 1024)), list(batches([3, 9, 4, 4], 2, 8))
    ([[1, 2], [3, 0]], [[1], [2, 3], [0]])
    >>> list(batches([3, 9, 4, 4], 2, 1024, unpadded=True))
    [[1], [2, 3], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        end = min(start + max(1, min(batch_size, most_tokens // longest)), len(order))
        if unpadded:
            end = next((place for place in range(start, end) if lengths[order[place]] < longest), end)
        yield order[start:end]
        start = end


def _vectors(entries: Entries, count: int, terms: Sequence[str]) -> Iterator[dict[str, float]]:
    import numpy as np

    rows, columns, values = entries
    weights = np.round(values.astype(np.float64), DECIMALS)
    if not np.isfinite(weights).all():
        raise EncodingError("the model gives weights that are not finite numbers; the weights in its files are damaged")
    kept = np.flatnonzero(weights)
    entries_left = list(zip((terms[column] for column in columns[kept].tolist()), weights[kept].tolist(), strict=True))
    bounds = np.searchsorted(rows[kept], np.arange(count + 1)).tolist()
    for start, end in zip(bounds, bounds[1:], strict=False):
        yield dict(entries_left[start:end])
