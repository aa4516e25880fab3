"""The guard: an exclusion lowers documents, but it cannot remove the best matches of the text from the first page.

An exclusion may be misread, or the wanted documents may be about the very thing that is excluded. So for each query
with an exclusion, two lists of documents stay among the first ten: the best for its whole wording, and the best for the
query without its exclusions. Documents of these lists that do not reach the first ten by their scores come to their
end, in the order of the query without its exclusions. The price: excluded documents may stand at the end of the page.
The first k documents are the same for every k.

The guard is this project's, not the paper's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pyserini_compneg.compose import Operators, ScoringNode, query_line
from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.compose.rewrite import holds_difference, without_differences
from pyserini_compneg.expression import Atom
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.search.ranked_hits import checked_count, ranked_hits, warn_of_no_result
from pyserini_compneg.search.run_writer import Hit
from pyserini_compneg.search.searcher import SignedImpactSearcher

GUARDED = 5
PAGE = 10
"""The first ``GUARDED`` documents of both rankings stay among the first ``PAGE``; chosen on ExcluIR's dev split."""

_WHOLE = Operators(union="vanilla", intersection="vanilla", difference="vanilla")


def search_guarded(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    k: int = 10,
    threads: int = 1,
    operators: Operators | None = None,
) -> dict[str, list[Hit]]:
    """As ``SignedImpactSearcher.batch_search``, with the guard for topics with an exclusion.

    Args:
        searcher: An open searcher.
        topics: The queries. The whole wording is the text of a decomposed topic, else that of its expression.
        k: Hits a query.
        threads: Queries searched at once.
        operators: The operators for union, intersection and difference; None for the searcher's own.

    Returns:
        The hits of each topic, by its id. Those that the guard moved have ``guarded`` as an extra field.

    Raises:
        CompNegError: As ``batch_search``.
    """
    operators = operators or searcher.operators
    excluding = [
        (topic, topic.expression)
        for topic in topics
        if topic.expression is not None and holds_difference(topic.expression)
    ]
    without = [without_differences(query) for _, query in excluding]
    composed = searcher.compose([*map(topic_query, topics), *without], operators)  # in one call: it warns once
    nodes, parts = composed[: len(topics)], composed[len(topics) :]
    qids = [topic.qid for topic in topics]
    enough = max(checked_count("k", k), PAGE)
    hits = dict(zip(qids, ranked_hits(searcher.reader, nodes, qids, enough, threads), strict=True))
    wordings = [Atom(topic.text) if topic.decomposition else query for topic, query in excluding]
    whole = _top_docids(searcher, searcher.compose(wordings, _WHOLE), threads)
    wanted = _top_docids(searcher, parts, threads)
    kept = [list(dict.fromkeys([*by_wording, *by_part])) for by_wording, by_part in zip(whole, wanted, strict=True)]
    scores = searcher.batch_score(parts, kept, threads)
    for (topic, _), docids, values in zip(excluding, kept, scores, strict=True):
        hits[topic.qid] = guarded(hits[topic.qid], _best_top_docids(docids, values))
    warn_of_no_result(searcher.reader, qids, list(hits.values()), nodes)
    return {qid: ranked[:k] for qid, ranked in hits.items()}


def guarded(hits: Sequence[Hit], kept: Sequence[str]) -> list[Hit]:
    """Changes a ranking so that its first ``PAGE`` documents contain the given documents.

    Documents that the page lacks come to its end, in the order given. They replace the last documents of the page that
    are not given. No score is above the score before it.

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
    replaceable = [hit for hit in page if hit.docid not in kept]
    replaced = replaceable[len(replaceable) - max(0, len(page) + len(missing) - PAGE) :]
    score = replaced[0].score if replaced else min((hit.score for hit in page), default=0.0)
    moved = [Hit(docid, score, {"guarded": True}) for docid in missing]
    stayed = [hit for hit in page if hit not in replaced]
    below = [hit for hit in hits[PAGE:] if hit.docid not in missing]
    ranking = [*stayed, *moved, *replaced, *below]
    scores = itertools.accumulate((hit.score for hit in ranking), min)
    return [hit._replace(score=score) for hit, score in zip(ranking, scores, strict=True)]


def _best_top_docids(docids: Sequence[str], scores: Sequence[float | None]) -> list[str]:
    """Documents by their score for the query without exclusions, equal scores by ascending docid.

    Documents without a score come last, in reverse: the wording found them by excluded words, the first by most words.

    >>> _best_top_docids(["x", "c", "b", "y", "a"], [None, 1.0, 1.0, None, 2.0])
    ['a', 'b', 'c', 'y', 'x']
    """
    ranked = sorted((-score, docid) for docid, score in zip(docids, scores, strict=True) if score is not None)
    others = [docid for docid, score in zip(docids, scores, strict=True) if score is None]
    return [*(docid for _, docid in ranked), *reversed(others)]


def _top_docids(searcher: SignedImpactSearcher, nodes: Sequence[ScoringNode], threads: int) -> list[Sequence[str]]:
    """The docids of each query's first documents."""
    rankings = searcher.reader.search([query_line(node) for node in nodes], GUARDED, threads)
    return [ranking.docids for ranking in rankings]
