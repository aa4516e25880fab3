"""Tiny models are trained faster by one thread than by several that wait for each other."""

import pytest


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
