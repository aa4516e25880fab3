"""Composes topics into a file of queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeAlias, TypeVar

from pyserini_compneg.compose.json_form import composed_line, from_json
from pyserini_compneg.compose.queries import ParsedQuery, Query, query_text, why_empty
from pyserini_compneg.compose.scoring import ScoringNode
from pyserini_compneg.compose.trees import is_empty
from pyserini_compneg.reading.decomposition import to_object
from pyserini_compneg.support.errors import EncodingError, QueryError
from pyserini_compneg.support.progress import gathered_warnings, progress
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.topics.token_form import token_line
from pyserini_compneg.topics.topics import Topic

Compose: TypeAlias = Callable[[Sequence[Query]], list[ScoringNode]]
"""Composes queries, like ``SignedImpactSearcher.compose``. Composed queries are returned unchanged."""

Found = TypeVar("Found")

OUTPUT_FORMATS = ("jsonl", "tsv")

_BATCH = 64

_logger = logging.getLogger(__name__)


def compose_topics(
    topics: Sequence[Topic],
    compose: Compose,
    output: str | Path | None,
    *,
    output_format: str = "jsonl",
    skip: bool = False,
) -> None:
    """Writes the composed query of each topic to a file, atomically.

    ``jsonl`` has a line ``{"id", "contents", "vector" or "score"}`` for each topic, with its ``filter`` if there is
    one. ``search`` reads these lines as topics. ``tsv`` has the lines of ``token_line``, and leaves out queries without
    terms.
    """
    contents = {topic.qid: query_text(topic.expression) if topic.expression else topic.text for topic in topics}
    extra: dict[str, dict[str, Any]] = {t.qid: {"filter": t.filter.to_json()} if t.filter else {} for t in topics}
    for topic in topics:
        if topic.decomposition:
            extra[topic.qid]["decomposition"] = to_object(topic.decomposition)
        if topic.filter and output_format != "jsonl":
            remedy = "use --output-format jsonl"
            raise QueryError(f"{output_format} cannot hold a filter", where=f"query {topic.qid}", remedy=remedy)

    def composed(batch: Sequence[Topic]) -> dict[str, ScoringNode]:
        return dict(zip([topic.qid for topic in batch], compose([topic_query(topic) for topic in batch]), strict=True))

    def write(handle: TextIO, batch: Sequence[Topic], found: Mapping[str, ScoringNode]) -> None:
        asked = {topic.qid: topic for topic in batch}
        for qid, node in found.items():
            if is_empty(node):
                _logger.warning("query %s finds nothing: %s", qid, why_empty(topic_query(asked[qid])))
            if output_format == "jsonl":
                handle.write(composed_line(qid, contents[qid], node, extra[qid]) + "\n")
            elif not is_empty(node):
                handle.write(token_line(qid, node) + "\n")

    write_each(topics, composed, write, output, "composing", skip)


def write_each(
    topics: Sequence[Topic],
    find: Callable[[Sequence[Topic]], dict[str, Found]],
    write: Callable[[TextIO, Sequence[Topic], Mapping[str, Found]], None],
    output: str | Path | None,
    doing: str,
    skip: bool,
) -> None:
    """Finds something for topics, in batches, and writes what it finds for each batch to a file, atomically.

    ``skip`` leaves out topics that cannot be composed, and lists them in a final warning.
    """
    skipped: dict[str, str] = {}
    all_topics = progress(None, len(topics), " queries", doing)
    with atomic_writer(output) as handle, gathered_warnings(), all_topics as bar:
        for start in range(0, len(topics), _BATCH):
            batch = topics[start : start + _BATCH]
            write(handle, batch, find_each(batch, find, skipped if skip else None))
            bar.update(len(batch))
        _report_skipped(skipped, len(topics))


def find_each(
    batch: Sequence[Topic], find: Callable[[Sequence[Topic]], dict[str, Found]], skipped: dict[str, str] | None
) -> dict[str, Found]:
    """What is found for topics, by their ids. If a topic cannot be composed, they are taken one by one to find it."""
    try:
        return find(batch)
    except (EncodingError, QueryError) as error:
        if len(batch) > 1:
            return {qid: found for topic in batch for qid, found in find_each([topic], find, skipped).items()}
        (topic,) = batch
        text = query_text(topic.expression) if topic.expression else topic.text
        reason = error.without(topic.source, f"query {text!r}")
        if skipped is None:
            placed = reason.at(f"query {topic.qid}")
            raise (placed.at(topic.source) if topic.source else placed) from None
        skipped[topic.qid] = reason.message
        return {}


def _report_skipped(skipped: Mapping[str, str], count: int) -> None:
    """Warns of each query that was left out, and of how many of the ``count`` queries were left out."""
    if not skipped:
        return
    for qid, reason in skipped.items():
        _logger.warning("query %s: %s; left out", qid, reason)
    if len(skipped) == count:
        raise EncodingError(f"none of the {count} queries can be composed")
    _logger.warning("%d of %d queries are left out", len(skipped), count)


def topic_query(topic: Topic) -> ParsedQuery:
    """The query of a topic."""
    if topic.composed is not None:
        return ParsedQuery(composed=from_json(topic.composed, topic.source or f"topic {topic.qid}"))
    return ParsedQuery(topic.expression, topic.decomposition)
