import shutil
import sys

import pytest
from refusals import refusal

from pyserini_compneg.commands.demo import SAMPLE
from pyserini_compneg.support.errors import install_hint

PAIR = "id,WorkerId,q1,q2,doc1,doc2\n1-1,w,Who AND what?,Who?,An emu.,A bat.\n"


@pytest.fixture
def folder(tmp_path):
    """Two datasets, whose names no other test has asked for: ir_datasets remembers what it has loaded."""
    pairs = tmp_path / f"pairs-{tmp_path.name}"
    pairs.mkdir()
    (pairs / "dev.csv").write_text(PAIR)
    shutil.copytree(SAMPLE, tmp_path / f"films-{tmp_path.name}")
    return tmp_path


@pytest.fixture
def load():
    return pytest.importorskip("ir_datasets").load


def register(*folder):
    from pyserini_compneg.lab.experiments import datasets

    datasets.register(*folder)


def test_documents_queries_and_judgements(folder, load):
    register(folder)
    dataset = load(f"compneg/pairs-{folder.name}/dev")
    assert list(dataset.docs_iter()) == [("1-1-doc1", "An emu."), ("1-1-doc2", "A bat.")]
    assert (dataset.docs_count(), dataset.queries_cls()._fields) == (2, ("query_id", "text", "expression"))
    queries = [("1-1-q1", "Who AND what?", '"Who AND what?"'), ("1-1-q2", "Who?", "Who?")]
    assert list(dataset.queries_iter()) == queries
    assert [query.default_text() for query in dataset.queries_iter()] == ["Who AND what?", "Who?"]
    assert list(dataset.qrels_iter()) == [
        ("1-1-q1", "1-1-doc1", 1),
        ("1-1-q1", "1-1-doc2", 0),
        ("1-1-q2", "1-1-doc1", 0),
        ("1-1-q2", "1-1-doc2", 1),
    ]
    assert dataset.dataset_id() == f"compneg/pairs-{folder.name}/dev"


def test_the_store(folder, load):
    register(folder)
    store = load(f"compneg/pairs-{folder.name}/dev").docs_store()
    assert store.get("1-1-doc2").text == "A bat."
    assert store.get_many(["1-1-doc2", "none"]) == {"1-1-doc2": ("1-1-doc2", "A bat.")}
    with pytest.raises(KeyError):
        store.get("none")


def test_the_folder_is_that_of_the_environment(folder, load, monkeypatch):
    monkeypatch.setenv("COMPNEG_DATASETS", str(folder))
    register()
    queries = {
        query.query_id: query.expression for query in load(f"compneg/films-{folder.name}/queries").queries_iter()
    }
    assert len(queries) == 42


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("COMPNEG_DATASETS", raising=False)
    assert refusal(register) == "no folder of datasets; give one to register, or name it in COMPNEG_DATASETS"
    assert refusal(register, tmp_path / "none") == f"{tmp_path}/none: no such folder of datasets"


def test_without_ir_datasets(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    monkeypatch.delitem(sys.modules, "pyserini_compneg.lab.experiments.datasets.irds", raising=False)
    assert (
        refusal(register, tmp_path, error=ImportError) == f"ir_datasets is not installed: {install_hint('ir-datasets')}"
    )
