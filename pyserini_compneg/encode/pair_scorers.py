"""The former home of :mod:`pyserini_compneg.baselines.pair_scorers`."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("pyserini_compneg.baselines.pair_scorers")
