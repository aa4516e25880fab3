import json

import pytest

from pyserini_compneg.eval import parse_measures
from pyserini_compneg.eval.rows import make_rows
from pyserini_compneg.eval.table import render, run_labels

MEASURES = parse_measures(["ndcg_cut.10", "map"])
CPT = {"1": {"ndcg_cut.10": 1.0, "map": 0.5}, "2": {"ndcg_cut.10": 0.0, "map": 0.25}}
VANILLA = {"1": {"ndcg_cut.10": 0.5, "map": 0.5}, "2": {"ndcg_cut.10": 0.5, "map": 1.0}}
GROUPS = {"1": "_", "2": "_ or _"}


def table(results, groups=None, label=None, table_format="text"):
    return render(make_rows(results, MEASURES, groups or {}), label, table_format)


def test_a_line_for_each_class_with_runs_side_by_side():
    assert table({"cpt": CPT, "vanilla": VANILLA}, GROUPS, "template") == (
        "                   ndcg_cut.10  ndcg_cut.10     map      map\n"
        "template  queries          cpt      vanilla     cpt  vanilla\n"
        "_               1       1.0000       0.5000  0.5000   0.5000\n"
        "_ or _          1       0.0000       0.5000  0.2500   1.0000\n"
        "all             2       0.5000       0.5000  0.3750   0.7500\n"
    )
    assert table({"cpt": CPT}, GROUPS, "template").splitlines()[0] == "template  queries  ndcg_cut.10     map"


THREE = {
    "base": {str(i): {"map": i % 5 / 10, "RR": 0.5} for i in range(20)},
    "good": {str(i): {"map": i % 5 / 10 + 0.1 + i / 1000, "RR": 0.5} for i in range(20)},
    "same": {str(i): {"map": i % 5 / 10, "RR": i % 2 + 0.0} for i in range(20)},
}
HALVES = {str(i): "few" if i < 1 else "many" for i in range(20)}


def compared(groups=None, randomise=False):
    measures = parse_measures(["map", "RR"])
    return make_rows(THREE, measures, groups or {}, {}, randomise)


def test_letters_say_what_a_run_is_better_than():
    assert render(compared(), None) == (
        "run     queries        map      RR\n"
        "base^a       20  0.2000     0.5000\n"
        "good^b       20  0.3095^ac  0.5000\n"
        "same^c       20  0.2000     0.5000\n"
        "\n"
        "A letter after a value: better than that run (paired t-test, p < 0.05, Holm's correction for 3 comparisons).\n"
    )


def test_letters_of_runs_side_by_side():
    assert render(compared(HALVES), "size").splitlines()[1:5] == [
        "size  queries  base^a     good^b  same^c  base^a  good^b  same^c",
        "few         1  0.0000  0.1000     0.0000  0.5000  0.5000  0.0000",
        "many       19  0.2105  0.3205^ac  0.2105  0.5000  0.5000  0.5263",
        "all        20  0.2000  0.3095^ac  0.2000  0.5000  0.5000  0.5000",
    ]


def test_names_with_a_caret_are_no_letters():
    results = {"a^b": CPT, "c^d": CPT}
    lines = render(make_rows(results, MEASURES, qrels={}), None).splitlines()
    assert lines[1] == "a^b^a        2       0.5000  0.3750"
    assert lines[-1] == "A letter after a value: better than that run (paired t-test, p < 0.05)."


def test_json_has_every_comparison():
    few, *_, good = json.loads(render(compared(HALVES, randomise=True), "size", "json"))[:-1]
    assert set(few) == {"run", "size", "queries", "measures"}
    assert (good["run"], good["size"], good["queries"]) == ("good", "all", 20)
    low, high = good["confidence_intervals"]["map"]
    assert low < good["measures"]["map"] < high
    one, other = good["comparisons"]["map"]
    assert (one["with"], other["with"]) == ("base", "same")
    assert set(one) == {"with", "difference", "confidence_interval", "t_test", "randomisation"}
    assert one["difference"] == pytest.approx(0.1095, abs=1e-12)
    assert one["randomisation"] == {"raw": pytest.approx(1 / 10_001), "holm": pytest.approx(3 / 10_001)}
    assert one["t_test"]["holm"] == pytest.approx(3 * one["t_test"]["raw"])


def test_a_pair_is_one_observation():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 0, "b": 1}, "3": {"c": 1, "d": 0}, "4": {"c": 0, "d": 1}}
    measures = parse_measures(["paired_accuracy", "right_rank"])
    results = {run: {qid: {"paired_accuracy": 1.0, "right_rank": 1.0} for qid in qrels} for run in "xy"}
    groups = {"1": "one", "2": "one", "3": "two", "4": "two"}
    one, _, _, _, every, _ = make_rows(results, measures, groups, qrels)
    assert [name for name, figure in one.figures.items() if figure.interval] == ["right_rank"]
    assert [name for name, figure in every.figures.items() if figure.interval] == ["paired_accuracy", "right_rank"]


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
