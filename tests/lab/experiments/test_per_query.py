import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.lab.experiments.evaluation import RowRun
from pyserini_compneg.lab.experiments.per_query import check_interference, interference_curve, sweep_curve
from pyserini_compneg.lab.experiments.protocol import Interference, RowPlan, Sweep
from pyserini_compneg.lab.experiments.results import Section
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics.topics import Topic

TOPICS = [Topic(f"q{n}", "t", Difference(Atom(f"a{n}"), Atom(f"b{n}"))) for n in range(5)]


def row_plan(name, sweep=None):
    """A row, at one value of a sweep if it has one."""
    sweep = sweep and Sweep(setting="x", symbol="λ", values=(sweep,))
    return RowPlan(name=name, method="operators", sweep=sweep)


def ran(values, plans=None):
    """The rows of a section, which have a value for each query, and its figures."""
    plans = plans or {name: row_plan(name) for name in values}
    per_query = {name: {f"q{n}": {"m": value} for n, value in enumerate(row)} for name, row in values.items()}
    rows = [RowRun(plan, name, "r", {}, {}) for name, plan in plans.items()]
    return rows, Section("S", len(TOPICS), (), "a", per_query, "qrels.txt")


def test_bins_are_as_large_and_sorted_by_similarity():
    _, section = ran({"x": [0.1, 0.2, 0.3, 0.4, 0.5], "y": [1, 1, 1, 0, 0]})
    similar = dict(zip("01234", (0.9, 0.1, 0.5, 0.3, 0.7), strict=True))

    def similarities(pairs):
        assert pairs == [(f"a{n}", f"b{n}") for n in range(5)]
        return [similar[a[1:]] for a, _ in pairs]

    curve = interference_curve(Interference(section="S", bins=2), TOPICS, section, "m", similarities)
    low, high = curve.series["x"]
    assert (low.queries, high.queries) == (3, 2)  # q1, q3, q2 and q4, q0
    assert (low.x, low.y) == (pytest.approx(0.3), pytest.approx(0.3))
    assert (high.x, high.y) == (pytest.approx(0.8), pytest.approx(0.3))
    assert low.low < low.y < low.high
    assert [point.y for point in curve.series["y"]] == [pytest.approx(2 / 3), 0.5]


def test_what_cannot_interfere():
    atoms = [Topic("q0", "a", Atom("a")), *TOPICS[1:]]
    qids = [topic.qid for topic in TOPICS]
    for bins, topics, message in (
        (1, atoms, "query 'q0' is no difference, so it has no interference"),
        (3, TOPICS, "S: 5 judged queries are too few for 3 bins"),
    ):
        plan = Interference(section="S", bins=bins)
        assert refusal(check_interference, plan, topics, qids, error=InputError) == message


def test_a_sweep_by_its_setting_beside_level_lines():
    values = {"level": [0.5] * 5, "NRF, λ = 0.5": [0.2] * 5, "NRF, λ = 1": [0.4, 0.4, 0.4, 0.4, 0.9]}
    plans = {"level": row_plan("level"), "NRF, λ = 0.5": row_plan("NRF", 0.5), "NRF, λ = 1": row_plan("NRF", 1)}
    curve = sweep_curve(*ran(values, plans), "λ", "m")
    assert (curve.x_label, curve.y_label) == ("λ", "m")
    assert [(point.x, round(point.y, 3), point.queries) for point in curve.series["NRF"]] == [
        (0.5, 0.2, 5),
        (1, 0.5, 5),
    ]
    assert [(point.x, point.y) for point in curve.series["level"]] == [(0.5, 0.5), (1.0, 0.5)]


def test_sweeps_of_several_encoders_are_several_lines():
    rows = (row_plan("NRF", 1), row_plan("NRF", 2), row_plan("level"))
    plans = {f"{plan.title} [{label}]": plan for plan in rows for label in ("one", "two")}
    section = ran({name: [float(number)] for number, name in enumerate(plans)}, plans)
    series = sweep_curve(*section, "λ", "m").series
    assert {name: [(point.x, point.y) for point in points] for name, points in series.items()} == {
        "NRF [one]": [(1.0, 0.0), (2.0, 2.0)],
        "NRF [two]": [(1.0, 1.0), (2.0, 3.0)],
        "level [one]": [(1.0, 4.0), (2.0, 4.0)],
        "level [two]": [(1.0, 5.0), (2.0, 5.0)],
    }
