"""A server in this process, on a small index of films."""

import film_index
import pytest
from served import make_client


@pytest.fixture(scope="session")
def films(tmp_path_factory):
    return film_index.build(tmp_path_factory.mktemp("served"), store_raw=True)


@pytest.fixture(scope="module")
def client(films):
    with make_client(films) as client:
        yield client


@pytest.fixture
def new_client(films):
    return lambda *keys, **options: make_client(films, *keys, **options)
