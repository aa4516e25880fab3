"""The searcher: expressions in, exact rankings out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pyserini_compneg.compose import (
    Operators,
    Query,
    QueryEncoder,
    ScoringNode,
    compose_queries,
    query_line,
)
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.compose.queries import checked_queries
from pyserini_compneg.encode import query_encoder
from pyserini_compneg.encode.hybrid import split_name
from pyserini_compneg.encode.registry import RareTerms
from pyserini_compneg.expression.filters import as_filter
from pyserini_compneg.lucene import IndexReader, open_reader
from pyserini_compneg.search.explanation import Explanation, explained
from pyserini_compneg.search.lacking import LastBatch, lacking_operands
from pyserini_compneg.search.ranked_hits import (
    FilterLike,
    SearchRequest,
    check_pairs,
    checked_docids,
    checked_filters,
    query_name,
    ranked_hits,
    scored,
    warn_of_no_result,
)
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.settings import SearchSettings
from pyserini_compneg.support.arguments import checked_count, checked_list
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.progress import gathered_warnings
from pyserini_compneg.support.terminal import shown


@runtime_checkable
class Method(Protocol):
    """Another way to answer queries than by operators alone; :mod:`pyserini_compneg.baselines.methods` has them."""

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        """The k best documents for each query, by its id: higher scores first, equal ones by ascending docid."""
        ...


class SignedImpactSearcher:
    """Searches an impact index for composed queries, negative weights and conjunctions included, exactly.

    Shaped like Pyserini's ``LuceneImpactSearcher``. Close it, or use it as a context manager.

    Args:
        index_dir: An index of this package, whole or in shards, or of stock Anserini; the name of a prebuilt index,
            which is downloaded on first use; or an open reader, which the searcher closes.
        encoder: Encodes the atoms: ``bm25``, a model (a folder, or a name of the Hugging Face hub), ``bm25+MODEL``, a
            JSON Lines file of encoded atoms, or an object with ``encode_batch``. None takes the one that the index's
            manifest names.
        operators: The operators for union, intersection and difference; None for the defaults.
        **settings: The other fields of :class:`SearchSettings`, such as ``cpt`` and ``weight_scale``.

    Attributes:
        reader: The open index.
        settings: How queries are composed and encoded.

    Raises:
        IndexFormatError: There is no index, it has another encoder, or it lacks the pairs of ``materialised``.
        DownloadError: A prebuilt index cannot be downloaded.
        ArgumentError: A setting with an unknown value, or out of its range.

    Example:
        >>> searcher = SignedImpactSearcher("indexes/films")  # doctest: +SKIP
        >>> searcher.search("spy films NOT comedies", k=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        index_dir: str | Path | IndexReader,
        encoder: str | Path | QueryEncoder | None = None,
        operators: Operators | None = None,
        **settings: Any,
    ) -> None:
        self.settings = SearchSettings(chosen_operators(operators), **settings)
        self._given_encoder = encoder
        self._encoder: QueryEncoder | None = None
        self._last_batch: LastBatch | None = None
        self.reader = open_reader(index_dir) if isinstance(index_dir, (str, Path)) else index_dir
        try:
            check_pairs(self.reader, self.settings.cpt)
            if encoder is not None:
                self.encoder  # noqa: B018  # what cannot be loaded is known before the first search
        except BaseException:
            self.close()
            raise

    @property
    def operators(self) -> Operators:
        """The operators of queries that bring none of their own."""
        return self.settings.operators

    @property
    def weight_scale(self) -> float:
        """Query weights are round(w · weight_scale)."""
        return self.settings.weight_scale

    def __enter__(self) -> SignedImpactSearcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the index."""
        self.reader.close()

    def reopen(self) -> bool:
        """Turns to the index that is in the folder now, if it was replaced since; see :meth:`ImpactReader.reopen`.

        Until then a searcher finds what was in the index when it was opened. No other thread may search meanwhile.

        Returns:
            Whether it was replaced.

        Raises:
            IndexFormatError: What is there now is no index, or lacks the pairs of ``materialised``.
        """
        if not self.reader.reopen():
            return False
        self._encoder = self._last_batch = None  # a model is loaded again: the new index may have another one
        check_pairs(self.reader, self.settings.cpt)
        return True

    @property
    def num_docs(self) -> int:
        """Documents in the index."""
        return self.reader.document_count

    @property
    def encoder(self) -> QueryEncoder:
        """The encoder of the atoms. The one that the manifest names is loaded on first use."""
        if self._encoder is None:
            given = self._given_encoder
            if given is None or isinstance(given, (str, Path)):
                chosen = self.settings.model_options, self.settings.ablation, self.settings.model_weight
                given = query_encoder(None if given is None else str(given), self.reader, *chosen)
            least = self.settings.min_idf
            self._encoder = given if least is None else RareTerms(given, self.reader, least)
        return self._encoder

    @property
    def _encoding(self) -> LastBatch:
        if self._last_batch is None or self._last_batch.encoder is not self.encoder:
            self._last_batch = LastBatch(self.encoder)
        return self._last_batch

    def search(
        self,
        query: Query,
        k: int = 10,
        threads: int = 1,
        *,
        operators: Operators | None = None,
        filter: FilterLike = None,
        method: Method | None = None,
    ) -> list[Hit]:
        """The k best documents, fewer when fewer match; equal scores by ascending docid.

        Args:
            query: For example ``"birds of Colombia AND birds of Venezuela NOT parrots"``.
            k: Hits.
            threads: As for :meth:`batch_search`.
            operators: The operators for union, intersection and difference; None for the searcher's own.
            filter: The documents that may be found, such as ``{"genre": ["Comedy", "War"], "year": "1990..1999"}`` or
                ``{"id": [...]}``. Scores are those without a filter.
            method: Another way to answer the query, such as ``ScoreFusion()``, which brings its own operators.

        Raises:
            ArgumentError: A query or a filter of a wrong type, or a k that is not a whole number from 1.
            QueryError: A text that cannot be parsed as an expression.
            EncodingError: An atom that the encoder cannot encode.
            IndexFormatError: A filter field that the index does not have.
        """
        name = query_name(query)
        filter = as_filter(filter)
        return self.batch_search([query], [name], k, threads, operators=operators, filter=filter, method=method)[name]

    def batch_search(
        self,
        queries: Sequence[Query],
        qids: Sequence[str],
        k: int = 10,
        threads: int = 1,
        *,
        operators: Operators | None = None,
        filter: FilterLike | Sequence[FilterLike] = None,
        method: Method | None = None,
    ) -> dict[str, list[Hit]]:
        """As :meth:`search` for many queries, whose atoms are encoded together.

        Args:
            queries: The queries.
            qids: An id for each.
            k: Hits a query.
            threads: Queries searched at once. With fewer queries, the threads search parts of a large index.
            operators: As for :meth:`search`.
            filter: As for :meth:`search`, one for all queries; or a sequence with one for each.
            method: As for :meth:`search`.

        Returns:
            The hits of each query, in the order given.

        Raises:
            ArgumentError: Also ids that do not fit the queries, or threads that are not a whole number from 1.
        """
        queries, qids = checked_queries(queries), checked_list("qids", qids)
        if len(qids) != len(queries) or len(set(qids)) != len(qids):
            raise ArgumentError(f"{len(queries)} queries need as many distinct qids, got {len(set(qids))}")
        filters = checked_filters(filter, len(queries))
        if method is not None:
            if not isinstance(method, Method):
                raise ArgumentError(f"method must be an object such as ScoreFusion(), got {shown(method)}")
            if operators is not None:
                raise ArgumentError("a method brings its own operators; leave out operators, or method")
            counts = checked_count("k", k), checked_count("threads", threads)
            return method.answer(self, SearchRequest(queries, qids, *counts, filters))
        composed = self.compose(queries, operators)
        with gathered_warnings():
            rankings = ranked_hits(self.reader, composed, qids, k, threads, filters)
        warn_of_no_result(self.reader, qids, rankings, composed, filters)
        return dict(zip(qids, rankings, strict=True))

    def score(self, query: Query, docids: Sequence[str], *, operators: Operators | None = None) -> list[float | None]:
        """The scores of given documents, to the last bit those of a ranking of all documents.

        Args:
            query: As for :meth:`search`.
            docids: The documents, in any order.
            operators: As for :meth:`search`.

        Returns:
            A score for each; None for a document that the query does not match, and for one that the index does not
            have. A warning says how many the index does not have.
        """
        return self.batch_score([query], [docids], operators=operators)[0]

    def batch_score(
        self,
        queries: Sequence[Query],
        docids: Sequence[Sequence[str]],
        threads: int = 1,
        *,
        operators: Operators | None = None,
    ) -> list[list[float | None]]:
        """As :meth:`score` for many queries, each with documents of its own."""
        queries, docids = checked_docids(queries, docids)
        return scored(self.reader, self.compose(queries, operators), docids, checked_count("threads", threads))

    def lacking(
        self, query: Query, docids: Sequence[str], *, operators: Operators | None = None
    ) -> list[tuple[str, ...]]:
        """The operands of AND that given documents lack: AND finds such documents, too.

        A document has an operand if it has one of the ``cpt_terms`` heaviest terms that no other operand has, or one of
        its heaviest of all if there are none. Of the alternatives of OR, that one counts of which it lacks least.
        Operands that AND! requires are left out, as a document that is found has them.

        Args:
            query: As for :meth:`search`.
            docids: The documents, in any order.
            operators: As for :meth:`search`.

        Returns:
            For each document the operands, as expressions; none if the query is composed already.
        """
        return self.batch_lacking([query], [docids], operators=operators)[0]

    def batch_lacking(
        self,
        queries: Sequence[Query],
        docids: Sequence[Sequence[str]],
        threads: int = 1,
        *,
        operators: Operators | None = None,
    ) -> list[list[tuple[str, ...]]]:
        """As :meth:`lacking` for many queries, each with documents of its own."""
        queries, docids = checked_docids(queries, docids)
        chosen = chosen_operators(operators, self.operators)
        if all(isinstance(query, ScoringNode) for query in queries):
            return [[()] * len(group) for group in docids]
        return lacking_operands(self.reader, self._encoding, chosen, queries, docids, threads)

    def compose(self, queries: Sequence[Query], operators: Operators | None = None) -> list[ScoringNode]:
        """The scoring tree of each query, as it will be searched.

        Args:
            queries: The queries.
            operators: The operators for union, intersection and difference; None for the searcher's own.

        Raises:
            ArgumentError: Not a list, or a query of a wrong type.
        """
        queries = checked_queries(queries)
        chosen = chosen_operators(operators, self.operators)
        composed = all(isinstance(query, ScoringNode) for query in queries)
        return compose_queries(
            queries,
            None if composed else self._encoding,
            chosen,
            cpt=self.settings.cpt,
            signed=self.reader.manifest is not None and self.reader.manifest.signed,
            weight_scale=self.weight_scale,
            top_scores=self._top_scores,
        )

    def _top_scores(self, nodes: Sequence[ScoringNode], k: int, threads: int = 1) -> list[Sequence[float]]:
        return [ranking.scores for ranking in self.reader.search(list(map(query_line, nodes)), k, threads)]

    def best_scores(self, nodes: Sequence[ScoringNode], threads: int = 1) -> list[float]:
        """The best score that each composed query has in the index; 0 where nothing matches."""
        found = self._top_scores(checked_list("nodes", nodes), 1, threads)
        return [scores[0] if scores else 0.0 for scores in found]

    def unit(self, query: Query) -> float:
        """What scores are divided by to be in the encoder's unit: the scale of impacts times that of query weights.

        Composed queries keep their weights, and an index that stock Anserini built does not say its scale: these are 1.
        """
        impact_scale = self.reader.manifest.impact_scale if self.reader.manifest else 1.0
        return impact_scale if isinstance(query, ScoringNode) else impact_scale * self.weight_scale

    @property
    def is_hybrid(self) -> bool:
        """Whether the index is one of ``bm25+MODEL``, with terms of two spaces."""
        return self.reader.manifest is not None and split_name(self.reader.manifest.encoder)[0]

    def explain(
        self, query: Query, docid: str, *, operators: Operators | None = None, filter: FilterLike = None
    ) -> Explanation:
        """Explains the score of a document by signed contributions of terms and pairs, which add up to it.

        Args:
            query: As for :meth:`search`.
            docid: The document.
            operators: As for :meth:`search`.
            filter: As for :meth:`search`.

        Raises:
            ArgumentError: A docid that is not text.
            InputError: The index has no such document.
        """
        (node,) = self.compose([query], operators)
        return explained(self.reader, node, docid, as_filter(filter))

    def doc(self, docid: str) -> Mapping[str, object] | None:
        """The stored source of a document; None if it was not stored, or is no JSON object."""
        try:
            source = json.loads(self.reader.raw(docid) or "null")
        except (ValueError, RecursionError):  # an index of stock Anserini may hold any text
            return None
        return source if isinstance(source, dict) else None

    def title(self, docid: str) -> str | None:
        """The ``title`` of a document's stored source, if there is one."""
        title = (self.doc(docid) or {}).get("title")
        return title if isinstance(title, str) and title else None
