"""What the operators are compared with: fusion of scores, filtering, two steps, reranking, dense retrieval."""

from pyserini_compneg.baselines.methods import Filtering, TwoStep
from pyserini_compneg.baselines.reranking import Reranked
from pyserini_compneg.baselines.score_fusion import ScoreFusion

__all__ = ["Filtering", "Reranked", "ScoreFusion", "TwoStep"]
