import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.lab.experiments.evaluation import check_interference, interference_curve, sweep_curve
from pyserini_compneg.lab.experiments.protocol import Interference, SectionPlan
from pyserini_compneg.lab.experiments.results import RowRun, Section
from pyserini_compneg.lab.experiments.rows import RowPlan, Sweep
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics import Topic

TOPICS = [Topic(f"q{n}", "t", Difference(Atom(f"a{n}"), Atom(f"b{n}"))) for n in range(5)]
DIFFERENCE = {"difference": "nrf"}


def plan(name, value=None):
    sweep = value and Sweep(setting="difference_weight", symbol="λ", values=(value,))
    return RowPlan(name=name, method="operators", settings=DIFFERENCE, sweep=sweep)


def section(*rows):
    """A section with rows, each a plan, a label and the values of its queries."""
    plans = tuple({plan.title: plan for plan, _, _ in rows}.values())
    section = Section(SectionPlan(title="S", rows=plans), TOPICS)
    for plan, label, values in rows:
        per_query = {f"q{n}": {"m": value} for n, value in enumerate(values)}
        section.rows.append(RowRun(plan, f"{plan.title}{label}", "r", per_query=per_query))
    return section


def test_bins_are_as_large_and_sorted_by_similarity():
    similar = dict(zip("01234", (0.9, 0.1, 0.5, 0.3, 0.7), strict=True))

    def similarities(pairs):
        assert pairs == [(f"a{n}", f"b{n}") for n in range(5)]
        return [similar[a[1:]] for a, _ in pairs]

    rows = (plan("x"), "", [0.1, 0.2, 0.3, 0.4, 0.5]), (plan("y"), "", [1, 1, 1, 0, 0])
    curve = interference_curve(section(*rows), 2, "m", similarities)
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
        (1, atoms, "query 'q0' is not a difference, so it has no interference"),
        (3, TOPICS, "S: 5 judged queries are too few for 3 bins"),
    ):
        asked = Interference(section="S", bins=bins)
        assert refusal(check_interference, asked, topics, qids, error=InputError) == message


def test_a_sweep_by_its_setting_beside_level_lines():
    rows = (plan("level"), "", [0.5] * 5), (plan("NRF", 0.5), "", [0.2] * 5), (plan("NRF", 1), "", [0.4] * 4 + [0.9])
    curve = sweep_curve(section(*rows), "m")
    assert (curve.title, curve.x_label, curve.y_label) == ("S: m", "λ", "m")
    points = {name: [(one.x, round(one.y, 3), one.queries) for one in ones] for name, ones in curve.series.items()}
    assert points == {"level": [(0.5, 0.5, 5), (1.0, 0.5, 5)], "NRF": [(0.5, 0.2, 5), (1, 0.5, 5)]}


def test_sweeps_of_several_encoders_are_several_lines():
    plans = [(one, label) for one in (plan("NRF", 1), plan("NRF", 2), plan("level")) for label in (" [one]", " [two]")]
    series = sweep_curve(section(*((*one, [float(n)]) for n, one in enumerate(plans))), "m").series
    assert {name: [(point.x, point.y) for point in points] for name, points in series.items()} == {
        "NRF [one]": [(1.0, 0.0), (2.0, 2.0)],
        "NRF [two]": [(1.0, 1.0), (2.0, 3.0)],
        "level [one]": [(1.0, 4.0), (2.0, 4.0)],
        "level [two]": [(1.0, 5.0), (2.0, 5.0)],
    }
