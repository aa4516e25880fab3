"""The guard: an exclusion lowers documents, and takes none from the first page that the text without it finds first.

What a text excludes may be misread, and what is wanted may be about the very thing that is excluded. So of each query
with an exclusion the first documents of its whole wording and of what it wants alone stay among the first ten. Those
that their scores do not bring there come at their end, in the order of what is wanted: where the guard steps in, the
exclusion is not trusted. A page that a reranker or a person reads then misses nothing that the
plain text would have found at its top; the price is that excluded documents may stand at the page's end. The first k
documents are the same whatever k.

It is this project's, not the paper's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pyserini_compneg.compose import Operators, ScoringNode, query_line
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.compose.rewrite import holds_difference, without_differences
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.expression import Atom
from pyserini_compneg.search.ranked_hits import ranked_hits, warn_of_no_result
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import SignedImpactSearcher

GUARDED = 5
PAGE = 10
"""So many first documents of either ranking stay among so many; the five were chosen on the dev split of ExcluIR."""

_WHOLE = Operators(union="vanilla", intersection="vanilla", difference="vanilla")


def search_guarded(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    k: int = 10,
    threads: int = 1,
    operators: Operators | None = None,
) -> dict[str, list[Hit]]:
    """As ``SignedImpactSearcher.batch_search``, with the guard for those topics that exclude something.

    Args:
        searcher: An open searcher.
        topics: What is asked. The whole wording is a decomposed topic's text, else that of its expression.
        k: Hits a query.
        threads: Queries searched at once.
        operators: What stands for union, intersection and difference; None for the searcher's own.

    Returns:
        The hits of each topic, by its id. Those that the guard moved have ``guarded`` as an extra field.

    Raises:
        CompNegError: As ``batch_search``.
        ValueError: Likewise.
    """
    operators = operators or searcher.operators
    nodes = searcher.compose([topic_query(topic) for topic in topics], operators)
    enough = max(k, PAGE) if k > 0 else k  # what is no number of hits is refused there
    hits = ranked_hits(searcher.reader, nodes, [topic.qid for topic in topics], enough, threads)
    excluding = [
        (topic, topic.expression)
        for topic in topics
        if topic.expression is not None and holds_difference(topic.expression)
    ]
    wordings = [Atom(topic.text) if topic.decomposition else query for topic, query in excluding]
    whole = _first(searcher, searcher.compose(wordings, _WHOLE), threads)
    parts = searcher.compose([without_differences(query) for _, query in excluding], operators)
    wanted = _first(searcher, parts, threads)
    kept = [list(dict.fromkeys([*by_wording, *by_part])) for by_wording, by_part in zip(whole, wanted, strict=True)]
    scores = searcher.batch_score(parts, kept, threads)
    for (topic, _), docids, values in zip(excluding, kept, scores, strict=True):
        hits[topic.qid] = guarded(hits[topic.qid], _best_first(docids, values))
    warn_of_no_result(hits, nodes)
    return {qid: ranked[:k] for qid, ranked in hits.items()}


def guarded(hits: Sequence[Hit], kept: Sequence[str]) -> list[Hit]:
    """A ranking whose first ``PAGE`` documents hold given ones.

    Those that its page lacks come to its end, in the order given, and take the places of the last that are not given.
    No score rises above that of the document before it.

    Args:
        hits: The ranking, best first.
        kept: At most ``PAGE`` docids, all different, best first.

    >>> ranking = [Hit(name, 20.0 - place) for place, name in enumerate("abcdefghijklm")]
    >>> " ".join(f"{hit.docid}{hit.score:g}" for hit in guarded(ranking, ["m", "j"]))
    'a20 b19 c18 d17 e16 f15 g14 h13 j11 m11 i11 k10 l9'
    """
    page = hits[:PAGE]
    on_page = {hit.docid for hit in page}
    missing = [docid for docid in kept if docid not in on_page]
    able = [hit for hit in page if hit.docid not in kept]
    yielding = able[len(able) - max(0, len(page) + len(missing) - PAGE) :]
    score = yielding[0].score if yielding else min((hit.score for hit in page), default=0.0)
    moved = [Hit(docid, score, {"guarded": True}) for docid in missing]
    stayed = [hit for hit in page if hit not in yielding]
    rest = [hit for hit in hits[PAGE:] if hit.docid not in missing]
    ranking = [*stayed, *moved, *yielding, *rest]
    scores = itertools.accumulate((hit.score for hit in ranking), min)
    return [hit._replace(score=score) for hit, score in zip(ranking, scores, strict=True)]


def _best_first(docids: Sequence[str], scores: Sequence[float | None]) -> list[str]:
    """Documents by the score of what is wanted, equal ones by ascending docid.

    Those without one come last, in reverse: it is by excluded words that the wording has found them, the first by most.

    >>> _best_first(["x", "c", "b", "y", "a"], [None, 1.0, 1.0, None, 2.0])
    ['a', 'b', 'c', 'y', 'x']
    """
    ranked = sorted((-score, docid) for docid, score in zip(docids, scores, strict=True) if score is not None)
    others = [docid for docid, score in zip(docids, scores, strict=True) if score is None]
    return [*(docid for _, docid in ranked), *reversed(others)]


def _first(searcher: SignedImpactSearcher, nodes: Sequence[ScoringNode], threads: int) -> list[Sequence[str]]:
    """The docids of each query's first documents."""
    rankings = searcher.reader.search([query_line(node) for node in nodes], GUARDED, threads)
    return [ranking.docids for ranking in rankings]
