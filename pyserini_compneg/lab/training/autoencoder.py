"""A sparse autoencoder: a few of many latents, the largest of a vector, rebuild this vector.

Source: Gao et al. 2024, Scaling and evaluating sparse autoencoders, TopK and its auxiliary loss. Deviation: the centre
is the mean of the vectors, which is not learned.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyserini_compneg.lab.training.resumption import check_finite, keep, restore
from pyserini_compneg.support.progress import SECONDS, progress

BATCH = 2048
"""The vectors of a step."""

_RATE = 2e-3
_WARMUP, _DECAY = 20, 0.25
"""The first steps, in which the rate grows to its value, and the share of the last steps, in which it falls to 0."""

_DEAD_AFTER = 60
"""A latent is dead if it was not among the largest of any vector in so many steps."""

_EVERY, _HELPERS, _HELP = 10, 64, 0.3
"""In every tenth step, the largest dead latents of a vector learn what the others leave of it, with less weight."""

_SAMPLE = 65_536
"""The vectors from which the mean and the scale are computed."""

_SHOWN = 50
"""The steps over which the unexplained share is averaged."""

Vectors = NDArray[np.float16]


class Autoencoder(nn.Module):  # type: ignore[misc]  # mypy has no types of torch
    """The weights for vectors from which ``mean`` is subtracted, and that are divided by ``scale``."""

    def __init__(self, vectors: Vectors, latents: int, active: int) -> None:
        super().__init__()
        self.active = active
        sample = drawn_vectors(vectors, _SAMPLE)
        self.register_buffer("mean", sample.mean(0))
        self.register_buffer("scale", (sample - self.mean).norm(dim=1).mean().clamp_min(1e-6))
        self.register_buffer("unused", torch.zeros(latents, dtype=torch.int64))
        self.register_buffer("squares", torch.zeros(2))
        start = nn.functional.normalize(torch.randn(latents, vectors.shape[1]), dim=1)
        self.encoder, self.decoder = nn.Parameter(start.clone()), nn.Parameter(start)
        self.bias = nn.Parameter(torch.zeros(latents))
        self.requires_grad_(False)  # the gradients are written out

    def learn(self, vectors: Tensor, helps: bool) -> None:
        """Sets the gradients of the mean squared error. With ``helps``, dead latents learn the error of the others."""
        inputs = (vectors - self.mean) / self.scale
        scores = torch.addmm(self.bias, inputs, self.encoder.T)
        values, index = scores.topk(self.active, dim=1, sorted=False)
        values.relu_()
        error = self._rebuilt(index, values) - inputs
        gradients = self._gradients(inputs, index, values, error)
        if helps and len(dead := (self.unused > _DEAD_AFTER).nonzero().ravel()):
            further, places = scores[:, dead].topk(min(_HELPERS, len(dead)), dim=1, sorted=False)
            helpers = dead[places]
            left = self._rebuilt(helpers, further.relu_()) + error
            for total, more in zip(gradients, self._gradients(inputs, helpers, further, left), strict=True):
                total += _HELP * more
        for weight, gradient in zip((self.encoder, self.decoder, self.bias), gradients, strict=True):
            weight.grad = gradient
        self.unused += 1
        self.unused[index[values > 0]] = 0
        self.squares *= 1 - 1 / _SHOWN
        self.squares += torch.stack([error.square().sum(), inputs.square().sum()])

    def _rebuilt(self, index: Tensor, values: Tensor) -> Tensor:
        return nn.functional.embedding_bag(index, self.decoder, per_sample_weights=values, mode="sum")

    def _gradients(self, inputs: Tensor, index: Tensor, values: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the encoder, the decoder and the bias, which torch would compute in more time."""
        slopes = _products(error, self.decoder, index) * (values > 0)
        order = torch.from_numpy(index.numpy().ravel().argsort(kind="stable"))  # torch takes 50 times as long
        counts = torch.bincount(index.ravel(), minlength=len(self.bias))

        def summed(rows: Tensor, weights: Tensor) -> Tensor:
            """For each latent, the rows of the vectors that light it, with weights."""
            return nn.functional.embedding_bag(
                order // index.shape[1],
                rows,
                counts.cumsum(0) - counts,
                per_sample_weights=weights.ravel()[order] * (2 / len(rows)),
                mode="sum",
            )

        bias = torch.zeros_like(self.bias).index_add_(0, index.ravel(), slopes.ravel() * (2 / len(inputs)))
        return summed(inputs, slopes), summed(error, values), bias

    def unexplained(self, vectors: Tensor) -> float:
        """The share of the variance of vectors that the latents leave."""
        inputs = (vectors - self.mean) / self.scale
        values, index = torch.addmm(self.bias, inputs, self.encoder.T).topk(self.active, dim=1, sorted=False)
        return float(
            (self._rebuilt(index, values.relu_()) - inputs).square().sum() / inputs.square().sum().clamp_min(1e-6)
        )

    @property
    def recently_unexplained(self) -> float:
        """The share of the variance that the latents left in the last steps."""
        return float(self.squares[0] / self.squares[1].clamp_min(1e-6))

    @property
    def dead(self) -> int:
        return int((self.unused > _DEAD_AFTER).sum())


def _products(vectors: Tensor, rows: Tensor, index: Tensor) -> Tensor:
    """The dot product of each vector with each of its rows."""
    ends = torch.arange(0, index.numel() + 1, index.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its sparse matrices a beta version
        places = torch.sparse_csr_tensor(ends, index.ravel(), torch.zeros(index.numel()), (len(vectors), len(rows)))
        products: Tensor = torch.sparse.sampled_addmm(places, vectors, rows.T, beta=0.0).values()
    return products.view_as(index)


def drawn_vectors(vectors: Vectors, number: int) -> Tensor:
    """Some vectors, drawn with torch's random numbers; a vector may be drawn twice."""
    return torch.from_numpy(vectors[torch.randint(len(vectors), (number,)).numpy()].astype(np.float32))


def fit(vectors: Vectors, latents: int, active: int, steps: int, checkpoint: Path) -> Autoencoder:
    """Trains an autoencoder, with torch's random numbers. Continues from the checkpoint, which it writes."""
    module = Autoencoder(vectors, latents, active)
    optimizer = torch.optim.Adam(module.parameters(), lr=_RATE, fused=True)
    states = {"module": module, "optimizer": optimizer}
    done = int(restore(checkpoint, states).get("steps", 0))
    kept = time.monotonic()
    with progress(None, steps, " steps", "training", done=done) as bar:
        for step in range(done, steps):
            rate = min(1.0, (step + 1) / _WARMUP, (steps - step) / (_DECAY * steps))
            for group in optimizer.param_groups:
                group["lr"] = _RATE * rate
            module.learn(drawn_vectors(vectors, BATCH), helps=step % _EVERY == _EVERY - 1)
            optimizer.step()
            module.decoder /= module.decoder.norm(dim=1, keepdim=True)
            bar.set_postfix_str(f"unexplained {module.recently_unexplained:.3f}, dead {module.dead:,}", refresh=False)
            bar.update(1)
            if step == steps - 1 or time.monotonic() - kept >= SECONDS:
                check_finite(module.squares.sum(), module.bias.sum(), f"step {step + 1}")
                keep(checkpoint, states, steps=step + 1)
                kept = time.monotonic()
    return module
