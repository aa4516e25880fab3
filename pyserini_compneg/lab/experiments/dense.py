"""The dense baseline: a model of sentence-transformers, its vectors of all documents, and an algebra of query vectors.

A query is a *subspace*: one direction, or a plane of several directions for a disjunction. It is represented by vectors
that span it, the rows of an array. :func:`orthonormal` gives the basis that documents are compared with. Expressions
are composed bottom-up, with these approximations:

- An intersection is the sum of its operands, because two lines have only the zero vector in common. An operand that is
  a plane contributes the sum of its spanning vectors.
- A difference changes each spanning vector of its left side. ``orthogonal`` excludes the whole plane on the right,
  ``subtraction`` the sum of its vectors.

A model of late interaction has a vector for each token, and no subspaces: its scores are composed, as in reranking.

Source: Widdows 2003, Orthogonal Negation in Vector Spaces, Section 2; Widdows and Peters 2003, Word Vectors and Quantum
Logic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pyserini_compneg.baselines import DOT, DenseEncoder, LateInteraction, TokenIndex
from pyserini_compneg.compose import alternatives, conjunction, verbalised, without_differences
from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Intersection, Union, atoms
from pyserini_compneg.search import Hit
from pyserini_compneg.support.errors import InputError, QueryError
from pyserini_compneg.support.files import cache_home
from pyserini_compneg.support.progress import progress
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics import Topic

Vectors: TypeAlias = NDArray[np.float64]
"""Rows, (count, dimensions)."""

Encode: TypeAlias = Callable[[Sequence[str]], NDArray[Any]]
"""Gives the vectors of query texts, (texts, dimensions)."""

_DEPENDENT = 1e-5
"""The relative length below which a direction is a rounding error of encoders with 32-bit numbers. The limit of
:func:`pyserini_compneg.compose.difference.orthogonal`, whose terms have 64 bits, would keep these errors."""

_PART_DOCUMENTS = 4096
_REMEDY = "make room, or name another place in COMPNEG_CACHE"


def addition(spaces: Sequence[Vectors]) -> Vectors:
    """The sum of all vectors: one direction, between the operands' directions.

    >>> addition([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])])
    array([[1., 1.]])
    """
    return np.asarray(np.concatenate(spaces).sum(axis=0, keepdims=True))


def orthogonal(a: Vectors, negatives: Vectors) -> Vectors:
    """a minus its projection on the span of the negatives, Widdows, Eq. 1 for one negative and Eq. 2 for several.

    >>> orthogonal(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """
    basis = _basis(negatives)
    return _without_rounding(a - a @ basis.T @ basis, a)


def subtraction(a: Vectors, negatives: Vectors) -> Vectors:
    """a − Σ bᵢ.

    >>> subtraction(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0]]))
    array([[ 1., -1.]])
    """
    return _without_rounding(a - negatives.sum(axis=0), a)


def constant(a: Vectors, negatives: Vectors) -> Vectors:
    """a − 0.75 Σ bᵢ, Widdows' constant subtraction, Section 3.2, with the weight of Section 4.1."""
    return subtraction(a, 0.75 * negatives)


def ignore(a: Vectors, negatives: Vectors) -> Vectors:
    """a: the negatives are left out."""
    return a


def orthonormal(space: Vectors) -> Vectors:
    """An orthonormal basis of a space. A single direction keeps the sign of its first vector. A plane has no sign.

    >>> orthonormal(np.array([[-3.0, -4.0]]))
    array([[-0.6, -0.8]])
    """
    basis = _basis(space)
    return basis if len(basis) != 1 else basis * np.sign(space[0] @ basis[0])


def _without_rounding(difference: Vectors, before: Vectors) -> Vectors:
    """The vectors that are too long to be only rounding errors."""
    kept = np.linalg.norm(difference, axis=1) > _DEPENDENT * np.linalg.norm(before, axis=1)
    return np.asarray(difference[kept])


def _basis(vectors: Vectors) -> Vectors:
    """Orthonormal rows with the same span as the vectors, by singular values."""
    if not len(vectors):
        return vectors
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(directions[sizes > _DEPENDENT * sizes[0]])


_UNIONS: Mapping[str, Callable[[Sequence[Vectors]], Vectors]] = {
    "disjunction": np.concatenate,  # the linear sum {λ₁b₁ + … + λₙbₙ}: the smallest space that contains all operands
    "addition": addition,
}
_DIFFERENCES = {"orthogonal": orthogonal, "subtraction": subtraction, "constant": constant, "ignore": ignore}

OF_SCORES = {"union": "max", "intersection": "mean-min", "difference": "disentangled"}
"""The operators of late interaction; see :func:`~pyserini_compneg.baselines.composed_score`."""

DENSE_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "union": (*_UNIONS, OF_SCORES["union"], "vanilla"),
    "intersection": ("addition", OF_SCORES["intersection"], "vanilla"),
    "difference": (*_DIFFERENCES, OF_SCORES["difference"], "vanilla"),
}
"""The operators for each kind of node. The first is the default."""


def similarities(encoder: DenseEncoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The cosine, from -1 to 1, of the two texts of each pair, both encoded as queries.

    Between the wanted part and the excluded part of a query, this is the interference of Krasakis et al., Section 5.1.1
    and Figure 3, who use all-MiniLM-L6-v2.
    """
    spaces = _encoded([text for pair in pairs for text in pair], encoder.encode_queries)
    lines = {text: orthonormal(space) for text, space in spaces.items()}
    return [float(np.clip((lines[a] @ lines[b].T)[0, 0], -1.0, 1.0)) for a, b in pairs]


def _encoded(texts: Sequence[str], encode: Encode) -> dict[str, Vectors]:
    """The line, one row, of each text. Every distinct text is encoded once, all in one batch."""
    if not texts:
        return {}
    distinct = list(dict.fromkeys(texts))
    vectors = encode(distinct).astype(np.float64)
    return dict(zip(distinct, vectors[:, None, :], strict=True))


class VectorIndex:
    """The vectors of all documents in memory, 8 bytes a number, with the encoding and comparison of queries."""

    def __init__(self, docids: Sequence[str], vectors: Vectors, encode: Encode, similarity: str) -> None:
        self._docids, self._vectors, self.encode, self._similarity = docids, vectors, encode, similarity
        self._docid_ranks = np.argsort(sorted(range(len(docids)), key=docids.__getitem__))

    def search(self, subspaces: Sequence[Vectors], k: int) -> list[list[Hit]]:
        """Ranks all documents by their score for each orthonormal basis. A basis without rows finds nothing.

        For a line, c is its dot product with the document; for a plane, the length of the document's projection on it.
        Documents of length 1 score (1 + c) / 2, from 0 to 1, as in Lucene. With a model that uses the dot product,
        documents keep their lengths and score c. Scores are computed in 64 bits and rounded to 32, so documents with
        equal vectors are tied. Ties rank by ascending docid.
        """
        return [self._ranking(basis, k) if len(basis) else [] for basis in subspaces]

    def _ranking(self, basis: Vectors, k: int) -> list[Hit]:
        products = self._vectors @ basis.T
        similarity = products[:, 0] if len(basis) == 1 else np.linalg.norm(products, axis=1)
        is_dot = self._similarity == DOT
        scores = (similarity if is_dot else np.maximum((1 + similarity) / 2, 0)).astype(np.float32)
        best = np.lexsort((self._docid_ranks, -scores))[:k]
        return [Hit(self._docids[document], float(scores[document])) for document in best]


def dense_index(
    documents: Callable[[], Iterable[SourceDocument]], encoder: DenseEncoder | LateInteraction
) -> VectorIndex | TokenIndex:
    """The vectors of all documents by a model. They are kept in the cache, so they are encoded only once.

    ``documents`` is called twice, and must give the same order each time. The cache has a folder for each model and
    collection, with a ``.npy`` file of float32 (documents, dimensions) for every 4,096 documents. Each file is written
    atomically, so a killed process loses at most one file. Vectors of tokens, which are large, are not cached.
    """
    docids, digest = _docids_and_digest(documents())
    if isinstance(encoder, LateInteraction):
        return TokenIndex(docids, lambda: (document.text or "" for document in documents()), encoder)
    folder = cache_home() / "dense" / f"{encoder.model_hash}-{digest}"
    parts = [folder / f"{start:09d}.npy" for start in range(0, len(docids), _PART_DOCUMENTS)]
    if not all(part.exists() for part in parts):
        _encode_parts((document.text or "" for document in documents()), parts, len(docids), encoder)
    vectors = np.concatenate([np.load(part) for part in parts]).astype(np.float64)
    return VectorIndex(docids, vectors, encoder.encode_queries, encoder.similarity)


def _docids_and_digest(documents: Iterable[SourceDocument]) -> tuple[list[str], str]:
    """The ids, and a hash of ids and texts. Reads all documents before the first is encoded, to find faults early."""
    digest = hashlib.sha256()
    docids: dict[str, None] = {}
    for document in documents:
        if document.text is None:
            raise InputError("only a `vector`, where texts are encoded", where=document.source)
        if document.docid in docids:
            raise InputError(f"document id {document.docid!r} was given already", where=document.source)
        docids[document.docid] = None
        digest.update(json.dumps([document.docid, document.text]).encode())
    if not docids:
        raise InputError("there are no documents to encode")
    return list(docids), digest.hexdigest()[:16]


def _encode_parts(texts: Iterator[str], parts: Sequence[Path], documents: int, encoder: DenseEncoder) -> None:
    parts[0].parent.mkdir(parents=True, exist_ok=True)
    with progress(None, documents, " docs", "encoding") as bar:
        for part in parts:
            batch = list(islice(texts, _PART_DOCUMENTS))
            if not part.exists():
                vectors = encoder.encode_documents(batch)
                with atomic_writer(part, _REMEDY) as handle:
                    np.save(handle.buffer, vectors)
            bar.update(len(batch))


@dataclass(frozen=True, slots=True)
class DenseMethod:
    """Ranks all documents by their similarity to composed dense vectors, with an operator for each kind of node."""

    union: str = "disjunction"
    intersection: str = "addition"
    difference: str = "orthogonal"

    def __post_init__(self) -> None:
        for kind, choices in DENSE_OPERATORS.items():
            if (name := getattr(self, kind)) not in choices:
                raise QueryError(f"{kind} of dense vectors must be one of {', '.join(choices)}, got {name!r}")

    def search(
        self, index: Callable[[], VectorIndex | TokenIndex], topics: Sequence[Topic], k: int
    ) -> dict[str, list[Hit]]:
        """Composes the vectors of topics, then opens or makes the index and searches it. Topics are checked first."""
        for topic in topics:
            if topic.expression is None:
                raise InputError(f"query {topic.qid} is composed of terms already; dense vectors have no terms")
        opened, expressions = index(), [topic.expression for topic in topics if topic.expression]
        if isinstance(opened, TokenIndex):
            hits = opened.search(self._worded(expressions, by_scores=True), k)
        else:
            hits = opened.search(self.composed(expressions, opened.encode), k)
        return dict(zip([topic.qid for topic in topics], hits, strict=True))

    def composed(self, expressions: Sequence[Expression], encode: Encode) -> list[Vectors]:
        worded = self._worded(expressions, by_scores=False)
        spaces = _encoded([text for expression in worded for text in atoms(expression)], encode)
        return [orthonormal(self._composed(expression, spaces)) for expression in worded]

    def _worded(self, expressions: Sequence[Expression], by_scores: bool) -> list[Expression]:
        """The expressions without vanilla operators. Refuses what vectors, or scores of late interaction, cannot do."""
        worded = [verbalised(expression, self) for expression in expressions]
        for expression in worded:
            self._check(expression, by_scores)
        return list(map(without_differences, worded)) if by_scores and self.difference == "ignore" else worded

    def _check(self, expression: Expression, by_scores: bool) -> None:
        match expression:
            case Exclusion():
                raise InputError("dense vectors cannot leave documents out, as NOT! does; use NOT")
            case Intersection(strict=True):
                raise InputError("dense vectors cannot require every operand, as AND! does; use AND")
        kind = {Union: "union", Intersection: "intersection", Difference: "difference"}.get(type(expression))
        if kind and (name := getattr(self, kind)) != "ignore" and (name == OF_SCORES[kind]) != by_scores:
            made_for = "one vector for a text" if by_scores else "late interaction"
            raise QueryError(f"{kind} {name!r} is for models of {made_for}")
        for child in expression.children:
            self._check(child, by_scores)

    def _composed(self, expression: Expression, spaces: Mapping[str, Vectors]) -> Vectors:
        """The subspace of an expression without vanilla operators, from the subspaces of its atoms."""
        match expression:
            case Atom(text):
                return spaces[text]
            case Union():
                return _UNIONS[self.union]([self._composed(member, spaces) for member in alternatives(expression)])
        parts = conjunction(expression)
        kept = [self._composed(member, spaces) for member in parts.kept]
        positive = addition(kept) if len(kept) > 1 else kept[0]
        if not parts.excluded:
            return positive
        excluded = np.concatenate([self._composed(member, spaces) for member in parts.excluded])
        return _DIFFERENCES[self.difference](positive, excluded)
