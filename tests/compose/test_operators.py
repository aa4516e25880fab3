import math

import pytest
from refusals import refusal

from pyserini_compneg.compose import INTERSECTIONS, Operators
from pyserini_compneg.support import progress
from pyserini_compneg.support.errors import QueryError


def test_defaults():
    assert Operators() == Operators("dismax", "cpt-maxpool", "damped", None, 5, None)


def test_sets_of_operators():
    """Fields that are given replace those of the set."""
    assert Operators.named("default") == Operators()
    assert Operators.named("paper") == Operators("maxpool", "cpt", "disentangled")
    assert Operators.named("vanilla", difference="nrf") == Operators("vanilla", "vanilla", "nrf")
    said = "operators must be one of default, paper, vanilla, got 'best'"
    assert refusal(Operators.named, "best", error=QueryError) == said


def test_the_former_name_of_cpt_maxpool(caplog, monkeypatch):
    monkeypatch.setattr(progress, "_said_in_process", set())
    for _ in range(2):
        former = Operators(intersection="disentangled", difference="disentangled", cpt_weight=2)
        assert former == Operators(intersection="cpt-maxpool", difference="disentangled", cpt_weight=2)
    assert caplog.messages == ["intersection disentangled is now cpt-maxpool"]
    assert "disentangled" not in INTERSECTIONS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"union": "max"}, "union must be one of maxpool, addition, dismax, vanilla, got 'max'"),
        (
            {"intersection": "and"},
            "intersection must be one of cpt, cpt-l2, cpt-pairs, cpt-maxpool, addition, maxpool, vanilla, got 'and'",
        ),
        (
            {"difference": None},
            "difference must be one of disentangled, subtraction, nrf, constant, orthogonal, elementwise, damped, "
            "ignore, vanilla, got None",
        ),
        ({"cpt_terms": 0}, "cpt_terms must be a whole number from 1, got 0"),
        ({"cpt_weight": -0.1}, "cpt_weight must be a finite number above 0, got -0.1"),
        (
            {"intersection": "cpt", "cpt_weight": 1.0},
            "cpt_weight: cpt has no joint occurrence beside other terms; leave it out, or choose cpt-maxpool",
        ),
        ({"cpt_weight": 1e10}, "cpt_weight must be from 1e-09 to 1e+09, got 10000000000.0"),
        ({"difference_weight": math.inf}, "difference_weight must be a finite number from 0, got inf"),
        ({"difference": "ignore", "difference_weight": 1}, "difference_weight: ignore has no strength; leave it out"),
        (
            {"difference": "damped", "difference_weight": 1.5},
            "difference_weight of damped must be at most 1, a share, got 1.5",
        ),
        ({"difference_weight": -1}, "difference_weight must be a finite number from 0, got -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    assert refusal(Operators, **settings, error=QueryError) == message
