import json
import subprocess
import sys

import pytest
from json_lines import write_jsonl


@pytest.fixture
def evaluate(run, tmp_path, monkeypatch):
    """The command in a folder with judgements and runs."""
    monkeypatch.chdir(tmp_path)
    lines = [
        {"qid": "1", "original_query": "", "docs": ["a"], "metadata": {"template": "_"}},
        {"qid": "2", "original_query": "", "docs": ["a", "b"], "metadata": {"template": "_ or _"}},
    ]
    write_jsonl(tmp_path / "dev.jsonl", *lines)
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n2 0 b 1\n")
    for name, ranking in [
        ("good", "1 Q0 a 1 2 t\n2 Q0 b 1 2 t\n2 Q0 a 2 1 t\n"),
        ("half", "1 Q0 a 1 2 t\n9 Q0 a 1 2 t\n"),
    ]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.txt").write_text(ranking)
    return lambda line: run(f"eval {line}")


RUNS = "--run good/run.txt half/run.txt"


def test_by_template_with_runs_of_the_same_name(evaluate):
    ran = evaluate(f"--qrels dev.jsonl {RUNS} --by template")
    assert ran.out == (
        "                      ndcg_cut.10     ndcg_cut.10  ndcg_cut.10      recall.100      recall.100  recall.100\n"
        "template  queries  good/run.txt^a  half/run.txt^b            p  good/run.txt^a  half/run.txt^b           p\n"
        "_               1          1.0000          1.0000                       1.0000          1.0000\n"
        "_ or _          1          1.0000          0.0000                       1.0000          0.0000\n"
        "all             2          1.0000          0.5000       0.5000          1.0000          0.5000      0.5000\n"
        "\n"
        "A letter after a value: better than that run (paired t-test, p < 0.05).\n"
    )
    assert ran.told == [
        "half/run.txt: 1 of 2 queries are missing and score 0: 2",
        "half/run.txt: ignored 1 queries that the qrels lack: 9",
    ]


def test_groups_from_the_topics_and_output_to_a_file(evaluate, tmp_path):
    line = "--qrels qrels --run good/run.txt -m P@1 --by template --groups dev.jsonl"
    assert evaluate(f"{line} --output table.json --output-format json").out == ""
    assert [row["measures"] for row in json.loads((tmp_path / "table.json").read_text())] == [{"P@1": 1.0}] * 3


@pytest.mark.parametrize(
    ("ranking", "warning"),
    [
        ("", "the run is empty, so every query scores 0"),
        (
            "1 Q0 A 1 2 t\n2 Q0 C 1 2 t\n",
            "no judged document is in the run; check that the run and the qrels use the same ids",
        ),
    ],
)
def test_a_run_without_a_judged_document_scores_0(evaluate, tmp_path, ranking, warning):
    (tmp_path / "other.txt").write_text(ranking)
    ran = evaluate("--qrels qrels --run other.txt -m map")
    assert ran.out == "run        queries     map\nother.txt        2  0.0000\n"
    assert ran.told == [f"other.txt: {warning}"]


def test_a_run_of_few_judged_documents_may_be_of_another_collection(evaluate, tmp_path):
    (tmp_path / "qrels").write_text("".join(f"1 0 d{number} 1\n" for number in range(50)))
    for found, said in ((1, "1 of 30 judged documents that the run could have are in the run; check that "), (2, "")):
        ranking = [*(f"d{number}" for number in range(found)), *(f"x{number}" for number in range(30 - found))]
        lines = [f"1 Q0 {docid} {rank} {-rank} t\n" for rank, docid in enumerate(ranking, 1)]
        (tmp_path / "other.txt").write_text("".join(lines))
        told = evaluate("--qrels qrels --run other.txt -m map").told
        assert [line.startswith(f"other.txt: {said}") for line in told] == [True] * bool(said)


def test_a_text_table_of_one_run_needs_no_statistics(evaluate, tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    code = "import sys; from pyserini_compneg.commands.eval import main; "
    code += "main(['--qrels', 'qrels', '--run', 'good/run.txt', '-m', 'right_rank']); "
    code += "sys.exit('scipy' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_single_queries_as_csv(evaluate, tmp_path):
    line = f"--qrels dev.jsonl {RUNS} -m map -m RR --output-format csv"
    evaluate(f"{line} --output values.csv")
    assert evaluate(line).out == (tmp_path / "values.csv").read_text()
    assert (tmp_path / "values.csv").read_text() == (
        "run,query,map,RR\ngood/run.txt,1,1.0,1.0\ngood/run.txt,2,1.0,1.0\n"
        "half/run.txt,1,1.0,1.0\nhalf/run.txt,2,0.0,0.0\n"
    )


def test_per_query(evaluate):
    assert evaluate("--qrels qrels --run half/run.txt -m map --per-query").out == (
        "query  queries     map\n1            1  1.0000\n2            1  0.0000\nall          2  0.5000\n"
    )


def test_two_runs_have_their_p_values(evaluate):
    lines = evaluate(f"--qrels qrels {RUNS} -m map -m P@1").lines
    assert lines[3] == "p                        0.5000  0.5000"


def test_no_name_steers_the_terminal(evaluate, tmp_path):
    (tmp_path / "x\x1b[31m.txt").write_text("8 Q0 a 1 1 t\n")
    lines = (tmp_path / "dev.jsonl").read_text().replace('"_"', '"\\u001b[2J_"')
    (tmp_path / "dev.jsonl").write_text(lines)
    for by in ("", "--by template"):
        assert all(line.isprintable() for line in evaluate(f"--qrels dev.jsonl --run 'x\x1b[31m.txt' {by}").lines)
