"""Pyserini: its impact searcher with every operator, and an encoder of composed queries.

Import this module before any module of Pyserini, so that it starts a Java that is recent enough for Anserini.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pyserini_compneg.compose import WEIGHT_SCALE, Max, Operators, Product, Query, query_text
from pyserini_compneg.compose import QueryEncoder as AtomEncoder
from pyserini_compneg.compose.adapting import FACTORED
from pyserini_compneg.lucene import java_class, resolve_index
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.search.request import FilterLike, query_name
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError, QueryError
from pyserini_compneg.topics.token_form import stock_obstacle, whole_weights

java_class("io.compneg.search.SignedSearcher")  # Pyserini itself would start any Java

try:
    from pyserini.encode import QueryEncoder
    from pyserini.search.lucene import LuceneImpactSearcher
except ModuleNotFoundError as error:  # Pyserini was installed without its dependencies, or not at all
    remedy = "pip install -c constraints.txt -e '.[pyserini]' in the checkout"
    raise ImportError(f"Pyserini's modules need {error.name}: {remedy}") from None

_REMEDIES = {
    Product: "give cpt='materialised' for an index that holds pairs, or Operators(intersection='maxpool')",
    Max: "give Operators(union='maxpool')",
}
_OURS = "search with SignedLuceneImpactSearcher of pyserini_compneg.integrations.pyserini, or with SearchCollection "
_OURS += "-generator ComposedQueryGenerator"


class ComposedQueryEncoder(QueryEncoder):
    """Composes expressions for an impact searcher of Pyserini.

    ``LuceneImpactSearcher`` takes only positive whole weights, and leaves out terms that every document has.
    :class:`SignedLuceneImpactSearcher` takes every query, and leaves out no terms. The arguments are those of
    :class:`SignedImpactSearcher`; ``encoder`` may also be a ``QueryEncoder`` of Pyserini. Pyserini's encoders give
    whole weights, so for them the default ``weight_scale`` is 1.
    """

    def __init__(
        self,
        index_dir: str | Path,
        encoder: str | Path | AtomEncoder | QueryEncoder | None = None,
        operators: Operators | None = None,
        cpt: str = FACTORED,
        weight_scale: float | None = None,
        min_idf: float | None = None,
        language: str | None = None,
    ) -> None:
        super().__init__()
        if isinstance(encoder, QueryEncoder):
            encoder, weight_scale = _Atoms(encoder), weight_scale or 1.0
        scale = weight_scale or WEIGHT_SCALE
        self.searcher = SignedImpactSearcher(
            index_dir, encoder, operators, cpt=cpt, weight_scale=scale, min_idf=min_idf, language=language
        )

    def encode(self, text: Query, **_: object) -> dict[str, int]:
        """The weights of the terms of an expression.

        If ``LuceneImpactSearcher`` cannot run the query, the error names a searcher that can.
        """
        (node,) = self.searcher.compose([text])
        if (obstacle := stock_obstacle(node)) is not None:
            kind, what = obstacle
            remedy = f"{_REMEDIES[kind]}; or {_OURS}" if kind else _OURS
            raise QueryError(f"query {query_text(text)!r}: LuceneImpactSearcher cannot run {what}; {remedy}")
        return whole_weights(node)


class SignedLuceneImpactSearcher(LuceneImpactSearcher):
    """``LuceneImpactSearcher``, for queries with every operator.

    By default no term is left out of a query. ``LuceneImpactSearcher`` leaves out terms that every document has: with
    ``min_idf=0``, a query without operators has the same hits and scores. Composed queries take no feedback and no
    fields.

    The arguments are those of ``LuceneImpactSearcher``. ``query_encoder`` encodes the atoms of queries; a
    :class:`ComposedQueryEncoder` also chooses the operators and ``min_idf``. ``index_dir`` may name a prebuilt index.
    ``signed`` is the :class:`SignedImpactSearcher` in use.

    Example:
        >>> encoder = SpladeQueryEncoder("naver/splade-v3")  # doctest: +SKIP
        >>> searcher = SignedLuceneImpactSearcher("indexes/films", encoder)  # doctest: +SKIP
        >>> searcher.search("spy films NOT comedies", k=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        index_dir: str | Path,
        query_encoder: QueryEncoder | str | None,
        min_idf: float | None = None,
        encoder_type: str = "pytorch",
        prebuilt_index_name: str | None = None,
    ) -> None:
        folder = resolve_index(index_dir)
        composer = query_encoder if isinstance(query_encoder, ComposedQueryEncoder) else None
        if composer and not composer.searcher.reader.folder.samefile(folder):
            made = composer.searcher.reader.folder
            raise IndexFormatError(f"{folder}: the encoder composes queries for {made}; make one for this index")
        if composer and min_idf is not None:
            raise ArgumentError("ComposedQueryEncoder composes the queries, so give min_idf to it, not to the searcher")
        super().__init__(os.path.abspath(folder), query_encoder, min_idf or 0, encoder_type, prebuilt_index_name)
        self.min_idf = min_idf
        if self.query_encoder is None:
            named = f"Pyserini knows no encoder {query_encoder!r}"
            raise EncodingError(f"{named}; for one of this package give ComposedQueryEncoder(index, encoder)")
        stock_idf = min_idf if encoder_type == "pytorch" else None  # Pyserini leaves out no terms of encoders in Java
        composer = composer or ComposedQueryEncoder(folder, _Atoms(self), weight_scale=1, min_idf=stock_idf)
        self.signed = composer.searcher

    @classmethod
    def from_prebuilt_index(
        cls,
        prebuilt_index_name: str,
        query_encoder: QueryEncoder | str | None,
        min_idf: float | None = None,
        encoder_type: str = "pytorch",
    ) -> SignedLuceneImpactSearcher:
        """A searcher of an index in Pyserini's list. The index is downloaded on first use."""
        made: SignedLuceneImpactSearcher = super().from_prebuilt_index(
            prebuilt_index_name, query_encoder, min_idf, encoder_type
        )
        return made

    def search(
        self,
        q: Query,
        k: int = 10,
        fields: Mapping[str, float] | None = None,
        *,
        filter: FilterLike = None,
        read: str | Path = "expression",
    ) -> list[SignedHit]:
        """The k best documents for a query such as ``"spy films NOT comedies"``.

        ``fields`` must be None. ``filter`` and ``read`` work as in :meth:`SignedImpactSearcher.search`.
        """
        name = query_name(q)
        return self.batch_search([q], [name], k, 1, fields, filter=filter, read=read)[name]

    def batch_search(
        self,
        queries: Sequence[Query],
        qids: Sequence[str],
        k: int = 10,
        threads: int = 1,
        fields: Mapping[str, float] | None = None,
        *,
        filter: FilterLike | Sequence[FilterLike] = None,
        read: str | Path = "expression",
    ) -> dict[str, list[SignedHit]]:
        """Works like :meth:`search`, for many queries."""
        if fields or self.is_using_rm3() or self.is_using_rocchio():
            what = "fields" if fields else "feedback"
            raise QueryError(f"composed queries take no {what}; search without, or with LuceneImpactSearcher")
        found = self.signed.batch_search(queries, qids, k, threads, filter=filter, read=read)
        return {qid: [SignedHit(hit, self.object) for hit in hits] for qid, hits in found.items()}

    def close(self) -> None:
        self.signed.close()
        super().close()


class SignedHit:
    """A hit, with the attributes of Anserini's hits. Attributes from the index are looked up on use."""

    def __init__(self, hit: Hit, searcher: Any) -> None:
        self.docid, self.score = hit
        self._searcher = searcher

    @cached_property
    def lucene_document(self) -> Any:
        return self._searcher.doc(self.docid)

    @cached_property
    def lucene_docid(self) -> int:
        utils = java_class("io.anserini.index.IndexReaderUtils")
        return int(utils.convertDocidToLuceneDocid(self._searcher.reader, self.docid))

    @property
    def raw(self) -> str | None:
        """The stored source, or None."""
        source: str | None = self.lucene_document.get("raw")
        return source

    def __repr__(self) -> str:
        return f"SignedHit(docid={self.docid!r}, score={self.score!r})"


class _Atoms:
    """An encoder of Pyserini, or a searcher with an encoder, with this package's interface."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def encode_batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        encoded = map(self._encoder.encode, checked_list("texts", texts))
        return [{term: vector[term] for term in vector} for vector in encoded]  # also for Java maps
