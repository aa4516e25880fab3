"""The shell in which commands of the pages run."""

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """A PATH on which ``compneg`` is the package under test, whether it is installed or not."""
    program = tmp_path_factory.mktemp("bin") / "compneg"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyserini_compneg "$@"\n')
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
