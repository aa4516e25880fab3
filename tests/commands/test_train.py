"""The command, and what other commands make of what it leaves."""

import json

import pytest
from refusals import EXISTS
from tiny_training import write_dataset

from pyserini_compneg.commands.eval import main as evaluate
from pyserini_compneg.commands.index import main as index
from pyserini_compneg.commands.search import main as search
from pyserini_compneg.commands.train import main
from pyserini_compneg.lab.training import training
from pyserini_compneg.lucene import Manifest
from pyserini_compneg.support.errors import install_hint

SIGNED = "snrelu:sum"
CONFIG = """
about: A try.
model: {{base: {base}, head: "{head}", max_length: 32, query_encoder: {queries}}}
data: [{{dataset: films, split: train}}]
dev: {{dataset: films, split: train, measures: [recip_rank]}}
training: {{steps: 4, batch_size: 8, evaluate_every: 2, learning_rate: 1.0e-3, query_flops: 0, document_flops: 0}}
"""


@pytest.fixture
def home(tmp_path):
    write_dataset(tmp_path / "films", 24)
    return tmp_path


@pytest.fixture
def base(request):
    pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")
    pytest.importorskip("onnxscript", reason="exports are made by torch and onnxscript")
    return request.getfixturevalue("checkpoints").bert


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "head"), [("shared", SIGNED), ("static", "relu:max")])
def test_train_export_index_search_eval(home, base, capsys, queries, head):
    (home / "c.yaml").write_text(CONFIG.format(base=base, queries=queries, head=head))
    model, folder, run = home / "model", home / "index", home / "run.txt"
    assert main([str(home / "c.yaml"), "--data", str(home), "--output", str(model)]) == 0
    name, value = capsys.readouterr().out.splitlines()[0].split("\t")
    assert (name, 0 < float(value) <= 1) == ("recip_rank", True)

    assert {path.name for path in model.iterdir()} >= {"README.md", "learning_curve.png", "dev_run.txt", "modules.json"}
    card = (model / "README.md").read_text()
    assert "A try." in card
    assert f"- the weights of {base}, whose licence applies" in card
    assert "FilmSets, which is not QUEST, from prust/wikipedia-movie-data (MIT)" in card
    assert f"| recip_rank | {value} |" in card
    log = json.loads((model / "training_log.json").read_text())
    assert [entry["step"] for entry in log["log"] if "eval_recip_rank" in entry] == [0, 2, 4]

    documents = str(home / "films" / "documents.jsonl")
    assert index(["--collection", documents, "--index", str(folder), "--encoder", str(model)]) == 0
    assert Manifest.read(folder).signed == (head == SIGNED)
    topics = str(home / "films" / "train.jsonl")
    assert search(["--index", str(folder), "--topics", topics, "--output", str(run)]) == 0
    capsys.readouterr()
    measured = []
    for path in (run, model / "dev_run.txt"):
        assert evaluate(["--qrels", topics, "--run", str(path), "-m", "recip_rank", "--output-format", "json"]) == 0
        measured.append(json.loads(capsys.readouterr().out)[0]["measures"]["recip_rank"])
    assert measured[1] == pytest.approx(float(value), abs=1e-3)
    assert measured[0] == pytest.approx(measured[1], abs=0.05)  # impacts are rounded


def test_no_comment_of_settings_steers_the_terminal(tmp_path, capsys):
    path = tmp_path / "c.yaml"
    path.write_text("# a\u202eb\n" + CONFIG.format(base="m", queries="shared", head=SIGNED))
    assert main([str(path), "--show"]) == 0
    assert capsys.readouterr().out == path.read_text().replace("\u202e", " ")


def test_a_recipe_is_shown(capsys):
    assert main(["table5-sum", "--show"]) == 0
    assert "head: snrelu:sum\n" in capsys.readouterr().out


def test_packages_that_are_missing(home, monkeypatch, capsys):
    monkeypatch.setattr(training, "find_spec", lambda name: None if name in ("accelerate", "datasets") else name)
    (home / "c.yaml").write_text(CONFIG.format(base="m", queries="shared", head=SIGNED))
    assert main([str(home / "c.yaml"), "--output", str(home / "model")]) == 2
    message = f"error: training needs accelerate, datasets; {install_hint('train')}\n"
    assert capsys.readouterr().err == message


def test_what_is_there_is_not_replaced_unless_asked(home, monkeypatch, capsys):
    monkeypatch.setattr(training, "find_spec", str)
    (home / "c.yaml").write_text(CONFIG.format(base="m", queries="shared", head=SIGNED))
    (home / "model").mkdir()
    assert main([str(home / "c.yaml"), "--output", str(home / "model")]) == 1
    assert capsys.readouterr().err == f"error: {home}/model: {EXISTS}\n"
