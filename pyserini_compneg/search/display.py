"""A ranking for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from pyserini_compneg.compose import Query, query_text
from pyserini_compneg.search.columns import printable
from pyserini_compneg.search.explanation import Contribution
from pyserini_compneg.search.searcher import SignedImpactSearcher

_TERMS_SHOWN = 5


def show_hits(handle: TextIO, searcher: SignedImpactSearcher, query: Query, k: int) -> None:
    """Prints the k best documents, each with its title and the terms that pulled it up or pushed it down.

    The title is the stored document's ``title``, where the index keeps the source (``--store-raw``).
    """
    name = query_text(query)
    (node,) = searcher.compose([query])
    hits = searcher.batch_search([node], [name], k)[name]
    handle.write(f"{name}\n")
    if not hits:
        handle.write("  no document matches\n")
    width = len(str(len(hits)))
    for rank, hit in enumerate(hits, 1):
        explanation = searcher.explain(node, hit.docid)
        handle.write(f"  {rank:>{width}}  {hit.score:>11.3f}  {titled(searcher.title(hit.docid), hit.docid)}\n")
        for sign, parts in (
            ("+", explanation.pulled_up(_TERMS_SHOWN)),
            ("-", explanation.pushed_down(_TERMS_SHOWN)),
        ):
            if parts:
                handle.write(f"  {'':>{width}}  {sign:>11}  {_listed(parts)}\n")


def titled(title: str | None, docid: str) -> str:
    """How a document is called where there is room for its title."""
    return f"{printable(title)}  [{docid}]" if title else docid


def _listed(parts: Sequence[Contribution]) -> str:
    return ", ".join(f"{part.term} {abs(part.amount):.0f}" for part in parts)
