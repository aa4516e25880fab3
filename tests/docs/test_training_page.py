import re
from pathlib import Path

import pytest
from checkpoints import sample_texts
from json_lines import write_jsonl

import pyserini_compneg.lab.training
from pyserini_compneg.commands.train import main
from pyserini_compneg.lab.training import read_config
from pyserini_compneg.lab.training.config import (
    DevConfig,
    ModelConfig,
    ReaderSection,
    SourceConfig,
    TeacherConfig,
    TrainingConfig,
)

PAGE = (Path(pyserini_compneg.lab.training.__file__).parents[3] / "docs/how-to/training.md").read_text(encoding="utf-8")


def test_the_configuration_shows_every_key(tmp_path):
    reader, block = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1:3]
    (tmp_path / "r.yaml").write_text(reader)
    assert read_config(tmp_path / "r.yaml").reader.seed == 0
    assert all(f"  {key}:" in reader for key in ReaderSection.model_fields)
    (tmp_path / "c.yaml").write_text(block)
    config = read_config(tmp_path / "c.yaml")
    assert config.teacher and config.dev and config.training.patience == 5
    for kind in (ModelConfig, SourceConfig, TeacherConfig, DevConfig, TrainingConfig):
        for key in kind.model_fields:
            assert re.search(rf"\b{key}:", block), key


def test_the_first_configuration_trains_a_tiny_model_on_pairs(tmp_path, request, monkeypatch, caplog):
    pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")
    settings = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    base = request.getfixturevalue("checkpoints").bert
    (tmp_path / "c.yaml").write_text(settings.replace("naver/splade-v3", str(base)).replace("1000", "2"))
    pairs = [{"query": text[:20], "positive": text, "negative": f"not {text}"} for text in sample_texts(6)]
    write_jsonl(tmp_path / "pairs.jsonl", *pairs)
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO")
    assert main(["c.yaml", "--output", "model"]) == 0
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "licence of its author: 6 examples, 6 of them with hard negatives (its own)\n" in card
    assert any(message.startswith("training: 2 of 2 steps in ") for message in caplog.messages)
