import json

import pytest

from pyserini_compneg.eval import parse_measures
from pyserini_compneg.eval.table import make_rows, render, run_labels

MEASURES = parse_measures(["ndcg_cut.10", "map"])
CPT = {"1": {"ndcg_cut.10": 1.0, "map": 0.5}, "2": {"ndcg_cut.10": 0.0, "map": 0.25}}
VANILLA = {"1": {"ndcg_cut.10": 0.5, "map": 0.5}, "2": {"ndcg_cut.10": 0.5, "map": 1.0}}
GROUPS = {"1": "_", "2": "_ or _"}


def table(results, groups=None, label=None, table_format="text"):
    return render(make_rows(results, MEASURES, groups or {}), label, table_format)


def test_a_line_for_each_run():
    assert table({"cpt.txt": CPT, "vanilla.txt": VANILLA}) == (
        "run          queries  ndcg_cut.10     map\n"
        "cpt.txt            2       0.5000  0.3750\n"
        "vanilla.txt        2       0.5000  0.7500\n"
    )


def test_a_line_for_each_class_with_runs_side_by_side():
    assert table({"cpt": CPT, "vanilla": VANILLA}, GROUPS, "template") == (
        "                   ndcg_cut.10  ndcg_cut.10     map      map\n"
        "template  queries          cpt      vanilla     cpt  vanilla\n"
        "_               1       1.0000       0.5000  0.5000   0.5000\n"
        "_ or _          1       0.0000       0.5000  0.2500   1.0000\n"
        "all             2       0.5000       0.5000  0.3750   0.7500\n"
    )


def test_one_run_needs_one_line_of_header():
    assert table({"cpt": CPT}, GROUPS, "template").splitlines()[0] == "template  queries  ndcg_cut.10     map"


def test_markdown():
    assert table({"a|b": CPT, "c": VANILLA}, GROUPS, "template", "markdown").splitlines()[:3] == [
        "| template | queries | ndcg_cut.10 a\\|b | ndcg_cut.10 c | map a\\|b | map c |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| _ | 1 | 1.0000 | 0.5000 | 0.5000 | 0.5000 |",
    ]


def test_json_is_unrounded():
    rows = json.loads(table({"cpt": CPT, "c": VANILLA}, GROUPS, "template", "json"))
    assert rows[0] == {"run": "cpt", "template": "_", "queries": 1, "measures": {"ndcg_cut.10": 1.0, "map": 0.5}}
    assert [(row["run"], row["template"]) for row in rows[-2:]] == [("cpt", "all"), ("c", "all")]
    assert "template" not in json.loads(table({"cpt": CPT}, table_format="json"))[0]


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["a.txt"], ["a.txt"]),
        (["x/a.txt", "y/b.txt"], ["a.txt", "b.txt"]),
        (["x/1/a.txt", "y/1/a.txt", "b.txt"], ["x/1/a.txt", "y/1/a.txt", "b.txt"]),
        (["a.txt", "x/a.txt"], ["a.txt", "x/a.txt"]),
        (["/r/a.txt", "/r/x/a.txt"], ["r/a.txt", "x/a.txt"]),
        (["a.txt", "a.txt", "a.txt"], ["a.txt", "a.txt (2)", "a.txt (3)"]),
        (["./a.txt", "a.txt"], ["./a.txt", "a.txt"]),
        (["-"], ["-"]),
    ],
)
def test_runs_can_be_told_apart(paths, labels):
    assert run_labels(paths) == labels
