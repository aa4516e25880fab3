"""From topics to a file of composed queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.compose.json_form import composed_line, from_json
from pyserini_compneg.compose.queries import Query, query_text
from pyserini_compneg.compose.scoring import ScoringNode, is_empty
from pyserini_compneg.compose.token_form import token_line
from pyserini_compneg.expression import Expression
from pyserini_compneg.expression.decomposition import to_object
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.progress import progress

Compose: TypeAlias = Callable[[Sequence[Query]], list[ScoringNode]]
"""Composes queries, as ``SignedImpactSearcher.compose`` does; a query that is composed already stays as it is."""

OUTPUT_FORMATS = ("jsonl", "tsv")

_logger = logging.getLogger(__name__)


def compose_topics(
    topics: Sequence[Topic],
    compose: Compose,
    output: str | Path | None,
    *,
    batch_size: int = 64,
    output_format: str = "jsonl",
    explain: bool = False,
) -> None:
    """Writes the composed query of each topic to a file, which appears complete or not at all.

    ``jsonl`` has a line ``{"id", "contents", "vector" or "score"}`` for each topic; ``search`` takes it as a topic.
    ``tsv`` has the lines of ``token_line``, without the queries that have no terms.

    Args:
        topics: The topics.
        compose: Composes them.
        output: The file, or None for standard output.
        batch_size: Queries encoded together.
        output_format: ``jsonl`` or ``tsv``.
        explain: Add to each line of ``jsonl`` how a plain text was decomposed.

    Raises:
        CompNegError: A topic that cannot be composed or that the format cannot hold, or an unwritable output.
    """
    queries = {topic.qid: topic_query(topic) for topic in topics}
    contents = {topic.qid: query_text(topic.expression) if topic.expression else topic.text for topic in topics}
    read = {t.qid: {"decomposition": to_object(t.decomposition)} for t in topics if explain and t.decomposition}
    qids = list(queries)
    with atomic_writer(output) as handle, progress(None, len(qids), " queries", "composing") as bar:
        for start in range(0, len(qids), batch_size):
            batch = qids[start : start + batch_size]
            for qid, node in zip(batch, compose([queries[qid] for qid in batch]), strict=True):
                if is_empty(node):
                    _logger.warning("query %s finds nothing: no positive term is left that the encoder knows", qid)
                if output_format == "jsonl":
                    handle.write(composed_line(qid, contents[qid], node, read.get(qid)) + "\n")
                elif not is_empty(node):
                    handle.write(token_line(qid, node) + "\n")
            bar.update(len(batch))


def topic_query(topic: Topic) -> Expression | ScoringNode:
    """The query of a topic: its expression, or the scoring tree that it came with.

    Raises:
        CompositionError: A composed query that is no scoring tree.
    """
    if topic.composed is not None:
        return from_json(topic.composed, topic.source or f"topic {topic.qid}")
    assert topic.expression is not None  # a topic has one or the other
    return topic.expression
