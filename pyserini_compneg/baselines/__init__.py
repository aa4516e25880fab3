"""Baselines that operators are compared with: score fusion, filtering, two-step search, feedback, reranking."""

from pyserini_compneg.baselines.feedback import Rocchio
from pyserini_compneg.baselines.fusion import ScoreFusion
from pyserini_compneg.baselines.late_interaction import LateInteraction, is_late_interaction
from pyserini_compneg.baselines.methods import METHODS, ComposingMethod, Filtering, Makers, TwoStep, make_method
from pyserini_compneg.baselines.model_files import COSINE, DOT, Similarity, check_dense_model, dense_model_hash
from pyserini_compneg.baselines.pair_scorers import (
    DenseEncoder,
    MonoT5,
    PairScorer,
    check_pair_scorer,
    dense_encoder,
    pair_scorer,
)
from pyserini_compneg.baselines.reranking import RERANKED, Reranked
from pyserini_compneg.baselines.token_index import TokenIndex
from pyserini_compneg.baselines.token_matches import PartMatches, token_matches

__all__ = [
    "COSINE",
    "ComposingMethod",
    "DOT",
    "DenseEncoder",
    "Filtering",
    "LateInteraction",
    "METHODS",
    "Makers",
    "PairScorer",
    "PartMatches",
    "RERANKED",
    "Reranked",
    "Rocchio",
    "ScoreFusion",
    "Similarity",
    "TokenIndex",
    "TwoStep",
    "check_dense_model",
    "MonoT5",
    "check_pair_scorer",
    "dense_encoder",
    "dense_model_hash",
    "is_late_interaction",
    "make_method",
    "pair_scorer",
    "token_matches",
]
