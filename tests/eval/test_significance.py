"""Tests and intervals against scipy.stats, and against every permutation and every step written out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pyserini_compneg.eval import significance
from pyserini_compneg.eval.rows import Figure
from pyserini_compneg.eval.significance import compare, confidence_interval, holm, randomisation_test, t_test

VALUES = st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 1 / 3, 0.5, 1.0])
DIFFERENCES = st.lists(st.builds(lambda a, b: a - b, VALUES, VALUES), min_size=2, max_size=8)
P_VALUES = st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.025, 0.05, 0.3, 1.0]), max_size=6)


def scores(seed, n=200):
    return np.random.default_rng(seed).random(n).tolist()


@pytest.mark.parametrize("n", [2, 3, 30, 200])
def test_the_t_test_is_scipys(n):
    a, b = scores(1, n), scores(2, n)
    expected = stats.ttest_rel(a, b).pvalue
    assert t_test([x - y for x, y in zip(a, b, strict=True)]) == pytest.approx(expected, abs=1e-12)


def test_the_t_test_where_scipy_divides_by_0():
    assert t_test([0.0, 0.0, 0.0]) == 1.0
    assert t_test([0.5, 0.5]) == 0.0


@pytest.mark.parametrize("n", [2, 3, 30, 200])
def test_the_interval_is_scipys(n):
    values = scores(3, n)
    expected = stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=stats.sem(values))
    assert confidence_interval(values) == pytest.approx(expected, abs=1e-12)


def test_the_interval_of_equal_values_is_a_point():
    assert confidence_interval([0.1] * 10) == pytest.approx((0.1, 0.1), abs=1e-12)


@given(DIFFERENCES)
def test_few_differences_are_enumerated(differences):
    sums = [abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
            for signs in product([1, -1], repeat=len(differences))]  # fmt: skip
    as_large = sum(value >= abs(sum(differences)) - 1e-9 for value in sums)
    assert randomisation_test(differences) == pytest.approx(as_large / len(sums), abs=1e-12)


def test_thirteen_differences_are_enumerated_and_zeros_are_free():
    assert randomisation_test([0.25] * 13 + [0.0] * 500) == 2 / 2**13
    assert randomisation_test([0.0] * 500) == 1.0


def test_more_are_drawn():
    assert randomisation_test([0.25] * 14) == pytest.approx(2 / 2**14, abs=0.001)
    assert randomisation_test([0.25] * 100) == 1 / 10_001
    assert randomisation_test([0.25, -0.25] * 50) == 1.0


def test_drawn_p_values_are_those_of_scipy_and_repeatable():
    a, b = scores(4), scores(5)
    differences = [x - y + 0.03 for x, y in zip(a, b, strict=True)]
    test = stats.permutation_test(
        (differences,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=20_000, rng=np.random.default_rng(0),
    )  # fmt: skip
    p = randomisation_test(differences)
    assert p == pytest.approx(test.pvalue, abs=0.02)
    assert p == randomisation_test(differences)


def test_blocks_of_permutations_are_complete(monkeypatch):
    monkeypatch.setattr(significance, "_BLOCK", 700)
    differences = [x - 0.52 for x in scores(6, 100)]
    assert randomisation_test(differences) == pytest.approx(t_test(differences), abs=0.02)
    assert randomisation_test([0.25] * 100) == 1 / 10_001


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.1]))
def test_holm_rejects_what_the_stepwise_procedure_rejects(p_values, level):
    rejected = set()
    for step, number in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[number] > level / (len(p_values) - step):
            break
        rejected.add(number)
    assert {i for i, p in enumerate(holm(p_values)) if p <= level + 1e-12} == rejected


def test_all_pairs_are_compared_in_both_directions():
    runs = {"a": scores(7), "b": [min(1.0, value + 0.2) for value in scores(7)], "c": scores(8)}
    compared = compare(runs)
    by_pair = {(run, other): one for run, others in compared.items() for other, one in others.items()}
    assert list(by_pair) == [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]
    for (run, other), one in by_pair.items():
        back = by_pair[other, run]
        low, high = one.interval
        assert (back.difference, back.interval) == (-one.difference, (-high, -low))
        assert (back.t_test, back.randomisation) == (one.t_test, one.randomisation)
        assert one.difference == pytest.approx(np.mean(runs[run]) - np.mean(runs[other]), abs=1e-12)
        assert one.t_test.raw == pytest.approx(stats.ttest_rel(runs[run], runs[other]).pvalue, abs=1e-12)
    raw = [by_pair[pair].t_test.raw for pair in [("a", "b"), ("a", "c"), ("b", "c")]]
    assert [by_pair[pair].t_test.holm for pair in [("a", "b"), ("a", "c"), ("b", "c")]] == holm(raw)
    figures = {run: Figure(0.0, None, others) for run, others in compared.items()}
    assert {run: figure.better_than() for run, figure in figures.items()} == {"a": (), "b": ("a", "c"), "c": ()}
    assert {run: figure.better_than(True) for run, figure in figures.items()} == {"a": ("b",), "b": (), "c": ("b",)}


def test_the_randomisation_test_can_be_left_out():
    assert compare({"a": [0.5, 1.0], "b": [0.0, 0.25]}, randomise=False)["a"]["b"].randomisation is None


def test_a_run_is_no_better_than_itself():
    one = compare({"a": scores(9), "a (2)": scores(9)})["a"]["a (2)"]
    assert (one.difference, one.interval, one.t_test.holm, one.randomisation.holm) == (0.0, (0.0, 0.0), 1.0, 1.0)
    assert not one.is_significant
