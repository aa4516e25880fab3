"""What a request may cost, and how many clients may be there: the key ``limits`` of a server's YAML file."""

from __future__ import annotations

from pydantic import Field

from pyserini_compneg.compose import Operators, Query, ScoringNode
from pyserini_compneg.compose.scoring import Excluding, leaf_vectors, nodes
from pyserini_compneg.expression import Expression, parse
from pyserini_compneg.expression.tree import leaves
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.settings_files import Settings

MOST_CHARACTERS = 8_000
"""Of a query, and of all atoms of a tree together."""

_PAIRS_OF_ATOM = 60
"""Pairs are chosen among all terms, so an atom costs the more the more of them there are."""


class Limits(Settings):
    """The bounds of a server.

    Attributes:
        atoms: Atoms of an expression, repeated ones included. They are encoded before a search has a limit of time.
        vectors: Vectors of a composed query, and filters in it that exclude.
        terms: Weights of a composed query.
        body_bytes: Bytes of a body.
        connections: Open connections. Beyond them the one that has waited longest for its request is closed.
        receive_seconds: In this time a request must arrive as a whole, and a client must go on reading its answer.
    """

    atoms: int = Field(default=256, ge=1)
    vectors: int = Field(default=1024, ge=1)
    terms: int = Field(default=10_000, ge=1)
    body_bytes: int = Field(default=1_000_000, ge=1)
    connections: int = Field(default=1000, ge=1)
    receive_seconds: float = Field(default=20.0, gt=0)

    def check(self, query: Query, operators: Operators | None) -> None:
        """Makes sure that a query does not cost too much.

        Raises:
            ArgumentError: It has too many parts.
            QueryError: A text that is no expression.
        """
        if isinstance(query, ScoringNode):
            self._check_composed(query)
            return
        expression: str | Expression = query.expression if isinstance(query, Decomposition) else query
        texts = [atom.text for atom in leaves(parse(expression) if isinstance(expression, str) else expression)]
        _check("atoms", len(texts), self.atoms)
        _check("characters in its atoms", sum(map(len, texts)), MOST_CHARACTERS)
        if operators is not None and operators.intersection == "cpt-pairs":
            _check("atoms and cpt_terms, multiplied,", len(texts) * operators.cpt_terms, _PAIRS_OF_ATOM * self.atoms)

    def _check_composed(self, node: ScoringNode) -> None:
        vectors = [len(vector) for vector in leaf_vectors(node)]
        filters = sum(len(one.excluded) for one in nodes(node) if isinstance(one, Excluding))
        _check("vectors and filters", len(vectors) + filters, self.vectors)
        _check("terms", sum(vectors), self.terms)


def _check(parts: str, count: int, most: int) -> None:
    if count > most:
        raise ArgumentError(f"the query has {count:,} {parts}, and this server takes at most {most:,}")
