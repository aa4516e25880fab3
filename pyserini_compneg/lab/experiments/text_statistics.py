"""Statistics of a dataset's texts: how long they are, and in how many words the two texts of a pair differ.

The length of a text counts what white space separates. The different words of a pair are the words that one of its
texts has and the other lacks, without case and punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from pyserini_compneg.documents import SourceDocument
from pyserini_compneg.eval import words_of
from pyserini_compneg.lab.experiments.inputs import STATISTICS
from pyserini_compneg.lab.experiments.results import Curve, Point
from pyserini_compneg.topics import Topic

_STEP = 5


def text_statistics(
    kind: str, topics: Sequence[Topic], documents: Iterable[SourceDocument]
) -> tuple[dict[str, float], Curve]:
    """The statistics of a split, and a distribution: of pairs by their different words, or of queries by their length.

    Source: Weller et al. 2024 (NevIR), Table 1, Figures 3 and 6; Zhang et al. 2024 (ExcluIR), Section 2.6, Figure 3.
    """
    queries = [topic.text for topic in topics]
    values: list[float] = [len(queries)]
    if kind == "nevir":
        questions = _pairs(queries)
        passages = _pairs([document.text or "" for document in documents])
        values = [len(questions), *_lengths(questions), *_lengths(passages)]
        shares = {"questions": _shares(map(_different, questions)), "passages": _shares(map(_different, passages))}
        curve = Curve("Different words of a pair", "number of words", "share of pairs", shares, "pairs")
    else:
        lengths = [len(text.split()) for text in queries]
        values += fmean(lengths), sum(1 for _ in documents)
        label = f"number of words, from this to {_STEP - 1} more"
        shares = {"all": _shares(length - length % _STEP for length in lengths)}
        curve = Curve("Lengths of queries", label, "share of queries", shares)
    return dict(zip(STATISTICS[kind], values, strict=True)), curve


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(texts[::2], texts[1::2], strict=True))


def _lengths(pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
    """The mean lengths of the first and the second texts, and the mean of the differences of a pair's two."""
    lengths = [(len(one.split()), len(other.split())) for one, other in pairs]
    yield from map(fmean, zip(*lengths, strict=True))
    yield fmean(abs(one - other) for one, other in lengths)


def _different(pair: tuple[str, str]) -> int:
    one, other = map(words_of, pair)
    return len({*one} ^ {*other})


def _shares(numbers: Iterable[int]) -> tuple[Point, ...]:
    """The share of each number, as a curve."""
    counts = Counter(numbers)
    total = counts.total()
    shares = ((number, count / total) for number, count in sorted(counts.items()))
    return tuple(Point(number, share, share, share, total) for number, share in shares)
