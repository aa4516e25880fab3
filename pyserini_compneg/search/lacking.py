"""Finds the operands of AND that hits lack: AND is soft, so documents that have only some operands are hits."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

from pyserini_compneg.compose import Linear, Operators, Query, QueryEncoder, ScoringNode, query_line
from pyserini_compneg.compose.atom_vectors import atom_vectors
from pyserini_compneg.compose.operands import conjunctions, operand_terms
from pyserini_compneg.compose.rewrite import without_differences
from pyserini_compneg.expression import atoms
from pyserini_compneg.lucene import IndexReader
from pyserini_compneg.search.ranked_hits import as_expressions
from pyserini_compneg.support.arguments import checked_count


class LastBatch(threading.local):
    """An encoder that keeps the last batch of each thread: the atoms of a search are needed again to mark its hits."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self.encoder = encoder
        self._vectors: Mapping[str, dict[str, float]] = {}

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        vectors = self.encoder.encode_batch(texts)
        self._vectors = dict(zip(texts, vectors, strict=False)) if isinstance(vectors, Sequence) else {}
        return vectors

    def again(self, texts: Sequence[str]) -> dict[str, dict[str, float]]:
        """The vector of each text; those of the last batch are not encoded again."""
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
    wholes = [
        [] if isinstance(query, ScoringNode) else conjunctions(as_expressions([query])[0], operators)
        for query in queries  # the operands of a composed query are not known any more
    ]
    if not any(wholes):
        return [[()] * len(group) for group in docids]
    operands = dict.fromkeys(operand for whole in wholes for parts in whole for operand in parts.kept)
    texts = dict.fromkeys(text for operand in operands for text in atoms(without_differences(operand)))
    vectors = encoder.again(list(texts))
    sought = [[operand_terms(parts, vectors, operators.cpt_terms) for parts in whole] for whole in wholes]
    terms_asked = [(i, terms) for i, parts in enumerate(sought) for one in parts for terms in one.values() if terms]
    asked = list(dict.fromkeys(terms_asked))
    lines = [query_line(Linear(dict.fromkeys(terms, 1.0))) for _, terms in asked]
    scores = reader.score(lines, [docids[i] for i, _ in asked], checked_count("threads", threads))
    has = {key: [score not in (None, math.inf) for score in found] for key, found in zip(asked, scores, strict=True)}

    def lacking(i: int, place: int) -> tuple[str, ...]:
        """The operands that the document at a place of a query's list lacks, of the alternative that lacks least."""
        each = (tuple(name for name, terms in one.items() if not (terms and has[i, terms][place])) for one in sought[i])
        return min(each, key=len, default=())

    return [[lacking(i, place) for place in range(len(group))] for i, group in enumerate(docids)]
