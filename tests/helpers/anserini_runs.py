"""Runs of stock ``SearchCollection``, and what Lucene itself finds for a composed query."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene import java_class
from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.gate import companion_jar
from pyserini_compneg.lucene.java_home import find_java

COMPOSED = ("-topicReader", "ComposedQuery", "-generator", "ComposedQueryGenerator")


def search_collection(index: Path, topics: Path, output: Path, hits: int, *options: str) -> dict[str, list[str]]:
    """The ranking of each query that has any, checked to have ranks from 1."""
    arguments = _arguments(index, topics, output, hits, *options)
    java_class("io.anserini.search.SearchCollection").main(arguments)
    return read_run(output)


def search_collection_process(
    index: Path, topics: Path, output: Path, *options: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The same, as a user runs it."""
    command = [str(find_java().program), "-cp", f"{anserini_jar()}{os.pathsep}{companion_jar()}"]
    command += ["io.anserini.search.SearchCollection", *_arguments(index, topics, output, 10, *options)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def _arguments(index: Path, topics: Path, output: Path, hits: int, *options: str) -> list[str]:
    arguments = ["-index", str(index), "-topics", str(topics), "-output", str(output), "-hits", str(hits)]
    return [*arguments, "-impact", "-pretokenized", *options]


def read_run(path: Path) -> dict[str, list[str]]:
    """The docids of each query of a TREC run."""
    rankings: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        qid, _, docid, rank, _, _ = line.split(" ")
        rankings.setdefault(qid, []).append(docid)
        assert int(rank) == len(rankings[qid])
    return rankings


def lucene_search(index: Path, lines: Iterable[str], hits: int) -> list[list[tuple[str, float]]]:
    """What an ``IndexSearcher`` of Lucene's finds in the order that Anserini asks for."""
    sort = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
    rankings = []
    with open_searcher(index) as searcher:
        for line in lines:
            found = searcher.search(java_class("io.compneg.ComposedQuery")("contents", line), hits, sort, True)
            ranked = java_class("io.anserini.search.ScoredDocs").fromTopDocs(found, searcher)
            rankings.append(list(zip(ranked.docids, ranked.scores, strict=True)))
    return rankings


@contextmanager
def open_searcher(index: Path) -> Iterator[Any]:
    """An ``IndexSearcher`` with its default similarity, which knows nothing of impacts."""
    file = java_class("java.io.File")(str(index))
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(
        java_class("org.apache.lucene.store.FSDirectory").open(file.toPath())
    )
    try:
        yield java_class("org.apache.lucene.search.IndexSearcher")(reader.getContext())
    finally:
        reader.close()
