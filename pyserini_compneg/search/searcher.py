"""The searcher: finds the exact best documents for expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pyserini_compneg.compose import Operators, Query, QueryEncoder, ScoringNode, compose_queries
from pyserini_compneg.compose.operators import chosen_operators
from pyserini_compneg.compose.queries import ParsedQuery, checked_queries, parsed_queries, parsed_query
from pyserini_compneg.compose.words import EncodedOnce
from pyserini_compneg.documents.passages import Passage, stored_passage
from pyserini_compneg.encode.hybrid import split_name
from pyserini_compneg.encode.query_encoders import index_language
from pyserini_compneg.expression.filters import as_filter
from pyserini_compneg.lucene import Reader, open_reader
from pyserini_compneg.lucene.passage_reader import by_document
from pyserini_compneg.lucene.requests import EMPTY
from pyserini_compneg.search.answer import Answer, composed_answers, found_answers
from pyserini_compneg.search.explanation import Explanation, explained
from pyserini_compneg.search.lacking import lacking_operands
from pyserini_compneg.search.matches import Counting, Matches, count_matches
from pyserini_compneg.search.ranked_hits import check_pairs, checked_docids, scored, warn_of_lacking_pairs
from pyserini_compneg.search.request import FilterLike, SearchRequest, check_method, query_name
from pyserini_compneg.search.run_writer import Hit, PassageHit
from pyserini_compneg.search.settings import SearchSettings
from pyserini_compneg.support.arguments import checked_count, checked_list
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.json_objects import id_text, stored_object
from pyserini_compneg.support.progress import stage
from pyserini_compneg.support.terminal import shown


class Method(Protocol):
    """A way to answer queries, besides operators. :mod:`pyserini_compneg.baselines.methods` has the methods."""

    def answer(self, searcher: SignedImpactSearcher, request: SearchRequest) -> dict[str, list[Hit]]:
        """The k best documents of each query, by its id: higher scores first, equal scores by ascending docid."""
        ...


class SignedImpactSearcher:
    """Searches an impact index exactly for composed queries, including negative weights and conjunctions.

    It has the interface of Pyserini's ``LuceneImpactSearcher``. Close it, or use it as a context manager.

    Args:
        index_dir: An index of this package, whole or in shards, or of stock Anserini; the name of a prebuilt index,
            which is downloaded on first use; or an open reader, which the searcher closes.
        encoder: Encodes the atoms: ``bm25``, a model (a folder, or a name of the Hugging Face hub), ``bm25+MODEL``, a
            JSON Lines file of encoded atoms, or an object with ``encode_batch``. None takes the encoder that the
            index's manifest names.
        operators: The operators for union, intersection and difference; None for the defaults.
        **settings: The other fields of :class:`SearchSettings`, such as ``cpt`` and ``weight_scale``.

    Attributes:
        reader: The open index.
        settings: The settings for composing and encoding queries.

    Raises:
        IndexFormatError: There is no index, it has another encoder, or it lacks the pairs of ``materialised``.
        DownloadError: A prebuilt index cannot be downloaded.
        ArgumentError: A setting has an unknown value or is out of its range.

    Example:
        >>> searcher = SignedImpactSearcher("indexes/films")  # doctest: +SKIP
        >>> searcher.search("spy films NOT comedies", k=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        index_dir: str | Path | Reader,
        encoder: str | Path | QueryEncoder | None = None,
        operators: Operators | None = None,
        **settings: Any,
    ) -> None:
        self.settings = SearchSettings(chosen_operators(operators), **settings)
        self._given_index, self._given_encoder = index_dir, encoder
        self._encoder: QueryEncoder | None = None
        self.reader = by_document(open_reader(index_dir) if isinstance(index_dir, (str, Path)) else index_dir)
        try:
            check_pairs(self.reader, self.settings.cpt)
            if encoder is not None:
                self.encoder  # noqa: B018  # loading errors are raised before the first search
        except BaseException:
            self.close()
            raise

    @property
    def operators(self) -> Operators:
        """The operators of queries without their own operators."""
        return self.settings.operators

    @property
    def weight_scale(self) -> float:
        """The scale of query weights, which are round(w · weight_scale)."""
        return self.settings.weight_scale

    def __enter__(self) -> SignedImpactSearcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return self.settings.opener(type(self), self._given_index, self.reader, self._given_encoder), ()

    def close(self) -> None:
        """Closes the index."""
        self.reader.close()

    def reopen(self) -> bool:
        """Opens the index that is now in the folder, if the open index was replaced, and returns whether it was.

        Until then, the searcher continues with the index that it opened. No other thread may search during this call.

        Raises:
            IndexFormatError: The folder no longer holds an index, or the new index lacks the pairs of ``materialised``.
        """
        if not self.reader.reopen():
            return False
        self.reader = by_document(self.reader)  # the new index may have passages, or none any more
        self._encoder = None  # the new index may have another model
        check_pairs(self.reader, self.settings.cpt)
        return True

    @property
    def num_docs(self) -> int:
        """The number of documents in the index."""
        return self.reader.document_count

    @property
    def encoder(self) -> QueryEncoder:
        """The encoder of the atoms. An encoder that the manifest names is loaded on first use."""
        if self._encoder is None:
            self._encoder = self.settings.encoder(self._given_encoder, self.reader)
        return self._encoder

    def search(
        self,
        query: Query,
        k: int = 10,
        threads: int = 1,
        *,
        operators: Operators | None = None,
        filter: FilterLike = None,
        method: Method | None = None,
        after: Hit | None = None,
        read: str | Path = "expression",
        sort: str | None = None,
    ) -> list[Hit]:
        """The k best documents, or fewer if fewer match. Equal scores rank by ascending docid.

        Args:
            query: For example ``"birds of Colombia AND birds of Venezuela NOT parrots"``; ``*`` finds all documents.
            k: The number of hits.
            threads: See :meth:`batch_search`.
            operators: The operators for union, intersection and difference; None for the searcher's own.
            filter: The documents that may be found, such as ``{"genre": ["Comedy", "War"], "year": "1990..1999"}`` or
                ``{"id": [...]}``. The filter does not change scores.
            method: A method to answer the query, such as ``ScoreFusion()``, instead of operators.
            after: The last hit of the page before, to get the page behind it. Without a method only.
            read: How a text is read: ``expression``, ``plain`` (as one atom), ``model``, ``llm``, or the folder of a
                reader, as with ``--read``.
            sort: A filter field by which hits are ordered in place of their scores, such as ``year`` or ``year:desc``.
                Without a method only.

        Raises:
            ArgumentError: An argument has a wrong type, k is below 1, or ``model`` is to read other texts than English.
            QueryError: The text is an expression with a fault, or there is no such way to read texts.
            EncodingError: The encoder cannot encode an atom.
            IndexFormatError: The index does not have a filter field.
        """
        (query,) = checked_queries([query])
        request = SearchRequest(
            queries=[query],
            qids=[query_name(query)],
            k=k,
            threads=threads,
            operators=operators,
            filter=as_filter(filter),
            after=[after],
            read=read,
            sort=sort,
        )
        (answer,) = self.answers(request, method)
        return list(answer.hits)

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
        after: Sequence[Hit | None] = (),
        remove_query: bool = False,
        read: str | Path = "expression",
    ) -> dict[str, list[Hit]]:
        """Works like :meth:`search` for many queries, whose atoms are encoded together. Hits are in their order.

        Args:
            queries: The queries.
            qids: The id of each query.
            k: The number of hits for each query.
            threads: How many queries are searched at once. With fewer queries, the threads search parts of a large
                index.
            operators: See :meth:`search`.
            filter: See :meth:`search`; one filter for all queries, or a sequence with one filter for each.
            method: See :meth:`search`.
            after: See :meth:`search`; a hit or None for each query.
            remove_query: Whether to leave out the document that has the id of the query. There are still k hits.
            read: See :meth:`search`; one value for all texts.

        Raises:
            ArgumentError: See :meth:`search`; also, the ids do not fit the queries, or threads is below 1.
        """
        request = SearchRequest(
            queries=queries,
            qids=checked_list("qids", qids),
            k=k,
            threads=threads,
            operators=operators,
            filter=filter,
            after=after,
            remove_query=remove_query,
            read=read,
        )
        return {answer.qid: list(answer.hits) for answer in self.answers(request, method)}

    def answers(self, request: SearchRequest, method: Method | None = None) -> list[Answer]:
        """The answers to the queries of a request, in their order: hits, and what else the request asks for.

        The answers of a ``method``, see :meth:`search`, have no ``lacks`` and no ``matches``.

        Raises:
            ArgumentError: A method cannot have operators and ``after`` beside it. For others, see :meth:`search`.

        Example:
            >>> request = SearchRequest(queries=["Swiss AND goat"], k=3, lacks=True)
            >>> searcher.answers(request)  # doctest: +SKIP
        """
        if not isinstance(request, SearchRequest):
            raise ArgumentError(f"answers takes a SearchRequest, got {shown(request)}")
        queries = request.parsed(self.language)
        if method is not None:
            request = replace(request, queries=queries)
            check_method(method, request)
            return found_answers(request, method.answer(self, replace(request, k=request.depth, offset=0)))
        operators = chosen_operators(request.operators, self.operators)
        encoder = self._encoder_of(queries)
        if request.lacks and encoder is not None:
            encoder = EncodedOnce(encoder)
        with stage("compose"):
            nodes = self._composed(queries, operators, encoder)
        return composed_answers(self.reader, request, queries, nodes, encoder, operators)

    def matches(
        self,
        query: Query,
        *,
        facets: Mapping[str, int] = EMPTY,
        total: str = "exact",
        threads: int = 1,
        operators: Operators | None = None,
        filter: FilterLike = None,
    ) -> Matches:
        """Counts the documents that match a query: those that :meth:`search` with an unlimited k would find.

        Args:
            query: See :meth:`search`.
            facets: Filter fields whose values are counted in the matching documents, each with the number of values to
                give: the most frequent ones, equal counts by value.
            total: ``exact``, or ``bound`` for a lower bound if counting would take more than about a millisecond.
            threads: With more threads, parts of a large index are counted at once.
            operators: See :meth:`search`.
            filter: See :meth:`search`.
        """
        (node,) = self.compose([query], operators)
        counting, threads = Counting(total, facets), checked_count("threads", threads)
        return count_matches(self.reader, node, as_filter(filter), counting, threads)

    def score(self, query: Query, docids: Sequence[str], *, operators: Operators | None = None) -> list[float | None]:
        """The scores of given documents. They equal the scores in a ranking of all documents to the last bit.

        Args:
            query: See :meth:`search`.
            docids: The documents, in any order.
            operators: See :meth:`search`.

        Returns:
            The score of each document; None if the query does not match the document or the index does not have it. A
            warning counts the documents that the index does not have.
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
        """Works like :meth:`score` for many queries, each with its own documents."""
        queries, docids = checked_docids(queries, docids)
        return scored(self.reader, self.compose(queries, operators), docids, checked_count("threads", threads))

    def lacking(
        self, query: Query, docids: Sequence[str], *, operators: Operators | None = None
    ) -> list[tuple[str, ...]]:
        """The operands of AND that given documents lack. AND also finds documents that lack some operands.

        A document lacks an operand if it has none of the ``cpt_terms`` heaviest words that no other operand has, or, if
        there are none, of all its words. With OR, the alternative of which it lacks least counts. No hit lacks an
        operand of AND!.

        Args:
            query: See :meth:`search`.
            docids: The documents, in any order.
            operators: See :meth:`search`.

        Returns:
            For each document the operands that it lacks, as expressions; empty for a composed query.
        """
        (query,), groups = checked_docids([query], [docids])
        parsed = parsed_query(query)
        if parsed.expression is None:
            return [()] * len(groups[0])
        chosen = chosen_operators(operators, self.operators)
        return lacking_operands(self.reader, self.encoder, chosen, [parsed], groups)[0]

    def compose(self, queries: Sequence[Query], operators: Operators | None = None) -> list[ScoringNode]:
        """The scoring tree of each query, as it is searched. Without operators, the searcher's own apply."""
        parsed = parsed_queries(queries)
        return self._composed(parsed, chosen_operators(operators, self.operators), self._encoder_of(parsed))

    def _encoder_of(self, queries: Sequence[ParsedQuery]) -> QueryEncoder | None:
        """The encoder of queries; None if all are composed, so that none needs to be loaded."""
        return None if all(query.expression is None for query in queries) else self.encoder

    def _composed(
        self, queries: Sequence[ParsedQuery], operators: Operators, encoder: QueryEncoder | None
    ) -> list[ScoringNode]:
        manifest = self.reader.manifest
        nodes = compose_queries(
            queries,
            encoder,
            operators,
            cpt=self.settings.cpt,
            signed=manifest is not None and manifest.signed,
            weight_scale=self.weight_scale,
            top_scores=self.reader.top_scores,
            pair_scale=manifest.pair_scale if manifest is not None else 1,
        )
        warn_of_lacking_pairs(self.reader, queries, nodes)
        return nodes

    def unit(self, query: Query) -> float:
        """The number to divide scores by for the encoder's unit: the scale of impacts times the scale of query weights.

        Composed queries keep their weights, and an index of stock Anserini does not record its scale: both are 1.
        """
        impact_scale = self.reader.manifest.impact_scale if self.reader.manifest else 1.0
        is_composed = not isinstance(query, str) and parsed_query(query).expression is None
        return impact_scale if is_composed else impact_scale * self.weight_scale

    @property
    def language(self) -> str:
        """The language in which ``bm25`` analyses texts: the index's, or the searcher's setting; ``en`` by default."""
        return index_language(self.reader, self.settings.language)

    @property
    def is_hybrid(self) -> bool:
        """Whether the index is a ``bm25+MODEL`` index, with terms of two spaces."""
        return self.reader.manifest is not None and split_name(self.reader.manifest.encoder)[0]

    def explain(
        self, query: Query, docid: str, *, operators: Operators | None = None, filter: FilterLike = None
    ) -> Explanation:
        """Explains the score of a document by signed contributions of terms and pairs, which add up to the score.

        The other arguments are those of :meth:`search`.

        Raises:
            ArgumentError: The docid is not a text.
            InputError: The index has no such document.
        """
        (node,) = self.compose([query], operators)
        return explained(self.reader, node, docid, as_filter(filter))

    def doc(self, docid: str) -> Mapping[str, object] | None:
        """The stored source of a document; None if it was not stored or is not a JSON object."""
        return stored_object(self.reader.raw(id_text(docid)))

    def passage(self, hit: Hit, source: object = None) -> Passage | None:
        """The passage by which a document was found, with its text in ``source``, the stored one.

        None if the index has no passages or no sources.
        """
        if not isinstance(hit, PassageHit) or self.reader.manifest is None:
            return None
        source = self.doc(hit.docid) if source is None else source
        return stored_passage(source, hit.passage, self.reader.manifest.passages) if isinstance(source, dict) else None

    def title(self, docid: str) -> str | None:
        """The ``title`` of a document's stored source, if there is one."""
        title = (self.doc(docid) or {}).get("title")
        return title if isinstance(title, str) and title else None
