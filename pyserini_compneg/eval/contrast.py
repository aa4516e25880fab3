"""Measures of contrast: is a query's relevant document ranked above the document that the query excludes?

Each query needs two judgements: one relevant document (relevance 1 or more) and one excluded document (0 or less).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from typing import NamedTuple

from pyserini_compneg.support.errors import InputError

PAIRED = ("paired_accuracy", "paired_first", "paired_second", "paired_reversed")
"""The measures of pairs of queries."""

CONTRASTS = ("paired_accuracy", "right_rank", "delta_recall@1", "delta_mrr@10")
"""Examples of names. ``delta_recall`` and ``delta_mrr`` need a cutoff; ``right_rank`` may have one."""

_NAMES = re.compile(
    r"paired_(?:accuracy|first|second|reversed)|right_rank|(?:right_rank|delta_recall|delta_mrr)@(-?[0-9]{1,9})",
    re.ASCII,
)
_OUTCOMES = {
    "paired_accuracy": (1.0, 1.0),
    "paired_first": (1.0, -1.0),
    "paired_second": (-1.0, 1.0),
    "paired_reversed": (-1.0, -1.0),
}
_Qrels = Mapping[str, Mapping[str, int]]
_Run = Mapping[str, Mapping[str, float]]
_Pair = tuple[str, str]


class Contrast(NamedTuple):
    """A measure of contrast, with its cutoff, a rank from 1."""

    kind: str
    cutoff: int | None = None


def parse_contrast(name: str) -> Contrast | None:
    """The measure of contrast with this name, or None.

    >>> parse_contrast("delta_recall@10")
    Contrast(kind='delta_recall', cutoff=10)
    """
    if not (match := _NAMES.fullmatch(name)):
        return None
    return Contrast(name.partition("@")[0], int(match[1]) if match[1] else None)


def contrast_values(contrast: Contrast, qrels: _Qrels, run: _Run) -> dict[str, float]:
    """The value of a measure of contrast for each query of the judgements.

    Let d⁺ be the relevant and d⁻ the excluded document of query q, and s their scores, in 32 bits as in trec_eval.

    - ``right_rank``: 1 if s(q, d⁺) > s(q, d⁻), else 0. A document that the run lacks ranks below all documents of the
      run. A tie is wrong, including two documents that the run lacks.
    - ``right_rank@N``: the same, computed on the first N documents of the run.
    - ``paired_accuracy``: 1 for both queries of a pair if both are right, else 0. So the mean equals the mean over
      pairs. Two queries are a pair if they judge the same two documents in opposite ways.
    - ``paired_first``: 1 for both queries of a pair if both rank higher the document that is relevant for the first
      query, in the order of the judgements. ``paired_second``: the same for the second query. In NevIR the first
      document is from Wikipedia, and the second is an edited version. ``paired_reversed``: 1 if both queries rank the
      other query's document higher. The remaining pairs have a tie. Two documents that the run lacks are a tie, too.
    - ``delta_recall@N``: R@N(d⁺) − R@N(d⁻), from −1 to 1. R@N(d) is 1 if d is among the first N, else 0.
    - ``delta_mrr@N``: MRR@N(d⁺) − MRR@N(d⁻), from −1 to 1. MRR@N(d) is 1 / rank of d if d is among the first N, else 0.

    Ranks are trec_eval's: by descending score, ties by docid in descending order. A query that the run lacks scores 0.

    Source: For measures of pairs, Weller et al. 2024 (NevIR), Section 4.1 and Figure 4. MTEB requires R@1 = 1 for both
    queries, in runs of only the two documents; only ties differ, which trec_eval's code orders by docid. For the other
    measures, Zhang et al. 2024 (ExcluIR), Eq. 1 and the next sentence. Their released scorer reads 10 documents of a
    query and treats all others as not retrieved, like ``right_rank@10``.

    >>> contrast_values(Contrast("delta_mrr", 10), {"1": {"a": 1, "b": 0}}, {"1": {"b": 2.0, "a": 1.0}})
    {'1': -0.5}
    """
    pairs = {qid: _judged_pair(contrast.kind, qid, judged) for qid, judged in qrels.items()}
    values = {qid: _value(contrast, run.get(qid, {}), *pair) for qid, pair in pairs.items()}
    if contrast.kind not in PAIRED:
        return values
    paired = partners(qrels)
    order = {qid: number for number, qid in enumerate(qrels)}
    firsts = {qid: min(qid, partner, key=order.__getitem__) for qid, partner in paired.items()}
    wanted = _OUTCOMES[contrast.kind]
    return {qid: float((values[first], values[paired[first]]) == wanted) for qid, first in firsts.items()}


def partners(qrels: _Qrels) -> dict[str, str]:
    """For each query, the query that judges the same two documents in the opposite way.

    >>> partners({"1": {"a": 1, "b": 0}, "2": {"a": 0, "b": 1}})
    {'1': '2', '2': '1'}
    """
    pairs = {qid: _judged_pair("paired_accuracy", qid, judged) for qid, judged in qrels.items()}
    queries: dict[_Pair, list[str]] = {}
    for qid, pair in pairs.items():
        queries.setdefault(pair, []).append(qid)
    partner_of = {}
    for qid, (relevant, excluded) in pairs.items():
        same, opposite = queries[relevant, excluded], queries.get((excluded, relevant), [])
        if (len(same), len(opposite)) != (1, 1):
            counts = f"{len(same) - 1} queries that agree and {len(opposite)} that disagree"
            raise InputError(
                "paired_accuracy needs pairs of queries that judge the same two documents in opposite ways; query "
                f"{qid!r} shares {relevant!r} and {excluded!r} with {counts}"
            )
        partner_of[qid] = opposite[0]
    return partner_of


def _judged_pair(kind: str, qid: str, judged: Mapping[str, int]) -> _Pair:
    relevant = [docid for docid, relevance in judged.items() if relevance > 0]
    excluded = [docid for docid, relevance in judged.items() if relevance <= 0]
    if len(relevant) != 1 or len(excluded) != 1:
        raise InputError(
            f"{kind} needs 1 relevant and 1 excluded document (relevance 0) for each query; "
            f"query {qid!r} has {len(relevant)} and {len(excluded)}"
        )
    return relevant[0], excluded[0]


def _value(contrast: Contrast, scores: Mapping[str, float], relevant: str, excluded: str) -> float:
    """The value of one query. In measures of pairs: 1 if it is right, −1 if it is wrong, 0 for a tie."""
    if contrast.kind in PAIRED:
        own, other = (_single(scores.get(docid, float("-inf"))) for docid in (relevant, excluded))
        return float(own > other) - float(own < other)
    first = list(scores)
    if contrast.cutoff is not None:
        first.sort(key=lambda docid: (_single(scores[docid]), docid), reverse=True)
        del first[contrast.cutoff :]
    if contrast.kind == "delta_recall":
        return float(relevant in first) - float(excluded in first)
    if contrast.kind == "delta_mrr":
        credits = {docid: 1 / rank for rank, docid in enumerate(first, 1)}
        return credits.get(relevant, 0.0) - credits.get(excluded, 0.0)
    if relevant not in first or excluded not in first:
        return float(relevant in first)
    return float(_single(scores[relevant]) > _single(scores[excluded]))


def _single(score: float) -> float:
    """The score in 32 bits, trec_eval's precision."""
    return ctypes.c_float(score).value
