"""What plots show: looks of methods, differences by query, and drawings of whatever there is."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.reproduce.report.bars import draw_bars
from pyserini_compneg.reproduce.report.curves import draw_curve
from pyserini_compneg.reproduce.report.differences import Differences, _limits, differences, draw_differences
from pyserini_compneg.reproduce.report.drawing import Look, looks
from pyserini_compneg.reproduce.results import Cell, Curve, Point, Results, Row, Section

RESULTS = Results("p", "T", "A.", {}, {}, "true", ("nDCG@10",), True, ())


def section(cells, per_query=None, baseline="a"):
    rows = tuple(Row(name, "", {"nDCG@10": cell}, "r") for name, cell in cells.items())
    return Section("Union", 3, rows, baseline, per_query or {})


def per_query(**values):
    return {
        name: {f"q{number}": {"nDCG@10": value} for number, value in enumerate(found)} for name, found in values.items()
    }


def any_looks(*names):
    return {name: Look("#0072b2", "o", "-") for name in names}


def test_a_method_looks_the_same_in_all_plots_and_unlike_the_first_of_the_others(results):
    found = looks(results)
    assert found["vanilla"].colour == "#7d8790"
    assert [found[name].colour for name in ("ignore", "NRF", "disentangled")] == ["#0072b2", "#d55e00", "#009e73"]
    assert len({look.colour for look in found.values()}) == len(found) == 12


def test_rows_that_are_points_of_a_line_look_like_it():
    rows = {name: Cell(0.5) for name in ("a", "NRF, λ = 0", "NRF, λ = 1", "NRFs")}
    curve = Curve("T", "λ", "nDCG@10", {"NRF": (), "a": ()})
    found = looks(replace(RESULTS, sections=(section(rows),), curves=(curve,)))
    assert found["NRF"] == found["NRF, λ = 0"] == found["NRF, λ = 1"] != found["NRFs"]


def test_there_are_looks_for_any_number_of_methods():
    cells = {f"m{number}": Cell(0.5) for number in range(50)}
    assert looks(replace(RESULTS, sections=(section(cells, baseline="m0"),))).keys() == cells.keys()


def test_differences_are_sorted_and_counted():
    values = per_query(a=[0.5, 0.5, 0.5, 0.5], b=[0.25, 0.5, 1.0, 0.75])
    found = differences(section(dict.fromkeys("ab", Cell(0.5)), values), "nDCG@10")
    assert found == {"b": Differences((0.5, 0.25, 0.0, -0.25), better=2, equal=1, worse=1)}
    found = differences(section(dict.fromkeys("ab", Cell(0.5)), values), "nDCG@10", lower_is_better=True)
    assert found == {"b": Differences((0.5, 0.25, 0.0, -0.25), better=1, equal=1, worse=2)}


def test_sums_in_another_order_are_equal():
    values = per_query(a=[0.1 + 0.2], b=[0.3])
    assert differences(section(dict.fromkeys("ab", Cell(0.5)), values), "nDCG@10")["b"].equal == 1


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=1, max_size=30))
def test_every_query_is_better_equal_or_worse(pairs):
    values = per_query(a=[one for one, _ in pairs], b=[other for _, other in pairs])
    found = differences(section(dict.fromkeys("ab", Cell(0.5)), values), "nDCG@10")["b"]
    assert found.better + found.equal + found.worse == len(found.values) == len(pairs)
    assert found.better >= sum(other > one + 1e-8 for one, other in pairs)
    assert found.worse >= sum(other < one - 1e-8 for one, other in pairs)
    assert list(found.values) == sorted(found.values, reverse=True)


def test_without_a_baseline_or_another_method_there_are_no_differences():
    alone, without = per_query(a=[0.5]), per_query(b=[0.5], c=[0.25])
    for values in (alone, without):
        one = section(dict.fromkeys(values, Cell(0.5)), values)
        assert draw_differences(one, RESULTS, any_looks(*values), "d") is None


def test_differences_that_are_all_0_are_drawn():
    values = per_query(a=[0.5], b=[0.5])
    plot = draw_differences(section(dict.fromkeys("ab", Cell(0.5)), values), RESULTS, any_looks("a", "b"), "d")
    assert plot.alt == "Differences from a in Union. b: 0 better, 1 equal, 0 worse."


@pytest.mark.parametrize(
    ("cells", "alt"),
    [
        ({"a": Cell(0.5, (0.4, 0.6), (), 0.25)}, "a 0.500, paper 0.250"),
        ({"a": Cell(published=0.25)}, "a paper 0.250"),
        ({"a": Cell(0.0), "b": Cell(0.0, (-0.1, 0.1))}, "a 0.000; b 0.000"),
        ({"a": Cell(-0.5, (-0.6, -0.4)), "b": Cell(0.5)}, "a −0.500; b 0.500"),
        ({"a": Cell(0.5), "$x^2$ & <b>": Cell(), "c" * 500: Cell(0.1)}, f"a 0.500; {'c' * 500} 0.100"),
    ],
)
def test_bars_are_drawn_of_all_that_has_a_figure(cells, alt):
    plot = draw_bars(section(cells), RESULTS, any_looks(*cells), "bars")
    assert plot.alt == f"Bars of nDCG@10 for Union: {alt}."
    assert plot.png.startswith(b"\x89PNG")


def test_nothing_is_drawn_of_nothing():
    assert draw_bars(section({"a": Cell()}), RESULTS, {}, "bars") is None
    assert draw_curve(Curve("T", "x", "nDCG@10", {"a": ()}), {}, "curve") is None
    assert draw_curve(Curve("T", "x", "nDCG@10", {}), {}, "curve") is None


def test_a_curve_of_bins_of_different_sizes_shows_them():
    same = Curve("T", "similarity", "right_rank", {"a": (Point(0.1, 0.5, 0.4, 0.6, 7), Point(0.3, 0.25, 0.2, 0.3, 7))})
    other = replace(same, series={"a": (same.series["a"][0], replace(same.series["a"][1], queries=1234))})
    drawn = [draw_curve(curve, any_looks("a"), "curve") for curve in (same, other)]
    assert [plot.alt for plot in drawn] == [
        "Curves of right_rank (%) against similarity: a 50.00 at 0.1, 25.00 at 0.3 (7 queries each).",
        "Curves of right_rank (%) against similarity: a 50.00 at 0.1 (7 queries), 25.00 at 0.3 (1,234 queries).",
    ]


def test_a_curve_of_one_point_is_drawn():
    curve = Curve("T", "x", "nDCG@10", {"a": (Point(0.5, 0.5, 0.5, 0.5, 1),), "b": ()})
    assert draw_curve(curve, any_looks("a", "b"), "curve").png


def test_drawings_are_well_formed_and_their_ids_are_their_own(contents):
    ids = []
    for plot in contents.plots:
        root = ElementTree.fromstring(plot.svg)
        own = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
        assert all(one.startswith(f"{plot.name}-") for one in own)
        ids += own
    assert len(ids) == len(set(ids)) > 100


def test_texts_become_shapes_so_that_no_name_can_be_markup():
    cells = {"</svg><script>": Cell(0.5), "--><b>": Cell(0.5)}
    plot = draw_bars(section(cells), RESULTS, any_looks(*cells), "bars")
    tags = {element.tag for element in ElementTree.fromstring(plot.svg).iter()}
    assert tags == {"svg", "g", "path", "defs", "use", "clipPath", "rect"}


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ((0.8, 0.0, -0.2), -0.3, 0.9),  # a tenth of the height around what there is
        ((0.5, 0.1), -0.05, 0.55),
        ((0.0, -0.5), -0.55, 0.4),  # room above zero for the counts
        ((0.0, 0.0), -0.1, 0.1),
    ],
)
def test_panels_reach_as_far_as_the_differences(values, low, high):
    one = Differences(values, 0, 0, 0)
    assert _limits([one, Differences((), 0, 0, 0)]) == pytest.approx((low, high))
