"""The former name of :mod:`pyserini_compneg.display`, until the next major release."""

import warnings

from pyserini_compneg.display import ExplainedQuery, Highlight, explain_query, highlights

__all__ = ["ExplainedQuery", "Highlight", "explain_query", "highlights"]

warnings.warn("pyserini_compneg.explaining is now pyserini_compneg.display", DeprecationWarning, stacklevel=2)
