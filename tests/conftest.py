"""What tests of several packages share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark data, named by COMPNEG_DATA. Without it a test is skipped, but never in CI."""
    folder = os.environ.get("COMPNEG_DATA")
    if folder is None:
        if "CI" in os.environ:
            pytest.fail("COMPNEG_DATA is not set; in CI it must name the folder of benchmark data")
        pytest.skip("COMPNEG_DATA is not set; let it name the folder of benchmark data")
    if not Path(folder).is_dir():
        pytest.fail(f"COMPNEG_DATA is {folder!r}, which is no folder")
    return Path(folder)
