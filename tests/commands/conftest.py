"""Commands run in this process, on a small BM25 index of films that is built once."""

import shlex
from types import SimpleNamespace

import pytest
from film_index import build

from pyserini_compneg.commands.main import main


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("films"), store_raw=True)


@pytest.fixture
def run(index, capfd, caplog):
    """Runs a command line, in which {films} is the index, and gives its output, errors and warnings."""

    def run(line, *more, code=0):
        caplog.clear()
        given = [*shlex.split(line.replace("{films}", str(index))), *map(str, more)]
        assert main(given) == code, capfd.readouterr().err
        out, err = capfd.readouterr()
        return SimpleNamespace(out=out, err=err, lines=out.splitlines(), told=list(caplog.messages))

    return run


@pytest.fixture
def ranked(run):
    """The ids of the documents that a search finds, by query."""

    def ranked(line, *more):
        found = {}
        for row in run(f"search {line} --output-format trec", *more).lines:
            qid, _, docid, *_ = row.split()
            found.setdefault(qid, []).append(docid)
        return found

    return ranked
