import math

import pytest
from refusals import refusal

from pyserini_compneg.encode.models.heads import ACTIVATIONS, Head
from pyserini_compneg.support.errors import EncodingError

POOLINGS_OF = {"relu": {"max", "sum"}, "log1p_relu": {"max", "sum"}, "snrelu": {"absmax", "sum"}}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("pooling", ["max", "sum", "absmax"])
def test_activations_and_poolings_that_go_together(activation, pooling):
    if pooling in POOLINGS_OF[activation]:
        assert Head(activation, pooling).signed == (activation == "snrelu")
    else:
        with pytest.raises(EncodingError, match=rf"^{activation} is pooled by \w+ or sum, got '{pooling}'$"):
            Head(activation, pooling)


@pytest.mark.parametrize("values", [("snrelu", "sum", -1.0), ("snrelu", "sum", math.inf), ("relu", "max", 0.5)])
def test_impossible_epsilons(values):
    message = refusal(Head, *values, error=EncodingError)
    assert message == f"epsilon must be 0 or more, and is for snrelu only, got {values[2]}"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("relu", Head("relu", "max", 0.0)),
        ("relu:max", Head()),
        ("relu:sum", Head("relu", "sum")),
        ("snrelu:absmax:0.5", Head("snrelu", "absmax", 0.5)),
    ],
)
def test_the_flag(text, head):
    assert Head.parse(text) == head


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "activation must be one of relu, log1p_relu, snrelu, got ''"),
        ("relu:mean", "relu is pooled by max or sum, got 'mean'"),
        ("snrelu:sum:", "epsilon must be a number, got ''"),
        ("relu:", "relu is pooled by max or sum, got ''"),
        ("snrelu:sum:nan", "epsilon must be a number, got 'nan'"),
        ("snrelu:sum:1:2", "epsilon must be a number, got '1:2'"),
    ],
)
def test_bad_flags(text, said):
    assert refusal(Head.parse, text, error=EncodingError) == f"head {text!r}: {said}"
