"""The hits of composed queries, and messages that name the query that failed or found nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyserini_compneg.compose import ScoringNode, is_empty, query_line
from pyserini_compneg.errors import IndexFormatError
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.lucene.reader import QueryFailure
from pyserini_compneg.search.run_writer import Hit

_logger = logging.getLogger(__name__)


def ranked_hits(
    reader: ImpactReader, nodes: Sequence[ScoringNode], qids: Sequence[str], k: int, threads: int
) -> dict[str, list[Hit]]:
    """The k best documents of composed queries, as ``SignedImpactSearcher.batch_search`` returns them.

    Raises:
        IndexFormatError: A query that the index cannot answer.
        ValueError: Ids that do not fit the queries, or k or threads below 1.
    """
    if len(qids) != len(nodes) or len(set(qids)) != len(qids):
        raise ValueError(f"{len(nodes)} queries need as many distinct qids, got {len(set(qids))}")
    if k < 1 or threads < 1:
        raise ValueError(f"k and threads must be 1 or more, got k={k}, threads={threads}")
    try:
        rankings = reader.search([query_line(node) for node in nodes], k, threads)
    except QueryFailure as failure:
        raise IndexFormatError(f"query {qids[failure.position]:.60}: {failure}") from None
    return {
        qid: [Hit(docid, score) for docid, score in zip(ranking.docids, ranking.scores, strict=True)]
        for qid, ranking in zip(qids, rankings, strict=True)
    }


def warn_of_no_result(hits: Mapping[str, Sequence[Hit]], nodes: Sequence[ScoringNode]) -> None:
    """Warns of queries that found nothing, and says why.

    Args:
        hits: The hits of each query, by its id.
        nodes: The composed queries, in the same order.
    """
    for (qid, ranked), node in zip(hits.items(), nodes, strict=True):
        if not ranked:
            known = "none of its positive terms is known" if is_empty(node) else "no document matches"
            _logger.warning("no result for query %s: %s", qid, known)
