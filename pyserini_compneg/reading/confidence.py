"""How likely it is that a reading is right, from signs that go with errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyserini_compneg.reading.words import AND, EXCLUDED, OR

SIGNS = ("least", "lost", "any_lost", "excluded", "whole")
"""What is known of a reading:

- ``least``: the log odds of the least certain tag
- ``lost``, ``any_lost``: the log odds of the least certain content word in no part, and whether there is such a word
- ``excluded``: the logarithm of one more than the number of excluded words
- ``whole``: whether nothing is excluded or joined
"""

_LEAST = 1e-6


def signs_of(tags: Sequence[int], chances: Sequence[float], lost: Sequence[int]) -> tuple[float, ...]:
    """The ``SIGNS`` of a reading.

    ``chances`` are the probabilities of the tags, and ``lost`` the places of content words in no part.
    """
    return (
        _log_odds(min(chances)),
        _log_odds(min((chances[place] for place in lost), default=1.0)),
        float(bool(lost)),
        math.log1p(sum(tag == EXCLUDED for tag in tags)),
        float(not any(tag in (EXCLUDED, OR, AND) for tag in tags)),
    )


def probability(signs: Sequence[float], weights: Sequence[float]) -> float:
    """The probability that a reading is right. The last weight is the offset.

    >>> probability([0.0, 2.0], [1.0, 0.5, -1.0])
    0.5
    """
    logit = math.fsum(sign * weight for sign, weight in zip([*signs, 1.0], weights, strict=True))
    return 0.5 + 0.5 * math.tanh(logit / 2)


def _log_odds(chance: float) -> float:
    chance = min(max(chance, _LEAST), 1 - _LEAST)
    return math.log(chance / (1 - chance))
