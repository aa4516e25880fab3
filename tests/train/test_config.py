"""Configurations: what they say, and what is said of those that are wrong."""

import pytest

from pyserini_compneg.errors import TrainingError
from pyserini_compneg.train import read_config
from pyserini_compneg.train.config import (
    DevConfig,
    ModelConfig,
    SourceConfig,
    TeacherConfig,
    TrainConfig,
    TrainingConfig,
)

WHOLE = """
about: a try
model:
  base: owner/model
  head: snrelu:sum:0.5
  query_encoder: separate
data:
  - dataset: films
    split: train
    negatives: mixed
  - dataset: pairs.jsonl
    positives: 2
teacher: {model: owner/teacher, scale: 20}
dev:
  dataset: films
  split: dev
  measures: [ndcg_cut.10]
  documents: 1000
training:
  steps: 10
  learning_rate: 2.0e-5
  patience: 3
"""
LEAST = "model: {base: m}\ndata: [{dataset: d}]\ntraining: {steps: 1}\n"


def read(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    return read_config(tmp_path / "c.yaml")


def test_all_that_can_be_said(tmp_path):
    assert read(tmp_path, WHOLE) == TrainConfig(
        ModelConfig("owner/model", "snrelu:sum:0.5", query_encoder="separate"),
        (SourceConfig("films", "train", "mixed"), SourceConfig("pairs.jsonl", positives=2)),
        TrainingConfig(10, learning_rate=2e-5, patience=3),
        DevConfig("films", "dev", ("ndcg_cut.10",), 1000),
        TeacherConfig("owner/teacher", 20.0),
        "a try",
    )


def test_the_least_that_must_be_said(tmp_path):
    assert read(tmp_path, LEAST) == TrainConfig(ModelConfig("m"), (SourceConfig("d"),), TrainingConfig(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "the file must be a mapping, got ['a list']"),
        (LEAST + "modell: 1", "unknown key modell; did you mean model?"),
        (LEAST.replace("steps", "stepps"), "unknown key training.stepps; did you mean steps?"),
        (LEAST.replace("{base: m}", "{}"), "model.base is missing"),
        (LEAST.replace("[{dataset: d}]", "[]"), "data must be a list that is not empty, got []"),
        (LEAST.replace("steps: 1", "steps: 1.5"), "training.steps must be a whole number, got 1.5"),
        (LEAST.replace("steps: 1", "steps: true"), "training.steps must be a whole number, got True"),
        (LEAST.replace("steps: 1", "steps: 0"), "training.steps must be 1 or more, got 0"),
        (
            LEAST.replace("steps: 1", "steps: 1, learning_rate: 2e-5"),
            "training.learning_rate must be a finite number, got '2e-5'; YAML wants a point in it, such as 2.0e-5",
        ),
        (LEAST.replace("steps: 1", "steps: 1, warmup: .inf"), "training.warmup must be a finite number, got inf"),
        (
            LEAST.replace("steps: 1", "steps: 1, warmup: 2"),
            "training.warmup must be a share of the steps, 0 to 1, got 2.0",
        ),
        (LEAST + "about: one\nabout: two\n", "about is given twice"),
        (LEAST.replace("{dataset: d}", "{dataset: d, dataset: e}"), "dataset is given twice"),
        (LEAST.replace("base: m", "base: m, max_length: 2"), "model.max_length must be 3 or more, got 2"),
        (LEAST.replace("steps: 1", "steps: 1, batch_size: 1"), "training.batch_size must be 2 or more, got 1"),
        (LEAST + "teacher: {model: t, scale: 0}", "teacher.scale must be above 0, got 0.0"),
        (LEAST.replace("base: m", "base: m, dropout: 1"), "model.dropout must be below 1, got 1.0"),
        (LEAST.replace("base: m", "base: m, frozen_layers: -1"), "model.frozen_layers must be 0 or more, got -1"),
        (
            LEAST.replace("base: m", "base: m, query_encoder: none"),
            "model.query_encoder must be one of shared, separate, static, got 'none'",
        ),
        (LEAST.replace("steps: 1", "steps: 1, max_length: 2"), "training.max_length must be 3 or more, got 2"),
        (
            LEAST.replace("steps: 1", "steps: 1, max_length: 257"),
            "training.max_length must be model.max_length, 256, or less, got 257",
        ),
        (
            LEAST.replace("steps: 1", "steps: 1, head_learning_rate: -1"),
            "training.head_learning_rate must be 0 or more, got -1.0",
        ),
        (LEAST.replace("steps: 1", "steps: 1, seed: -1"), "training.seed must be 0 or more, got -1"),
        (
            LEAST.replace("steps: 1", "steps: 1, seed: 4294967296"),
            "training.seed must be 4294967295 or less, got 4294967296",
        ),
        (LEAST + "dev: {dataset: d, split: s, documents: 0}", "dev.documents must be 1 or more, got 0"),
        (
            LEAST.replace("steps: 1", "steps: 1, patience: 0") + "dev: {dataset: d, split: s}",
            "training.patience must be 1 or more, got 0",
        ),
        (
            LEAST.replace("steps: 1", "steps: 1, patience: 1"),
            "training.patience needs a dev section to tell what is better",
        ),
        (
            LEAST.replace("dataset: d", "dataset: d, negatives: hard"),
            "data.negatives must be one of none, judged, bm25, compositional, mixed, got 'hard'",
        ),
        (
            LEAST.replace("base: m", "base: m, head: relu:absmax"),
            "model.head: head 'relu:absmax': relu is pooled by max or sum, got 'absmax'",
        ),
    ],
)
def test_what_is_wrong(tmp_path, text, message):
    with pytest.raises(TrainingError) as error:
        read(tmp_path, text)
    assert str(error.value) == f"{tmp_path}/c.yaml: {message}"


def test_no_yaml(tmp_path):
    with pytest.raises(TrainingError, match=r"c\.yaml: no YAML: ") as error:
        read(tmp_path, "model: [")
    assert "\n" not in str(error.value)


NESTED = [f"&{name} [{', '.join(['*' + before] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)]
BOMB = f"model: {{base: m, max_length: [&a [x], {', '.join(NESTED)}]}}\ndata: [{{dataset: d}}]\ntraining: {{steps: 1}}"


@pytest.mark.parametrize("text", [BOMB, "[" * 5000, "about: &a [*a]", "about: 2020-13-45", "--- 1\n--- 2"])
def test_what_yaml_cannot_bear(tmp_path, text):
    with pytest.raises(TrainingError) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_no_file(tmp_path):
    with pytest.raises(TrainingError) as error:
        read_config(tmp_path / "none.yaml")
    assert str(error.value) == f"{tmp_path}/none.yaml: cannot be read: no such file or directory"
