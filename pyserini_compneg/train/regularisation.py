"""The regulariser that keeps vectors sparse."""

from __future__ import annotations

from torch import Tensor, nn


class AbsoluteFlops(nn.Module):  # type: ignore[misc]  # mypy is told nothing of torch
    """FLOPS of |w|: the sum over terms of the squared mean absolute weight in a batch.

    Without the absolute value, as sentence-transformers' FlopsLoss has it, +1 and −1 of a term would cancel, and signed
    vectors of any length would cost nothing.

    Source: Paria et al. 2020, with |w| for the weights of activations that may be negative.
    """

    def compute_loss_from_embeddings(self, embeddings: Tensor) -> Tensor:
        """The cost of vectors, (texts, terms).

        >>> import torch
        >>> AbsoluteFlops().compute_loss_from_embeddings(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).item()
        1.0
        """
        return embeddings.abs().mean(0).square().sum()
