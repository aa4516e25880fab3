import math

import pytest

from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models import ACTIVATIONS, POOLINGS, Head

POSSIBLE = {("relu", "max"), ("relu", "sum"), ("log1p_relu", "max"), ("log1p_relu", "sum"), ("snrelu", "absmax")} | {
    ("snrelu", "sum")
}


def refused(*values):
    with pytest.raises(EncodingError) as caught:
        Head(*values)
    return str(caught.value)


def test_what_goes_together():
    found = set()
    for activation in ACTIVATIONS:
        for pooling in POOLINGS:
            try:
                assert Head(activation, pooling).signed == (activation == "snrelu")
                found.add((activation, pooling))
            except EncodingError:
                pass
    assert found == POSSIBLE


def test_splade_max_is_the_default():
    assert Head() == Head("relu", "max", 0.0)


def test_what_does_not():
    assert refused("gelu") == "activation must be one of relu, log1p_relu, snrelu, got 'gelu'"
    assert refused("relu", "absmax") == "relu is pooled by max or sum, got 'absmax'"
    assert refused("snrelu", "max") == "snrelu is pooled by absmax or sum, got 'max'"
    for epsilon in (-1.0, math.nan, math.inf):
        assert refused("snrelu", "sum", epsilon) == f"epsilon must be 0 or more, and is for snrelu only, got {epsilon}"
    assert refused("relu", "max", 0.5) == "epsilon must be 0 or more, and is for snrelu only, got 0.5"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("relu", Head()),
        ("relu:sum", Head("relu", "sum")),
        ("snrelu:absmax:0.5", Head("snrelu", "absmax", 0.5)),
        ("snrelu:sum:", Head("snrelu", "sum")),
    ],
)
def test_the_flag(text, head):
    assert Head.parse(text) == head


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "activation must be one of relu, log1p_relu, snrelu, got ''"),
        ("relu:mean", "relu is pooled by max or sum, got 'mean'"),
        ("snrelu", "snrelu is pooled by absmax or sum, got 'max'"),
        ("snrelu:sum:small", "epsilon must be a number, got 'small'"),
        ("snrelu:sum:nan", "epsilon must be 0 or more, and is for snrelu only, got nan"),
        ("snrelu:sum:1:2", "epsilon must be a number, got '1:2'"),
    ],
)
def test_bad_flags(text, said):
    with pytest.raises(EncodingError) as caught:
        Head.parse(text)
    assert str(caught.value) == f"head {text!r}: {said}"
