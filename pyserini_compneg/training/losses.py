"""The loss of a training: contrastive or of margins, with a regulariser that keeps vectors sparse."""

from __future__ import annotations

from sentence_transformers import SparseEncoder
from sentence_transformers.sparse_encoder.losses import (
    SparseMarginMSELoss,
    SparseMultipleNegativesRankingLoss,
    SpladeLoss,
)
from torch import Tensor, nn

from pyserini_compneg.training.config import TrainConfig


class AbsoluteFlops(nn.Module):  # type: ignore[misc]  # mypy is told nothing of torch
    """FLOPS of |w|: the sum over terms of the squared mean absolute weight in a batch.

    The FlopsLoss of sentence-transformers takes no absolute value. There +1 and −1 of a term cancel, and signed vectors
    of any length cost nothing.

    Source: Paria et al. 2020, with |w| for the weights of activations that may be negative.
    """

    def compute_loss_from_embeddings(self, embeddings: Tensor) -> Tensor:
        """The cost of vectors, (texts, terms).

        >>> import torch
        >>> AbsoluteFlops().compute_loss_from_embeddings(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).item()
        1.0
        """
        return embeddings.abs().mean(0).square().sum()


def splade_loss(model: SparseEncoder, config: TrainConfig) -> SpladeLoss:
    """Cross-entropy over the documents of a batch, or margin-MSE with a teacher, plus FLOPS of both sides."""
    inner = SparseMarginMSELoss(model) if config.teacher else SparseMultipleNegativesRankingLoss(model)
    return SpladeLoss(
        model,
        inner,
        document_regularizer_weight=config.training.document_flops,
        query_regularizer_weight=config.training.query_flops,
        document_regularizer=AbsoluteFlops(),
        query_regularizer=AbsoluteFlops(),
    )
