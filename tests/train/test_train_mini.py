"""The stages of the package's own small encoder: what they gather, run, and go on with."""

import gzip
import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tiny_training import write_dataset, write_lines

from pyserini_compneg.train import read_config

SCRIPT = Path(__file__).parents[2] / "tools" / "train_mini.py"


@pytest.fixture
def mini():
    spec = importlib.util.spec_from_file_location("train_mini", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", ["gpu", "cpu"])
def test_configurations_are_complete(mini, tmp_path, size):
    (tmp_path / "mini.yaml").write_text(mini.CONFIG.format(**mini.SIZES[size]))
    config = read_config(tmp_path / "mini.yaml")
    assert config.training.steps == mini.SIZES[size]["steps"]
    assert [source.dataset for source in config.data] == ["filmsets", "pairs/train.jsonl.gz", "titles.jsonl"]


def test_all_is_gathered_in_one_folder(mini, tmp_path, request, capsys):
    pytest.importorskip("torch", reason="weights are rewritten by torch")
    data = tmp_path / "data"
    write_dataset(data / "filmsets", 5)
    films = [json.loads(line) | {"title": f"t{i}"} for i, line in enumerate((data / "filmsets/documents.jsonl").open())]
    write_lines(data / "filmsets" / "documents.jsonl", films)
    packed = [data / "filmsets" / "documents.jsonl", data / "scifact" / "corpus.jsonl", data / "pairs" / "train.jsonl"]
    write_lines(packed[1], [{"_id": "1", "text": "a"}])
    write_lines(packed[2], [{"query": "q", "positive": "p"}])
    for path in packed:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    shutil.copyfile(data / "filmsets" / "train.jsonl", data / "filmsets" / "dev.jsonl")
    write_lines(data / "scifact" / "queries.jsonl", [{"_id": "1", "text": "a"}])
    write_lines(data / "scifact" / "qrels" / "test.tsv", [])

    base = request.getfixturevalue("checkpoints").bert
    arguments = ["prepare", str(tmp_path / "mini"), "--data", str(data), "--base", str(base), "--size", "cpu"]
    assert mini.main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/mini: ")
    titles = [json.loads(line) for line in (tmp_path / "mini" / "titles.jsonl").open()]
    assert sorted(pair["query"] for pair in titles) == [f"t{i}" for i in range(5)]
    assert (tmp_path / "mini" / "base" / "config.json").is_file()
    assert mini.main(arguments) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/mini: exists already; name another folder\n"


def test_stages_run_what_is_not_done(mini, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mini, "_has_gpu", lambda: False)
    called = []

    def run(command, cwd, timeout):
        called.append(command[2])
        assert (cwd, timeout) == (tmp_path, 120)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(mini.subprocess, "run", run)
    (tmp_path / "scifact-bm25.txt").touch()
    assert mini.main(["evaluate", str(tmp_path), "--minutes", "2"]) == 0
    names = ["reproduce", "index", "eval", "reproduce", "index", "search", "eval"]
    assert called == [f"pyserini_compneg.{name}" for name in names]
    assert capsys.readouterr().out == "evaluate: done\n"


def test_a_stage_that_takes_too_long_is_gone_on_with(mini, tmp_path, monkeypatch, capsys):
    def run(command, cwd, timeout):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(mini.subprocess, "run", run)
    assert mini.main(["train", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "train: not done yet; run it again\n"


def test_a_stage_that_fails_says_so(mini, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mini.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    assert mini.main(["train", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "error: train mini.yaml --data . --base base --output model --resume ended with exit code 1\n"
    )
