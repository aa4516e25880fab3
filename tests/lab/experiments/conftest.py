"""A protocol, run on the small set of films."""

import pytest
from film_set import write_film_set

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.experiment import reproduce
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.workplace import Engine


@pytest.fixture(scope="package")
def dataset(tmp_path_factory):
    return open_dataset(write_film_set(tmp_path_factory.mktemp("data") / "films"))


@pytest.fixture
def reproduced(dataset, tmp_path):
    """Runs the text of a protocol; its report is in ``report``, unless another folder is given."""

    def reproduced(text, **options):
        (tmp_path / "two.yaml").write_text(text)
        options = {"dataset": dataset, "engines": [Engine("bm25")], "folder": tmp_path / "report"} | options
        return reproduce(read_protocol(str(tmp_path / "two.yaml")), **options)

    return reproduced
