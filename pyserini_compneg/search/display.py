"""A ranking for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from pyserini_compneg.compose import Query, query_text
from pyserini_compneg.decompose import Decomposition
from pyserini_compneg.search.columns import printable
from pyserini_compneg.search.explanation import Contribution
from pyserini_compneg.search.searcher import SignedImpactSearcher

_TERMS_SHOWN = 5


def show_hits(
    handle: TextIO, searcher: SignedImpactSearcher, query: Query, k: int, decomposition: Decomposition | None = None
) -> None:
    """Prints the k best documents, each with its title and the terms that pulled it up or pushed it down.

    The title is the stored document's ``title``, where the index keeps the source (``--store-raw``). With a
    decomposition it begins with how the text was read.
    """
    name = query_text(query)
    (node,) = searcher.compose([query])
    hits = searcher.batch_search([node], [name], k)[name]
    handle.write(f"{name}\n")
    if decomposition:
        handle.writelines(f"  {line}\n" for line in decomposition_lines(decomposition))
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


def decomposition_lines(decomposition: Decomposition) -> Iterator[str]:
    """How a text was read, for people: its parts with their places, and the cues."""
    for part in decomposition.parts:
        places = ", ".join(f"{start}-{end}" for start, end in part.spans)
        yield f"{'excluded' if part.excluded else 'wanted':<8}  {printable(part.text)}  [{places}]"
    for reason in decomposition.reasons:
        yield f"because   {printable(reason.cue)}  [{reason.span[0]}-{reason.span[1]}] {reason.kind}"
    yield f"confidence {decomposition.confidence:.2f}" if decomposition.reasons else "nothing is excluded or joined"


def titled(title: str | None, docid: str) -> str:
    """How a document is called where there is room for its title."""
    return f"{printable(title)}  [{docid}]" if title else docid


def _listed(parts: Sequence[Contribution]) -> str:
    return ", ".join(f"{part.term} {abs(part.amount):.0f}" for part in parts)
