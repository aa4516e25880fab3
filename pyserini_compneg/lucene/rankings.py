"""What a search finds, and the bytes in which queries, ids and rankings cross to and from Java."""

from __future__ import annotations

import itertools
import json
import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyserini_compneg.compose import ScoringNode, query_line

INT_BYTES = 4
MOST_VALUES = (1 << 31) - 1
"""The most values of a facet: Java counts in int."""


Scores: TypeAlias = list[list[float | None]]
"""The scores of the documents of each query; None for a document that the query does not match."""


class Ranking(NamedTuple):
    """The hits of one query, best first, as two parallel sequences, because there may be millions."""

    docids: list[str]
    scores: array[float]


class PassageRanking(Ranking):
    """A ranking of documents, with the number of each document's best passage."""

    passages: Sequence[int]

    def __new__(cls, docids: list[str], scores: array[float], passages: Sequence[int] = ()) -> PassageRanking:
        ranking = super().__new__(cls, docids, scores)
        ranking.passages = passages
        return ranking


class MatchCount(NamedTuple):
    """The number of documents that match a query, and of these with each value of some fields, largest first."""

    documents: int
    facets: Mapping[str, Mapping[str, int]]
    numbers: Mapping[str, Collection[str]]
    """Of each of these fields those of the values that are numbers in documents."""


def packed_queries(nodes: Iterable[ScoringNode]) -> bytes:
    """Packs composed queries for ``ScoringTree.parse``: a line of JSON for each."""
    return "\n".join(map(query_line, nodes)).encode()


def packed_ids(lists: Sequence[Sequence[str]]) -> bytes:
    """Packs lists of ids for ``WireFormat.ids``: the number in each list, then all ids, each followed by a NUL.

    Ids in an index are not empty and contain no NUL and no half of a surrogate pair.
    """
    joined = "".join("\0" if "\0" in docid else f"{docid}\0" for docid in itertools.chain.from_iterable(lists))
    return array("i", map(len, lists)).tobytes() + joined.encode(errors="surrogatepass")


def unpack_rankings(packed: bytes, queries: int) -> list[Ranking]:
    """Unpacks rankings of ``WireFormat.rankings``: all counts, all scores, then all ids, each followed by a NUL.

    Raises ValueError if the ids are not text or if their number is wrong.
    """
    counts = array("i", packed[: INT_BYTES * queries])
    total = sum(counts)
    scores = array("f", packed[INT_BYTES * queries : INT_BYTES * (queries + total)])
    docids = packed[INT_BYTES * (queries + total) :].decode().split("\0")
    if len(docids) != total + 1:
        raise ValueError(f"expected {total} ids, got {len(docids) - 1}")
    rankings, start = [], 0
    for count in counts:
        rankings.append(Ranking(docids[start : start + count], scores[start : start + count]))
        start += count
    return rankings


def unpack_matches(packed: bytes) -> list[MatchCount]:
    """Unpacks the counts of ``WireFormat.matches``."""
    counted = json.loads(packed[INT_BYTES:])
    return [
        MatchCount(
            one["count"],
            {name: {value: count for value, count, _ in found} for name, found in one["facets"].items()},
            {name: [value for value, _, is_number in found if is_number] for name, found in one["facets"].items()},
        )
        for one in counted
    ]


def unpack_scores(packed: bytes, docids: Sequence[Sequence[str]]) -> Scores:
    """Unpacks the scores of ``WireFormat.scores`` as a list for each query. NaN, of no match, becomes None."""
    scores = iter(array("f", packed))
    return [[None if math.isnan(score) else score for score in itertools.islice(scores, len(one))] for one in docids]


def each_once(ranking: Ranking, best: Mapping[str, float | None]) -> list[tuple[str, float]]:
    """The hits of a ranking, but of several documents with an id only one: with the score that ``best`` has for the id.

    >>> each_once(Ranking(["a", "b", "b", "a"], array("f", [9, 5, 5, 1])), {"a": 9, "b": 5})
    [('a', 9.0), ('b', 5.0)]
    """
    hits = itertools.groupby(zip(ranking.docids, ranking.scores, strict=True))
    return [(docid, score) for (docid, score), _ in hits if best.get(docid, score) == score]
