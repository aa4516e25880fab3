"""Search of composed queries: the searcher, explanations of scores, and run files."""

from pyserini_compneg.search.answer import Answer
from pyserini_compneg.search.explanation import Contribution, Explanation, Lowering
from pyserini_compneg.search.matches import Counting, Matches, Total
from pyserini_compneg.search.request import SearchRequest
from pyserini_compneg.search.run_writer import Hit, PassageHit, write_run
from pyserini_compneg.search.searcher import Method, SignedImpactSearcher
from pyserini_compneg.search.settings import SearchSettings

__all__ = [
    "Answer",
    "Contribution",
    "Counting",
    "Explanation",
    "Hit",
    "Lowering",
    "Matches",
    "Method",
    "PassageHit",
    "SearchRequest",
    "SearchSettings",
    "SignedImpactSearcher",
    "Total",
    "write_run",
]
