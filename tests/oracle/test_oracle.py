"""A budget of what ``run.py`` does for as long as one likes."""

import logging
from collections import Counter

import pytest
from cases import draw_cases, failures, report, shrunk


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_engine_ranks_as_the_oracle(seed, caplog):
    caplog.set_level(logging.ERROR, "pyserini_compneg")
    counts = Counter()
    for case, *_ in failures(draw_cases(seed), counts):
        pytest.fail(report(*next(failures([shrunk(case)]))))
    assert counts["compared"] > 950 and counts["with hits"] > 550
