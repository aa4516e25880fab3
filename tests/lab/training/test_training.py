"""Whole trainings of tiny models: results, kills, faults."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from checkpoints import sample_texts
from json_lines import write_jsonl
from refusals import START_ANEW, UNFINISHED
from tiny_training import killed_at, tiny_config, train_error, training_log, write_dataset
from works import killed_at_steps

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file  # noqa: E402

from pyserini_compneg.lab.training import fine_tuning, train, trainers, training  # noqa: E402
from pyserini_compneg.lab.training.trainers import SparseTrainer, last_checkpoint  # noqa: E402

pytestmark = pytest.mark.slow


def weights(folder):
    files = sorted(folder.rglob("*.safetensors"))
    return {(path.name, key): tensor for path in files for key, tensor in load_file(path).items()}


def full_disk(*_, **__):
    raise OSError(28, "No space left on device")


def evaluated_steps(folder):
    return [entry["step"] for entry in training_log(folder) if "eval_recip_rank" in entry]


def changed(config, **training):
    return config.model_copy(update={"training": config.training.model_copy(update=training)})


def test_pairs_are_learned_by_heart(tmp_path, checkpoints):
    pairs = write_dataset(tmp_path / "films", 24)
    config = tiny_config(checkpoints.bert, pairs, steps=40, batch_size=24, evaluate_every=40, learning_rate=3e-3)
    results = train(config, tmp_path / "model")
    assert results["P.1"] == results["recip_rank"] == 1.0


def test_the_same_command_gives_the_same_bits(tmp_path, checkpoints, dataset):
    """With one thread, in another process, whose sets have another order. Another seed gives other bits."""
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=5, model={"head": "snrelu:sum"})
    (tmp_path / "config.yaml").write_text(config.model_dump_json(exclude_none=True))
    command = [sys.executable, "-m", "pyserini_compneg", "train", tmp_path / "config.yaml", "--output"]
    variables = os.environ | {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, tmp_path / "again"], env=variables, check=True)
    train(config, tmp_path / "first")
    train(changed(config, seed=7), tmp_path / "other")
    first, again, other = (weights(tmp_path / name) for name in ("first", "again", "other"))
    assert first.keys() == again.keys() == other.keys()
    assert [key for key, tensor in first.items() if not torch.equal(tensor, again[key])] == []
    assert any(not torch.equal(tensor, other[key]) for key, tensor in first.items())


@pytest.mark.kill
@pytest.mark.parametrize(("step", "tables"), [(3, 1), (5, 3)])
def test_a_killed_training_is_resumed_to_the_same_bits(tmp_path, checkpoints, dataset, step, tables):
    """Over three epochs. Examples with and without negatives, and contrastive pairs, are in tables of their own."""
    sources = [dataset]
    if tables == 3:
        texts = sample_texts(20)
        lines = [{"query": text[:20], "positive": text, "negative": f"not {text}"} for text in texts[10:]]
        lines += [{"query": f"no {text[:9]}", "positive": f"not {text}", "negative": text} for text in texts[15:]]
        sources.append(write_jsonl(tmp_path / "triples.jsonl", *lines))
    config = tiny_config(checkpoints.bert, *sources, steps=7, max_length=9, model={"head": "snrelu:sum"})
    expected = train(config, tmp_path / "whole")
    with killed_at(step):
        train(config, tmp_path / "resumed")
    assert not (tmp_path / "resumed").exists()
    assert train(config, tmp_path / "resumed", existing="resume") == expected
    assert not (tmp_path / "resumed.training").exists()
    assert evaluated_steps(tmp_path / "resumed") == evaluated_steps(tmp_path / "whole") == [0, 2, 4, 6, 7]
    ours, theirs = weights(tmp_path / "resumed"), weights(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    assert [key for key, tensor in ours.items() if not torch.equal(tensor, theirs[key])] == []


@pytest.mark.kill
def test_patience_survives(tmp_path, checkpoints, dataset, monkeypatch):
    """A kill between two evaluations, and a full disk after the last step."""
    config = tiny_config(checkpoints.bert, dataset, steps=40, learning_rate=0.0, patience=2)
    with killed_at(5):
        train(config, tmp_path / "killed")
    killed = train(config, tmp_path / "killed", existing="resume")

    with monkeypatch.context() as patch:
        patch.setattr(fine_tuning, "write_layout", full_disk)
        assert train_error(config, tmp_path / "m") == (
            f"{tmp_path}/m: cannot be written: no space left on device; free some space, and continue with --resume"
        )
    assert train(config, tmp_path / "m", existing="resume") == killed
    assert evaluated_steps(tmp_path / "m") == evaluated_steps(tmp_path / "killed") == [0, 2, 4, 6]


@pytest.mark.kill
def test_a_kill_while_old_checkpoints_are_deleted(tmp_path, checkpoints, dataset, monkeypatch):
    """The new one is whole by then, and the old one is none any more."""
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=6)

    def half(folder, **_):
        next(folder.glob("*.pt")).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainers, "shutil", SimpleNamespace(rmtree=half))
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "m")
    assert last_checkpoint(tmp_path / "m.training" / "checkpoints").name == "checkpoint-4"
    (tmp_path / "m.training" / "checkpoints" / "checkpoint-4" / "whole").unlink()
    assert last_checkpoint(tmp_path / "m.training" / "checkpoints") is None


@pytest.fixture(scope="module")
def killed(tmp_path_factory, checkpoints, dataset):
    """The settings of a training that was killed after its first checkpoint, and its folder."""
    folder = tmp_path_factory.mktemp("killed")
    config = tiny_config(checkpoints.bert, dataset, steps=4)
    with killed_at(3):
        train(config, folder / "m")
    return config, folder / "m.training"


@pytest.fixture
def killed_training(tmp_path, killed):
    """The settings, and the checkpoint in a copy of the folder, to be changed."""
    config, folder = killed
    return config, shutil.copytree(folder, tmp_path / "m.training") / "checkpoints" / "checkpoint-2"


DAMAGES = [("state.pt", 1), ("state.pt", 0.5), ("optimizer.pt", 1), ("scheduler.pt", 0.5)]
DAMAGES += [("rng_state.pth", 0), ("trainer_state.json", 0.5)]


def test_damaged_checkpoints(tmp_path, killed_training):
    """With a byte changed in the middle, or cut off."""
    config, checkpoint = killed_training
    for name, left in DAMAGES:
        whole = (checkpoint / name).read_bytes()
        content = bytearray(whole)
        content[len(content) // 2] ^= 255
        (checkpoint / name).write_bytes(content[: int(left * len(content))])
        message = train_error(config, tmp_path / "m", existing="resume")
        assert message.startswith(f"{checkpoint}: is damaged (")
        assert message.endswith("); delete this folder, and continue with --resume")
        (checkpoint / name).write_bytes(whole)


def test_what_is_not_resumed_and_not_deleted(tmp_path, killed_training, monkeypatch):
    """Other settings or texts, a base of the same name, damaged settings; folders that were not asked for."""
    config, checkpoint = killed_training
    place = tmp_path / "m.training"
    other = f"{tmp_path}/m: the unfinished work cannot be continued, because {{}} changed since; {START_ANEW}"
    resumed = lambda config: train_error(config, tmp_path / "m", existing="resume")  # noqa: E731
    assert resumed(changed(config, steps=5)) == other.format("training")
    with monkeypatch.context() as patch:
        patch.setattr(training, "read_examples", lambda *_: [])
        assert resumed(config) == other.format("texts of data")
    state = torch.load(checkpoint / "state.pt")
    del state[next(name for name in state if name.endswith("decoder.bias"))]
    torch.save(state, checkpoint / "state.pt")
    assert resumed(config).startswith(f"{checkpoint}: is of another model (Missing key")
    damaged = "the unfinished work cannot be continued, because its record is missing or damaged"
    for content in ("", "[]", "{}"):
        (place / "training.json").write_text(content)
        assert resumed(config) == f"{tmp_path}/m: {damaged}; {START_ANEW}"
        assert train_error(config, tmp_path / "m") == f"{tmp_path}/m: {UNFINISHED}"
    (place / "training.json").unlink()
    assert resumed(config) == f"{tmp_path}/m: {damaged}; {START_ANEW}"
    (tmp_path / "m").mkdir()
    no_model = "is not a model that was trained here (no training_log.json); choose another --output"
    assert train_error(config, tmp_path / "m", existing="overwrite") == f"{tmp_path}/m: {no_model}"


@pytest.mark.parametrize("existing", ["resume or overwrite", "overwrite"])
def test_a_training_that_may_be_overwritten_needs_no_settings(tmp_path, killed_training, existing):
    config, checkpoint = killed_training
    (tmp_path / "m.training" / "training.json").write_text("{")
    train(config, tmp_path / "m", existing=existing)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.kill
def test_a_kill_before_the_first_step_is_no_obstacle(tmp_path, checkpoints, dataset, monkeypatch):
    """Neither to a first training nor to one that discards another one."""
    config = tiny_config(checkpoints.bert, dataset, steps=4)
    monkeypatch.setattr(training, "_finish", lambda *_: {})
    (tmp_path / "first").mkdir()
    with killed_at_steps(tmp_path / "first", tmp_path / "killed") as killed:
        train(config, tmp_path / "first" / "m")
    assert len(killed) > 3
    for folder in killed:
        train(config, folder / "m", existing="resume")
        assert [path.name for path in folder.iterdir()] == ["m.training"]
    other = changed(config, steps=5)
    with killed_at_steps(tmp_path / "first", tmp_path / "discarding") as killed:
        train(other, tmp_path / "first" / "m", existing="overwrite")
    assert len(killed) > 3
    for folder in killed:
        assert json.loads((folder / "m.training" / "training.json").read_text())["training"]["steps"] in (4, 5)
        train(other, folder / "m", existing="overwrite")
        assert [path.name for path in folder.iterdir()] == ["m.training"]


def test_existing_is_checked(tmp_path):
    config = tiny_config("mini", tmp_path / "missing.jsonl", dev=False, steps=2)
    for existing in ("overwrite it", True):
        said = f"existing must be one of refuse, resume, overwrite, resume or overwrite, got {existing!r}"
        assert train_error(config, tmp_path / "m", existing=existing) == said


def test_a_loss_that_is_not_finite_ends_the_training(tmp_path, checkpoints, dataset, monkeypatch):
    trainer = SparseTrainer.__mro__[2]  # after what dense encoders share with it
    loss = trainer.compute_loss

    def bad(self, *arguments, **more):
        return loss(self, *arguments, **more) * (float("nan") if self.state.global_step == 3 else 1)

    monkeypatch.setattr(trainer, "compute_loss", bad)
    message = train_error(tiny_config(checkpoints.bert, dataset, steps=6), tmp_path / "m")
    assert message.startswith("the loss of step 4 is nan, in the batch whose first query is '")
    checkpoint = tmp_path / "m.training" / "checkpoints" / "checkpoint-2"
    assert message.endswith(f"'; the last good checkpoint is {checkpoint}; lower training.learning_rate")
    assert checkpoint.is_dir()


@pytest.mark.parametrize("dev", [False, True])
def test_broken_weights_are_no_checkpoint(tmp_path, checkpoints, dataset, monkeypatch, dev):
    step = SparseTrainer.training_step

    def breaking(self, model, *arguments, **more):
        loss = step(self, model, *arguments, **more)
        if self.state.global_step == 1:
            next(model.parameters()).grad.fill_(float("nan"))
        return loss

    monkeypatch.setattr(SparseTrainer, "training_step", breaking)
    assert train_error(tiny_config(checkpoints.bert, dataset, dev=dev, steps=6), tmp_path / "m") == (
        "the model has weights that are not finite after step 2; there is no checkpoint yet; lower "
        "training.learning_rate"
    )


def test_a_full_disk(tmp_path, checkpoints, dataset, monkeypatch):
    """What was written before stays, what is half-written is not taken for a checkpoint."""
    save = SparseTrainer._save_rng_state

    def full(self, folder):
        if self.state.global_step == 4:
            full_disk()
        save(self, folder)

    config = tiny_config(checkpoints.bert, dataset, steps=4)
    with monkeypatch.context() as patch:
        patch.setattr(SparseTrainer, "_save_rng_state", full)
        message = train_error(config, tmp_path / "m")
    assert message == (
        f"{tmp_path}/m.training/checkpoints/checkpoint-4: cannot be written: [Errno 28] No space left on device; free "
        "some space, and continue with --resume"
    )
    train(config, tmp_path / "m", existing="resume")
    assert evaluated_steps(tmp_path / "m") == [0, 2, 4]


@pytest.mark.parametrize(
    ("lines", "model", "message"),
    [
        (
            [{"query": f"q{i}", "positive": "one film"} for i in range(4)],
            {},
            "{file}: its examples without negatives have only one document, and no other document to compare it with; "
            "add examples with other documents, or negatives",
        ),
        (
            [{"query": "[CLS]", "positive": "[SEP]"}, {"query": "[MASK]", "positive": "[PAD]"}],
            {"vocabulary": "training"},
            "the texts of data have no term; give others, or set model.vocabulary to all",
        ),
    ],
)
def test_data_that_cannot_be_used_leave_no_folder(tmp_path, checkpoints, lines, model, message):
    file = write_jsonl(tmp_path / "pairs.jsonl", *lines)
    config = tiny_config(checkpoints.bert, file, dev=False, steps=2, model=model)
    assert train_error(config, tmp_path / "m") == message.format(file=file)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_models_are_looked_at_before_the_data(tmp_path):
    config = tiny_config("mini", tmp_path / "missing.jsonl", dev=False, steps=2)
    message = "mini: comes exported in int8, without the weights that a training starts from"
    assert train_error(config, tmp_path / "m") == message
    dense = tiny_config(tmp_path / "nothing", tmp_path / "missing.jsonl", dev=False, steps=1, model={"head": "dense"})
    assert train_error(dense, tmp_path / "m").startswith(f"no model '{tmp_path / 'nothing'}'")
    assert not any(tmp_path.iterdir())
