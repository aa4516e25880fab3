"""A ranking as plain text for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import TextIO

from pyserini_compneg.baselines import ComposingMethod
from pyserini_compneg.compose import query_text
from pyserini_compneg.display.concepts import named
from pyserini_compneg.encode.hybrid import PREFIX, model_parts
from pyserini_compneg.encode.models.latents import LATENT_SIGN
from pyserini_compneg.expression import Atom, Filter
from pyserini_compneg.reading.decomposition import Decomposition, shown_confidence, tagged
from pyserini_compneg.search.matches import Counting, Matches
from pyserini_compneg.search.request import SearchRequest, query_name
from pyserini_compneg.search.run_writer import PassageHit
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.progress import gathered_warnings
from pyserini_compneg.support.terminal import printable
from pyserini_compneg.topics.batch import topic_query
from pyserini_compneg.topics.topics import Topic

_TERMS_SHOWN = 5
_OPERANDS_SHOWN = 3
_PASSAGE_SHOWN = 100  # characters


def show_hits(
    handle: TextIO,
    searcher: SignedImpactSearcher,
    topic: Topic,
    k: int,
    threads: int = 1,
    *,
    offset: int = 0,
    method: Method | None = None,
    counting: Counting | None = None,
    sort: str | None = None,
) -> None:
    """Prints the k best documents, each with its title, the operands of AND that it lacks, and its heaviest terms.

    With ``offset``, it prints the k documents behind the first ones.

    In an index of passages with stored sources, the text of a document's best passage begins below its title.

    Scores are in the encoder's unit. A method without composition has its own scores and shows no terms. For a
    decomposed text, the list begins with the decomposition. Without a method, it ends with the number of documents that
    match, and with facets.
    """
    query = topic_query(topic)
    name = query_name(query) if method is None else topic.qid  # a method finds judged documents by the id
    with gathered_warnings():
        request = SearchRequest(
            queries=[query],
            qids=[name],
            k=k,
            threads=threads,
            filter=topic.filter,
            offset=offset,
            lacks=True,
            counting=counting or Counting(),
            sort=sort,
        )
        (answer,) = searcher.answers(request, method)
        node = method.compose(searcher, [query])[0] if isinstance(method, ComposingMethod) else answer.node
    unit, concepts = 1.0 if node is None else searcher.unit(query), searcher.reader.concepts
    lines = [heading(query_text(query), searcher, topic.filter)]
    if topic.decomposition:
        lines += [f"  {line}" for line in decomposition_lines(topic.decomposition)]
    if not answer.hits:
        lines.append(f"  no document behind the first {offset:,}" if offset else "  no document matches")
    last = offset + len(answer.hits)
    width = len(str(last))
    digits = decimals([hit.score / unit for hit in answer.hits])
    for rank, (hit, lacks) in enumerate(zip(answer.hits, answer.lacks, strict=True), offset + 1):
        title = titled(searcher.title(hit.docid), hit.docid) + (f"  (lacks {_listed(lacks)})" if lacks else "")
        title += f"  (passage {hit.passage})" if isinstance(hit, PassageHit) else ""
        lines.append(f"  {rank:>{width}}  {hit.score / unit:>9.{digits}f}  {title}")
        if passage := searcher.passage(hit):
            lines.append(f"  {'':>{width}}  {'':>9}  {shorten(passage.text, _PASSAGE_SHOWN, placeholder=' ...')}")
        if node is None:
            continue
        explanation = searcher.explain(node, hit.docid).in_unit(unit)
        for sign, parts in (("+", explanation.pulled_up(_TERMS_SHOWN)), ("-", explanation.pushed_down(_TERMS_SHOWN))):
            if parts := [part for part in parts if round(part.amount, digits)]:
                listed = ", ".join(f"{named(part.term, concepts)} {abs(part.amount):.{digits}f}" for part in parts)
                lines.append(f"  {'':>{width}}  {sign:>9}  {listed}")
    if answer.matches and answer.hits:
        lines += [f"  {line}" for line in _match_lines(answer.matches, offset, last)]
    handle.writelines(f"{printable(line)}\n" for line in lines)


def _match_lines(found: Matches, offset: int, last: int) -> Iterator[str]:
    """How many documents match, with the flag for the next ones, and a line for each facet."""
    more = "" if found.total == (last, "eq") else f"; --offset {last} shows the next"
    some = f"{last:,} of " if more else ""
    if offset:
        some = f"{offset + 1:,} to {last:,} of "
    yield f"{some}{found.total} document{'s' * (found.total.value != 1)}{more}"
    for name, values in found.facets.items():
        yield f"{name}: " + (", ".join(f"{value} {count:,}" for value, count in values.items()) or "no values")


def _listed(operands: Sequence[str]) -> str:
    """The first operands. Operands with a comma are quoted.

    >>> _listed(("a", "b, c", "d", "e", "f"))
    'a, "b, c", d and 2 more'
    """
    names = [f'"{name}"' if "," in name and not name.startswith('"') else name for name in operands[:_OPERANDS_SHOWN]]
    more = f" and {len(operands) - len(names)} more" if len(operands) > len(names) else ""
    return ", ".join(names) + more


def heading(text: str, searcher: SignedImpactSearcher, filter: Filter | None = None) -> str:
    """The line above scores: the query, its filter, which terms are whose, and whether scores have no unit."""
    text += f"  [{filter}]" if filter else ""
    manifest = searcher.reader.manifest
    if manifest and searcher.is_hybrid:
        latents = "concepts" if searcher.reader.concepts else f"terms that begin with {LATENT_SIGN}"
        spaces = {PREFIX: f"terms that begin with {PREFIX} are the model's, ", "": f"{latents} are latents, "}
        return f"{text}  ({''.join(spaces[prefix] for prefix in model_parts(manifest.encoder))}the others bm25's)"
    return text if manifest else f"{text}  (scores in impacts: the index does not say their scale)"


def decimals(numbers: Sequence[float], least: int = 3) -> int:
    """The number of decimal places, at least ``least``, that shows two digits of the largest number.

    >>> decimals([250.0, -3.0]), decimals([0.025]), decimals([])
    (3, 4, 3)
    """
    largest = max(map(abs, numbers), default=0.0)
    return max(least, least - 1 - math.floor(math.log10(largest))) if largest else least


def decomposition_lines(decomposition: Decomposition) -> Iterator[str]:
    """The decomposition of a text: its words with their tags, and its confidence."""
    yield " ".join(tagged(decomposition).split())
    if decomposition.doubts:
        yield f"may be misread: {'; '.join(decomposition.doubts)}"
    elif isinstance(decomposition.expression, Atom):
        yield "nothing is excluded or joined"
    yield f"confidence {shown_confidence(decomposition.confidence)}"


def titled(title: str | None, docid: str) -> str:
    """A document's title and id, or only its id if it has no title."""
    return f"{title}  [{docid}]" if title else docid
