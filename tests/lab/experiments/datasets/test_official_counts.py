"""The datasets as they are: what is in the files, and that it converts without a complaint."""

from collections import Counter

import pytest

from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.datasets.conversion import convert
from pyserini_compneg.topics.topics import read_topics

pytestmark = [pytest.mark.slow, pytest.mark.once]

SPLITS = [
    # folder, kind, split, documents, queries, judgements, those of 0
    ("filmsets", "filmsets", "dev", 33825, 700, 11532, 0),
    ("filmsets", "filmsets", "train", 33825, 4000, 59087, 0),
    ("filmsets", "filmsets", "train-nc", 33825, 2200, 29143, 0),
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


def test_every_template_of_filmsets_has_as_many_queries(shared_data):
    topics = open_dataset(shared_data / "filmsets").topics("dev")
    assert list(Counter(topic.group for topic in topics).values()) == [100] * 7
    assert {topic.metadata["domain"] for topic in topics} == {"films"}


def test_expressions_survive_the_conversion(shared_data, tmp_path):
    dataset = open_dataset(shared_data / "filmsets")
    convert(dataset, "dev", tmp_path / "out")
    assert {topic.qid: topic.expression for topic in read_topics(tmp_path / "out" / "topics.tsv")} == {
        topic.qid: topic.expression for topic in dataset.topics("dev")
    }


def test_cisi_judges_76_of_its_queries(shared_data):
    assert len(open_dataset(shared_data / "cisi").qrels("all")) == 76
