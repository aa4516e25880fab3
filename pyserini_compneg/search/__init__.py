"""Search of composed queries: the searcher, explanations, run files."""

from pyserini_compneg.search.explanation import Contribution, Explanation
from pyserini_compneg.search.run_writer import Hit, write_run
from pyserini_compneg.search.searcher import SignedImpactSearcher

__all__ = ["Contribution", "Explanation", "Hit", "SignedImpactSearcher", "write_run"]
