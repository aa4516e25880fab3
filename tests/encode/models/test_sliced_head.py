"""The head of training against a plain one, by autograd, and against inference's, which is tested by the equations."""

import pytest

from pyserini_compneg.encode.models import Head

torch = pytest.importorskip("torch", reason="training runs on torch")

from pyserini_compneg.encode.networks import pooling  # noqa: E402
from pyserini_compneg.encode.networks.pooling import own_logits, sliced_pooled  # noqa: E402

HEADS = ["relu:max", "log1p_relu:max", "snrelu:absmax", "snrelu:absmax:0.5", "snrelu:sum", "snrelu:sum:0.5"]
TERMS, WIDTH = 11, 4


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(pooling, "TRAINING_SLICE", 3)


def plain(hidden, mask, weight, bias, head, own):
    """All logits at once; padding is −∞ for the maximum and +∞ for the minimum."""
    logits = hidden @ weight.T + bias
    padding = mask[:, :, None] == 0

    def log(x):
        value = torch.log1p(torch.relu(x - head.epsilon))
        return torch.log1p(value) if head.activation == "log1p_relu" else value

    highest = logits.masked_fill(padding, -torch.inf).amax(1)
    positive = log(highest if own is None else torch.maximum(highest, own))
    if not head.signed:
        return positive
    negative = -log(-logits.masked_fill(padding, torch.inf).amin(1))
    if head.pooling == "sum":
        return positive + negative
    return torch.where(positive >= -negative, positive, negative)


def made(seed):
    """Texts of one to five tokens, and all that a head needs, at random, in double precision."""
    draw = torch.Generator().manual_seed(seed)
    lengths = [5, 1, 3]
    mask = torch.tensor([[int(position < length) for position in range(5)] for length in lengths])
    ids = torch.randint(TERMS, (3, 5), generator=draw)
    tensors = [
        torch.randn(*shape, generator=draw, dtype=torch.float64).requires_grad_()
        for shape in [(3, 5, WIDTH), (TERMS, WIDTH), (TERMS,), (TERMS,)]
    ]
    return ids, mask, tensors


@pytest.mark.parametrize("with_own", [False, True])
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("seed", range(5))
def test_values_and_gradients_are_those_of_the_plain_head(name, with_own, seed):
    results = []
    for function in (sliced_pooled, plain):
        ids, mask, tensors = made(seed)
        hidden, weight, bias, logits = tensors
        own = own_logits(ids, mask, hidden, weight[ids], logits) if with_own else None
        vectors = function(hidden, mask, weight, bias, Head.parse(name), own)
        (vectors * torch.arange(3 * TERMS).view(3, TERMS)).sum().backward()
        results.append([vectors, *(tensor.grad for tensor in tensors if tensor.grad is not None)])
    assert len(results[0]) == len(results[1]) == 4 + with_own
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


def test_padding_does_not_count_for_own_terms():
    ids, mask, (hidden, weight, _, logits) = made(3)
    own = own_logits(ids, mask, hidden, weight[ids], logits)
    for row, length in enumerate(mask.sum(1).tolist()):
        part = slice(row, row + 1), slice(0, length)
        alone = own_logits(ids[part], mask[part], hidden[part], weight[ids[part]], logits)
        torch.testing.assert_close(own[row : row + 1], alone)
        assert (alone > -torch.inf).sum() == len(set(ids[part][0].tolist()))


def test_mixed_precision():
    """Under autocast the states have 16 bits; weights and their gradients keep 32."""
    ids, mask, tensors = made(3)
    hidden, weight, bias, logits = (tensor.detach().float().requires_grad_() for tensor in tensors)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = sliced_pooled(hidden.bfloat16(), mask, weight, bias, Head.parse("snrelu:sum"), None)
        (vectors**2).sum().backward()
    exact = sliced_pooled(hidden, mask, weight, bias, Head.parse("snrelu:sum"), None)
    assert vectors.dtype == weight.grad.dtype == torch.float32
    torch.testing.assert_close(vectors, exact, rtol=0.05, atol=0.05)
    assert hidden.grad.abs().sum() > 0
