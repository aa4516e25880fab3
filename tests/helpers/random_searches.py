"""Random collections in several segments, and random scoring trees over their terms."""

from __future__ import annotations

from typing import NamedTuple

import scoring_strategies
from hypothesis import strategies as st

from pyserini_compneg.compose import ScoringNode

TERMS = ("a", "b", "é", "😀", 'say"so"', "back\\slash", "{1}", "\uffee")
DOCIDS = st.text("aZ0é\uffee😀", min_size=1, max_size=3)  # in UTF-16 U+FFEE stands behind the emoji, in UTF-8 before

TERM = st.sampled_from(TERMS)
IMPACT = st.sampled_from([1, 1, 2, 2, 3, 7, 255, 256, 70_000])
WHOLE = st.integers(1, 4).map(float)
FRACTION = st.floats(0.01, 10.0)
WEIGHT = WHOLE | FRACTION
SIGNED_WEIGHT = WEIGHT | WEIGHT.map(lambda weight: -weight)


class Collection(NamedTuple):
    segments: list[dict[str, dict[str, int]]]
    deleted: list[str]

    @property
    def live(self) -> dict[str, dict[str, int]]:
        """The documents that may be found."""
        documents = {docid: impacts for segment in self.segments for docid, impacts in segment.items()}
        return {docid: impacts for docid, impacts in documents.items() if docid not in self.deleted}


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Up to 60 documents, many of them alike and some without terms, in one to three segments."""
    vectors = draw(st.lists(st.dictionaries(TERM, IMPACT, max_size=len(TERMS)), min_size=1, max_size=12))
    docids = draw(st.lists(DOCIDS, min_size=1, max_size=60, unique=True))
    choice = draw(st.randoms(use_true_random=False))
    segments: list[dict[str, dict[str, int]]] = [{} for _ in range(draw(st.integers(1, 3)))]
    for docid in docids:
        choice.choice(segments)[docid] = choice.choice(vectors)
    deleted = draw(st.lists(st.sampled_from(docids), max_size=5, unique=True)) if draw(st.booleans()) else []
    return Collection([segment for segment in segments if segment], deleted)


def trees(filters: st.SearchStrategy | None = None) -> st.SearchStrategy[ScoringNode]:
    """Trees over the terms of collections; a term may be in several leaves. Filters exclude documents, if given."""
    linear = st.dictionaries(TERM, SIGNED_WEIGHT, max_size=6)
    return scoring_strategies.trees(linear, st.dictionaries(TERM, WEIGHT, min_size=1, max_size=4), 4, filters)
