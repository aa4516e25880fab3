"""Explanations for people: why a query found its results, as tables, trees and bars."""

from pyserini_compneg.explaining.highlights import Highlight, highlights
from pyserini_compneg.explaining.query_explanation import ExplainedQuery, explain_query

__all__ = ["ExplainedQuery", "Highlight", "explain_query", "highlights"]
