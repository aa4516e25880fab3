"""Reads an index of passages as an index of documents. A document's score is the score of its best passage (MaxP).

Each passage is a document of Lucene with the id ``docid#00003``, the form that Anserini's ``-selectMaxPassage`` takes.
The last ``#`` ends the document's id, so that ids of documents may have one, too. The first documents of the exact
ranking of passages are the exact best documents: this ranking is read until there are enough.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pyserini_compneg.compose import Excluding, ScoringNode
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import ID
from pyserini_compneg.lucene.index_settings import FIRST_PASSAGE, MOST_PASSAGES, PASSAGE_OF
from pyserini_compneg.lucene.rankings import MatchCount, PassageRanking, Ranking, Scores
from pyserini_compneg.lucene.requests import After, ComposedSearch, Filtered, Opened, Reader, checked_nodes
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import IndexFormatError

SOURCE = "#source"
"""The key of a document's source in the stored line of its first passage. No filter field can have this name."""

_SIGN = "#"
_DIGITS = len(str(MOST_PASSAGES - 1))  # so that the order of ids is the order of passages
_YES = "yes"
_FIRST = Filter({FIRST_PASSAGE: _YES})


class _Best(NamedTuple):
    score: float
    number: int


class PassageReader(Reader):
    """Reads the passages of an index by the ids of their documents. It closes the given reader of the passages."""

    def __init__(self, passages: Reader) -> None:
        super().__init__(passages.folder)
        self.passages = passages

    @property
    def _opened(self) -> Opened:
        return self.passages._opened

    def is_replaced(self) -> bool:
        return self.passages.is_replaced()

    def reopen(self) -> bool:
        """As of the passages. The new index may have none: :func:`by_document` gives its reader."""
        return self.passages.reopen()

    def _concepts(self) -> Sequence[str]:
        return self.passages.concepts

    def stored(self) -> tuple[bool, bool]:
        return self.passages.stored()

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        return self.passages.document_frequencies(terms)

    @property
    def document_count(self) -> int:
        return self.passages.filtered(_FIRST).allowed

    def _filtered(self, filter: Filter) -> Filtered:
        found = self.passages.filtered(self._translated(filter) & _FIRST)
        if ID not in filter.fields:
            return found
        ids = self.passages.filtered(Filter({ID: [passage_id(docid, 0) for docid in filter.fields[ID]]}))
        return found._replace(unknown=ids.unknown, first=ids.first and document_of(ids.first)[0])

    def _translated(self, filter: Filter) -> Filter:
        """The filter of passages. Refuses fields that documents cannot be filtered by."""
        self._check_fields(filter.fields.keys() - {ID, PASSAGE_OF})
        others = {name: values for name, values in filter.fields.items() if name != ID}
        return Filter(others | (dict(_only(filter.fields[ID]).fields) if ID in filter.fields else {}))

    def _check_fields(self, names: Iterable[str]) -> None:
        known = self.manifest.filter_fields if self.manifest else ()
        for name in names:
            if name not in known:
                what = f"cannot be filtered: it has no filter field {name!r}"
                raise IndexFormatError(what, where=self.folder, remedy=f"build it with --filter-fields {name}")

    def _translated_request(self, request: ComposedSearch) -> ComposedSearch:
        self._check_fields([] if request.sort is None else [request.sort.field])
        filters = [None if one is None else self._translated(one) for one in request.filters]
        return replace(request, queries=list(map(self._translated_query, request.queries)), filters=filters)

    def _translated_query(self, node: ScoringNode) -> ScoringNode:
        """The query with filters of passages."""
        node = node.with_children(list(map(self._translated_query, node.children)))
        if not isinstance(node, Excluding):
            return node
        excluded = [self._translated(part) if isinstance(part, Filter) else part for part in node.excluded]
        return replace(node, excluded=tuple(excluded))

    def find(self, request: ComposedSearch) -> Sequence[Ranking]:
        return self._find(self._translated_request(request))

    def _find(self, asked: ComposedSearch) -> list[PassageRanking]:
        """Searches translated queries."""
        hits = min(asked.hits, self.document_count)
        found: list[dict[str, _Best]] = [{} for _ in asked.queries]
        marks: list[After] = [None if one is None else ("", one[1]) for one in asked.after]  # with all of this score
        pending, page = list(range(len(found))), 2 * hits + 10
        while pending:
            request = replace(
                asked,
                hits=page,
                queries=[asked.queries[i] for i in pending],
                filters=[asked.filters[i] for i in pending],
                thresholds=[asked.thresholds[i] for i in pending],
                after=[marks[i] for i in pending],
            )
            rankings = self.passages.find(request)
            for i, ranking in zip(list(pending), rankings, strict=True):
                found[i] |= self._new(asked.of_query(i), ranking, found[i])
                if len(ranking.docids) < page or _is_complete(found[i], hits, ranking.scores[-1]):
                    pending.remove(i)
                else:
                    marks[i] = ranking.docids[-1], ranking.scores[-1]
            page *= 2
        return [_ranking(one, hits) for one in found]

    def _new(self, asked: ComposedSearch, ranking: Ranking, known: Mapping[str, _Best]) -> dict[str, _Best]:
        """The documents of a ranking of passages that are not known. Those before the mark have a better passage."""
        new: dict[str, _Best] = {}
        (after,) = asked.after
        for passage, score in zip(ranking.docids, ranking.scores, strict=True):
            docid, number = document_of(passage)
            if docid not in known and docid not in new and (after is None or (-score, docid) > (-after[1], after[0])):
                new[docid] = _Best(score, number)
        if after is None or not new:
            return new
        (best,) = self._find(ComposedSearch(asked.queries, len(new), filters=[_only(new)], sort=asked.sort))
        scores = dict(zip(best.docids, best.scores, strict=True))
        return {docid: one for docid, one in new.items() if scores[docid] == one.score}

    def count(self, request: ComposedSearch) -> list[MatchCount]:
        self._check_fields(request.facets)
        return self.passages.count(replace(self._translated_request(request), passages_of=PASSAGE_OF))

    def score(self, queries: Sequence[ScoringNode], docids: Sequence[Sequence[str]], threads: int = 1) -> Scores:
        queries, docids = checked_nodes(queries), [checked_list("docids", one) for one in docids]
        there = [list(filter(self.has, group)) for group in docids]
        filters = [Filter({ID: group}) for group in there]
        found = self.search(queries, max(map(len, there), default=0), threads, filters)
        scores = [dict(zip(one.docids, one.scores, strict=True)) for one in found]
        return [
            [ranked.get(docid) if docid in known else math.inf for docid in group]
            for ranked, known, group in zip(scores, map(set, there), docids, strict=True)
        ]

    def explain(self, query: ScoringNode, docid: str, filter: Filter | None = None) -> dict[str, Any] | None:
        (node,) = map(self._translated_query, checked_nodes([query]))
        if not self.has(docid):
            return None
        (best,) = self._find(ComposedSearch([node], 1, filters=[_only([docid])]))
        number = best.passages[0] if best.docids else 0
        allowed = None if filter is None else self._translated(filter)
        parts = self.passages.explain(node, passage_id(docid, number), allowed)
        return parts and {**parts, "passage": number}

    def has(self, docid: str) -> bool:
        return self.passages.has(passage_id(docid, 0))

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        stored = self.passages.raws([passage_id(docid, 0) for docid in checked_list("docids", docids)])
        return [None if line is None else json.loads(line)[SOURCE] for line in stored]

    def vector(self, docid: str) -> dict[str, int] | None:
        raise IndexFormatError("has a vector for each passage, and none of a whole document", where=self.folder)


def by_document(reader: Reader) -> Reader:
    """The reader itself, or the reader of documents if the index has passages."""
    reader = reader.passages if isinstance(reader, PassageReader) else reader
    return PassageReader(reader) if reader.manifest and reader.manifest.passages else reader


def passage_id(docid: str, number: int) -> str:
    """The id of a passage. Numbers start at 0.

    >>> passage_id("Spy_Chasers", 3)
    'Spy_Chasers#00003'
    """
    return f"{docid}{_SIGN}{number:0{_DIGITS}}"


def document_of(passage: str) -> tuple[str, int]:
    """The document of a passage, and the passage's number.

    >>> document_of("a#1#00003")
    ('a#1', 3)
    """
    docid, _, number = passage.rpartition(_SIGN)
    return docid, int(number)


def passage_fields(docid: str, number: int) -> dict[str, str]:
    """The fields by which a passage is found, beside the filter fields of its document."""
    return {PASSAGE_OF: all_passages(docid)} | ({} if number else {FIRST_PASSAGE: _YES})


def all_passages(docid: str) -> str:
    """The value of ``PASSAGE_OF`` of a document. The sign keeps ids such as 1990..1999 from being ranges."""
    return docid + _SIGN


def _only(docids: Iterable[str]) -> Filter:
    """All passages of some documents."""
    return Filter({PASSAGE_OF: list(map(all_passages, docids))})


def _order(one: tuple[str, _Best]) -> tuple[float, str]:
    return -one[1].score, one[0]


def _is_complete(found: Mapping[str, _Best], hits: int, last: float) -> bool:
    """Whether no passage behind those read can change the best documents; ``last`` is the score of the last one.

    Passages of one score come in the order of their ids, so a later document has a larger id. There is one exception:
    behind an id with a character up to the sign, such as ``a!`` or ``a#1``, the smaller id ``a`` may follow.
    """
    if len(found) < hits:
        return False
    tied = [docid for docid, one in sorted(found.items(), key=_order)[:hits] if one.score == last]
    return all(min(docid) > _SIGN for docid in tied)


def _ranking(found: Mapping[str, _Best], hits: int) -> PassageRanking:
    ranked = sorted(found.items(), key=_order)[:hits]
    scores = array("f", [best.score for _, best in ranked])
    return PassageRanking([docid for docid, _ in ranked], scores, [best.number for _, best in ranked])
