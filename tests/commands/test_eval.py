import json
import subprocess
import sys

import pytest
from json_lines import write_jsonl

from pyserini_compneg.commands.eval import main


@pytest.fixture
def folder(tmp_path):
    lines = [
        {"qid": "1", "original_query": "", "docs": ["a"], "metadata": {"template": "_"}},
        {"qid": "2", "original_query": "", "docs": ["a", "b"], "metadata": {"template": "_ or _"}},
    ]
    write_jsonl(tmp_path / "dev.jsonl", *lines)
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n2 0 b 1\n")
    for name, run in [("good", "1 Q0 a 1 2 t\n2 Q0 b 1 2 t\n2 Q0 a 2 1 t\n"), ("half", "1 Q0 a 1 2 t\n9 Q0 a 1 2 t\n")]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.txt").write_text(run)
    (tmp_path / "empty.txt").write_text("")
    return tmp_path


def test_by_template_with_runs_of_the_same_name(folder, capsys, caplog):
    runs = [str(folder / "good" / "run.txt"), str(folder / "half" / "run.txt")]
    assert main(["--qrels", str(folder / "dev.jsonl"), "--run", *runs, "--by", "template"]) == 0
    assert capsys.readouterr().out == (
        "                      ndcg_cut.10     ndcg_cut.10  ndcg_cut.10      recall.100      recall.100  recall.100\n"
        "template  queries  good/run.txt^a  half/run.txt^b            p  good/run.txt^a  half/run.txt^b           p\n"
        "_               1          1.0000          1.0000                       1.0000          1.0000\n"
        "_ or _          1          1.0000          0.0000                       1.0000          0.0000\n"
        "all             2          1.0000          0.5000       0.5000          1.0000          0.5000      0.5000\n"
        "\n"
        "A letter after a value: better than that run (paired t-test, p < 0.05).\n"
    )
    assert caplog.messages == [
        f"{runs[1]}: 1 of 2 queries are missing and score 0: 2",
        f"{runs[1]}: ignored 1 queries that the qrels lack: 9",
    ]


def test_groups_from_the_topics_and_output_to_a_file(folder, capsys):
    arguments = ["--qrels", str(folder / "qrels"), "--run", str(folder / "good" / "run.txt"), "-m", "P@1"]
    arguments += ["--by", "template", "--groups", str(folder / "dev.jsonl")]
    arguments += ["--output", str(folder / "table.json"), "--output-format", "json"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""
    assert [row["measures"] for row in json.loads((folder / "table.json").read_text())] == [{"P@1": 1.0}] * 3


def test_json_of_several_runs_compares_them(folder, capsys):
    runs = [str(folder / "good" / "run.txt"), str(folder / "half" / "run.txt"), str(folder / "empty.txt")]
    arguments = ["--qrels", str(folder / "qrels"), "--run", *runs, "-m", "map", "--output-format", "json"]
    assert main(arguments) == 0
    good, half, empty = json.loads(capsys.readouterr().out)
    assert good["confidence_intervals"] == {"map": [1.0, 1.0]}
    assert [one["with"] for one in half["comparisons"]["map"]] == ["good/run.txt", "empty.txt"]
    assert half["comparisons"]["map"][0]["difference"] == -0.5
    assert good["comparisons"]["map"][1]["t_test"] == {"raw": 0.0, "holm": 0.0}
    assert good["comparisons"]["map"][1]["randomisation"] == {"raw": 0.5, "holm": 1.0}


@pytest.mark.parametrize(
    ("run", "warnings"),
    [
        ("", ["the run is empty, so every query scores 0"]),
        (
            "1 Q0 A 1 2 t\n2 Q0 C 1 2 t\n",
            ["no judged document is in the run; check that the run and the qrels use the same ids"],
        ),
        (
            "8 Q0 a 1 1 t\n",
            ["2 of 2 queries are missing and score 0: 1, 2", "ignored 1 queries that the qrels lack: 8"],
        ),
    ],
)
def test_a_run_without_a_judged_document_scores_0(folder, capsys, caplog, run, warnings):
    path = folder / "other.txt"
    path.write_text(run)
    assert main(["--qrels", str(folder / "qrels"), "--run", str(path), "-m", "map"]) == 0
    assert capsys.readouterr().out == "run        queries     map\nother.txt        2  0.0000\n"
    assert caplog.messages == [f"{path}: {said}" for said in warnings]


def test_a_text_table_of_one_run_needs_no_statistics(folder):
    arguments = ["--qrels", str(folder / "qrels"), "--run", str(folder / "good" / "run.txt"), "-m", "right_rank"]
    (folder / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    code = f"import sys; from pyserini_compneg.commands.eval import main; main({arguments!r}); "
    code += "sys.exit('scipy' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_per_query(folder, capsys):
    run = str(folder / "half" / "run.txt")
    assert main(["--qrels", str(folder / "qrels"), "--run", run, "-m", "map", "--per-query"]) == 0
    assert capsys.readouterr().out == (
        "query  queries     map\n1            1  1.0000\n2            1  0.0000\nall          2  0.5000\n"
    )


def test_single_queries_as_csv(folder, capsys):
    runs = [str(folder / "good" / "run.txt"), str(folder / "half" / "run.txt")]
    given = ["--qrels", str(folder / "dev.jsonl"), "--run", *runs, "-m", "map", "-m", "RR", "--output-format", "csv"]
    assert main(given) == main([*given, "--output", str(folder / "values.csv")]) == 0
    assert capsys.readouterr().out == (folder / "values.csv").read_text()
    assert (folder / "values.csv").read_text() == (
        "run,query,map,RR\ngood/run.txt,1,1.0,1.0\ngood/run.txt,2,1.0,1.0\n"
        "half/run.txt,1,1.0,1.0\nhalf/run.txt,2,0.0,0.0\n"
    )


def test_two_runs_have_their_p_values(folder, capsys):
    runs = [str(folder / "good" / "run.txt"), str(folder / "half" / "run.txt")]
    assert main(["--qrels", str(folder / "qrels"), "--run", *runs, "-m", "map", "-m", "P@1"]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == [
        "run             queries     map     P@1",
        "good/run.txt^a        2  1.0000  1.0000",
        "half/run.txt^b        2  0.5000  0.5000",
        "p                        0.5000  0.5000",
    ]


def test_no_name_steers_the_terminal(folder, capsys, caplog):
    path = folder / "x\x1b[31m.txt"
    path.write_text("8 Q0 a 1 1 t\n")
    lines = (folder / "dev.jsonl").read_text().replace('"_"', '"\\u001b[2J_"')
    (folder / "dev.jsonl").write_text(lines)
    for by in ([], ["--by", "template"]):
        assert main(["--qrels", str(folder / "dev.jsonl"), "--run", str(path), *by]) == 0
        assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())
