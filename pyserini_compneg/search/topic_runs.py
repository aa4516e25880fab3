"""From topics to a run file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.compose.batch import topic_query
from pyserini_compneg.errors import CompositionError, EncodingError
from pyserini_compneg.expression.decomposition import to_object
from pyserini_compneg.expression.topics import Topic
from pyserini_compneg.files import atomic_writer, keep_inputs
from pyserini_compneg.progress import progress
from pyserini_compneg.search.guard import search_guarded
from pyserini_compneg.search.run_writer import Hit, write_run
from pyserini_compneg.search.searcher import SignedImpactSearcher

Rankings: TypeAlias = dict[str, list[Hit]]

_logger = logging.getLogger(__name__)


def search_topics(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    output: str | Path | None,
    *,
    explain: bool = False,
    guard: bool = False,
    hits: int = 1000,
    threads: int = 1,
    batch_size: int = 64,
    output_format: str = "trec",
    tag: str = "compneg",
    skip: bool = False,
) -> None:
    """Searches all topics and writes their run, which appears complete or not at all.

    Args:
        searcher: An open searcher.
        topics: The topics.
        output: The run, or None for standard output.
        explain: Add to the ``json`` format how plain texts were decomposed.
        guard: Search with :mod:`pyserini_compneg.search.guard`.
        hits: Hits a query.
        threads: Queries searched at once.
        batch_size: Queries encoded and searched together.
        output_format: ``trec``, ``msmarco`` or ``json``.
        tag: The run's name.
        skip: Leave out queries that cannot be encoded or composed, and list them in a warning at the end.

    Raises:
        CompNegError: A query that cannot be encoded or composed, with its id; with ``skip`` only if that holds for all
            of them. Or an output that cannot be written.
    """
    notes = {t.qid: {"decomposition": to_object(t.decomposition)} for t in topics if explain and t.decomposition}
    keep_inputs(output, searcher.reader.folder)
    skipped: dict[str, str] = {}

    def search(batch: Sequence[Topic]) -> Rankings:
        if guard:
            return search_guarded(searcher, batch, hits, threads)
        queries = [topic_query(topic) for topic in batch]
        return searcher.batch_search(queries, [topic.qid for topic in batch], hits, threads)

    with atomic_writer(output) as handle, progress(None, len(topics), " queries", "searching") as bar:
        for start in range(0, len(topics), batch_size):
            batch = topics[start : start + batch_size]
            results = _searched(batch, search, skipped if skip else None)
            for qid, ranked in results.items():
                write_run(handle, qid, ranked, output_format, tag, notes.get(qid))
            bar.update(len(batch))
        if skipped:
            listed = "".join(f"\n  {qid}: {reason}" for qid, reason in skipped.items())
            if len(skipped) == len(topics):
                raise EncodingError(f"none of the {len(topics)} queries can be searched:{listed}")
            _logger.warning("%d of %d queries are left out of the run:%s", len(skipped), len(topics), listed)


def _searched(
    batch: Sequence[Topic], search: Callable[[Sequence[Topic]], Rankings], skipped: dict[str, str] | None
) -> Rankings:
    """The rankings of topics; if one of them cannot be composed, all are searched one by one to find it.

    Args:
        batch: The topics.
        search: Searches topics.
        skipped: Takes the reasons why topics are left out, by their ids; None if an error ends the search.
    """
    try:
        return search(batch)
    except (EncodingError, CompositionError) as error:
        if len(batch) > 1:
            return {qid: hits for topic in batch for qid, hits in _searched([topic], search, skipped).items()}
        (topic,) = batch
        reason = str(error).removeprefix(f"{topic.source}: ")
        if skipped is None:
            raise type(error)(f"{f'{topic.source}: ' if topic.source else ''}query {topic.qid}: {reason}") from None
        skipped[topic.qid] = reason
        return {}
