"""What tests of training share; tiny models train faster by one thread than by several that wait for each other."""

import json

import pytest
from tiny_training import write_dataset


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("data") / "films", 10)


@pytest.fixture(scope="session")
def trunk(checkpoints, tmp_path_factory):
    """A BERT without a head."""
    from transformers import AutoTokenizer, BertModel

    folder = tmp_path_factory.mktemp("trunk")
    BertModel.from_pretrained(checkpoints.bert, add_pooling_layer=False).save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints.bert).save_pretrained(folder)
    return folder


@pytest.fixture
def remote_code(tmp_path_factory, monkeypatch):
    """Makes a folder of a model with Python code of its own, and checks that the code never runs."""
    mark = tmp_path_factory.mktemp("mark") / "executed"
    monkeypatch.setattr("builtins.input", lambda *_: "y")

    def write(folder, architecture):
        names = {"AutoConfig": "custom.Custom", "AutoModelForMaskedLM": "custom.Custom", "AutoModel": "custom.Custom"}
        config = {"model_type": "custom", "architectures": [architecture], "auto_map": names}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "custom.py").write_text(f"open({str(mark)!r}, 'w')\n")

    yield write
    assert not mark.exists()
