"""Reads runs: TREC, MS MARCO and this package's JSON."""

from __future__ import annotations

import logging
import math
import sys
from array import array
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyserini_compneg.eval.qrels import QRELS_AS_RUN
from pyserini_compneg.eval.tables import checked_score
from pyserini_compneg.support.arguments import finite_number, whole_number
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import iter_lines, source_name
from pyserini_compneg.support.json_objects import parse_json_object
from pyserini_compneg.support.terminal import shown

Run = dict[str, dict[str, float]]

_logger = logging.getLogger(__name__)
_Scored = tuple[str, str, float, float | None]
"""Query, document, score, and the rank; None if the format has no ranks."""


def read_run(path: str | Path) -> Run:
    """Reads a run: ``{qid: {docid: score}}``, in the order of the file.

    The first line determines the format: a JSON object, the six columns of TREC, or the three columns of MS MARCO.
    Ranks of MS MARCO become scores: -1 for rank 1, -2 for rank 2. A warning is logged for a file without lines, since
    every query then scores 0, and for TREC ranks that do not follow the scores. The scores count.

    Args:
        path: The file, plain or gzip, or ``-`` for standard input.

    Raises:
        InputError: A line cannot be read, a document is ranked twice for a query, or two documents have the same rank
            in MS MARCO's format.
    """
    run: Run = {}
    ranks: dict[str, array[float]] = {}
    read_line = None
    for number, line in iter_lines(path):
        source = f"{source_name(path)}:{number}"
        if read_line is None:
            read_line = _line_reader(line, source)
        for qid, docid, score, rank in read_line(line, source):
            documents = run.setdefault(qid, {})
            if docid in documents:
                raise InputError(f"document {docid!r} is ranked twice for query {qid!r}", where=source)
            documents[docid] = score
            if rank is not None:
                ranks.setdefault(qid, array("d")).append(rank)
    if not run:
        _logger.warning("%s: the run is empty, so every query scores 0", source_name(path))
    wrong = [qid for qid, given in ranks.items() if not _follow(given, run[qid].values())]
    if wrong and read_line is _msmarco_line:
        raise InputError(f"query {wrong[0]!r} has two documents of the same rank", where=source_name(path))
    if wrong:
        share = f"{len(wrong)} of {len(run)} queries, first {wrong[0]!r}"
        _logger.warning("%s: the ranks do not follow the scores, which count, in %s", source_name(path), share)
    return run


def _follow(ranks: Collection[float], scores: Collection[float]) -> bool:
    """Whether ranks are distinct and a higher score always has a better rank. NaN is not a rank."""
    if all(a < b for a, b in pairwise(ranks)) and all(a >= b for a, b in pairwise(scores)):  # in the order of the file
        return True
    by_score = sorted(zip((-score for score in scores), ranks, strict=True))
    return all(a < b for (_, a), (_, b) in pairwise(by_score))


def _line_reader(first_line: str, source: str) -> Any:
    if first_line.lstrip().startswith("{"):
        return _json_line
    columns = len(first_line.split())
    if columns == 6:
        return _trec_line
    if columns == 3:
        return _msmarco_line
    wanted = "`qid Q0 docid rank score tag`, `qid docid rank` or a JSON object"
    hint = QRELS_AS_RUN if columns == 4 else ""
    raise InputError(f"expected {wanted}, found {columns} columns", where=source, remedy=hint)


def _trec_line(line: str, source: str) -> Iterator[_Scored]:
    columns = line.split()
    if len(columns) != 6:
        raise InputError(f"expected the 6 columns `qid Q0 docid rank score tag`, found {len(columns)}", where=source)
    rank = finite_number(columns[3])
    score = finite_number(columns[4])
    checked = checked_score(columns[4] if score is None else score, source)
    yield columns[0], columns[2], checked, math.nan if rank is None else rank


def _msmarco_line(line: str, source: str) -> Iterator[_Scored]:
    columns = line.split()
    if len(columns) != 3:
        raise InputError(f"expected the 3 columns `qid docid rank`, found {len(columns)}", where=source)
    rank = whole_number(columns[2])
    if rank is None or not 1 <= rank <= sys.maxsize:
        raise InputError(f"the rank must be a whole number from 1, got {shown(columns[2])}", where=source)
    yield columns[0], columns[1], -float(rank), float(rank)


def _json_line(line: str, source: str) -> Iterator[_Scored]:
    record = parse_json_object(line, source)
    qid, hits = record.get("id"), record.get("hits")
    if not isinstance(qid, str) or not isinstance(hits, list):
        hint = QRELS_AS_RUN if "docs" in record else ""
        what = f'expected {{"id": text, "hits": [...]}}, found the fields {", ".join(record)}'
        raise InputError(what, where=source, remedy=hint)
    for hit in hits:
        if not isinstance(hit, dict) or not isinstance(hit.get("docid"), str):
            raise InputError(f'a hit must be {{"docid": text, "score": number}}, got {hit!r:.60}', where=source)
        yield qid, hit["docid"], checked_score(hit.get("score"), source), None
