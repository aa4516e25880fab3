"""An export is kept only if it gives the vectors of its original."""

from __future__ import annotations

import math
from typing import NamedTuple

from pyserini_compneg.encode.models.batching import SparseModel, encode_tokens
from pyserini_compneg.encode.models.tokenizer import TextTokenizer
from pyserini_compneg.errors import EncodingError
from pyserini_compneg.vectors import SparseVector, dot, norm

TOLERANCE = 1e-4
"""How much a weight of an fp32 export may differ from torch's, relative to the larger of 1 and the weight."""

LEAST_COSINE = {"int8": 0.95, "fp16": 0.999}
"""How alike the vectors of a lower precision must be to torch's, on average over the samples."""

_LEAD = (
    "The film follows a retired spy who is called back to Vienna, where an old friend has vanished with a list of "
    "names. Shot in black and white on the streets of the city, it was praised for its pace and its music. "
)
SAMPLES = (
    "birds of Colombia",
    "spy films but not comedies",
    "Which novels of 1999 were set in Japan, and who wrote them?",
    "a",
    "non-European monarchs (1701-1714); élite naïveté, Ångström, 東京, αβγ, 😀",
    "x" * 300,
    "[CLS] [MASK] odd \t tokens \n and   spaces ...!?",
    _LEAD,
    _LEAD * 20,
)
"""Texts of one token and of more than any model reads, so that padding and cutting are part of the comparison."""


class Comparison(NamedTuple):
    """How an export compares with torch on texts.

    Attributes:
        largest_difference: Of a weight, relative to the larger of 1 and the weight.
        mean_cosine: Of a text's two vectors.
    """

    largest_difference: float
    mean_cosine: float

    def check(self, precision: str) -> None:
        """Refuses what differs too much.

        Raises:
            EncodingError: It does.
        """
        if precision == "fp32" and not self.largest_difference <= TOLERANCE:
            raise EncodingError(
                f"the export's weights differ from torch's by {self.largest_difference:.2g}, more than "
                f"{TOLERANCE:g}; choose --backend torch"
            )
        if precision != "fp32" and not self.mean_cosine >= LEAST_COSINE[precision]:
            raise EncodingError(
                f"{precision} changes the vectors too much (mean cosine {self.mean_cosine:.3f}, at least "
                f"{LEAST_COSINE[precision]:g}); choose --precision fp32"
            )


def compare(original: SparseModel, export: SparseModel, tokenizer: TextTokenizer) -> Comparison:
    """Compares the vectors of the samples.

    Raises:
        EncodingError: There is nothing to compare.
    """
    ids, terms = tokenizer(SAMPLES).ids, tokenizer.terms
    pairs = list(zip(encode_tokens(original, ids, terms), encode_tokens(export, ids, terms), strict=True))
    weights = [weight for pair in pairs for vector in pair for weight in vector.values()]
    if not weights or not all(map(math.isfinite, weights)):
        raise EncodingError("its vectors of the sample texts are empty, or not finite; nothing could be compared")
    return Comparison(max(_difference(*pair) for pair in pairs), sum(_cosine(*pair) for pair in pairs) / len(pairs))


def _difference(a: SparseVector, b: SparseVector) -> float:
    return max(
        (abs(a.get(term, 0.0) - b.get(term, 0.0)) / max(1.0, abs(a.get(term, 0.0))) for term in {**a, **b}), default=0.0
    )


def _cosine(a: SparseVector, b: SparseVector) -> float:
    lengths = norm(a) * norm(b)
    return dot(a, b) / lengths if lengths else float(not a and not b)
