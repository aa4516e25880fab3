"""The datasets as they are: what is in the files, and that it converts without a complaint."""

from collections import Counter

import pytest

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.datasets.conversion import convert

pytestmark = [pytest.mark.slow, pytest.mark.once]

SPLITS = [
    # folder, kind, split, documents, queries, judgements, those of 0
    ("filmsets", "filmsets", "dev", 33825, 700, 11532, 0),
    ("excluir", "excluir", "dev", 1980, 528, 1056, 528),
    ("nevir", "nevir", "dev", 636, 636, 1272, 636),
    ("nevir", "nevir", "train", 1236, 1236, 2472, 1236),
    ("negconstraint", "beir", "dev", 3946, 192, 192, 0),
    ("scifact", "beir", "test", 5183, 300, 339, 0),
    ("scifact", "beir", "train", 5183, 809, 919, 0),
    ("cisi", "cisi", "all", 1460, 112, 3114, 0),
]


@pytest.mark.parametrize(("folder", "kind", "split", "documents", "queries", "judgements", "zeros"), SPLITS)
def test_a_split(shared_data, tmp_path, folder, kind, split, documents, queries, judgements, zeros):
    dataset = open_dataset(shared_data / folder)
    assert dataset.kind == kind
    values = Counter(value for judged in dataset.qrels(split).values() for value in judged.values())
    assert values[0] == zeros
    assert convert(dataset, split, tmp_path / "out") == (documents, queries, judgements)
