"""What tests of training share; tiny models train faster by one thread than by several that wait for each other."""

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
    from transformers import AutoTokenizer, BertModel

    folder = tmp_path_factory.mktemp("trunk")
    BertModel.from_pretrained(checkpoints.bert, add_pooling_layer=False).save_pretrained(folder)
    AutoTokenizer.from_pretrained(checkpoints.bert).save_pretrained(folder)
    return folder
