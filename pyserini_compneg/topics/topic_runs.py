"""Searches topics and writes a run file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from pyserini_compneg.reading.decomposition import to_object
from pyserini_compneg.search.matches import Counting, Matches, Total, count_matches
from pyserini_compneg.search.run_writer import Hit, write_run
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.staging import keep_inputs
from pyserini_compneg.topics.batch import topic_query, write_answers
from pyserini_compneg.topics.topics import Topic


def search_topics(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    output: str | Path | None,
    *,
    hits: int = 1000,
    threads: int = 1,
    output_format: str = "trec",
    tag: str = "compneg",
    skip: bool = False,
    method: Method | None = None,
    counting: Counting | None = None,
) -> None:
    """Searches all topics and writes their run, atomically.

    If a shard is gone, rankings without its documents have ``-partial`` after the tag, and ``"partial": true`` in the
    ``json`` format, which also has the total of each query and what ``counting`` asks for. ``skip`` leaves out queries
    that cannot be encoded or composed, and lists them in a final warning.
    """
    notes = {t.qid: {"decomposition": to_object(t.decomposition)} for t in topics if t.decomposition}
    keep_inputs(output, searcher.reader.folder)

    def search(batch: Sequence[Topic]) -> dict[str, list[Hit]]:
        return search_batch(searcher, batch, hits, threads, method)

    def write(handle: TextIO, batch: Sequence[Topic], found: Mapping[str, Sequence[Hit]]) -> None:
        is_marked = output_format == "json" and method is None
        lacking = _lacking(searcher, batch, found, threads) if is_marked else {}
        name, more = (f"{tag}-partial", {"partial": True}) if searcher.reader.is_partial else (tag, {})
        counted = _counted(searcher, batch, found, hits, counting, threads) if is_marked else {}
        for qid, ranked in found.items():
            extra = {**notes.get(qid, {}), **more, **counted.get(qid, {})}
            write_run(handle, qid, ranked, output_format, name, extra, lacking.get(qid, ()))

    write_answers(topics, search, write, output, "searching", skip)


def _lacking(
    searcher: SignedImpactSearcher, topics: Sequence[Topic], found: Mapping[str, Sequence[Hit]], threads: int
) -> dict[str, list[tuple[str, ...]]]:
    """The operands of AND that hits lack, by the ids of their topics."""
    queries = [topic_query(topic) for topic in topics if topic.qid in found]
    qids = [topic.qid for topic in topics if topic.qid in found]
    docids = [[hit.docid for hit in found[qid]] for qid in qids]
    return dict(zip(qids, searcher.batch_lacking(queries, docids, threads), strict=True))


def _counted(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    found: Mapping[str, Sequence[Hit]],
    hits: int,
    counting: Counting | None,
    threads: int,
) -> dict[str, dict[str, Any]]:
    """How many documents match each query, as fields of the JSON format: by its hits alone, if no more is asked."""
    totals = {qid: Total(len(one), "eq" if len(one) < hits else "gte") for qid, one in found.items()}
    if counting is None:
        return {qid: Matches(total, {}).to_object() for qid, total in totals.items()}
    topics = [topic for topic in topics if topic.qid in found]
    nodes = searcher.compose([topic_query(topic) for topic in topics])
    return {
        topic.qid: count_matches(
            searcher.reader, node, topic.filter, counting, threads, len(found[topic.qid]), hits
        ).to_object()
        for topic, node in zip(topics, nodes, strict=True)
    }


def search_batch(
    searcher: SignedImpactSearcher, topics: Sequence[Topic], hits: int, threads: int, method: Method | None = None
) -> dict[str, list[Hit]]:
    """The hits of some topics, by their ids. Each topic has its own filter."""
    queries, filters = [topic_query(topic) for topic in topics], [topic.filter for topic in topics]
    qids = [topic.qid for topic in topics]
    return searcher.batch_search(queries, qids, hits, threads, filter=filters, method=method)
