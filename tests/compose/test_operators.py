import math

import pytest

from pyserini_compneg.compose import Operators
from pyserini_compneg.errors import CompositionError


def test_defaults():
    assert Operators() == Operators("dismax", "cpt+maxpool", "disentangled", 5, 1.0, 0.25, 0.75, 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"union": "max"}, "union must be one of maxpool, addition, dismax, vanilla, got 'max'"),
        (
            {"intersection": "and"},
            "intersection must be one of cpt, cpt+maxpool, cpt-l2, addition, maxpool, vanilla, got 'and'",
        ),
        (
            {"difference": None},
            "difference must be one of disentangled, subtraction, nrf, constant, orthogonal, ignore, "
            "damped, vanilla, got None",
        ),
        ({"top_terms": 0}, "top_terms must be a whole number from 1, got 0"),
        ({"top_terms": 2.0}, "top_terms must be a whole number from 1, got 2.0"),
        ({"top_terms": True}, "top_terms must be a whole number from 1, got True"),
        ({"maxpool_weight": -0.1}, "maxpool_weight must be a finite number from 0, got -0.1"),
        ({"nrf_weight": math.nan}, "nrf_weight must be a finite number from 0, got nan"),
        ({"constant_weight": math.inf}, "constant_weight must be a finite number from 0, got inf"),
        ({"damped_weight": -1}, "damped_weight must be a finite number from 0, got -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(CompositionError) as error:
        Operators(**settings)
    assert str(error.value) == message
