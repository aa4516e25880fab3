"""Dense rows of a protocol: they have an encoder of their own, encode once, and depend on it alone."""

import pytest
from dense_encoder import StandInDenseEncoder
from film_set import write_film_set

from pyserini_compneg.datasets import open_dataset
from pyserini_compneg.errors import DownloadError
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.reproduce.experiment import Engine
from pyserini_compneg.reproduce.protocol import ALL_MINILM
from pyserini_compneg.reproduce.protocol_file import read_protocol
from pyserini_compneg.reproduce.reproduction import reproduce

PROTOCOL = """
title: Dense
about: Of dense and of sparse rows.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
examples: 1
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: sparse, method: operators}
      - {name: dense, method: dense, settings: {difference: orthogonal}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Reproduces with stand-ins; gives the results and the stand-ins that were made."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    dataset = open_dataset(write_film_set(tmp_path / "films"))

    def run(name=None, labels=("",), check=lambda model: None, text=PROTOCOL):
        made = []
        (tmp_path / "dense.yaml").write_text(text)

        def encoder(model):
            assert model == (name or ALL_MINILM)
            made.append(StandInDenseEncoder())
            return made[-1]

        monkeypatch.setattr("pyserini_compneg.encode.dense.DenseEncoder", encoder)
        monkeypatch.setattr("pyserini_compneg.encode.dense.dense_model_hash", lambda model: f"hash of {model}")
        monkeypatch.setattr("pyserini_compneg.encode.dense.check_dense_model", check)
        engines = [Engine("bm25", label=label) for label in labels]
        protocol = read_protocol(str(tmp_path / "dense.yaml"))
        return reproduce(protocol, dataset, engines, tmp_path / "report", dense_encoder=name), made

    return run


def test_dense_rows_rank_all_documents_and_have_no_terms_to_show(run, tmp_path):
    results, _ = run()
    (section,) = results.sections
    assert [row.name for row in section.rows] == ["sparse", "dense"]
    rankings = read_run(tmp_path / "report" / section.rows[1].run)
    assert {len(ranking) for ranking in rankings.values()} == {results.dataset["documents"]}
    assert all(0 <= score <= 1 for ranking in rankings.values() for score in ranking.values())
    shown = [example for example in results.examples if example.method == "dense"]
    assert all(example.positive == example.negative == () for example in shown)


def test_a_run_that_is_there_loads_no_model(run):
    first, made = run()
    assert len(made) == 1
    again, made = run()
    assert (made, again.sections) == ([], first.sections)


def test_another_encoder_makes_another_run(run, tmp_path):
    run()
    _, made = run("another/model")
    assert len(made) == 1
    assert len(list((tmp_path / "report" / "runs").iterdir())) == 3


def test_dense_rows_are_run_once_whatever_the_sparse_encoders(run):
    results, made = run(labels=("one", "two"))
    assert [row.name for row in results.sections[0].rows] == ["sparse [one]", "sparse [two]", "dense"]
    assert len(made) == 1


def without(model):
    raise DownloadError(f"{model}: not here")


def test_dense_rows_are_left_out_where_there_is_no_model(run, caplog):
    results, made = run(check=without)
    assert made == []
    assert [row.name for row in results.sections[0].rows] == ["sparse"]
    said = f"rows of dense vectors: {ALL_MINILM}: not here"
    assert [record.getMessage() for record in caplog.records] == [f"left out: {said}"]
    assert results.settings["left out"] == said


def test_a_model_that_was_named_must_be_there(run, tmp_path):
    with pytest.raises(DownloadError, match="^a/modle: not here$"):
        run("a/modle", check=without)
    assert not (tmp_path / "report").exists()


def test_without_any_other_row_there_is_nothing_left(run):
    with pytest.raises(DownloadError, match=f"^{ALL_MINILM}: not here$"):
        run(check=without, text=PROTOCOL.replace("method: operators", "method: dense"))


def test_a_curve_without_a_model_is_left_out_and_nothing_else(run):
    curve = "interference: {section: Set difference, bins: 1}\nsections:"
    results, _ = run(
        check=without, text=PROTOCOL.replace("sections:", curve).replace("method: dense", "method: operators")
    )
    assert results.curves == ()
    assert len(results.sections[0].rows) == 2
    assert results.settings["left out"] == f"the curve by similarity: {ALL_MINILM}: not here"


def test_dense_rows_alone_build_no_sparse_index(run, tmp_path):
    results, _ = run(text=PROTOCOL.replace("method: operators", "method: dense"))
    assert not (tmp_path / "report" / "indexes").exists()
    assert results.dataset["documents"] == 24
    assert "encoder" not in results.settings and results.settings["dense encoder"] == ALL_MINILM
