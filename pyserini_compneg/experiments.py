"""The former home of :mod:`pyserini_compneg.lab.experiments`, whose datasets are still imported from here."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("pyserini_compneg.lab.experiments")
sys.modules[f"{__name__}.datasets"] = import_module("pyserini_compneg.lab.experiments.datasets")
