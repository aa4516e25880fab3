import json
import re
import sys

import pytest
from checkpoints import needs_sentence_transformers, write_cross_encoder, write_dense, write_masked_lm
from film_set import write_film_set
from wordnet_files import write_wordnet

from pyserini_compneg.commands import reproduce
from pyserini_compneg.commands.eval import main as evaluate
from pyserini_compneg.commands.index import main as index
from pyserini_compneg.commands.reproduce import main
from pyserini_compneg.lab.experiments import inputs, plots
from pyserini_compneg.lab.experiments.inputs import protocol_names, quick_dataset

pytestmark = pytest.mark.slow

PROTOCOL = """
title: Differences
about: One section.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10, R@100]
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: ignore, method: operators, settings: {difference: ignore}}
      - {name: disentangled, formula: A − B*, method: operators, settings: {difference: disentangled},
         published: [0.258]}
"""


@pytest.fixture
def films(tmp_path):
    (tmp_path / "p.yaml").write_text(PROTOCOL)
    return write_film_set(tmp_path / "films")


def test_the_commands_in_the_report_give_its_figures_and_letters(films, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(
        PROTOCOL + "  - {title: Atoms, templates: [_], rows: [{name: a, method: operators}]}\n"
    )
    command = ["p.yaml", "--dataset", "films", "--encoder", "bm25", "--report", "out"]
    assert main(command) == 0
    assert capsys.readouterr().out == ""
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    sections = results["sections"]
    assert results["command"] == f"compneg reproduce {' '.join(command)}"
    text = (tmp_path / "out" / "report.md").read_text().replace("\\\n", "")
    assert results["command"] in text and "0.258" in text
    commands = re.findall(r"compneg eval ([^\n]+)", text)
    monkeypatch.chdir(tmp_path / "out")
    rows = {row["run"]: row for section in sections for row in section["rows"]}
    better = {}
    for command in commands:
        assert evaluate([*command.split(), "--output-format", "json"]) == 0
        for found in json.loads(capsys.readouterr().out):
            (row,) = (row for run, row in rows.items() if run.endswith(found["run"]))
            assert found["measures"] == {name: cell["value"] for name, cell in row["cells"].items()}
            (other,) = found.get("comparisons", {}).get("nDCG@10", [None])
            better[row["name"]] = other is not None and other["difference"] > 0 and other["t_test"]["holm"] < 0.05
            assert bool(row["cells"]["nDCG@10"]["better_than"]) == better[row["name"]]
    assert better == {"ignore": False, "disentangled": True, "a": False}


def test_encoders_of_one_name_are_told_apart_by_their_folders(films, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        assert index(["--collection", "films/documents.jsonl", "--index", f"{name}/index"]) == 0
    command = ["p.yaml", "--dataset", "films", "--encoder", "bm25", "bm25", "--index", "one/index", "two/index"]
    assert main([*command, "--report", "out"]) == 0
    (section,) = json.loads((tmp_path / "out" / "results.json").read_text())["sections"]
    assert [row["name"] for row in section["rows"]][:2] == ["ignore [bm25]", "ignore [bm25 (2)]"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p.yaml", "--dataset", "films", "--split", "test"], "error: films: no split 'test'; there are: train"),
        (["p.yaml", "--dataset", "films", "--encoder", "no/such/model"], "error: no model 'no/such/model'; "),
        (["p.yaml", "--dataset", "films", "--index", "nowhere"], "error: "),
    ],
)
def test_one_line_for_what_is_wrong(films, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (films / "train.jsonl").write_bytes((films / "dev.jsonl").read_bytes())
    assert main([*arguments, "--report", "out"]) in (1, 2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(message)
    assert not (tmp_path / "out" / "report.md").exists() and not (tmp_path / "out" / "results.json").exists()


def test_some_rows(films, tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["p.yaml", "--dataset", "films", "--report", "out", "--rows"]
    assert main([*command, "dis*"]) == 0
    assert main([*command, "disentangled"]) == 0
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    (section,) = json.loads((tmp_path / "out" / "results.json").read_text())["sections"]
    assert [row["name"] for row in section["rows"]] == ["disentangled"]
    assert len([*(tmp_path / "out" / "runs").iterdir()]) == 1
    assert main([*command, "ignore"]) == 0
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == (
        "out: the report that is there loses its other rows (1, such as 'disentangled'); their runs stay, so the "
        "command without --rows gives a report with all"
    )


def test_a_package_that_the_report_needs_is_missed_before_anything_is_run(films, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["p.yaml", "--dataset", "films", "--report", "out"]) == 2
    assert capsys.readouterr().err.startswith("error: a report needs the package matplotlib (")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("protocol", ["table1", "reranking", "all"])
def test_an_unknown_model_is_refused_before_anything_is_run(tmp_path, capsys, monkeypatch, protocol):
    pytest.importorskip("torch", reason="models that rank again are run by torch")
    needs_sentence_transformers()
    monkeypatch.chdir(tmp_path)
    assert main([protocol, "--quick", "--report", "out", "--rerank", "nowhere"]) == 2
    said = (
        "error: no model of sentence-transformers 'nowhere'; expected a folder, or owner/name on the Hugging Face hub"
    )
    assert capsys.readouterr().err.splitlines() == [said]
    assert not (tmp_path / "out").exists()


def test_all_protocols_are_reproduced_quickly(tmp_path, capsys, monkeypatch, caplog):
    """Every protocol of the package, on datasets that are made of the sample."""
    pytest.importorskip("torch", reason="dense and trained models are run by torch")
    needs_sentence_transformers()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plots, "_png", lambda figure: b"")  # drawn, but not rendered, which takes longest
    for name, value in (("_DOCUMENTS", 100), ("_RELEVANT", 2), ("_PAIRS", 8), ("_LIKED", 200), ("_LIKINGS", 2)):
        monkeypatch.setattr(inputs, name, value)
    command = ["--quick", "--report", "out", "--wordnet", str(write_wordnet(tmp_path / "wn"))]
    command += ["--dense-encoder", str(write_dense(tmp_path / "dense", "cls"))]
    command += ["--rerank", str(write_cross_encoder(tmp_path / "reranker"))]
    assert main(["all", *command]) == 0
    printed = capsys.readouterr().out
    with capsys.disabled():  # so that a log of all tests has the times
        print(f"\n{printed}", end="")
    done = dict(line.split("\t") for line in printed.splitlines())
    assert [*done] == protocol_names()
    for name in protocol_names():
        results = json.loads((tmp_path / "out" / name / "results.json").read_text())
        assert (tmp_path / "out" / name / "report.md").is_file() and results["sections"]
    likings = json.loads((tmp_path / "out" / "likings" / "results.json").read_text())
    for section in likings["sections"][:2]:
        rows = {row["name"]: row["cells"]["nDCG@10"]["value"] for row in section["rows"]}
        assert rows["wording"] < rows["ignore"] < rows["damped"] == 1
    left_out = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert left_out and all("rows of models" in message for message in left_out)


@pytest.mark.parametrize(
    ("protocol", "recipe", "row", "model"),
    [
        ("table5", "nevir-split-unsigned", "tuned", "unsigned"),
        ("nevir", "nevir-split-dense", "dense, tuned", "dense"),
    ],
)
def test_rows_of_trained_models(tmp_path, caplog, protocol, recipe, row, model):
    """The rows of a protocol of the package, run with a stand-in for the model that its recipe makes."""
    pytest.importorskip("torch", reason="dense and trained models are run by torch")
    needs_sentence_transformers()
    data, place = quick_dataset(["nevir"], tmp_path / "data"), tmp_path / "models" / recipe
    (write_dense if model == "dense" else write_masked_lm)(place)
    command = [protocol, "--dataset", str(data), "--models", str(place.parent), "--report", str(tmp_path / "out")]
    assert main([*command, "--rows", row]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert all([shown["name"] for shown in section["rows"]] == [row] for section in results["sections"])
    assert results["settings"][f"model {model!r}"] == str(place)
    if protocol == "nevir":
        counted, published = results["statistics"]["pairs"]
        assert counted == len(results["sections"][0]["per_query"][row]) / 2 and published == 1383
        assert results["curves"][-1]["title"] == "Different words of a pair"
    built = [index.name.rpartition("-")[0] for index in (tmp_path / "out").glob("indexes/*-*")]
    assert built == ([] if model == "dense" else [recipe])  # and none of bm25, with which no row is run
    said = "is not a model that was trained here (no training_log.json); rows show what is there"
    assert f"{place}: {said}" in [record.getMessage() for record in caplog.records]


def test_what_does_not_go_together(films, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        (["p.yaml"], "give either --dataset, or --quick, which makes small datasets of its own"),
        (["p.yaml", "--dataset", "films", "--quick"], "give either --dataset, or --quick, which makes"),
        (["p.yaml", "--dataset", "films", "--base", "m"], "--base is what --train starts from; give --train, too"),
        (["all", "--quick", "--rows", "a"], "--rows chooses rows of one protocol; name it in place of all"),
        (["all", "--quick", "--query", "a"], "--query is the query of one protocol; name it in place of all"),
        (["p.yaml", "--quick", "--domains", "a", "b", "--split", "c"], "--domains names what --split would; leave one"),
        (
            ["p.yaml", "--dataset", "films", "--train"],
            "protocol p: no row has a model to train; leave --train out",
        ),
        (["p.yaml", "--dataset", "films", "--query", "a NOT b"], "protocol p: no section is for 'a NOT b'; protocols"),
    ):
        assert main([*arguments, "--report", "out"]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "cisi.yaml").write_text(PROTOCOL.replace("[filmsets]", "[cisi]"))
    assert main(["cisi.yaml", "--quick", "--report", "out"]) == 2
    message = "error: --quick has no dataset of the kinds cisi; name one with --dataset"
    assert capsys.readouterr().err.splitlines()[-1] == message


def test_all_that_a_dataset_is_for_and_what_fails(films, tmp_path, capsys, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "protocol_names", lambda: ["dense", "nevir", "table3"])
    assert main(["all", "--dataset", "films", "--report", "out"]) == 2
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()] == ["table3"]
    assert [one.getMessage().partition(": ")[0] for one in caplog.records if one.levelname == "ERROR"] == ["dense"]
    assert printed.err.splitlines()[-1] == "error: 1 protocols were not reproduced: dense; see the lines above"
