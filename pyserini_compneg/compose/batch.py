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
from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.decompose import to_object
from pyserini_compneg.errors import CollectionError
from pyserini_compneg.expression import Expression
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.progress import progress

Compose: TypeAlias = Callable[[Sequence[Query]], list[ScoringNode]]
"""Composes queries and leaves those alone that are composed already, as ``SignedImpactSearcher.compose`` does."""

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

    ``jsonl`` has a line ``{"id", "contents", "vector" or "score"}`` for each, which is a topic for ``search``. ``tsv``
    has the lines of ``token_line``; queries without terms, for which it has no line, are left out.

    Args:
        topics: The topics.
        compose: What composes them.
        output: The file, or None for standard output.
        batch_size: Queries encoded together.
        output_format: ``jsonl`` or ``tsv``.
        explain: Add to the lines of ``jsonl`` how plain texts were decomposed.

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
                    _logger.warning("query %s finds nothing: it wants no term that is known", qid)
                if output_format == "jsonl":
                    handle.write(composed_line(qid, contents[qid], node, read.get(qid)) + "\n")
                elif not is_empty(node):
                    handle.write(token_line(qid, node) + "\n")
            bar.update(len(batch))


def topic_query(topic: Topic) -> Expression | ScoringNode:
    """What a topic asks: its expression, or the scoring tree it came with.

    Raises:
        CompositionError: A composed query that is no scoring tree.
    """
    if topic.composed is not None:
        return from_json(topic.composed, topic.source or f"topic {topic.qid}")
    if topic.expression is None:
        raise CollectionError(f"topic {topic.qid} has no query")
    return topic.expression
