"""Checks of judgements and runs, the same for the numbers of files and for dictionaries in memory."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.json_objects import id_text
from pyserini_compneg.support.surrogates import HALVES
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import finite_number

_LARGEST_RELEVANCE = 1_000_000  # trec_eval counts documents for every relevance up to the largest
_NOT_IN_C = re.compile(f"[\0{HALVES}]")
_Number = TypeVar("_Number", int, float)


def checked_relevance(value: object, where: str) -> int:
    """The relevance as an ``int``. A float must be whole."""
    number = float(value) if isinstance(value, bool) else finite_number(value)
    if number is None or not number.is_integer():
        raise InputError(f"the relevance must be a whole number, got {shown(value)}", where=where)
    if abs(number) > _LARGEST_RELEVANCE:
        raise InputError(f"the relevance must be at most {_LARGEST_RELEVANCE}, got {shown(value)}", where=where)
    return int(number)


def checked_score(value: object, where: str) -> float:
    """The score as a ``float``, which is finite."""
    score = finite_number(value)
    if score is None:
        raise InputError(f"the score must be a finite number, got {shown(value)}", where=where)
    return score


def checked_qrels(qrels: object) -> dict[str, dict[str, int]]:
    """Judgements in memory with ids that are texts and relevances that are whole, in the same order."""
    return _checked("qrels", qrels, checked_relevance, _are_relevances)


def checked_run(run: object) -> dict[str, dict[str, float]]:
    """A run in memory with ids that are texts and scores that are finite, in the same order."""
    return _checked("run", run, checked_score, _are_scores)


def _checked(
    name: str,
    table: object,
    check: Callable[[object, str], _Number],
    are_checked: Callable[[Collection[Any]], bool],
) -> dict[str, dict[str, _Number]]:
    if not isinstance(table, Mapping):
        raise ArgumentError(f"{name} must be a mapping of queries, as read_{name} reads a file, got {shown(table)}")
    checked: dict[str, dict[str, _Number]] = {}
    for qid, documents in zip(_texts(table, "query", name), table.values(), strict=True):
        where = f"{name}: query {shown(qid)}"
        if not isinstance(documents, Mapping):
            remedy = "give dict(hits) for hits" if isinstance(documents, list) else ""
            raise InputError(f"expected a mapping of documents, got {shown(documents)}", where=where, remedy=remedy)
        docids = _texts(documents, "document", where)
        if docids == list(documents) and are_checked(documents.values()):
            checked[qid] = dict(documents)  # this copy is quicker than one by the loop below
            continue
        pairs = zip(docids, documents.values(), strict=True)
        checked[qid] = {docid: check(number, f"{where}, document {shown(docid)}") for docid, number in pairs}
    return checked


def _are_relevances(numbers: Collection[Any]) -> bool:
    """A quick check of the common types."""
    return {*map(type, numbers)} <= {int} and max(map(abs, numbers), default=0) <= _LARGEST_RELEVANCE


def _are_scores(numbers: Collection[Any]) -> bool:
    """A quick check of the common type."""
    return {*map(type, numbers)} <= {float} and all(map(math.isfinite, numbers))


def _texts(ids: Iterable[Any], what: str, where: str) -> list[str]:
    """The ids as distinct texts that trec_eval's code can hold. A whole number becomes the text that a file has."""
    given = list(ids)
    texts = [one if isinstance(one, str) else id_text(one, f"the {what} id", where, InputError) for one in given]
    if _NOT_IN_C.search("".join(texts)):
        bad = next(filter(_NOT_IN_C.search, texts))
        raise InputError(f"the {what} id {shown(bad)} has a NUL character or half of a surrogate pair", where=where)
    if len(set(texts)) < len(texts):
        [(text, _)] = Counter(texts).most_common(1)
        raise InputError(f"the {what} id {text} is given twice, as a number and as a text", where=where)
    return texts
