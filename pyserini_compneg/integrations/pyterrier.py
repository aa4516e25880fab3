"""PyTerrier: an index, its indexer and retriever, and transformers that decompose and explain queries.

Importing this module does not start Java. If Terrier is used, call ``pt.java.init()`` first, so both share one Java.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_compneg.compose import Operators, Query, QueryEncoder, adapted, from_json, query_text
from pyserini_compneg.compose.queries import parsed_queries
from pyserini_compneg.encode import BM25
from pyserini_compneg.expression.filters import narrowed
from pyserini_compneg.index import build_index
from pyserini_compneg.integrations.hosts import require
from pyserini_compneg.lucene.gate import configure_machine
from pyserini_compneg.reading import decompose
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.request import FilterLike
from pyserini_compneg.search.run_writer import printed_scores
from pyserini_compneg.search.settings import check_pickled
from pyserini_compneg.support.errors import CompNegError, JvmError
from pyserini_compneg.support.staging import atomic_writer

require("pyterrier", "1.1")

import pandas as pd  # noqa: E402
import pyterrier as pt  # noqa: E402

_QUERIES = ("query_tree", "query_toks", "query")
"""The columns with queries. If a frame has several, the first in this list counts."""


class CompNegIndex(pt.Artifact, pt.Indexer):
    """The folder of an index of this package or of stock Anserini, as an artifact.

    ``encoder`` encodes the atoms of queries, and ``language`` is the language of an index of stock Anserini, as for
    :class:`SignedImpactSearcher`.

    Example:
        >>> index = CompNegIndex("indexes/films").index([{"docno": "d1", "text": "a spy film"}])  # doctest: +SKIP
        >>> (index.retriever() % 10).search("spy films NOT comedies")  # doctest: +SKIP
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "compneg"

    def __init__(
        self, path: str | Path, encoder: str | QueryEncoder | None = None, language: str | None = None
    ) -> None:
        super().__init__(path)
        self.encoder, self.language = encoder, language
        self._searcher: SignedImpactSearcher | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process opens the index by itself."""
        check_pickled(self.encoder)
        return {**self.__dict__, "path": self.path.absolute(), "_searcher": None}

    @property
    def searcher(self) -> SignedImpactSearcher:
        """The searcher of the index. It is opened on first use, and again if the index was replaced."""
        if self._searcher is None:
            self._searcher = SignedImpactSearcher(self.path, self.encoder, language=self.language)
        self._searcher.reopen()
        return self._searcher

    def indexer(self, encoder: str = BM25, **options: Any) -> CompNegIndexer:
        """The indexer of :class:`CompNegIndexer`, with its options."""
        return CompNegIndexer(self, encoder, **options)

    def retriever(self, *arguments: Any, **options: Any) -> CompNegRetriever:
        """The retriever of :class:`CompNegRetriever`, with its arguments."""
        return CompNegRetriever(self, *arguments, **options)

    def index(self, iter: Iterable[Mapping[str, Any]], **_: Any) -> CompNegIndex:
        """Builds the index with BM25."""
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        return self.indexer().index_inputs()


class CompNegIndexer(pt.Indexer):
    """Builds an index of texts (``docno``, ``text``, perhaps ``title``) or of vectors (``docno``, ``toks``).

    Weights in ``toks`` are not scaled by 100, unless ``impact_scale=100`` is given: impact = round(weight ·
    impact_scale). ``encoder`` encodes the texts, or names the encoder that made the ``toks``. The options are the
    options of :func:`build_index`, such as ``impact_scale``, ``store_raw`` and ``existing``.
    """

    def __init__(self, index: CompNegIndex, encoder: str = BM25, **options: Any) -> None:
        self._index, self.encoder, self._options = index, encoder, options

    def index_inputs(self) -> list[list[str]]:
        """The columns that documents must have: one of two lists."""
        return [["docno", "toks"], ["docno", "text"]]

    def index(self, iter: Iterable[Mapping[str, Any]], **_: Any) -> CompNegIndex:
        """Builds the index. All documents must have the columns of the first document."""
        documents = pt.utils.peekable(iter)
        with pt.validate.any_iter(documents) as found:
            for columns in self.index_inputs():
                found.columns(includes=columns, mode=columns[1])
        if found.mode == "toks" and self.encoder == BM25:
            raise ValueError("toks are not of bm25; name what made them: indexer('splade', impact_scale=100)")
        fields = {name: name for name in self._options.get("filter_fields", ())}
        fields |= {
            "docno": "id",
            **({"toks": "vector"} if found.mode == "toks" else {"title": "title", "text": "text"}),
        }
        records = ({name: document[key] for key, name in fields.items() if key in document} for document in documents)
        build_index(records, self._index.path, self.encoder, **self._options)
        with atomic_writer(self._index.path / "pt_meta.json") as file:
            json.dump(self._index._build_metadata(), file)
        return self._index


@dataclass(eq=False, repr=False)
class CompNegRetriever(pt.Transformer):
    """Searches ``query_tree`` (from :class:`Decompose`, or a composed query), ``query_toks`` or ``query``.

    Weights of ``query_toks`` may be negative, and are not scaled. A ``query`` is an expression, unless ``read`` says
    otherwise. A column ``filter`` of a frame adds a filter for each query. The other arguments are those of
    :class:`SignedImpactSearcher` and its ``batch_search``.
    """

    index: CompNegIndex
    num_results: int = 1000
    operators: Operators | None = None
    threads: int = 1
    filter: FilterLike = None
    read: str | Path = "expression"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The best documents of each query: ``docno``, ``score`` and ``rank`` beside the columns of the query.

        Equal scores are separated by a millionth, as in run files, because measures ignore ranks.
        """
        with pt.validate.any(inp, context=self) as found:
            for column in _QUERIES:
                found.query_frame(extra_columns=[column], mode=column)
        if inp.empty:
            return pd.DataFrame(columns=[*inp.columns, "docno", "score", "rank"])
        if (twice := inp["qid"].duplicated()).any():
            raise ValueError(f"qid {inp['qid'][twice].iloc[0]!r} is given twice; give each query one row")
        queries, qids = _queries(inp, found.mode, self.index, self.read), list(inp["qid"].astype(str))
        own = inp["filter"] if "filter" in inp else [None] * len(inp)
        filter = [narrowed(self.filter, _given(one)) for one in own]
        rankings = self.index.searcher.batch_search(
            queries, qids, self.num_results, self.threads, operators=self.operators, filter=filter
        )
        rows = [
            (at, hit.docid, score, rank)
            for at, qid in enumerate(qids)
            for rank, (hit, score) in enumerate(zip(rankings[qid], printed_scores(rankings[qid]), strict=True))
        ]
        of_query, docnos, scores, ranks = zip(*rows, strict=True) if rows else ((),) * 4
        asked = inp.iloc[list(of_query)].reset_index(drop=True)
        return asked.assign(docno=list(docnos), score=list(scores), rank=list(ranks))

    def fuse_rank_cutoff(self, k: int) -> CompNegRetriever | None:
        """``retriever % k``, when compiled, searches for k documents."""
        return replace(self, num_results=k) if k < self.num_results else None


@dataclass(eq=False, repr=False)
class Decompose(pt.Transformer):
    """Decomposes the plain text in ``query`` into an expression: ``query_tree``, and ``query`` as text for people.

    By default the package's small model reads the text.
    """

    read: Callable[[str], Query] = decompose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The frame with the decompositions. ``query_0`` has the original texts."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        trees = [self.read(text) for text in inp["query"]]
        return pt.model.push_queries(inp).assign(query=[query_text(tree) for tree in trees], query_tree=trees)


@dataclass(eq=False, repr=False)
class Explain(pt.Transformer):
    """Adds to each hit ``explanation``, a dictionary with the contribution of each term to the score, largest first.

    The index and the operators must be the retriever's.
    """

    index: CompNegIndex
    operators: Operators | None = None

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        with pt.validate.any(inp, context=self) as found:
            for column in _QUERIES:
                found.result_frame(extra_columns=[column], mode=column)
        if inp.empty:
            return inp.assign(explanation=[])
        first, searcher = inp.drop_duplicates("qid"), self.index.searcher
        composed = searcher.compose(_queries(first, found.mode, self.index), self.operators)
        nodes = dict(zip(first["qid"], composed, strict=True))
        hits = zip(inp["qid"], inp["docno"], strict=True)
        return inp.assign(explanation=[dict(searcher.explain(nodes[qid], docno).contributions) for qid, docno in hits])


class CompNegJavaInit(pt.java.JavaInitializer):
    """Lets the Java of ``pt.java.init()`` also serve this package. PyTerrier finds this class by its entry point."""

    def pre_init(self, jnius_config: Any) -> None:
        """Adds Anserini and the companion jar, and chooses a Java that is recent enough for them."""
        try:
            os.environ.update(configure_machine(jnius_config))
        except JvmError as cause:  # Terrier does not need this package
            warnings.warn(f"pyserini_compneg takes no part in this Java: {cause}", stacklevel=2)


def _given(cell: Any) -> Any:
    """The value of a cell; None for an empty cell, such as NaN."""
    return None if pd.api.types.is_scalar(cell) and pd.isna(cell) else cell


def _queries(inp: pd.DataFrame, column: str, index: CompNegIndex, read: str | Path = "expression") -> list[Query]:
    """The queries of a frame. The error for a bad query begins with its id."""
    values = {f"qid {qid!r}": value for qid, value in zip(inp["qid"], inp[column], strict=True)}
    if column == "query_toks":
        manifest = index.searcher.reader.manifest
        signed = manifest is not None and manifest.signed
        return [adapted(from_json({"vector": value}, source), signed=signed) for source, value in values.items()]
    try:
        return [*parsed_queries([*values.values()], read)]
    except CompNegError:
        for source, value in values.items():
            try:
                parsed_queries([value], read)
            except CompNegError as error:
                raise error.at(source) from None
        raise
