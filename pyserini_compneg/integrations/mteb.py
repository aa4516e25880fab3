"""MTEB: the engine as a search model, for ``mteb.evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyserini_compneg.compose import Operators, Query
from pyserini_compneg.encode import BM25
from pyserini_compneg.expression import Atom
from pyserini_compneg.index import build_index
from pyserini_compneg.integrations.hosts import require
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.search.run_writer import printed_scores
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import CompNegError, InputError
from pyserini_compneg.support.files import content_digest, slug
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.terminal import shown

require("mteb", "2.10")

from mteb.models.model_meta import ModelMeta  # noqa: E402


class CompNegSearch:
    """A ``SearchProtocol`` of MTEB. It indexes a task's documents in a temporary folder and searches its queries.

    ``encoder`` encodes documents and queries: ``bm25``, a model, or ``bm25+MODEL``. ``read`` turns a text into a query:
    by default the text is one atom, and ``decompose`` reads AND, OR and NOT in it. ``name`` is the name in the results,
    ``organisation/model``. MTEB skips tasks that have results, so the revision contains encoders, operators and
    readings.

    Example:
        >>> mteb.evaluate(CompNegSearch(read=decompose), mteb.get_task("NevIR"))  # doctest: +SKIP
    """

    def __init__(
        self,
        encoder: str = BM25,
        operators: Operators | None = None,
        read: Callable[[str], Query] = Atom,
        name: str | None = None,
    ) -> None:
        self.encoder, self.operators, self.read = encoder, operators, read
        way = f"{operators} {getattr(read, '__qualname__', read)} {metadata.version('pyserini_compneg')}"
        revision = content_digest(f"{encoder} {way}", digits=12)
        name = name or f"pyserini_compneg/{slug(Path(encoder).name)}"
        self.mteb_model_meta = ModelMeta.create_empty({"name": name, "revision": revision})
        self._folder = TemporaryDirectory()
        self._searcher: SignedImpactSearcher | None = None

    def index(self, corpus: Sequence[Mapping[str, str]], **_: Any) -> None:
        """Indexes the documents of a task, and removes the documents of the previous task."""
        records = ({"id": row["id"], "title": row.get("title"), "text": row["text"]} for row in corpus)
        self.close()
        build_index(records, f"{self._folder.name}/index", self.encoder, existing="overwrite")
        self._searcher = SignedImpactSearcher(f"{self._folder.name}/index", operators=self.operators)

    def close(self) -> None:
        if self._searcher is not None:
            self._searcher.close()
            self._searcher = None

    def search(
        self,
        queries: Mapping[str, Sequence[str]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """The scores of the best documents of each query, or of the given documents that match it.

        A query is its ``text``, with its ``instruction`` behind it if it has one. A blank query finds nothing.
        Equal scores of a ranking are separated by a millionth, as in run files.
        """
        if self._searcher is None:
            raise RuntimeError("no documents to search; call index first")
        found: dict[str, dict[str, float]] = {qid: {} for qid in checked_list("id", queries["id"])}
        qids, asked = self._asked(queries)
        if top_ranked is None:
            for qid, hits in self._searcher.batch_search(asked, qids, top_k).items():
                found[qid] = dict(zip([hit.docid for hit in hits], printed_scores(hits), strict=True))
            return found
        if lacking := [qid for qid in found if qid not in top_ranked]:
            raise InputError("there are no documents to rank again", where=f"query {lacking[0]}: top_ranked")
        given = [top_ranked[qid] for qid in qids]
        for qid, docids, scores in zip(qids, given, self._searcher.batch_score(asked, given), strict=True):
            found[qid] = {docid: score for docid, score in zip(docids, scores, strict=True) if score is not None}
        return found

    def _asked(self, queries: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[Query]]:
        """The ids and queries whose texts are not blank. An instruction follows its text, as in MTEB's own BM25."""
        qids, texts = (checked_list(name, queries[name]) for name in ("id", "text"))
        instructions = [None] * len(texts)
        if "instruction" in getattr(queries, "column_names", queries):
            instructions = checked_list("instruction", queries["instruction"])
        asked, blank = [], {}
        for qid, text, instruction in zip(qids, texts, instructions, strict=True):
            if not isinstance(text, str):
                raise InputError(f"expected a text, got {shown(text)}", where=f"query {qid}")
            whole = f"{text} {instruction}" if instruction else text
            if not whole.strip():
                blank[qid] = qid
                continue
            try:
                asked.append((qid, self.read(whole)))
            except CompNegError as error:
                raise error.at(f"query {qid}") from None
        warn_of("query", "queries", "the text is blank, so no document is found", blank, qids)
        return [qid for qid, _ in asked], [query for _, query in asked]
