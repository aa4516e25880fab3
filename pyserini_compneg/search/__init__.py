"""Search of composed queries: the searcher, explanations and run files."""

from pyserini_compneg.search.explanation import Contribution, Explanation
from pyserini_compneg.search.methods import Filtering, TwoStep
from pyserini_compneg.search.query_explanation import ExplainedDocument, ExplainedQuery, explain_query
from pyserini_compneg.search.reranking import Reranked
from pyserini_compneg.search.run_writer import Hit, write_run
from pyserini_compneg.search.score_fusion import ScoreFusion
from pyserini_compneg.search.searcher import SignedImpactSearcher

__all__ = [
    "Contribution",
    "ExplainedDocument",
    "ExplainedQuery",
    "Explanation",
    "Filtering",
    "Hit",
    "Reranked",
    "ScoreFusion",
    "SignedImpactSearcher",
    "TwoStep",
    "explain_query",
    "write_run",
]
