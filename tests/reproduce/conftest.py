"""What the tests of reports share: plots take a second each to draw."""

import pytest
from example_results import example_results

from pyserini_compneg.reproduce.report.contents import make_contents


@pytest.fixture(scope="session")
def results():
    """The example, of 20 queries a section."""
    return example_results(queries=20)


@pytest.fixture(scope="session")
def contents(results):
    """What its report holds."""
    return make_contents(results)
