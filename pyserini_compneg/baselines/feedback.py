"""Relevance feedback: documents that were judged move a query towards those that are relevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyserini_compneg.compose import DEFAULT_OPERATORS, Linear, Operators, Query, ScoringNode, Sum
from pyserini_compneg.compose.trees import positive_weights
from pyserini_compneg.encode.bm25 import lucene_idf
from pyserini_compneg.encode.hybrid import needs_statistics
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.support.arguments import checked_count
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import SparseVector, add, is_pseudo_term, norm

if TYPE_CHECKING:  # eval loads numpy
    from pyserini_compneg.eval import Qrels

BETA, GAMMA, TERMS = 0.75, 0.25, 100


@dataclass(frozen=True, slots=True)
class Rocchio:
    r"""Ranks by q / \|q\| + β · mean(d / \|d\|) − γ · mean(e / \|e\|), for judged documents d and e of the index.

    For a query with operators, its scores take the place of q, and the length of its positive weights takes the place
    of \|q\|. Documents have their vectors from the index; with ``bm25``, each weight is multiplied by the term's idf,
    as in a query. A query without judged documents stays as it is.

    Attributes:
        judged: For each query id, the documents, with a number above 0 if they are relevant.
        beta: The weight β of relevant documents.
        gamma: The weight γ of documents that are not relevant.
        terms: How many terms of the judged documents are added; the largest magnitudes come first.
        operators: The operators of the queries.

    Source: Rocchio 1971; Salton and Buckley 1990 for β and γ, who do not leave out terms.
    """

    judged: Qrels = field(hash=False)
    beta: float = BETA
    gamma: float = GAMMA
    terms: int = TERMS
    operators: Operators = DEFAULT_OPERATORS

    def __post_init__(self) -> None:
        checked_count("terms", self.terms)
        for name in ("beta", "gamma"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ArgumentError(f"{name} must be a finite number from 0, got {shown(getattr(self, name))}")

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        """The hits of the moved queries; see :meth:`Method.answer`."""
        nodes = self.compose(searcher, request.queries, request.qids)
        return searcher.batch_search(nodes, request.qids, request.k, request.threads, filter=request.filters)

    def compose(
        self, searcher: SignedImpactSearcher, queries: Sequence[Query], qids: Sequence[str]
    ) -> list[ScoringNode]:
        """The scoring tree of each query, moved by the judged documents of its id.

        Raises:
            InputError: The index lacks a judged document.
            IndexFormatError: The index has passages, so a document has no vector of its own.
            ArgumentError: The index holds vectors of two spaces, or negative weights.
        """
        manifest = searcher.reader.manifest
        if manifest is not None and manifest.signed:
            raise ArgumentError("rocchio adds positive vectors, and the index holds negative weights of documents")
        if searcher.is_hybrid:
            raise ArgumentError("rocchio adds vectors of one space, and the index of bm25+MODEL has two")
        nodes = searcher.compose(queries, self.operators)
        return [self._moved(searcher, *one) for one in zip(nodes, qids, strict=True)]

    def _moved(self, searcher: SignedImpactSearcher, node: ScoringNode, qid: str) -> ScoringNode:
        judged, move = self.judged.get(qid, {}), dict[str, float]()
        for is_relevant, share in ((True, self.beta), (False, -self.gamma)):
            vectors = [_vector(searcher, docid) for docid, grade in judged.items() if (grade > 0) == is_relevant]
            for vector in filter(None, vectors):  # an empty vector has no direction, but counts in the mean
                move = add(move, vector, share / len(vectors) / norm(vector))
        length = norm(positive_weights(node))
        heaviest = sorted(move, key=lambda term: (-abs(move[term]), term))[: self.terms]
        weights = {term: weight for term in heaviest if (weight := float(round(length * move[term])))}
        return Sum((node, Linear(weights))) if weights else node


def _vector(searcher: SignedImpactSearcher, docid: str) -> SparseVector:
    """A document's vector with weights as in a query: its impacts, multiplied by idf for ``bm25`` and latents."""
    reader = searcher.reader
    impacts = reader.vector(docid)
    if impacts is None:
        raise reader.unknown_document(docid)
    plain = {term: float(impact) for term, impact in impacts.items() if not is_pseudo_term(term)}
    if reader.manifest is None or not needs_statistics(reader.manifest.encoder):
        return plain
    frequencies = reader.document_frequencies(list(plain))
    documents = reader.field_document_count
    return {
        term: impact * lucene_idf(frequency, documents)
        for (term, impact), frequency in zip(plain.items(), frequencies, strict=True)
    }
