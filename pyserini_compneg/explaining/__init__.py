"""Explanations for people: why a query found what it found, as tables, trees and bars."""

from pyserini_compneg.explaining.query_explanation import ExplainedDocument, ExplainedQuery, explain_query

__all__ = ["ExplainedDocument", "ExplainedQuery", "explain_query"]
