"""Finds the best sequence of tags for the words of a text, by the scores of a network and of a chain of tags.

A sequence y of tags has the score

    s(y) = Σᵢ emission(i, yᵢ) + Σᵢ transition(yᵢ₋₁, yᵢ)

and the probability exp s(y) / Σ exp s(y'), summed over all allowed sequences. This is a linear-chain conditional random
field (Lafferty, McCallum, Pereira 2001), whose scores were trained together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyserini_compneg.reading.words import AND, OR, SHARED, TAGS, WANTED

FORBIDDEN = -1e4
"""The score of forbidden transitions."""

_EDGE = np.array([FORBIDDEN if tag in (OR, AND) else 0.0 for tag in range(len(TAGS))])
"""The score of each tag at the start or the end."""


@dataclass(frozen=True)
class Chain:
    """The scores of a chain of tags, in the order of ``TAGS``.

    Joining words are never first or last. Words that join by OR and by AND are never adjacent.
    """

    transitions: NDArray[np.float64]
    """The score from each tag (row) to each tag (column)."""

    bias: NDArray[np.float64]
    """What is added to the score of each tag when the best sequence is looked for, and not in probabilities."""

    @classmethod
    def of(cls, transitions: ArrayLike, bias: ArrayLike) -> Chain:
        """The chain with these scores, except forbidden transitions."""
        allowed = np.array(transitions, dtype=np.float64).reshape(len(TAGS), len(TAGS))
        allowed[[OR, AND], [AND, OR]] = FORBIDDEN
        return cls(allowed, np.array(bias, dtype=np.float64))

    def best_path(self, emissions: NDArray[np.float64], tied: Sequence[bool]) -> tuple[list[int], bool]:
        """The best sequence that contains a wanted word (Viterbi).

        ``emissions`` has the score of each tag (column) for each word (row). A ``tied`` word must have the tag of the
        word before it. The flag says whether the sequence is also the best of all sequences. If not, the text probably
        only excludes.
        """
        count = len(TAGS)
        emissions = emissions + self.bias
        # A state is a tag, and whether a word is wanted so far: in the first `count` states, none is.
        wanted = np.arange(2 * count) % count == WANTED
        later = np.arange(2 * count) >= count
        possible = np.where(later[:, None], later[None, :], later[None, :] == wanted[None, :])
        free = np.where(possible, np.tile(self.transitions, (2, 2)), FORBIDDEN * 10)
        same = np.where(np.tile(np.eye(count, dtype=bool), (2, 2)), free, FORBIDDEN * 10)
        scores = np.where(later == wanted, np.tile(_EDGE + emissions[0], 2), FORBIDDEN * 10)
        sources = np.zeros((len(emissions), 2 * count), dtype=np.int64)
        for place in range(1, len(emissions)):
            extended = scores[:, None] + (same if tied[place] else free)
            sources[place] = extended.argmax(0)
            scores = extended.max(0) + np.tile(emissions[place], 2)
        scores += np.tile(_EDGE, 2)
        state = count + int(scores[count:].argmax())
        wants = bool(scores[state] >= scores[:count].max())
        path = [state]
        for place in range(len(emissions) - 1, 0, -1):
            state = int(sources[place, state])
            path.append(state)
        return [state % count for state in reversed(path)], wants

    def chances(self, emissions: NDArray[np.float64], tags: Sequence[int]) -> list[float]:
        """The probability of each tag of a sequence.

        Wanted and shared words count as one tag, because the difference between them changes little.
        """
        marginals = self.marginals(emissions)
        marginals[:, [WANTED, SHARED]] = marginals[:, [WANTED, SHARED]].sum(1, keepdims=True)
        found: list[float] = marginals[np.arange(len(tags)), tags].tolist()
        return found

    def marginals(self, emissions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each tag (column) for each word (row), over all sequences (forward-backward)."""
        forward = np.empty_like(emissions)
        backward = np.empty_like(emissions)
        forward[0] = _EDGE + emissions[0]
        for place in range(1, len(emissions)):
            forward[place] = _log_sum(forward[place - 1][:, None] + self.transitions, 0) + emissions[place]
        backward[-1] = _EDGE
        for place in range(len(emissions) - 2, -1, -1):
            backward[place] = _log_sum(self.transitions + emissions[place + 1] + backward[place + 1], 1)
        scores = forward + backward
        probabilities: NDArray[np.float64] = np.exp(scores - _log_sum(scores, 1)[:, None])
        return probabilities


def _log_sum(scores: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    most = scores.max(axis, keepdims=True)
    total: NDArray[np.float64] = np.log(np.exp(scores - most).sum(axis)) + most.squeeze(axis)
    return total
