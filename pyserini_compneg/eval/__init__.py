"""Evaluation: runs against judgements, per query, per class of query and over all."""

from pyserini_compneg.eval.measures import Measure, evaluate, mean, parse_measures
from pyserini_compneg.eval.qrels import Qrels, read_qrels
from pyserini_compneg.eval.rows import Figure, PerQuery, Row, make_rows
from pyserini_compneg.eval.runs import Run, read_run
from pyserini_compneg.eval.significance import LEVEL, confidence_interval
from pyserini_compneg.eval.table import row_letters, superscript
from pyserini_compneg.eval.term_frequencies import term_frequencies, words_of

__all__ = [
    "Figure",
    "LEVEL",
    "Measure",
    "PerQuery",
    "Qrels",
    "Row",
    "Run",
    "confidence_interval",
    "evaluate",
    "make_rows",
    "mean",
    "parse_measures",
    "read_qrels",
    "read_run",
    "row_letters",
    "superscript",
    "term_frequencies",
    "words_of",
]
