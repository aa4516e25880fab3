"""LangChain: a retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyserini_compneg.compose import Query
from pyserini_compneg.expression import parse
from pyserini_compneg.expression.filters import narrowed
from pyserini_compneg.integrations.hosts import require
from pyserini_compneg.search import SignedImpactSearcher

require("langchain-core", "1.0", "langchain")

from langchain_core.callbacks import (  # noqa: E402
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.runnables import run_in_executor  # noqa: E402
from pydantic import ConfigDict  # noqa: E402


class CompNegRetriever(BaseRetriever):
    """Finds ``k`` documents of an open index with stored sources.

    ``metadata`` has the fields of the source but its text, and the score as ``relevance_score``; as ``score``, too, if
    the source has no field of this name. A document without a text has its title as ``page_content``.

    ``filter`` works as in :meth:`SignedImpactSearcher.search`; ``invoke(text, filter=...)`` adds a filter. ``read``
    turns a text into a query: by default the text is an expression, and ``decompose`` reads plain texts.

    Example:
        >>> searcher = SignedImpactSearcher("indexes/films")  # doctest: +SKIP
        >>> CompNegRetriever(searcher=searcher).invoke("spy films NOT comedies")  # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    searcher: SignedImpactSearcher
    k: int = 10
    filter: Mapping[str, Any] | None = None
    read: Callable[[str], Query] = parse

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, filter: Mapping[str, Any] | None = None
    ) -> list[Document]:
        hits = self.searcher.search(self.read(query), self.k, filter=narrowed(self.filter, filter))
        return [self._document(hit.docid, hit.score) for hit in hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, filter: Mapping[str, Any] | None = None
    ) -> list[Document]:
        search = partial(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), filter=filter)
        found: list[Document] = await run_in_executor(None, search)
        return found

    def _document(self, docid: str, score: float) -> Document:
        source = self.searcher.doc(docid)
        if source is None:
            folder = self.searcher.reader.folder
            raise ValueError(f"{folder} stores no texts; build it with store_raw=True, or index --store-raw")
        texts = [source.get(name) for name in ("contents", "text", "title")]
        text = next((one for one in texts if isinstance(one, str) and one), "")
        shown = "contents" if source.get("contents") else "text"
        fields = {name: value for name, value in source.items() if name != shown}
        return Document(page_content=text, id=docid, metadata={"score": score, **fields, "relevance_score": score})
