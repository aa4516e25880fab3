"""What hits lack: AND is soft, so a document is found that has only some of its operands."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

from pyserini_compneg.compose import Linear, Operators, Query, QueryEncoder, ScoringNode, query_line
from pyserini_compneg.compose.operands import conjunctions, fewest, operand_terms
from pyserini_compneg.compose.rewrite import without_differences
from pyserini_compneg.compose.sources import atom_vectors
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.lucene import IndexReader
from pyserini_compneg.search.ranked_hits import as_expressions
from pyserini_compneg.support.arguments import checked_count


class LastBatch(threading.local):
    """An encoder that keeps what each thread encoded last: what was just searched for is marked next."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self.encoder = encoder
        self._vectors: Mapping[str, dict[str, float]] = {}

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The vector of each text."""
        vectors = self.encoder.encode_batch(texts)
        self._vectors = dict(zip(texts, vectors, strict=False)) if isinstance(vectors, Sequence) else {}
        return vectors

    def again(self, texts: Sequence[str]) -> dict[str, dict[str, float]]:
        """The vectors by their texts; those of the last batch are not encoded again."""
        unknown = [text for text in texts if text not in self._vectors]
        return {**self._vectors, **atom_vectors(unknown, self.encoder)}


def lacking_operands(
    reader: IndexReader,
    encoder: LastBatch,
    operators: Operators,
    queries: Sequence[Query],
    docids: Sequence[Sequence[str]],
    threads: int = 1,
) -> list[list[tuple[str, ...]]]:
    """For each query the operands that each of its documents lacks; see :meth:`SignedImpactSearcher.lacking`."""
    expressions = map(_expression, queries)
    wholes = [[] if one is None else conjunctions(one, operators) for one in expressions]
    if not any(wholes):
        return [[()] * len(group) for group in docids]
    operands = dict.fromkeys(operand for whole in wholes for parts in whole for operand in parts.kept)
    texts = dict.fromkeys(text for operand in operands for text in atoms(without_differences(operand)))
    vectors = encoder.again(list(texts))
    sought = [[operand_terms(parts, vectors, operators.cpt_terms) for parts in whole] for whole in wholes]
    asked = list(
        dict.fromkeys((i, terms) for i, whole in enumerate(sought) for one in whole for terms in one.values() if terms)
    )
    lines = [query_line(Linear(dict.fromkeys(terms, 1.0))) for _, terms in asked]
    scores = reader.score(lines, [docids[i] for i, _ in asked], checked_count("threads", threads))
    has = {key: [score not in (None, math.inf) for score in found] for key, found in zip(asked, scores, strict=True)}

    def lacking(i: int, place: int) -> tuple[str, ...]:
        """What a query's document lacks, by its place."""
        return fewest(
            tuple(name for name, terms in one.items() if not (terms and has[i, terms][place])) for one in sought[i]
        )

    return [[lacking(i, place) for place in range(len(group))] for i, group in enumerate(docids)]


def _expression(query: Query) -> Expression | None:
    """The expression; None for a query that is composed already, whose operands are not known any more."""
    if isinstance(query, ScoringNode):
        return None
    return as_expressions([query])[0]
