"""Writes rankings as TREC, MS MARCO or JSON runs, one query at a time."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TextIO

from pyserini_compneg.support.errors import ArgumentError, OutputError

OUTPUT_FORMATS = ("trec", "msmarco", "json")

_MICRO = 1_000_000
_CLEAR_STEP, _CLEAR_SHARE = 4e-6, 5e-7
"""Scores further apart than this differ both as six decimals and as 32-bit floats, whatever their size."""

_LARGEST_SINGLE = 3.4e38
_SINGLE = struct.Struct("f")


class Hit(NamedTuple):
    """A document in a ranking."""

    docid: str
    score: float


class PassageHit(Hit):
    """A document that was found by its best passage, whose number it has. It is a pair and equals one, as any hit."""

    passage: int

    def __new__(cls, docid: str, score: float, passage: int = 0) -> PassageHit:
        hit = super().__new__(cls, docid, score)
        hit.passage = passage
        return hit

    def __repr__(self) -> str:
        return f"PassageHit(docid={self.docid!r}, score={self.score!r}, passage={self.passage})"


def write_run(
    handle: TextIO,
    qid: str,
    hits: Sequence[Hit],
    output_format: str = "trec",
    tag: str = "compneg",
    extra: Mapping[str, Any] | None = None,
    lacking: Sequence[Sequence[str]] = (),
) -> None:
    """Writes the ranking of one query.

    ``trec`` lines are ``qid Q0 docid rank score tag``, ``msmarco`` lines are ``qid<TAB>docid<TAB>rank``, with ranks
    from 1. ``json`` is one line ``{"id", "hits": [{"docid", "rank", "score", ...}]}``, also for a query without hits.
    ``trec`` has the scores of :func:`printed_scores`, ``json`` the scores of the hits.

    Args:
        handle: The file to write to.
        qid: The query id.
        hits: The ranking, best first.
        output_format: One of ``OUTPUT_FORMATS``.
        tag: The name of the run, the last column of ``trec``.
        extra: Further fields about the query for the JSON format.
        lacking: For the JSON format, the operands of AND that each hit lacks, written as ``lacks`` if there are any.

    Raises:
        OutputError: The format cannot hold an id, or a score is not a finite number.
        ValueError: The format is unknown, or the hits are not in the order of their scores.
    """
    if output_format == "json":
        handle.write(_json_line(qid, hits, extra or {}, lacking or [()] * len(hits)))
        return
    if output_format not in OUTPUT_FORMATS:
        raise ValueError(f"unknown output format {output_format!r}; expected one of {', '.join(OUTPUT_FORMATS)}")
    _check_column("query id", qid)
    _check_column("tag", tag)
    docids, printed = [docid for docid, _ in hits], _printed(hits)
    if " ".join(docids).split() != docids:
        for docid in docids:
            _check_column("document id", docid)
    if output_format == "msmarco":
        lines = [f"{qid}\t{docid}\t{rank}\n" for rank, docid in enumerate(docids, 1)]
    else:
        ranked = enumerate(zip(docids, printed, strict=True), 1)
        lines = [f"{qid} Q0 {docid} {rank} {score} {tag}\n" for rank, (docid, score) in ranked]
    handle.write("".join(lines))


def printed_scores(hits: Sequence[Hit]) -> list[float]:
    """The scores to print, rounded to six decimals, and lowered if trec_eval would see a tie between two of them.

    trec_eval ignores ranks and the order of lines. It sorts by score in single precision, and breaks ties by docid in
    *descending* order. Rankings of this package, like Lucene and Anserini, break ties by docid in ascending order. So
    each score must be below the previous score as a 32-bit float: by 0.000001 for scores under 8, by more for larger
    scores, where such a step is lost (from 16384 on, scores 0.0005 apart are equal to trec_eval). Anserini also lowers
    ties, by 0.000001 at all sizes, which is too little for the large scores of impact indexes.

    >>> printed_scores([Hit("a", 2.0), Hit("b", 2.0), Hit("c", -0.0)])
    [2.0, 1.999999, 0.0]
    >>> printed_scores([Hit("a", 30000.0), Hit("b", 30000.0)])
    [30000.0, 29999.998045]
    """
    return list(map(float, _printed(hits)))


def _printed(hits: Sequence[Hit]) -> list[str]:
    """The printed scores as text. Lowered scores are computed in whole millionths, so that steps are exact."""
    scores = [score for _, score in hits]
    for hit in (*hits[:1], *hits[-1:]):
        _check_score(hit)
    texts = [f"{score:.6f}" for score in scores]
    if "-0.000000" in texts:
        texts = ["0.000000" if text == "-0.000000" else text for text in texts]
    largest = max(map(abs, scores), default=0.0)
    clear = _CLEAR_STEP + _CLEAR_SHARE * largest + 1 / _MICRO  # rounding moves a score by half a millionth
    lowered = 0
    for place, (above, score) in enumerate(pairwise(scores), 1):
        if above - score >= clear and lowered != place - 1:
            continue
        _check_score(hits[place])
        if score > above:
            raise ValueError(f"hits are not ranked: {hits[place].docid!r} scores {score} after {above}")
        if float(texts[place - 1]) - score < _CLEAR_STEP + _CLEAR_SHARE * abs(score):
            millionths = _below(_micro(texts[place - 1]), _micro(texts[place]))
            whole, fraction = divmod(abs(millionths), _MICRO)
            texts[place] = f"{'-' if millionths < 0 else ''}{whole}.{fraction:06d}"
            lowered = place
    return texts


def _below(previous: int, score: int) -> int:
    """``score``, lowered if necessary to differ from ``previous`` as a 32-bit float; both in millionths."""
    score = min(score, previous - 1)
    kept = _single(previous)
    if _single(score) == kept:
        exponent = math.frexp(previous / _MICRO)[1]
        step = int(math.ldexp(_MICRO, exponent - 24)) + 1  # slightly more than the distance to the next 32-bit float
        while _single(score) == kept:
            score -= step
    return score


def _micro(text: str) -> int:
    return int(text.replace(".", ""))


def _single(score: int) -> bytes:
    """A printed score in trec_eval's precision."""
    return _SINGLE.pack(score / _MICRO)


def _check_score(hit: Hit) -> None:
    if not abs(hit.score) < _LARGEST_SINGLE:
        raise OutputError(f"the score of document {hit.docid!r} must be a finite 32-bit number, got {hit.score}")


def _json_line(qid: str, hits: Sequence[Hit], extra: Mapping[str, Any], lacking: Sequence[Sequence[str]]) -> str:
    ranked = []
    for rank, (hit, lacks) in enumerate(zip(hits, lacking, strict=True), 1):
        _check_score(hit)
        marked: dict[str, Any] = {"passage": hit.passage} if isinstance(hit, PassageHit) else {}
        marked |= {"lacks": list(lacks)} if lacks else {}
        ranked.append({"docid": hit.docid, "rank": rank, "score": hit.score + 0.0, **marked})
    return json.dumps({"id": qid, **extra, "hits": ranked}, ensure_ascii=False) + "\n"


def _check_column(what: str, text: str) -> None:
    error = ArgumentError if what == "tag" else OutputError
    if text.split() != [text]:
        raise error(f"the {what} {text!r} cannot stand in a run, whose columns end at white space; use json")
    if what == "tag" and not text.isprintable():
        raise error(f"the tag {text!r} has control characters; use printable ones")
