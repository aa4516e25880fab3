import json

import pytest
from refusals import refusal

from pyserini_compneg.lab.training.config import (
    DevConfig,
    ModelConfig,
    SourceConfig,
    TeacherConfig,
    TrainConfig,
    TrainingConfig,
    located,
    read_config,
    recipe_names,
    recipe_text,
)
from pyserini_compneg.support.errors import InputError

WHOLE = """
about: a try
model: {base: owner/model, head: "snrelu:sum:0.5", query_encoder: separate}
data:
  - {dataset: films, split: train, negatives: mixed}
  - {dataset: pairs.jsonl, positives: 2}
teacher: {model: owner/teacher, scale: 20}
dev: {dataset: films, split: dev, measures: [ndcg_cut.10], documents: 1000}
training: {steps: 10, learning_rate: 2e-5, patience: 3}
"""


def read(tmp_path, content):
    (tmp_path / "c.yaml").write_text(content if isinstance(content, str) else json.dumps(content))
    return read_config(tmp_path / "c.yaml")


def test_all_that_can_be_said(tmp_path):
    assert read(tmp_path, WHOLE) == TrainConfig(
        model=ModelConfig(base="owner/model", head="snrelu:sum:0.5", query_encoder="separate"),
        data=(
            SourceConfig(dataset="films", split="train", negatives="mixed"),
            SourceConfig(dataset="pairs.jsonl", positives=2),
        ),
        training=TrainingConfig(steps=10, learning_rate=2e-5, patience=3),
        dev=DevConfig(dataset="films", split="dev", measures=("ndcg_cut.10",), documents=1000),
        teacher=TeacherConfig(model="owner/teacher", scale=20.0),
        about="a try",
    )


@pytest.mark.parametrize(
    ("section", "settings", "message"),
    [
        ("model", {"base": "m", "max_length": 2}, "model.max_length: expected a number from 3, got 2"),
        ("model", {"base": "m", "dropout": 1}, "model.dropout: expected a number below 1.0, got 1"),
        ("model", {"base": "m", "query_encoder": "none"}, "model.query_encoder: expected 'shared', 'separate' or"),
        ("model", {"base": "m", "head": "relu:absmax"}, "model.head: head 'relu:absmax': relu is pooled by max or sum"),
        (
            "data",
            [{"dataset": "films", "atoms": "a.jsonl"}],
            "data[0]: atoms are for the negatives compositional and mixed; leave them out",
        ),
        ("model", {"base": "m", "similarity": "dot"}, "model: model.similarity is for the head dense; leave it out"),
        ("model", {"base": "m", "head": "dense", "dropout": 0.1}, "model: model.dropout is for sparse vectors; leave"),
        ("model", {"base": "m", "head": "dense", "query_encoder": "static"}, "model: model.query_encoder is for"),
        ("data", [], "data: "),
        ("data", [{"dataset": "d", "positives": 0}], "data[0].positives: expected a number from 1, got 0"),
        ("dev", {"dataset": "d", "split": "s", "measures": []}, "dev.measures: "),
        ("teacher", {"model": "t", "scale": 0}, "teacher.scale: expected a number above 0"),
        ("training", {"steps": 1, "warmup": 2}, "training.warmup: expected a number up to 1.0, got 2"),
        ("training", {"steps": 1, "seed": 2**32}, "training.seed: expected a number below 4294967296, got 4294967296"),
        ("training", {"steps": 1, "batch_size": 1}, "training.batch_size must be at least 2, because other documents"),
        ("training", {"steps": 1, "patience": 1}, "training.patience needs a dev section"),
        ("training", {"steps": 1, "max_length": 21}, "training.max_length must be at most model.max_length, 20"),
    ],
)
def test_what_is_wrong(tmp_path, section, settings, message):
    shortest = {"model": {"base": "m", "max_length": 20}, "data": [{"dataset": "d"}], "training": {"steps": 1}}
    assert read(tmp_path, shortest).training == TrainingConfig(steps=1)
    refused = refusal(read, tmp_path, {**shortest, section: settings}, error=InputError)
    assert refused.startswith(f"{tmp_path}/c.yaml: {message}")


def test_sections_that_agree_or_not(tmp_path):
    """A batch of a teacher may be one example. A bi-encoder has no teacher and no rate of the head."""
    config = read(tmp_path, WHOLE.replace("steps: 10", "steps: 10, batch_size: 1"))
    assert config.training.batch_size == 1
    content = {"model": {"base": "m", "head": "dense"}, "data": [{"dataset": "d"}], "training": {"steps": 1}}
    said = f"{tmp_path}/c.yaml: the head dense has no teacher and no training.head_learning_rate; leave them out"
    for more in ({"teacher": {"model": "t"}}, {"training": {"steps": 1, "head_learning_rate": 1.0}}):
        assert refusal(read, tmp_path, {**content, **more}, error=InputError) == said


def test_recipes(tmp_path):
    """What ``--show`` prints is the recipe; the paper's trainings differ in head, split and negatives."""
    for name in recipe_names():
        assert read(tmp_path, recipe_text(name)) == read_config(name)
        assert "$" not in recipe_text(name)
    chosen = {name: read_config(name) for name in ("table7-nc-bm25", "table6-sum", "nevir-split-absmax")}
    assert [(one.model.head, one.data[0].split, one.data[0].negatives) for one in chosen.values()] == [
        ("relu:max", "domain-train-nc", "bm25"),
        ("snrelu:sum", "domain-train", "none"),
        ("snrelu:absmax", "train", "judged"),
    ]


def test_paths_of_datasets_start_at_a_folder(tmp_path):
    config = located(read(tmp_path, WHOLE), "/data", "owner/other")
    assert [source.dataset for source in config.data] == ["/data/films", "/data/pairs.jsonl"]
    assert (config.dev.dataset, config.model.base) == ("/data/films", "owner/other")
