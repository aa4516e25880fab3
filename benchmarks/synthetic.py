"""Synthetic impact collections and queries, the same on every machine and for every size.

The collection has the shape of SPLADE's: 120 distinct terms a document of a vocabulary of 30,522, drawn by Zipf's law,
with whole log-normal impacts from 1 to 600, 68 on average. It comes in blocks, each with a seed of its own, so the
first documents of a large collection are those of a small one. Terms are independent of each other and of impacts:
there are no topics, which real collections have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.compose import Linear, Max, Product, ScoringNode, Sum

ENCODER = "synthetic"
VOCABULARY = 30_522
TERMS = 120
LARGEST_IMPACT = 600
EXPONENT = 0.9
SEED = 7
BLOCK = 1_000

_DRAWS = 180
"""So many that 120 of them differ: 150 do on average, with a standard deviation of 5."""

_DRAW_BITS = 8


class Block(NamedTuple):
    """Some documents in a row; both arrays are (documents, terms)."""

    first: int
    terms: NDArray[np.uint16]
    impacts: NDArray[np.uint16]


class Query(NamedTuple):
    """A composed query, and the positive vector that an engine without composition is given in its place."""

    node: ScoringNode
    positive: dict[str, int]


def zipf(vocabulary: int) -> NDArray[np.float64]:
    """The probability of each term, the most frequent first."""
    weights = 1 / np.arange(1, vocabulary + 1) ** EXPONENT
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def blocks(documents: int) -> Iterator[Block]:
    """The first documents of the collection."""
    cumulative = np.cumsum(zipf(VOCABULARY))
    for first in range(0, documents, BLOCK):
        rng = np.random.default_rng([SEED, first // BLOCK])
        draws = np.searchsorted(cumulative, rng.random((BLOCK, _DRAWS))).clip(max=VOCABULARY - 1).astype(np.int32)
        impacts = np.exp(rng.normal(3.9, 0.8, (BLOCK, TERMS))).clip(1, LARGEST_IMPACT)
        count = min(BLOCK, documents - first)
        yield Block(first, _first_distinct(draws)[:count], impacts.astype(np.uint16)[:count])


def _first_distinct(draws: NDArray[np.int32]) -> NDArray[np.uint16]:
    """The first 120 distinct numbers of each row, in the order in which they were drawn."""
    keys = np.sort(draws << _DRAW_BITS | np.arange(_DRAWS, dtype=np.int32), axis=1)  # by number, then by time
    new = np.ones(draws.shape, dtype=bool)
    new[:, 1:] = keys[:, 1:] >> _DRAW_BITS != keys[:, :-1] >> _DRAW_BITS
    first = np.zeros(draws.shape, dtype=bool)
    np.put_along_axis(first, keys & (1 << _DRAW_BITS) - 1, new, axis=1)
    first &= np.cumsum(first, axis=1, dtype=np.int16) <= TERMS
    return draws[first].reshape(len(draws), TERMS).astype(np.uint16)


def docid(number: int) -> str:
    """The id of a document; ids are in the order of the numbers."""
    return f"d{number:08d}"


def term_names(vocabulary: int = VOCABULARY) -> list[str]:
    """The terms as texts."""
    return [f"t{number}" for number in range(vocabulary)]


class JsonWriter:
    """Writes blocks as JSON lines, as Pyserini's documentation has them for impact indexes."""

    def __init__(self) -> None:
        impacts = range(LARGEST_IMPACT + 1)
        self._terms = np.array([f'"{name}":' for name in term_names()], dtype=bytes)
        self._impacts = np.array([f"{impact}," for impact in impacts], dtype=bytes)
        self._last_impacts = np.array([f"{impact}}}}}\n" for impact in impacts], dtype=bytes)

    def lines(self, block: Block) -> bytes:
        """The documents of a block, a line each."""
        numbers = range(block.first, block.first + len(block.terms))
        heads = np.array([f'{{"id":"{docid(number)}","contents":"","vector":{{' for number in numbers], dtype=bytes)
        pair = [("term", self._terms.dtype), ("impact", self._impacts.dtype)]
        last = [("term", self._terms.dtype), ("impact", self._last_impacts.dtype)]
        lines = np.empty(len(heads), dtype=[("head", heads.dtype), ("pairs", pair, TERMS - 1), ("last", last)])
        lines["head"] = heads
        lines["pairs"]["term"] = self._terms[block.terms[:, :-1]]
        lines["pairs"]["impact"] = self._impacts[block.impacts[:, :-1]]
        lines["last"]["term"] = self._terms[block.terms[:, -1]]
        lines["last"]["impact"] = self._last_impacts[block.impacts[:, -1]]
        return lines.tobytes().translate(None, b"\0")  # numpy pads texts with NULs


def write_collection(folder: Path, documents: int, files: int = 1) -> Path:
    """Writes the collection as that many JSON Lines files of about the same length."""
    folder.mkdir(parents=True)
    writer = JsonWriter()
    handles = [(folder / f"{number:03d}.jsonl").open("wb") for number in range(files)]
    try:
        for number, block in enumerate(blocks(documents)):
            handles[number % files].write(writer.lines(block))
    finally:
        for handle in handles:
            handle.close()
    return folder


def queries(count: int, vocabulary: int = VOCABULARY) -> dict[str, list[Query]]:
    """Queries of each kind: 25 positive terms, with 20 negative ones, and conjunctions and alternatives of 5 + 5."""
    rng = np.random.default_rng(SEED + 1)
    names, probabilities = term_names(vocabulary), zipf(vocabulary)
    kinds: dict[str, list[Query]] = {}
    for _ in range(count):
        terms = [names[number] for number in rng.choice(vocabulary, 45, replace=False, p=probabilities)]
        weights = np.exp(rng.normal(4.0, 0.7, 45)).clip(1, 600).astype(int).tolist()
        positive = dict(zip(terms[:25], weights[:25], strict=True))
        negative = {term: -weight for term, weight in zip(terms[25:], weights[25:], strict=True)}
        a, b = dict(list(positive.items())[:5]), dict(list(positive.items())[5:10])
        product = Product((a, b))
        for kind, query in {
            "positive": Query(Linear(positive), positive),
            "signed": Query(Linear(positive | negative), positive),
            "cpt": Query(product, a | b),
            "cpt beside maxpool": Query(Sum((product, Linear(a | b))), a | b),
            "dismax": Query(Max((Linear(a), Linear(b))), a | b),
        }.items():
            kinds.setdefault(kind, []).append(query)
    return kinds
