"""How many documents match a query: those that a search for all hits would find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from pyserini_compneg.compose import Damped, Linear, Max, ScoringNode, Sum
from pyserini_compneg.compose.trees import leaf_vectors
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import checked_facets
from pyserini_compneg.lucene import Reader
from pyserini_compneg.support.options import check_options, option
from pyserini_compneg.support.vectors import positive_part

TOTALS = ("bound", "exact")
"""How documents are counted: exactly if that costs next to nothing, otherwise by a lower bound; or always exactly."""

Relation: TypeAlias = Literal["eq", "gte"]

_FEW_POSTINGS = 1 << 16
"""If the terms of a query have at most this many postings, its documents are counted, in about a millisecond."""


class Total(NamedTuple):
    """The number of documents that match a query.

    Attributes:
        value: The number, or a lower bound.
        relation: ``eq`` if the value is exact, ``gte`` if it is a lower bound, as in Lucene's ``TotalHits``.

    >>> print(Total(1214, "gte"))
    at least 1,214
    """

    value: int
    relation: Relation

    def __str__(self) -> str:
        return f"{'at least ' if self.relation == 'gte' else ''}{self.value:,}"


@dataclass(frozen=True, slots=True)
class Counting:
    """What is counted of the documents that match. Facets are fields with the number of values to give."""

    total: str = option(
        TOTALS[0],
        "how many documents match: bound says at least how many if counting takes long (default), exact counts them",
        choices=TOTALS,
    )
    facets: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "facets", checked_facets(self.facets))


class Matches(NamedTuple):
    """The documents that match a query.

    Attributes:
        total: How many there are.
        facets: For some filter fields the values that most of the documents have, each with the number of documents.
            Numbers in documents are numbers here.
    """

    total: Total
    facets: Mapping[str, Mapping[str | int | float, int]]

    def to_object(self) -> dict[str, Any]:
        """As a JSON object, without facets if none were counted."""
        facets = {
            name: [{"value": value, "count": count} for value, count in counts.items()]
            for name, counts in self.facets.items()
        }
        return {"total": self.total._asdict(), **({"facets": facets} if facets else {})}


def count_matches(
    reader: Reader,
    node: ScoringNode,
    filter: Filter | None = None,
    counting: Counting = Counting(),
    threads: int = 1,
    found: int | None = None,
    asked: int = 0,
) -> Matches:
    """Counts the documents that match a composed query.

    If a search that ``asked`` for more hits has ``found`` all, or if a bound is enough, this takes next to no time.
    """
    if not counting.facets:
        if found is not None and found < asked:
            return Matches(Total(found, "eq"), {})
        if counting.total == "bound" and (bound := _bound(reader, node, filter)) is not None:
            return Matches(Total(max(bound, found or 0), "gte"), {})
    (counted,) = reader.matches([node], [filter], counting.facets, threads)
    facets = {
        name: {_typed(value) if value in counted.numbers[name] else value: count for value, count in counts.items()}
        for name, counts in counted.facets.items()
    }
    return Matches(Total(counted.documents, "eq"), facets)


def _typed(number: str) -> int | float:
    return float(number) if "." in number else int(number)


def _bound(reader: Reader, node: ScoringNode, filter: Filter | None) -> int | None:
    """A lower bound from document frequencies, or None if the query has few postings, which are quickly counted."""
    terms = list({term for vector in leaf_vectors(node) for term in vector})
    frequencies = dict(zip(terms, reader.document_frequencies(terms), strict=True))
    if sum(frequencies.values()) <= _FEW_POSTINGS:
        return None
    passages = reader.manifest is not None and reader.manifest.passages  # several may be of one document
    enough = () if filter is not None or passages else (frequencies[term] for term in _enough(node))
    return max(enough, default=0)


def _enough(node: ScoringNode) -> Iterator[str]:
    """Terms of which any one is enough for a document to match."""
    if isinstance(node, Linear):
        yield from positive_part(node.weights)
    elif isinstance(node, Max | Sum | Damped):
        for child in node.wanted:
            yield from _enough(child)
