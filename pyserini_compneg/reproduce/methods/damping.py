"""Scores that are damped by how much a document is about what is excluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_compneg.compose import Linear, Operators, ScoringNode, quantised
from pyserini_compneg.compose.composer import atom_vectors
from pyserini_compneg.compose.filtering import wanted_and_negated
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.expression import Expression, atoms
from pyserini_compneg.reproduce.methods.method import (
    Context,
    best_scores,
    check_settings,
    check_unsigned,
    naming,
    topic_expression,
    whole_number,
)
from pyserini_compneg.search import Hit
from pyserini_compneg.vectors import max_pool

SETTINGS = ("weight", "power", "union", "intersection")
WEIGHT, POWER = 0.5, 4
_FEWEST = 1000


class Damping:
    r"""Ranks by s(A) · (1 − λ (s(B*) / max s(B*))^p) for A \ B, with the B* of ``disentangled``.

    A document that mentions what is excluded keeps nearly all of its score, one that is about it loses up to the share
    λ of it. Not in the paper. The ranking is that of all documents: no score is above s(A), so documents are looked at
    in the order of s(A) until none that follow can be among the first k.

    Args:
        context: The searcher.
        settings: ``weight``, λ, from 0 up to 1, 0.5 if it is not given; ``power``, p, a whole number, 4 if it is not
            given; ``union`` and ``intersection``, the operators of A. The defaults were chosen on the dev splits of
            ExcluIR and NegConstraint together, with BM25 impacts.

    Raises:
        ProtocolError: An unknown setting, a wrong number, or an index of signed documents.
        CompositionError: An unknown operator.
    """

    def __init__(self, context: Context, settings: Mapping[str, Any]) -> None:
        check_settings("damping", settings, SETTINGS)
        check_unsigned("damping", context.searcher)
        self._context = context
        self._weight = settings.get("weight", WEIGHT)
        if isinstance(self._weight, bool) or not isinstance(self._weight, (int, float)) or not 0 <= self._weight <= 1:
            raise ProtocolError(f"method damping: weight must be a number from 0 to 1, got {self._weight!r}")
        self._power = whole_number("damping", "power", settings.get("power", POWER))
        self._operators = Operators(**{n: value for n, value in settings.items() if n in ("union", "intersection")})

    def search(self, topics: Sequence[Topic], k: int) -> dict[str, list[Hit]]:
        """Searches for what is wanted, deeper and deeper, and ranks anew."""
        searcher, threads = self._context.searcher, self._context.threads
        parts = []
        for topic in topics:
            with naming(topic):
                parts.append(wanted_and_negated(topic_expression(topic)))
        queries = searcher.compose([wanted for wanted, _ in parts], self._operators)
        penalties = self._penalties(parts)
        best = best_scores(self._context, penalties)
        found: dict[str, list[Hit]] = {topic.qid: [] for topic in topics}
        pending, depth = list(range(len(topics))), max(_FEWEST, 2 * k)
        while pending:
            qids = [topics[i].qid for i in pending]
            first = searcher.batch_search([queries[i] for i in pending], qids, depth, threads)
            docids = [[hit.docid for hit in first[qid]] for qid in qids]
            excluded = searcher.batch_score([penalties[i] for i in pending], docids, threads)
            unsettled = []
            for i, qid, scores in zip(pending, qids, excluded, strict=True):
                found[qid] = self._damped(first[qid], scores, best[i])[:k]
                whole = len(first[qid]) < depth
                if not whole and found[qid][-1].score <= first[qid][-1].score:
                    unsettled.append(i)
            pending, depth = unsettled, 4 * depth
        return found

    def _penalties(self, parts: Sequence[tuple[Expression, list[str]]]) -> list[ScoringNode]:
        searcher = self._context.searcher
        texts = dict.fromkeys(text for wanted, negated in parts for text in (*atoms(wanted), *negated))
        vectors = atom_vectors(list(texts), searcher.encoder)
        nodes: list[ScoringNode] = []
        for wanted, negated in parts:
            support = {term for text in atoms(wanted) for term in vectors[text]}
            pooled = max_pool([vectors[text] for text in negated])
            outside = {term: weight for term, weight in pooled.items() if term not in support and weight > 0}
            nodes.append(quantised(Linear(outside), searcher.weight_scale))
        return nodes

    def _damped(self, hits: Sequence[Hit], excluded: Sequence[float | None], best: float) -> list[Hit]:
        shares = ((score or 0.0) / best if best > 0 else 0.0 for score in excluded)
        damped = [
            Hit(hit.docid, hit.score * (1 - self._weight * share**self._power))
            for hit, share in zip(hits, shares, strict=True)
        ]
        return sorted(damped, key=lambda hit: (-hit.score, hit.docid))
