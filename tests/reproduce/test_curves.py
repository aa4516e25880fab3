import pytest

from pyserini_compneg.datasets.topics import Topic
from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.reproduce.curves import interference_curve, sweep_curve
from pyserini_compneg.reproduce.experiment import RanSection
from pyserini_compneg.reproduce.protocol import Interference, RowPlan, SectionPlan
from pyserini_compneg.reproduce.results import Section
from pyserini_compneg.reproduce.scoring import RanRow

TOPICS = [Topic(f"q{n}", "t", Difference(Atom(f"a{n}"), Atom(f"b{n}"))) for n in range(5)]


def ran(values, xs=None, sweep="", topics=TOPICS):
    """A section whose rows have a value for each query."""
    plans = {name: RowPlan(name, method="operators", swept=(xs or {}).get(name)) for name in values}
    per_query = {name: {f"q{n}": {"m": value} for n, value in enumerate(row)} for name, row in values.items()}
    rows = [RanRow(plan, name, None, None, {}, {}) for name, plan in plans.items()]
    plan = SectionPlan("S", tuple(plans.values()), (), sweep)
    return RanSection(plan, topics, rows, Section("S", len(topics), (), "a", per_query))


def test_bins_are_as_large_and_sorted_by_similarity():
    section = ran({"x": [0.1, 0.2, 0.3, 0.4, 0.5], "y": [1, 1, 1, 0, 0]})
    similar = dict(zip("01234", (0.9, 0.1, 0.5, 0.3, 0.7), strict=True))

    def similarities(pairs):
        assert pairs == [(f"a{n}", f"b{n}") for n in range(5)]
        return [similar[a[1:]] for a, _ in pairs]

    curve = interference_curve(Interference("S", 2), [section], "m", similarities)
    low, high = curve.series["x"]
    assert (low.queries, high.queries) == (3, 2)  # q1, q3, q2 and q4, q0
    assert (low.x, low.y) == (pytest.approx(0.3), pytest.approx(0.3))
    assert (high.x, high.y) == (pytest.approx(0.8), pytest.approx(0.3))
    assert low.low < low.y < low.high
    assert [point.y for point in curve.series["y"]] == [pytest.approx(2 / 3), 0.5]


def test_only_the_rows_that_are_asked_for():
    section = ran({"x": [0.1] * 5, "y": [1.0] * 5})
    curve = interference_curve(Interference("S", 1, ("y",)), [section], "m", lambda pairs: [0.5] * len(pairs))
    assert list(curve.series) == ["y"]
    (point,) = curve.series["y"]
    assert (point.y, point.low, point.high) == (1.0, 1.0, 1.0)


def test_what_cannot_interfere():
    atoms = [Topic("q0", "a", Atom("a")), *TOPICS[1:]]
    with pytest.raises(ProtocolError) as caught:
        interference_curve(Interference("S", 1), [ran({"x": [1] * 5}, topics=atoms)], "m", None)
    assert str(caught.value) == "query 'q0' is no difference, so nothing in it can interfere"
    with pytest.raises(ProtocolError) as caught:
        interference_curve(Interference("S", 3), [ran({"x": [1] * 5})], "m", lambda pairs: [0.0] * len(pairs))
    assert str(caught.value) == "S: 5 judged queries are too few for 3 bins"


def test_a_sweep_by_its_setting_beside_level_lines():
    values = {"level": [0.5] * 5, "λ = 0.5": [0.2] * 5, "λ = 1": [0.4, 0.4, 0.4, 0.4, 0.9]}
    curve = sweep_curve(ran(values, {"λ = 0.5": ("NRF", 0.5), "λ = 1": ("NRF", 1.0)}, "λ"), "m")
    assert (curve.x_label, curve.y_label) == ("λ", "m")
    assert [(point.x, round(point.y, 3), point.queries) for point in curve.series["NRF"]] == [
        (0.5, 0.2, 5),
        (1, 0.5, 5),
    ]
    assert [(point.x, point.y) for point in curve.series["level"]] == [(0.5, 0.5), (1.0, 0.5)]


def test_sweeps_of_several_encoders_are_several_lines():
    plans = [RowPlan(f"NRF, λ = {x}", method="operators", swept=("NRF", x)) for x in (1.0, 2.0)]
    level = RowPlan("level", method="operators")
    names = {f"{plan.name} [{label}]": plan for plan in (*plans, level) for label in ("one", "two")}
    rows = [RanRow(plan, name, None, None, {}, {}) for name, plan in names.items()]
    per_query = {name: {"q0": {"m": float(place)}} for place, name in enumerate(names)}
    section = RanSection(SectionPlan("S", (*plans, level), (), "λ"), [], rows, Section("S", 1, (), "a", per_query))
    series = sweep_curve(section, "m").series
    assert {name: [(point.x, point.y) for point in points] for name, points in series.items()} == {
        "NRF [one]": [(1.0, 0.0), (2.0, 2.0)],
        "NRF [two]": [(1.0, 1.0), (2.0, 3.0)],
        "level [one]": [(1.0, 4.0), (2.0, 4.0)],
        "level [two]": [(1.0, 5.0), (2.0, 5.0)],
    }
