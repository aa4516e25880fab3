"""A ranking for people, as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from pyserini_compneg.compose import query_text
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.expression.decomposition import Decomposition
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.search.guard import search_guarded
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.terminal import printable

_TERMS_SHOWN = 5


def show_hits(
    handle: TextIO,
    searcher: SignedImpactSearcher,
    topic: Topic,
    k: int,
    *,
    explain: bool = False,
    guard: bool = False,
) -> None:
    """Prints the k best documents, each with its title and the terms that pulled it up or pushed it down.

    The title is the stored document's ``title``, where the index keeps the source (``--store-raw``).

    Args:
        handle: Where to write.
        searcher: An open searcher.
        topic: The query.
        k: Documents.
        explain: Begin with how a plain text was decomposed.
        guard: Search with :mod:`pyserini_compneg.search.guard`.
    """
    query = topic_query(topic)
    (node,) = searcher.compose([query])
    name = query_text(query)
    hits = search_guarded(searcher, [topic], k)[topic.qid] if guard else searcher.batch_search([node], [name], k)[name]
    handle.write(f"{printable(name)}\n")
    if explain and topic.decomposition:
        handle.writelines(f"  {line}\n" for line in decomposition_lines(topic.decomposition))
    if not hits:
        handle.write("  no document matches\n")
    width = len(str(len(hits)))
    for rank, hit in enumerate(hits, 1):
        explanation = searcher.explain(node, hit.docid)
        handle.write(f"  {rank:>{width}}  {hit.score:>11.3f}  {titled(searcher.title(hit.docid), hit.docid)}")
        handle.write("  (guarded)\n" if hit.extra and hit.extra.get("guarded") else "\n")
        for sign, parts in (("+", explanation.pulled_up(_TERMS_SHOWN)), ("-", explanation.pushed_down(_TERMS_SHOWN))):
            if parts:
                listed = ", ".join(f"{printable(part.term)} {abs(part.amount):.0f}" for part in parts)
                handle.write(f"  {'':>{width}}  {sign:>11}  {listed}\n")


def decomposition_lines(decomposition: Decomposition) -> Iterator[str]:
    """How a text was decomposed: its parts and the cues, each with its position in the text."""
    for part in decomposition.parts:
        spans = ", ".join(f"{start}-{end}" for start, end in part.spans)
        yield f"{'excluded' if part.excluded else 'wanted':<8}  {printable(part.text)}  [{spans}]"
    for reason in decomposition.reasons:
        yield f"because   {printable(reason.cue)}  [{reason.span[0]}-{reason.span[1]}] {reason.kind}"
    yield f"confidence {decomposition.confidence:.2f}" if decomposition.reasons else "nothing is excluded or joined"


def titled(title: str | None, docid: str) -> str:
    """A document's title and id; its id alone where it has no title."""
    return f"{printable(title)}  [{printable(docid)}]" if title else printable(docid)
