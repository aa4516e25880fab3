"""Searches topics and writes a run file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from pyserini_compneg.reading.decomposition import to_object
from pyserini_compneg.search.answer import Answer
from pyserini_compneg.search.matches import Counting, Matches, Total
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit, write_run
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.support.staging import keep_inputs
from pyserini_compneg.topics.batch import topic_query, write_each
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
    remove_query: bool = False,
    sort: str | None = None,
) -> None:
    """Searches all topics and writes their run, atomically.

    If a shard is gone, rankings without its documents have ``-partial`` after the tag, and ``"partial": true`` in the
    ``json`` format, which also has the total of each query and what ``counting`` asks for. ``skip`` leaves out queries
    that cannot be encoded or composed, and lists them in a final warning. ``remove_query`` leaves out, of each topic,
    the document with the id of the topic.
    """
    notes = {t.qid: {"decomposition": to_object(t.decomposition)} for t in topics if t.decomposition}
    keep_inputs(output, searcher.reader.folder)

    is_marked = output_format == "json" and method is None

    def search(batch: Sequence[Topic]) -> dict[str, Answer]:
        request = SearchRequest(
            queries=list(map(topic_query, batch)),
            qids=[topic.qid for topic in batch],
            k=hits,
            threads=threads,
            filter=[topic.filter for topic in batch],
            remove_query=remove_query,
            lacks=is_marked,
            counting=counting if is_marked else None,
            sort=sort,
        )
        return {answer.qid: answer for answer in searcher.answers(request, method)}

    def write(handle: TextIO, batch: Sequence[Topic], found: Mapping[str, Answer]) -> None:
        name, more = (f"{tag}-partial", {"partial": True}) if searcher.reader.lost else (tag, {})
        for qid, answer in found.items():
            counted = (answer.matches or _by_hits(answer, hits)).to_object() if is_marked else {}
            write_run(handle, qid, answer.hits, output_format, name, notes.get(qid, {}) | more | counted, answer.lacks)

    write_each(topics, search, write, output, "searching", skip)


def _by_hits(answer: Answer, hits: int) -> Matches:
    """How many documents match, by the hits alone."""
    return Matches(Total(len(answer.hits), "eq" if len(answer.hits) < hits else "gte"), {})


def search_batch(
    searcher: SignedImpactSearcher,
    topics: Sequence[Topic],
    hits: int,
    threads: int,
    method: Method | None = None,
) -> dict[str, list[Hit]]:
    """The hits of some topics, by their ids. Each topic has its own filter."""
    queries, filters = list(map(topic_query, topics)), [topic.filter for topic in topics]
    return searcher.batch_search(queries, [topic.qid for topic in topics], hits, threads, filter=filters, method=method)
