"""Evaluation: runs against judgements, per query, per class of query and over all."""

from pyserini_compneg.eval.measures import Measure, evaluate, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.eval.term_frequencies import term_frequencies

__all__ = ["Measure", "evaluate", "parse_measures", "read_qrels", "read_run", "term_frequencies"]
