"""From the files of a dataset to a table of measures, by the commands alone."""

import json

import pytest

from pyserini_compneg.commands.datasets import main as datasets
from pyserini_compneg.commands.eval import main as evaluate
from pyserini_compneg.commands.index import main as index
from pyserini_compneg.commands.search import main as search


@pytest.fixture
def measured(tmp_path, capfd):
    def measured(dataset, split):
        out, run = tmp_path / "out", tmp_path / "run.txt"
        for command, arguments in (
            (datasets, f"convert --dataset {dataset} --split {split} --output {out}"),
            (index, f"--collection {out}/collection --index {tmp_path}/index"),
            (search, f"--index {tmp_path}/index --topics {out}/topics.jsonl --output {run}"),
        ):
            assert command(arguments.split()) == 0
        capfd.readouterr()
        for qrels in (out / "qrels.txt", dataset / f"qrels.{split}.tsv"):
            assert evaluate(["--qrels", str(qrels), "--run", str(run), "--output-format", "json"]) == 0
        out, err = capfd.readouterr()
        tables = [json.loads(f"[{part}]") for part in out.removeprefix("[").removesuffix("]\n").split("]\n[")]
        assert (err, tables[0]) == ("", tables[1])
        return tables[0][0]

    return measured


def test_a_folder_with_files_of_their_own_for_each_split(measured, tmp_path):
    folder = tmp_path / "beir"
    folder.mkdir()
    texts = ["An emu runs.", "A bat flies.", "An emu (not a bat) AND a crane."]
    lines = [json.dumps({"_id": str(number), "title": "", "text": text}) for number, text in enumerate(texts, 1)]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    queries = {"7": "cranes (NOT emus", "8": "bats"}
    lines = [json.dumps({"_id": qid, "text": text}) for qid, text in queries.items()]
    (folder / "queries.dev.jsonl").write_text("\n".join(lines))
    (folder / "qrels.dev.tsv").write_text("query-id\tcorpus-id\tscore\n7\t3\t1\n8\t2\t1\n8\t3\t0\n")
    assert measured(folder, "dev") == {
        "run": "run.txt",
        "queries": 2,
        "measures": {"ndcg_cut.10": 1.0, "recall.100": 1.0},
        "confidence_intervals": {"ndcg_cut.10": [1.0, 1.0], "recall.100": [1.0, 1.0]},
    }


def test_negconstraint(measured, shared_data):
    row = measured(shared_data / "negconstraint", "dev")
    assert row["queries"] == 192
    assert row["measures"] == {"ndcg_cut.10": pytest.approx(0.6779, abs=5e-5), "recall.100": pytest.approx(190 / 192)}
