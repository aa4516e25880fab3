"""The head of training against a plain one, by autograd, and against the equations of Krasakis et al. by hand."""

import math

import pytest

from pyserini_compneg.encode.models import Head

torch = pytest.importorskip("torch", reason="training runs on torch")

from pyserini_compneg.encode.models.pooling import own_logits, pooled  # noqa: E402
from pyserini_compneg.training import sliced_head  # noqa: E402
from pyserini_compneg.training.sliced_head import sliced_pooled  # noqa: E402

HEADS = ["relu:max", "log1p_relu:max", "snrelu:absmax", "snrelu:absmax:0.5", "snrelu:sum", "snrelu:sum:0.5"]
TERMS, WIDTH = 11, 4


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(sliced_head, "SLICE", 3)


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


@pytest.mark.parametrize("name", HEADS)
def test_inference_gives_the_same_vectors(name):
    ids, mask, (hidden, weight, bias, logits) = made(7)
    own = own_logits(ids, mask, hidden, weight[ids], logits)
    ours = sliced_pooled(hidden, mask, weight, bias, Head.parse(name), own)
    parts = list(zip(weight.split(4), bias.split(4), strict=True))
    torch.testing.assert_close(ours, pooled(hidden, mask, parts, Head.parse(name), own))


def test_padding_does_not_count_for_own_terms():
    """A text alone has the same logits, whatever tokens stand in the place of padding."""
    ids, mask, (hidden, weight, _, logits) = made(3)
    own = own_logits(ids, mask, hidden, weight[ids], logits)
    for row, length in enumerate(mask.sum(1).tolist()):
        part = slice(row, row + 1), slice(0, length)
        alone = own_logits(ids[part], mask[part], hidden[part], weight[ids[part]], logits)
        torch.testing.assert_close(own[row : row + 1], alone)
        assert (alone > -torch.inf).sum() == len(set(ids[part][0].tolist()))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu:max", [math.log(3), math.log(2.5), math.log(1.4)]),
        ("snrelu:absmax:0.5", [math.log(2.5), -math.log(3.5), 0.0]),
        ("snrelu:sum:0.5", [math.log(2.5), math.log(2) - math.log(3.5), 0.0]),
    ],
    ids=["equation 2", "equations 11 and 12", "equations 11 and 13"],
)
def test_equations(name, expected):
    """ε moves both sides towards 0, as Figure 2 has it."""
    logits = torch.tensor([[[1.0, -3.0, 0.4], [2.0, 1.5, -0.5]]])
    (vector,) = sliced_pooled(logits, torch.ones(1, 2), torch.eye(3), torch.zeros(3), Head.parse(name), None)
    assert vector.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", HEADS)
def test_padding_and_order_change_nothing(name):
    """All logits are negative here, so that a padding of 0 would win every maximum."""
    head, weight, bias = Head.parse(name), torch.eye(3), torch.zeros(3)
    texts = [torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -0.6, -2.0]]), torch.tensor([[-0.7, -5.0, -1.0]])]
    alone = [sliced_pooled(text[None], torch.ones(1, len(text)), weight, bias, head, None)[0] for text in texts]
    padded = torch.zeros(2, 4, 3)
    mask = torch.zeros(2, 4)
    for row, text in enumerate(reversed(texts)):
        padded[row, : len(text)], mask[row, : len(text)] = text, 1
    together = sliced_pooled(padded, mask, weight, bias, head, None)
    torch.testing.assert_close(together, torch.stack(alone[::-1]))
    if head.signed:
        assert (together < 0).all()


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
