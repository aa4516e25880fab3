"""Hard negatives.

Source: Krasakis et al., Appendix A.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pyserini_compneg.documents.collection import SourceDocument
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Intersection, Union
from pyserini_compneg.expression.tree import leaves
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import atomic_writer
from pyserini_compneg.topics.topics import Topic

BM25_RANKS = (50, 100)
"""The first and the last rank of negatives; documents above are often relevant but not judged."""


def bm25_negatives(
    documents: Iterable[SourceDocument], texts: Mapping[str, str], relevant: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The documents at BM25's ranks 50 to 100, without the relevant ones.

    Args:
        documents: The collection; it is indexed in a temporary folder.
        texts: The text of each query.
        relevant: The relevant documents of each query.
    """
    from pyserini_compneg.index import build_index
    from pyserini_compneg.search import SignedImpactSearcher

    with tempfile.TemporaryDirectory(prefix="compneg-") as folder:
        collection = Path(folder, "documents.jsonl")
        with atomic_writer(collection) as lines:
            for document in documents:
                lines.write(json.dumps({"id": document.docid, "contents": document.text or ""}) + "\n")
        build_index(collection, Path(folder, "index"))
        with SignedImpactSearcher(Path(folder, "index")) as searcher:
            hits = searcher.batch_search([Atom(text) for text in texts.values()], list(texts), BM25_RANKS[1])
    return {
        qid: [hit.docid for hit in ranked[BM25_RANKS[0] - 1 :] if hit.docid not in set(relevant[qid])]
        for qid, ranked in hits.items()
    }


def compositional_negatives(topics: Sequence[Topic], relevant: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    r"""Documents that belong to an atom of a query, but not to the query: for A \ B those of B, for A ∩ B those of one.

    The documents of an atom are those that are relevant to the query that is this atom alone. A query has no negatives
    if its atoms are not queries of their own, or if it is an atom or a union of atoms.

    Args:
        topics: The queries.
        relevant: The relevant documents of each.

    Raises:
        InputError: A query that is composed already.
    """
    atoms = {topic.expression: set(relevant[topic.qid]) for topic in topics if isinstance(topic.expression, Atom)}
    negatives = {}
    for topic in topics:
        if topic.expression is None:
            raise InputError(f"query {topic.qid!r} is composed already, so its atoms are not known")
        misleading = [atoms.get(atom, set()) for atom in _misleading(topic.expression)]
        negatives[topic.qid] = sorted(set().union(*misleading) - set(relevant[topic.qid]))
    return negatives


def _misleading(expression: Expression) -> Iterator[Atom]:
    """The atoms whose documents may be taken for the query's."""
    match expression:
        case Difference(left, right) | Exclusion(left, right):
            yield from _misleading(left)
            yield from leaves(right)
        case Intersection(operands):
            for operand in operands:
                yield from leaves(operand)
        case Union(operands):
            for operand in operands:
                yield from _misleading(operand)
