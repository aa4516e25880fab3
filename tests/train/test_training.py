"""Whole trainings of tiny models."""

import json
import shutil
from dataclasses import replace

import pytest
from checkpoints import sample_texts
from tiny_training import tiny_config, write_dataset, write_lines

from pyserini_compneg.errors import OutputError, TrainingError
from pyserini_compneg.train.config import SourceConfig

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file  # noqa: E402

from pyserini_compneg.train import sparse_trainer, train, trained_folder  # noqa: E402
from pyserini_compneg.train.sparse_trainer import SparseTrainer, last_checkpoint  # noqa: E402


def weights(folder):
    return {path.name: load_file(path) for path in sorted(folder.rglob("*.safetensors"))}


def test_64_pairs_are_learnt_by_heart(tmp_path, checkpoints):
    pairs = write_dataset(tmp_path / "films", 64)
    config = tiny_config(checkpoints.bert, pairs, steps=60, batch_size=32, evaluate_every=60, learning_rate=3e-3)
    results = train(config, tmp_path / "model")
    assert results["P.1"] == results["recip_rank"] == 1.0


@pytest.mark.parametrize(("killed_at", "tables"), [(3, 1), (5, 1), (5, 3)])
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    tmp_path, checkpoints, dataset, monkeypatch, killed_at, tables
):
    """Over three epochs of three batches each; checkpoints are at every second step.

    Examples with and without negatives, and twins, are in tables of their own, from which batches are drawn in turn.
    """
    config = tiny_config(checkpoints.bert, dataset, steps=8, max_length=9, model={"head": "snrelu:sum:0.1"})
    if tables == 3:
        texts = sample_texts(20)
        lines = [{"query": text[:20], "positive": text, "negative": f"not {text}"} for text in texts[10:]]
        lines += [{"query": f"no {text[:9]}", "positive": f"not {text}", "negative": text} for text in texts[15:]]
        write_lines(tmp_path / "triples.jsonl", lines)
        config = replace(config, data=(*config.data, SourceConfig(str(tmp_path / "triples.jsonl"))))
    expected = train(config, tmp_path / "whole")
    step = SparseTrainer.training_step

    def killed(self, *arguments, **more):
        if self.state.global_step == killed_at:
            raise KeyboardInterrupt
        return step(self, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(SparseTrainer, "training_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "resumed")
    assert not (tmp_path / "resumed").exists()
    assert train(config, tmp_path / "resumed", resume=True) == expected
    assert not (tmp_path / "resumed.training").exists()
    ours, theirs = weights(tmp_path / "resumed"), weights(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    for name, tensors in ours.items():
        for key, tensor in tensors.items():
            assert torch.equal(tensor, theirs[name][key]), key


@pytest.mark.parametrize("killed_at", [5, "the end"])
def test_patience_is_not_forgotten_by_a_kill(tmp_path, checkpoints, dataset, monkeypatch, killed_at):
    """Neither between two evaluations, nor when all is done but the folder of the model."""
    config = tiny_config(checkpoints.bert, dataset, steps=40, learning_rate=0.0, patience=2)
    whole = train(config, tmp_path / "whole")
    step = SparseTrainer.training_step

    def killed(self, *arguments, **more):
        if self.state.global_step == killed_at:
            raise KeyboardInterrupt
        return step(self, *arguments, **more)

    def unwritten(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SparseTrainer, "training_step", killed)
        if killed_at == "the end":
            patch.setattr(trained_folder, "write_layout", unwritten)
        with pytest.raises((KeyboardInterrupt, OutputError)):
            train(config, tmp_path / "m")
    assert train(config, tmp_path / "m", resume=True) == whole
    for name in ("m", "whole"):
        log = json.loads((tmp_path / name / "training_log.json").read_text())["log"]
        assert [entry["step"] for entry in log if "eval_recip_rank" in entry] == [2, 4, 6]


def test_a_kill_while_old_checkpoints_are_deleted(tmp_path, checkpoints, dataset, monkeypatch):
    """The new one is whole by then, and the old one is none any more."""
    config = tiny_config(checkpoints.bert, dataset, dev=False, steps=6)

    def half(folder, **_):
        next(folder.glob("*.pt")).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sparse_trainer.shutil, "rmtree", half)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "m")
    assert last_checkpoint(tmp_path / "m.training" / "checkpoints").name == "checkpoint-4"
    (tmp_path / "m.training" / "checkpoints" / "checkpoint-4" / "whole").unlink()
    assert last_checkpoint(tmp_path / "m.training" / "checkpoints") is None


@pytest.fixture
def killed_training(tmp_path, checkpoints, dataset, monkeypatch):
    """The configuration of a training that was killed after its first checkpoint, and that checkpoint."""
    shutil.copytree(dataset, tmp_path / "films")
    config = tiny_config(checkpoints.bert, tmp_path / "films", steps=4)
    step = SparseTrainer.training_step

    def killed(self, *arguments, **more):
        if self.state.global_step == 3:
            raise KeyboardInterrupt
        return step(self, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(SparseTrainer, "training_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "m")
    return config, tmp_path / "m.training" / "checkpoints" / "checkpoint-2"


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("state.pt", 1),
        ("state.pt", 0.5),
        ("optimizer.pt", 1),
        ("scheduler.pt", 0.5),
        ("rng_state.pth", 0),
        ("trainer_state.json", 0.5),
    ],
)
def test_damaged_checkpoints(tmp_path, killed_training, name, left):
    """With a byte changed in the middle, or cut off."""
    config, place = killed_training
    content = bytearray((place / name).read_bytes())
    content[len(content) // 2] ^= 255
    (place / name).write_bytes(content[: int(left * len(content))])
    with pytest.raises(TrainingError) as error:
        train(config, tmp_path / "m", resume=True)
    said = str(error.value)
    assert said.startswith(f"{place}: is damaged (")
    assert said.endswith("); delete this folder, and go on with --resume")
    assert "\n" not in said


def test_other_texts_are_no_resumption(tmp_path, killed_training):
    config, _ = killed_training
    documents = tmp_path / "films" / "documents.jsonl"
    documents.write_text(documents.read_text().replace("film", "cake"))
    with pytest.raises(TrainingError) as error:
        train(config, tmp_path / "m", resume=True)
    assert str(error.value) == (
        f"{tmp_path}/m.training: was begun with other settings (texts of data); take them back, or start anew with "
        "--overwrite alone"
    )


def test_another_base_of_the_same_name_is_no_resumption(tmp_path, killed_training, monkeypatch):
    config, place = killed_training
    state = torch.load(place / "state.pt")
    torch.save(
        {name: weight for name, weight in state.items() if not name.endswith("decoder.bias")}, place / "state.pt"
    )
    with pytest.raises(TrainingError, match=r"checkpoint-2: is of another model \(Missing key"):
        train(config, tmp_path / "m", resume=True)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_damaged_settings(tmp_path, killed_training, content):
    config, place = killed_training
    file = place.parents[1] / "training.json"
    file.write_text(content)
    with pytest.raises(TrainingError) as error:
        train(config, tmp_path / "m", resume=True)
    assert str(error.value) == f"{file}: is damaged; start anew with --overwrite alone"


def test_other_settings_are_no_resumption(tmp_path, checkpoints, dataset, monkeypatch):
    def killed(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(SparseTrainer, "training_step", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_config(checkpoints.bert, dataset, steps=2), tmp_path / "m")
    with pytest.raises(TrainingError) as error:
        train(tiny_config(checkpoints.bert, dataset, steps=3), tmp_path / "m", resume=True)
    assert str(error.value) == (
        f"{tmp_path}/m.training: was begun with other settings (training); take them back, or start anew with "
        "--overwrite alone"
    )


def test_an_unfinished_training_is_not_thrown_away_by_mistake(tmp_path, checkpoints, dataset):
    (tmp_path / "m.training").mkdir()
    with pytest.raises(OutputError) as error:
        train(tiny_config(checkpoints.bert, dataset, steps=2), tmp_path / "m")
    assert str(error.value) == (
        f"{tmp_path}/m.training: has an unfinished training; go on with --resume, or start anew with --overwrite"
    )


def test_only_models_are_replaced(tmp_path, checkpoints, dataset):
    (tmp_path / "m").mkdir()
    with pytest.raises(OutputError) as error:
        train(tiny_config(checkpoints.bert, dataset, steps=2), tmp_path / "m", overwrite=True)
    assert str(error.value) == (
        f"{tmp_path}/m: is no model that was trained here (no training_log.json); choose another --output"
    )


def test_a_loss_that_is_no_number_ends_it(tmp_path, checkpoints, dataset, monkeypatch):
    loss = SparseTrainer.compute_loss.__globals__["SparseEncoderTrainer"].compute_loss

    def bad(self, *arguments, **more):
        return loss(self, *arguments, **more) * (float("nan") if self.state.global_step == 3 else 1)

    monkeypatch.setattr(SparseTrainer.__mro__[1], "compute_loss", bad)
    with pytest.raises(TrainingError) as error:
        train(tiny_config(checkpoints.bert, dataset, steps=6), tmp_path / "m")
    message = str(error.value)
    assert message.startswith("the loss of step 4 is nan, in the batch whose first query is '")
    place = tmp_path / "m.training" / "checkpoints" / "checkpoint-2"
    assert message.endswith(f"'; the last good checkpoint is {place}; lower training.learning_rate")
    assert place.is_dir()


@pytest.mark.parametrize("dev", [False, True])
def test_broken_weights_are_no_checkpoint(tmp_path, checkpoints, dataset, monkeypatch, dev):
    step = SparseTrainer.training_step

    def breaking(self, model, *arguments, **more):
        loss = step(self, model, *arguments, **more)
        if self.state.global_step == 1:
            next(model.parameters()).grad.fill_(float("nan"))
        return loss

    monkeypatch.setattr(SparseTrainer, "training_step", breaking)
    with pytest.raises(TrainingError) as error:
        train(tiny_config(checkpoints.bert, dataset, dev=dev, steps=6), tmp_path / "m")
    assert str(error.value) == (
        "weights of the model are no finite numbers after step 2; there is no checkpoint yet; lower "
        "training.learning_rate"
    )


def test_a_full_disk(tmp_path, checkpoints, dataset, monkeypatch):
    """What was written before stays, what is half-written is not taken for a checkpoint."""
    save = SparseTrainer._save_rng_state

    def full(self, place):
        if self.state.global_step == 4:
            raise OSError(28, "No space left on device")
        save(self, place)

    config = tiny_config(checkpoints.bert, dataset, steps=6)
    with monkeypatch.context() as patch:
        patch.setattr(SparseTrainer, "_save_rng_state", full)
        with pytest.raises(OutputError) as error:
            train(config, tmp_path / "m")
    assert str(error.value) == (
        f"{tmp_path}/m.training/checkpoints/checkpoint-4: cannot be written: [Errno 28] No space left on device; free "
        "some space, and go on with --resume"
    )
    assert train(config, tmp_path / "m", resume=True) == train(config, tmp_path / "whole")


def test_the_last_steps_are_evaluated_too(tmp_path, checkpoints, dataset, caplog):
    train(tiny_config(checkpoints.bert, dataset, steps=5, evaluate_every=3), tmp_path / "m")
    log = json.loads((tmp_path / "m" / "training_log.json").read_text())["log"]
    assert [entry["step"] for entry in log if "eval_recip_rank" in entry] == [3, 5]


def test_a_training_that_gets_no_better_ends_early(tmp_path, checkpoints, dataset):
    config = tiny_config(checkpoints.bert, dataset, steps=40, learning_rate=0.0, patience=2)
    train(config, tmp_path / "m")
    log = json.loads((tmp_path / "m" / "training_log.json").read_text())["log"]
    assert max(entry["step"] for entry in log) == 6


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (
            [{"query": f"q{i}", "positive": "one film"} for i in range(4)],
            {},
            "{file}: its examples without negatives have one document alone, so there is nothing to tell it from; add "
            "others, or negatives",
        ),
        (
            [{"query": "[CLS]", "positive": "[SEP]"}, {"query": "[MASK]", "positive": "[PAD]"}],
            {"vocabulary": "training"},
            "the texts of data have no term; give others, or set model.vocabulary to all",
        ),
    ],
)
def test_what_cannot_be_learnt_from_leaves_nothing_behind(tmp_path, checkpoints, lines, settings, message):
    """So that the same place can be taken with better data."""
    file = tmp_path / "pairs.jsonl"
    write_lines(file, lines)
    config = tiny_config(checkpoints.bert, tmp_path, dev=False, steps=2, model=settings)
    config = replace(config, data=(SourceConfig(str(file)),))
    with pytest.raises(TrainingError) as error:
        train(config, tmp_path / "m")
    assert str(error.value) == message.format(file=file)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]
