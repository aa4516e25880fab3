"""Whole trainings of tiny models."""

import pytest
from tiny_training import tiny_config, write_dataset

from pyserini_compneg.errors import OutputError, TrainingError

torch = pytest.importorskip("torch", reason="training runs on torch")
pytest.importorskip("sentence_transformers", reason="training builds on sentence-transformers")

from safetensors.torch import load_file  # noqa: E402

from pyserini_compneg.models import Head, read_checkpoint  # noqa: E402
from pyserini_compneg.models.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.train import train  # noqa: E402
from pyserini_compneg.train.encoder_module import EncoderModule  # noqa: E402
from pyserini_compneg.train.masked_lm import load_base  # noqa: E402
from pyserini_compneg.train.sparse_trainer import SparseTrainer  # noqa: E402


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("data") / "films", 10)


@pytest.fixture(scope="module")
def trunk(checkpoints, tmp_path_factory):
    """A BERT without a head."""
    from transformers import AutoTokenizer, BertModel

    folder = tmp_path_factory.mktemp("trunk")
    BertModel.from_pretrained(checkpoints.bert, add_pooling_layer=False).save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints.bert).save_pretrained(folder)
    return folder


def weights(folder):
    return {path.name: load_file(path) for path in sorted(folder.rglob("*.safetensors"))}


def vectors(side):
    """Of some ids by the network that inference runs."""
    ids = torch.tensor([[2, 30, 40, 3], [2, 50, 3, 0]])
    with torch.no_grad():
        return TorchModel(side).module(ids, torch.zeros_like(ids), (ids > 0).long())


def test_64_pairs_are_learnt_by_heart(tmp_path, checkpoints):
    pairs = write_dataset(tmp_path / "films", 64)
    config = tiny_config(checkpoints.bert, pairs, steps=60, batch_size=32, evaluate_every=60, learning_rate=3e-3)
    results = train(config, tmp_path / "model")
    assert results["P.1"] == results["recip_rank"] == 1.0


@pytest.mark.parametrize("killed_at", [3, 5])
def test_a_killed_training_goes_on_as_if_nothing_had_happened(tmp_path, checkpoints, dataset, monkeypatch, killed_at):
    """Over three epochs of three batches each; checkpoints are at every second step."""
    config = tiny_config(checkpoints.bert, dataset, steps=8, model={"head": "snrelu:sum:0.1"})
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


def test_other_settings_are_no_resumption(tmp_path, checkpoints, dataset, monkeypatch):
    def killed(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(SparseTrainer, "training_step", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_config(checkpoints.bert, dataset, steps=2), tmp_path / "m")
    with pytest.raises(TrainingError) as error:
        train(tiny_config(checkpoints.bert, dataset, steps=3), tmp_path / "m", resume=True)
    assert str(error.value) == (
        f"{tmp_path}/m.training: was begun with other settings (training); take them back, or start anew without "
        "--resume"
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


def test_broken_weights_are_no_checkpoint(tmp_path, checkpoints, dataset, monkeypatch):
    step = SparseTrainer.training_step

    def breaking(self, model, *arguments, **more):
        loss = step(self, model, *arguments, **more)
        if self.state.global_step == 1:
            next(model.parameters()).grad.fill_(float("nan"))
        return loss

    monkeypatch.setattr(SparseTrainer, "training_step", breaking)
    with pytest.raises(TrainingError) as error:
        train(tiny_config(checkpoints.bert, dataset, dev=False, steps=6), tmp_path / "m")
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


@pytest.mark.parametrize("head", ["relu:max", "snrelu:absmax:0.1"])
@pytest.mark.parametrize("vocabulary", ["all", "training"])
@pytest.mark.parametrize("start", ["bert", "distilbert", "trunk"])
def test_the_folder_is_what_was_trained(tmp_path, checkpoints, trunk, dataset, start, vocabulary, head):
    base = trunk if start == "trunk" else getattr(checkpoints, start)
    model = {"head": head, "vocabulary": vocabulary}
    config = tiny_config(base, dataset, dev=False, steps=2, model=model)
    train(config, tmp_path / "m")
    side = read_checkpoint(tmp_path / "m").document
    assert side.head == Head.parse(head)
    assert (side.own_logits is not None) == (start == "trunk")
    ours = vectors(side)
    again = load_base(tmp_path / "m", "m", side.head.signed)
    module = EncoderModule(again, side.head, 32, None).eval()
    ids = torch.tensor([[2, 30, 40, 3], [2, 50, 3, 0]])
    features = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    with torch.no_grad():
        torch.testing.assert_close(module(features)["sentence_embedding"], ours, atol=1e-5, rtol=1e-5)
    assert (ours != 0).any()
