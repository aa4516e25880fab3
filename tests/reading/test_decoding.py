"""Sequences of tags, compared with the enumeration of all of them."""

import itertools

import numpy as np
import pytest

from pyserini_compneg.reading.decoding import Chain
from pyserini_compneg.reading.words import AND, NONE, OR, TAGS, WANTED

WORDS = 4
COUNT = len(TAGS)
SEQUENCES = [
    tags
    for tags in itertools.product(range(COUNT), repeat=WORDS)
    if not {tags[0], tags[-1]} & {OR, AND} and {OR, AND} not in ({*pair} for pair in itertools.pairwise(tags))
]


def chain(seed):
    draw = np.random.default_rng(seed)
    return Chain.of(draw.normal(size=(COUNT, COUNT)), draw.normal(size=COUNT))


def emissions(seed):
    return np.random.default_rng(seed).normal(size=(WORDS, COUNT)) * 2


def score(scores, given, tags):
    steps = itertools.pairwise(tags)
    passed = sum(given.transitions[step] for step in steps)
    return sum(scores[range(WORDS), tags]) + passed


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tied", [[False] * WORDS, [False, False, True, True]])
def test_the_best_path_is_the_best_of_all_that_are_allowed(seed, tied):
    scores, given = emissions(seed), chain(seed + 100)
    biased = scores + given.bias
    best = max(
        (
            tags
            for tags in SEQUENCES
            if WANTED in tags and all(tags[place] == tags[place - 1] for place in range(WORDS) if tied[place])
        ),
        key=lambda tags: score(biased, given, tags),
    )
    assert tuple(given.best_path(scores, tied)[0]) == best


@pytest.mark.parametrize("seed", range(5))
def test_marginals_are_sums_over_all_sequences(seed):
    scores, given = emissions(seed), chain(seed + 100)
    chances = np.exp([score(scores, given, tags) for tags in SEQUENCES])
    expected = np.zeros((WORDS, COUNT))
    for tags, chance in zip(SEQUENCES, chances / chances.sum(), strict=True):
        expected[range(WORDS), tags] += chance
    np.testing.assert_allclose(given.marginals(scores), expected, rtol=1e-9)


def test_something_is_always_wanted():
    scores = np.zeros((1, COUNT))
    scores[0, NONE] = 50
    assert chain(0).best_path(scores, [False]) == ([WANTED], False)
