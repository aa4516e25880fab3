"""Evaluation: runs against judgements, per query, per class of query and over all."""

from pyserini_compneg.eval.measures import Measure as Measure
from pyserini_compneg.eval.measures import evaluate as evaluate
from pyserini_compneg.eval.measures import parse_measures as parse_measures
from pyserini_compneg.eval.runs import read_run as read_run
from pyserini_compneg.eval.term_frequencies import term_frequencies as term_frequencies
