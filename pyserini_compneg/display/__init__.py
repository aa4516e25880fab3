"""Rankings and explanations for people, as lists, tables, trees and bars."""

from pyserini_compneg.display.highlights import Highlight, highlights
from pyserini_compneg.display.query_explanation import ExplainedQuery, explain_query

__all__ = ["ExplainedQuery", "Highlight", "explain_query", "highlights"]
