import json

import pytest
from checkpoints import edit_json
from film_set import write_film_set
from json_lines import write_jsonl
from refusals import refusal
from tiny_training import killed_at, tiny_config, training_log, write_dataset

pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from pyserini_compneg.lab.experiments.datasets import open_dataset  # noqa: E402
from pyserini_compneg.lab.experiments.dense import DenseEncoder  # noqa: E402
from pyserini_compneg.lab.experiments.experiment import Experiment  # noqa: E402
from pyserini_compneg.lab.experiments.protocol import read_protocol  # noqa: E402
from pyserini_compneg.lab.experiments.run_folder import Engine, RunOptions  # noqa: E402
from pyserini_compneg.lab.experiments.splits import shared_queries  # noqa: E402
from pyserini_compneg.lab.training import train  # noqa: E402
from pyserini_compneg.lab.training.protocol_models import find_models, train_models  # noqa: E402
from pyserini_compneg.support.errors import InputError  # noqa: E402

pytestmark = pytest.mark.slow
DENSE = {"head": "dense", "max_length": 32}

PROTOCOL = """
title: Trained
about: Two models.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
models:
  sparse one: [table4-full, SPARSE]
  dense one: [DENSE]
sections:
  - title: Atoms
    templates: [_]
    rows:
      - {name: not trained, method: operators}
      - {name: sparse, method: operators, model: sparse one, published: [0.3]}
      - {name: dense, method: dense, model: dense one, published: [0.4]}
      - {name: dense without figures, method: dense, model: dense one}
  - title: Trained alone
    templates: [_ or _]
    rows:
      - {name: sparse, method: operators, model: sparse one}
"""
RECIPE = """
model: {{base: {base}, head: "{head}", max_length: 32}}
data: [{{dataset: elsewhere, split: train}}]
training: {{steps: 2, batch_size: 4}}
"""


def test_a_bi_encoder_learns_by_heart(tmp_path, trunk):
    films = write_dataset(tmp_path / "films", 24)
    config = tiny_config(trunk, films, steps=40, batch_size=24, evaluate_every=40, learning_rate=3e-3, model=DENSE)
    results = train(config, tmp_path / "model")
    assert results == {"recip_rank": 1.0, "P.1": 1.0}
    encoder = DenseEncoder(str(tmp_path / "model"))
    assert encoder.encode_queries(["a film"]).shape == (1, 32)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "# A dense bi-encoder\n" in card and "--dense-encoder THIS_FOLDER" in card


def test_a_killed_training_of_a_bi_encoder_is_resumed(tmp_path, trunk, dataset):
    from pyserini_compneg.lab.training.trainers import DenseTrainer

    config = tiny_config(trunk, dataset, steps=5, model=DENSE)
    expected = train(config, tmp_path / "whole")
    with killed_at(3, DenseTrainer):
        train(config, tmp_path / "resumed")
    assert train(config, tmp_path / "resumed", existing="resume") == expected
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "resumed"))
    assert one == other


@pytest.mark.parametrize("head", ["dense", "relu:max"])
def test_the_similarity_of_pairs_is_told(tmp_path, request, trunk, head):
    base = trunk if head == "dense" else request.getfixturevalue("checkpoints").bert
    pair = {"q1": "who flies", "q2": "who does not fly", "doc1": "a spy film flies", "doc2": "a war film does not"}
    (tmp_path / "nevir").mkdir()
    write_jsonl(tmp_path / "nevir" / "train.jsonl", *({**pair, "id": f"{n}-2", "doc1": f"{n} film"} for n in range(4)))
    dot = {"similarity": "dot"} if head == "dense" else {}
    config = tiny_config(base, tmp_path / "nevir", steps=2, model={"head": head, "max_length": 32, **dot})
    results = train(config, tmp_path / "model")
    assert -1 <= results["pair_similarity"] <= 1 and results["pair_similarity_sd"] >= 0
    name, log = "eval_pair_similarity", training_log(tmp_path / "model")
    told = {entry["step"]: entry[name] for entry in log if name in entry}
    assert [*told] == [0, 2] and told[2] == results["pair_similarity"] != told[0]
    assert not dot or DenseEncoder(str(tmp_path / "model")).similarity == "dot"


@pytest.fixture
def protocol(tmp_path, trunk, checkpoints):
    for name, base, head in (("sparse", checkpoints.bert, "relu:max"), ("dense", trunk, "dense")):
        (tmp_path / f"{name}.yaml").write_text(RECIPE.format(base=base, head=head))
    text = PROTOCOL.replace("SPARSE", str(tmp_path / "sparse.yaml")).replace("DENSE", str(tmp_path / "dense.yaml"))
    (tmp_path / "p.yaml").write_text(text)
    return read_protocol(str(tmp_path / "p.yaml"))


@pytest.fixture
def films(tmp_path):
    return open_dataset(write_film_set(tmp_path / "films", with_train=True))


def test_models_are_trained_once_and_run(tmp_path, protocol, films, caplog):
    models = train_models(protocol, films, tmp_path / "models")
    assert {*models} == {"sparse one", "dense one"}
    log = json.loads((models["sparse one"] / "training_log.json").read_text())
    assert log["config"]["data"][0]["dataset"] == str(tmp_path / "films")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "models").rglob("*") if path.is_file()}
    again = train_models(protocol, films, tmp_path / "models")
    assert again == models == find_models(protocol, films, tmp_path / "models")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "models").rglob("*") if path.is_file()}
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    results = Experiment(films, tmp_path / "report", RunOptions([Engine("bm25")], models=models)).run(protocol)
    atoms, unions = results.sections
    assert [row.name for row in atoms.rows if row.path] == ["not trained", "sparse", "dense", "dense without figures"]
    assert atoms.rows[1].published(0) == 0.3
    assert [row.name for row in unions.rows] == ["sparse"]
    assert results.settings["model 'dense one'"] == str(models["dense one"])
    place = models["sparse one"]
    other = refusal(train_models, protocol, films, tmp_path / "models", "elsewhere", error=InputError)
    assert other == f"{place}: was trained with other settings (model); choose another place with --models"
    edit_json(place / "training_log.json", config={**log["config"], "about": "Other words."})
    find_models(protocol, films, tmp_path / "models")
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    copy = open_dataset(films.folder.rename(tmp_path / "moved"))
    refused = refusal(train_models, protocol, copy, tmp_path / "models", error=InputError)
    assert refused == f"{place}: was trained with other settings (data); choose another place with --models"
    assert find_models(protocol, copy, tmp_path / "models") == models
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said[0] == f"{place}: was trained with other settings (data); rows show what is there"


def test_models_are_not_run_on_what_they_were_trained_on(tmp_path, protocol, films):
    same = (films.folder / "dev.jsonl").read_text().replace('": "q', '": "other')  # under other ids
    (films.folder / "train.jsonl").write_text(same)
    (tmp_path / "models" / "sparse").mkdir(parents=True)
    queries = shared_queries(films, "dev", "dev")
    for find in (train_models, find_models):
        assert refusal(find, protocol, films, tmp_path / "models", error=InputError) == (
            f"{films.folder}: models of protocol p are trained with train, which shares {queries} queries with dev; "
            "report another split with --split, or others with --domains"
        )
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["sparse"]


def test_a_domain_takes_the_place_of_the_split_for_training(tmp_path, protocol, films):
    queries = shared_queries(films, "domain-films-nc", "domain-films")
    assert 0 < queries < len(films.topics("domain-films"))
    (tmp_path / "models" / "filmsets-nc-films").mkdir(parents=True)
    nc = protocol.model_copy(update={"models": {"sparse one": ("filmsets-nc",)}})
    assert refusal(find_models, nc, films, tmp_path / "models", "domain-films", "films", error=InputError) == (
        f"{films.folder}: models of protocol p are trained with domain-films-nc, which shares {queries} queries with "
        "domain-films; report another split with --split, or others with --domains"
    )
    places = find_models(nc, films, tmp_path / "models", "dev", "books")
    assert places == {}  # the folder's name has the domain


def test_models_that_are_not_there(tmp_path, protocol, films, caplog):
    assert find_models(protocol, films, tmp_path / "models") == {}
    (record,) = caplog.records
    assert record.getMessage().startswith(f"left out: rows of models that {tmp_path}/models lacks: ")
    assert record.getMessage().endswith("; --train trains them")
    results = Experiment(films, tmp_path / "report", RunOptions([Engine("bm25")])).run(protocol)
    (atoms,) = results.sections
    found = {row.name: row.path is None for row in atoms.rows}
    assert found == {"not trained": False, "sparse": True, "dense": True}


def test_what_is_no_recipe_of_an_encoder(tmp_path, protocol, films):
    for recipe, message in (("x", "x: neither a file nor a recipe"), ("reader", "reader: trains no encoder")):
        changed = protocol.model_copy(update={"models": {"sparse one": (recipe,)}})
        assert refusal(find_models, changed, films, tmp_path, error=InputError).startswith(message)
    (tmp_path / "models" / "sparse").mkdir(parents=True)
    message = refusal(train_models, protocol, films, tmp_path / "models", error=InputError)
    assert message.endswith(
        "is not a model that was trained here (no training_log.json); choose another place with --models"
    )


def test_a_dataset_without_a_split_to_train_on(tmp_path, protocol, caplog):
    films = write_film_set(tmp_path / "films")
    (films / "dev.jsonl").rename(films / "val.jsonl")  # has queries, and none for training
    dataset = open_dataset(films)
    assert refusal(train_models, protocol, dataset, tmp_path / "models", split="val", error=InputError) == (
        f"{films}: no split to train the model 'sparse one' on; there are: val"
    )
    assert find_models(protocol, dataset, tmp_path / "models", split="val") == {}
    (record,) = caplog.records
    assert record.getMessage() == (
        f"left out: rows of models for which {films} has no split to train on: 'sparse one', 'dense one'"
    )
