"""Search of composed queries: the searcher, explanations of scores, and run files."""

from importlib import import_module

from pyserini_compneg.search.answer import Answer, Method
from pyserini_compneg.search.explanation import Contribution, Explanation, Lowering
from pyserini_compneg.search.matches import Matches, Total
from pyserini_compneg.search.run_writer import Hit, PassageHit, write_run
from pyserini_compneg.search.searcher import SignedImpactSearcher
from pyserini_compneg.search.settings import SearchSettings

__all__ = [
    "Answer",
    "Contribution",
    "Explanation",
    "Hit",
    "Lowering",
    "Matches",
    "Method",
    "PassageHit",
    "SearchSettings",
    "SignedImpactSearcher",
    "Total",
    "write_run",
]

_MOVED = {
    "explaining": ("ExplainedQuery", "explain_query"),
    "baselines": ("Filtering", "Reranked", "ScoreFusion", "TwoStep"),
}


def __getattr__(name: str) -> object:
    """Loads names that this package exported before their modules moved."""
    for room, names in _MOVED.items():
        if name in names:
            return getattr(import_module(f"pyserini_compneg.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
