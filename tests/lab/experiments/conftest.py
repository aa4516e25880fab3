"""A protocol, run on the small set of films."""

import pytest
from film_set import write_film_set

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.experiment import Experiment
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.run_folder import Engine, RunOptions

PROTOCOL = """
title: Two sections
about: Of differences and of atoms.
datasets: [filmsets]
splits: [test, dev]
measures: [nDCG@10, R@100]
hits: 20
examples: 1
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: vanilla, formula: f, method: operators, settings: {difference: vanilla}, published: [0.1, 0.2]}
      - {name: ignore, formula: A, method: operators, settings: {difference: ignore}, note: The  negation
          is left out.}
      - {name: disentangled, formula: A − B*, method: operators, settings: {difference: disentangled}}
      - {name: elsewhere, published: [null, 0.9]}
  - title: Atoms
    templates: [_]
    rows:
      - {name: atomic, method: operators}
"""


@pytest.fixture(scope="package")
def dataset(tmp_path_factory):
    return open_dataset(write_film_set(tmp_path_factory.mktemp("data") / "films"))


@pytest.fixture
def reproduced(dataset, tmp_path):
    """Runs the text of a protocol; its report is in ``report``, unless another folder is given."""

    def reproduced(text, dataset=dataset, folder=tmp_path / "report", training_split=None, **options):
        (tmp_path / "two.yaml").write_text(text)
        chosen = RunOptions(**{"engines": [Engine("bm25")]} | options)
        experiment = Experiment(dataset, folder, chosen, training_split=training_split)
        return experiment.run(read_protocol(str(tmp_path / "two.yaml")))

    return reproduced


@pytest.fixture
def run(reproduced):
    """Reproduces ``PROTOCOL``, or one with changes."""

    def run(*changes, text=PROTOCOL, **options):
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return reproduced(text, **options)

    return run
