"""Pooling by torch against the equations of Krasakis et al."""

import math

import pytest
from head_oracle import HEADS, term_weight
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.encode.models import Head

torch = pytest.importorskip("torch", reason="pooling is computed by torch")

from pyserini_compneg.encode.networks.pooling import SLICE, pooled  # noqa: E402


def of_logits(texts, head, padding=0.0):
    """Pools logits, those of each text as (tokens, terms), by a decoder that leaves states as they are."""
    terms, length = len(texts[0][0]), max(map(len, texts))
    hidden = torch.full((len(texts), length, terms), padding)
    mask = torch.zeros(len(texts), length, dtype=torch.int64)
    for row, text in enumerate(texts):
        hidden[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    slices = list(zip(torch.eye(terms).split(2), torch.zeros(terms).split(2), strict=True))
    return pooled(hidden, mask, slices, head).tolist()


@pytest.mark.parametrize(
    ("head", "logits", "expected"),
    [
        (Head(), [[1.0, -3.0, 0.0], [math.e - 1, -0.5, 0.0]], [1.0, 0.0, 0.0]),  # Eq. 2
        (  # Eq. 11 and 12: up to ε there is nothing
            Head("snrelu", "absmax", 0.5),
            [[1.0, -3.0, 0.4, -0.6], [2.0, 1.5, -0.5, 0.1]],
            [math.log(2.5), -math.log(3.5), 0.0, -math.log(1.1)],
        ),
        (Head("snrelu", "absmax"), [[2.0], [-2.0]], [math.log(3)]),  # equal extremes are positive
        (  # Eq. 13
            Head("snrelu", "sum"),
            [[1.0, -3.0, 0.4, -0.6], [2.0, 1.5, -0.5, -0.9]],
            [math.log(3), math.log(2.5) - math.log(4), math.log(1.4) - math.log(1.5), -math.log(1.9)],
        ),
        (Head("log1p_relu"), [[math.e - 1, -1.0]], [math.log(2), 0.0]),
    ],
    ids=str,
)
def test_weights_by_hand(head, logits, expected):
    assert of_logits([logits], head)[0] == pytest.approx(expected, abs=1e-6)
    assert [term_weight(column, head) for column in zip(*logits, strict=True)] == pytest.approx(expected)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_no_padding_is_pooled(head):
    texts = [[[-1.0, 2.0]], [[-4.0, -0.7], [-5.0, 0.2], [-9.0, -3.0]]]
    for padding in (0.0, 50.0, -50.0):
        for row, text in zip(of_logits(texts, head, padding), texts, strict=True):
            assert row == pytest.approx([term_weight(column, head) for column in zip(*text, strict=True)], abs=1e-6)


numbers = st.floats(-20, 20, width=32)


@given(
    st.integers(1, 5).flatmap(
        lambda terms: st.lists(
            st.lists(st.lists(numbers, min_size=terms, max_size=terms), min_size=1, max_size=5), min_size=1, max_size=4
        )
    ),
    st.sampled_from(HEADS),
)
def test_any_logits(texts, head):
    for row, text in zip(of_logits(texts, head), texts, strict=True):
        expected = [term_weight(column, head) for column in zip(*text, strict=True)]
        assert list(map(abs, row)) == pytest.approx(list(map(abs, expected)), abs=1e-5)
        for weight, right in zip(row, expected, strict=True):
            assert weight == pytest.approx(right, abs=1e-5) or head.pooling == "absmax"  # a tie may go either way


def test_slices_and_blocks_are_put_together_in_order():
    hidden, mask = torch.randn(2, 7, 4), torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    weight, bias = torch.randn(2 * SLICE + 3, 4), torch.randn(2 * SLICE + 3)
    slices = list(zip(weight.split(SLICE), bias.split(SLICE), strict=True))
    for head in HEADS:
        whole = pooled(hidden, mask, [(weight, bias)], head)
        for block in (None, 1, 3, 7, 100):
            assert torch.allclose(pooled(hidden, mask, slices, head, block=block), whole, atol=1e-6)


@pytest.mark.parametrize("head", [Head("relu", "max"), Head("snrelu", "absmax"), Head("snrelu", "sum")])
def test_padding_is_no_token_whose_logit_is_the_bias(head):
    hidden, mask = torch.tensor([[[-2.0], [7.0]]]), torch.tensor([[1, 0]])
    vectors = pooled(hidden, mask, [(torch.tensor([[1.0]]), torch.tensor([0.5]))], head)
    assert vectors.tolist() == [[pytest.approx(term_weight([-1.5], head))]]
