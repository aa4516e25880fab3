"""The stages of the package's own small encoder: what they gather, run, and go on with."""

import gzip
import importlib.util
import json
import random
import subprocess
from pathlib import Path

import pytest
from tiny_training import write_dataset

from pyserini_compneg.models import read_checkpoint
from pyserini_compneg.train import read_config

PASSAGE = " ".join(f"This is the sentence of number {number}." for number in range(9))
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
    assert [source.dataset for source in config.data] == [
        f"{name}.jsonl.gz" for name in ("films", "pairs", "passages", "titles")
    ]


@pytest.fixture
def data(tmp_path):
    """What the tool needs of the datasets: six films, of which one is judged for dev."""
    folder = tmp_path / "data"
    write_dataset(folder / "filmsets", 6)
    lines = (folder / "filmsets" / "documents.jsonl").read_text().splitlines()
    films = [json.loads(line) | {"title": f"t{i}"} for i, line in enumerate(lines)]
    write_packed(folder / "filmsets" / "documents.jsonl.gz", films)
    texts = PASSAGE, PASSAGE.replace("sentence", "line")
    pairs = [{"query": "q", "positive": text, "negative": None} for text in texts]
    write_packed(folder / "pairs" / "train.jsonl.gz", pairs)
    query = (folder / "filmsets" / "train.jsonl").read_text().splitlines()[3]
    (folder / "filmsets" / "dev.jsonl").write_text(f"{query}\n")
    return folder


def write_packed(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


def packed_lines(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_all_is_gathered_in_one_folder(mini, tmp_path, data, request, capsys, monkeypatch):
    pytest.importorskip("torch", reason="weights are rewritten by torch")
    base = request.getfixturevalue("checkpoints").bert
    monkeypatch.setattr(mini, "DEV_DOCUMENTS", 3)
    arguments = ["prepare", str(tmp_path / "mini"), "--data", str(data), "--base", str(base), "--size", "cpu"]
    assert mini.main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/mini: ")
    titles = packed_lines(tmp_path / "mini" / "titles.jsonl.gz")
    assert sorted(pair["query"] for pair in titles) == [f"t{i}" for i in range(6)]
    assert len(packed_lines(tmp_path / "mini" / "films.jsonl.gz")) == 6
    pair, _ = packed_lines(tmp_path / "mini" / "passages.jsonl.gz")
    assert pair["query"] in PASSAGE
    kept = {film["docid"] for film in packed_lines(tmp_path / "mini" / "filmsets" / "documents.jsonl.gz")}
    assert "d3" in kept
    assert len(kept) in (2, 3)  # the judged one is perhaps among those drawn
    assert (tmp_path / "mini" / "base" / "config.json").is_file()
    assert mini.main(arguments) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/mini: exists already; name another folder\n"


def test_a_wrong_trunk_leaves_no_folder(mini, tmp_path, data, capsys):
    pytest.importorskip("torch", reason="weights are rewritten by torch")
    arguments = ["prepare", str(tmp_path / "mini"), "--data", str(data), "--size", "cpu", "--base"]
    assert mini.main([*arguments, str(tmp_path)]) == 1
    (tmp_path / "trunk").mkdir()
    (tmp_path / "trunk" / "config.json").write_text("{}")
    assert mini.main([*arguments, str(tmp_path / "trunk")]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: {tmp_path}: has no config.json; give the folder of all-MiniLM-L6-v2"
    assert second.startswith(f"error: {tmp_path}/trunk: no trunk can be loaded: ")
    assert not (tmp_path / "mini").exists()


def test_records_that_lack_a_field_are_said_to(mini, tmp_path, data, capsys):
    (tmp_path / "trunk").mkdir()
    (tmp_path / "trunk" / "config.json").write_text("{}")
    write_packed(data / "pairs" / "train.jsonl.gz", [{"question": "q", "positive": PASSAGE}])
    arguments = ["prepare", str(tmp_path / "mini"), "--data", str(data), "--size", "cpu"]
    assert mini.main([*arguments, "--base", str(tmp_path / "trunk")]) == 1
    assert capsys.readouterr().err == f"error: {data}: a record of filmsets or pairs has no field 'query'\n"
    assert not (tmp_path / "mini").exists()


@pytest.mark.parametrize("seed", range(20))
def test_a_sentence_asks_for_those_around_it(mini, seed):
    pair = mini.sentence_and_rest(PASSAGE, random.Random(seed))
    number = int(pair["query"][-2])
    around = {int(part[-1]) for part in pair["positive"].rstrip(".").split(". ")}
    assert len(around) == 4
    assert around & {number - 1, number + 1}
    assert mini.sentence_and_rest("Two sentences are not enough. They are only two here.", random.Random(seed)) is None


def test_it_is_trained_and_packed(mini, tmp_path, data, request, capsys, monkeypatch):
    """What was packed is the same encoder, of half the size."""
    pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")
    import torch

    from pyserini_compneg.models.torch_model import TorchModel

    base = request.getfixturevalue("checkpoints").bert
    tiny = {"reads": 64, "max_length": 32, "steps": 2, "batch_size": 4, "evaluate_every": 1, "negatives": "none"}
    monkeypatch.setitem(mini.SIZES, "cpu", tiny)
    place = tmp_path / "mini"
    assert mini.main(["prepare", str(place), "--data", str(data), "--base", str(base), "--size", "cpu"]) == 0
    assert mini.main(["pack", str(place)]) == 1
    assert mini.main(["train", str(place)]) == 0
    assert mini.main(["pack", str(place)]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("train: done\n")
    assert f"error: {place}/model: there is no model yet; run the stage train until it is done\n" in err
    whole, packed = (read_checkpoint(place / name).document for name in ("model", "packed"))
    assert packed.weights[0].stat().st_size < 0.55 * whole.weights[0].stat().st_size
    ids = torch.tensor([[2, 30, 40, 3], [2, 50, 3, 0]])
    with torch.no_grad():
        ours, theirs = (
            TorchModel(side).module(ids, torch.zeros_like(ids), (ids > 0).long()) for side in (packed, whole)
        )
    torch.testing.assert_close(ours, theirs, atol=0.02, rtol=0.02)
    assert (theirs > 0).any()


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
    """Unless it would never come to an end."""
    reached = tmp_path / "model.training" / "checkpoints" / "checkpoint-2" / "whole"

    def run(command, cwd, timeout):
        reached.parent.mkdir(parents=True, exist_ok=True)
        reached.touch()
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(mini.subprocess, "run", run)
    assert mini.main(["train", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "train: not done yet; run it again\n"
    assert mini.main(["train", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}: no checkpoint was reached in 9 minutes; give more\n"


def test_a_stage_that_fails_says_so(mini, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mini.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    assert mini.main(["train", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "error: train mini.yaml --data . --base base --output model --resume ended with exit code 1\n"
    )
