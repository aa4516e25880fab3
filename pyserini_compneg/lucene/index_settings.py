"""The settings of a new index, in one object, from the flags of a command to Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from pyserini_compneg.expression.filters import checked_fields
from pyserini_compneg.lucene.manifest import LARGEST_IMPACT, Manifest, fit_pair_scale, fit_passages
from pyserini_compneg.support.arguments import finite_number, whole_number
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.existing_work import Existing, ExistingWork, existing_option
from pyserini_compneg.support.options import COUNT, Number, check_options, option
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import PAIR_SCALE, PAIR_SIGN, is_complement, is_pair, pair_term

MOST_PAIR_TERMS = 256
"""A document with this many terms has 32,640 pairs."""

MOST_PAIRS = 1_000_000
"""The most pairs that may be chosen. The manifest has them, and every search reads it."""

LEAST_REORDERED = 1_000
"""An index of this many documents or more is reordered if ``reorder`` is None."""

MOST_PASSAGES = 100_000
"""The most passages of a document. The numbers in their ids have as many digits as this needs."""

PASSAGE_OF, FIRST_PASSAGE = "passage.of", "passage.first"
"""Filter fields of passages: the document of each, and what only the first of each document has."""

STORED = ("store_raw", "store_docvectors", "shard")
"""The settings that the manifest lacks, and that must be equal to continue a build."""

_RESERVED = {"id", "contents", "raw", "compneg.hash", PASSAGE_OF, FIRST_PASSAGE}
SCALE = Number(f"a finite number above 0, at most {LARGEST_IMPACT}", finite_number, lambda x: 0 < x <= LARGEST_IMPACT)
_PAIRS = Number(
    f"0, or a whole number from 2 to {MOST_PAIR_TERMS}", whole_number, lambda n: n == 0 or 2 <= n <= MOST_PAIR_TERMS
)


def check_passages(passages: object) -> None:
    """Refuses sizes of passages that texts cannot be split into. None, or no sizes, mean no passages."""
    if passages and not (isinstance(passages, Mapping) and fit_passages(passages)):
        what = "passages must be of so many words, with a smaller overlap, such as words=200,overlap=50"
        raise ArgumentError(f"{what}, got {shown(passages)}")


@dataclass(frozen=True, slots=True)
class IndexSettings(ExistingWork):
    """How an index is made.

    Attributes:
        threads: Threads that parse and index. The default is the number of processors, the maximum four times as many.
        store_raw: Keep each document's source, to show it with a hit.
        filter_fields: Fields of each document's source that a search can filter by: texts, numbers, or lists of these.
        passages: ``{"words": 200, "overlap": 50}`` splits each text into passages of 200 words, 50 of them also in
            the passage before; empty for no passages. Only :func:`build_index` splits texts, and takes the sizes of
            vectors from the file beside them.
        impact_scale: Impact = round(weight * impact_scale), half to even, above 0 and at most ``LARGEST_IMPACT``.
            Impacts of 0 are dropped. With 1 the weights must be whole numbers. None means 256 for ``bm25`` and hybrids
            with it, 51.2 for models, as in Pyserini, and 1 for vectors in the documents.
        pair_terms: Write Combined Pseudo-Terms: the pairs ``a∩b`` of this many heaviest terms of each document, with
            impact √(dᵢ·dⱼ) (Krasakis et al., Eq. 7); 0 for no pairs, at most ``MOST_PAIR_TERMS``.
        pairs: Write these pairs only, in each document that has both terms; see
            :func:`~pyserini_compneg.compose.query_pairs`. At most ``MOST_PAIRS``.
        pair_scale: The impacts of pairs are multiplied by this power of two before they are rounded, and the weights of
            pairs in queries divided by it. 1 is the scale of indexes of earlier releases.
        signed: Accept negative weights, each as an impact of the complement term ``¬t``.
        store_docvectors: Keep each document's terms and impacts as a term vector.
        optimize: Merge the index into one segment.
        reorder: Merge the index, put documents that share terms beside each other, and write for each block of
            documents its postings of frequent terms and their largest impacts. Searches find the same, and the first
            hits faster. None does so from ``LEAST_REORDERED`` documents on, if the index has no pairs and Java's heap
            is large enough.
        on_error: ``stop`` at a bad document, or ``skip`` it and list it in the index's ``SKIPPED_LOG``. If several
            documents have the same id, all but the first are bad.
        existing: How to treat an existing index or unfinished build. ``refuse`` raises an OutputError. ``resume``
            continues the unfinished build, and raises an OutputError if something has changed since. ``overwrite``
            replaces the index and discards the unfinished build. ``replace`` replaces the index; it continues the
            unfinished build if nothing has changed since, and otherwise starts again. ``resume or overwrite`` also
            replaces the index, but raises an OutputError if something has changed.
        shard: The index is a shard of a larger index, which has the filter fields. The shard itself may lack some of
            them.
    """

    threads: int | None = option(None, "threads (default: one for each processor)", COUNT)
    store_raw: bool = option(False, "keep each document's line, to show it with its hit")
    filter_fields: tuple[str, ...] = ()
    passages: Mapping[str, int] = field(default_factory=dict)
    impact_scale: float | None = option(
        None,
        "impact = round(weight * X); default 256 for bm25 and bm25+MODEL, 51.2 for models, 1 for vectors of whole "
        "numbers",
        SCALE,
    )
    pair_terms: int = option(
        0,
        "also index the pairs of each document's N heaviest terms, for search --cpt materialised",
        _PAIRS,
        metavar="N",
    )
    pairs: tuple[str, ...] = ()
    pair_scale: int = PAIR_SCALE
    signed: bool = option(False, "accept negative weights, as complement terms")
    store_docvectors: bool = option(False, "keep each document's terms and impacts")
    optimize: bool = option(False, "merge the index into one segment")
    reorder: bool | None = option(
        None,
        "merge it, and put documents with common terms beside each other: finds the first hits faster, and takes up to "
        f"twice the space (default: from {LEAST_REORDERED:,} documents on)",
        choices=(True, False),
    )
    on_error: Literal["stop", "skip"] = option(
        "stop",
        "a bad document ends the build (default), or is skipped and listed in the index",
        choices=("stop", "skip"),
    )
    existing: Literal[Existing, "replace"] = existing_option("replace")
    shard: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        fields = checked_fields(self.filter_fields)
        if taken := _RESERVED.intersection(fields):
            raise ArgumentError(f"filter fields: {min(taken)!r} has another use in the index; rename the field")
        object.__setattr__(self, "filter_fields", fields)
        check_passages(self.passages)
        if self.passages and self.on_error == "skip":
            raise ArgumentError("passages of bad documents cannot be skipped", remedy="leave out on_error")
        self._check_pairs()

    def _check_pairs(self) -> None:
        texts = [] if isinstance(self.pairs, str) else [pair for pair in self.pairs if isinstance(pair, str)]
        for pair in texts:
            if PAIR_SIGN in pair and any(map(is_complement, pair.split(PAIR_SIGN))):
                what = f"the pair {shown(pair)} is of a complement, which no index pairs"
                raise ArgumentError(what, remedy="name pairs of terms without ¬")
        named = {pair_term(*parts) if len(parts := pair.split(PAIR_SIGN)) == 2 else pair for pair in texts}
        if len(texts) < len(self.pairs) or not all(map(is_pair, texts)) or not all(map(is_pair, named)):
            raise ArgumentError(f"pairs must be pairs of terms, such as 'andes∩birds', got {shown(self.pairs)}")
        if self.pairs and self.pair_terms:
            raise ArgumentError("pairs and pair_terms are two choices of the pairs to index", remedy="leave out one")
        if len(self.pairs) > MOST_PAIRS:
            raise ArgumentError(f"an index may have {MOST_PAIRS:,} chosen pairs, got {len(self.pairs):,}")
        if not fit_pair_scale(self.pair_scale):
            raise ArgumentError(f"pair_scale must be a power of two, at most 1,024, got {shown(self.pair_scale)}")
        object.__setattr__(self, "pairs", tuple(sorted(named)))

    @property
    def indexed_fields(self) -> tuple[str, ...]:
        """The filter fields that Lucene indexes."""
        return self.filter_fields + ((PASSAGE_OF, FIRST_PASSAGE) if self.passages else ())


RECORDED = sorted({one.name for one in fields(IndexSettings)} & {one.name for one in fields(Manifest)})
"""The settings that the manifest has, too."""
