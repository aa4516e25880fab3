"""From the files of a dataset to a table of measures, by the commands alone."""

import json

import pytest

from pyserini_compneg.commands.datasets import main as datasets
from pyserini_compneg.commands.eval import main as evaluate
from pyserini_compneg.commands.index import main as index
from pyserini_compneg.commands.search import main as search


@pytest.mark.slow
@pytest.mark.once
def test_negconstraint(shared_data, tmp_path, capfd):
    dataset, out, run = shared_data / "negconstraint", tmp_path / "out", tmp_path / "run.txt"
    for command, arguments in (
        (datasets, f"convert --dataset {dataset} --split dev --output {out}"),
        (index, f"--collection {out}/collection --index {tmp_path}/index"),
        (search, f"--index {tmp_path}/index --topics {out}/topics.jsonl --output {run}"),
    ):
        assert command(arguments.split()) == 0
    capfd.readouterr()
    tables = []
    for qrels in (out / "qrels.txt", dataset / "qrels.dev.tsv"):
        assert evaluate(["--qrels", str(qrels), "--run", str(run), "--output-format", "json"]) == 0
        tables.append(json.loads(capfd.readouterr().out))
    assert tables[0] == tables[1]
    ((row,), _) = tables
    assert row["queries"] == 192
    assert row["measures"] == {"ndcg_cut.10": pytest.approx(0.6779, abs=5e-5), "recall.100": pytest.approx(190 / 192)}
