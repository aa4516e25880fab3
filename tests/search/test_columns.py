import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.search.columns import Bars, fitted, places, printable, width, wrapped

NUMBERS = st.lists(st.floats(-1e20, 1e20).filter(lambda number: number == 0 or abs(number) > 1e-12), max_size=6)


@given(st.text(), st.integers(1, 30))
def test_what_is_fitted_has_the_width(text, columns):
    assert width(fitted(text, columns)) == columns


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("ab", 4, "ab  "),
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abc…"),
        ("映画", 4, "映画"),
        ("映画館", 5, "映画…"),
        ("映画館", 4, "映… "),
        ("ｆｉｌｍ", 8, "ｆｉｌｍ"),
        ("한국", 5, "한국 "),
        ("e\u0301tude", 5, "e\u0301tude"),
        ("a\tb\x1b[31m\u202ec", 12, "a b [31m c  "),
        ("x" * 1000, 3, "xx…"),
    ],
)
def test_wide_combining_and_moving_characters(text, columns, expected):
    assert fitted(text, columns) == expected


def test_nothing_moves_the_cursor():
    assert printable("a\nb\r\x1b[2J\u2028\u200f") == "a b  [2J  "


@given(st.lists(st.text("ab 映\u0301", min_size=1), max_size=8), st.integers(4, 20))
def test_wrapped_lines_are_no_wider(pieces, columns):
    assert all(width(line) <= columns for line in wrapped(pieces, columns))


@given(st.lists(st.text("abc", min_size=1, max_size=9), max_size=8), st.integers(10, 20))
def test_wrapped_lines_hold_every_piece(pieces, columns):
    assert " ".join(wrapped(pieces, columns)) == ", ".join(pieces)


@pytest.mark.parametrize(
    ("numbers", "expected"), [([], 2), ([0.0], 2), ([999.0], 2), ([1.0, -0.01], 2), ([0.5], 2), ([0.004], 4)]
)
def test_places(numbers, expected):
    assert places(numbers, 2) == expected


@given(NUMBERS, st.integers(2, 80))
def test_bars_stay_in_their_columns_on_their_side(numbers, columns):
    bars = Bars.fitting(numbers, columns)
    for number in numbers:
        bar = bars.bar(number)
        assert len(bar) <= columns
        assert bar.strip() == bar.lstrip() and bool(bar) == (number != 0)
        if number > 0:
            assert bar[: bars.left].strip() == ""
        if number < 0:
            assert len(bar) == bars.left


@given(NUMBERS, st.integers(2, 80))
def test_larger_numbers_have_no_shorter_bars(numbers, columns):
    bars = Bars.fitting(numbers, columns)
    for sign in (1, -1):
        side = sorted(number * sign for number in numbers if number * sign > 0)
        lengths = [len(bars.bar(number * sign).strip()) for number in side]
        assert lengths == sorted(lengths)


def test_the_largest_number_fills_its_side():
    bars = Bars.fitting([3.0, -1.0, 1.5], 8)
    assert [bars.bar(number) for number in (3.0, -1.0, 1.5, -0.001, 0.001)] == [
        "  ██████",
        "██",
        "  ███",
        " ▐",
        "  ▏",
    ]
    assert Bars.fitting([-2.0, -1.0], 4).bar(-2.0) == "████"
    assert Bars.fitting([2.0, 1.0], 4).bar(1.0) == "██"
