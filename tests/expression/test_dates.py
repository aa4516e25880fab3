"""Ranges of dates: read by the calendar, and found by Java as Python's definition says."""

from datetime import UTC, datetime, timedelta

import pytest
from filter_oracle import allows
from hypothesis import given
from hypothesis import strategies as st
from impact_indexes import write_index
from refusals import refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.dates import period
from pyserini_compneg.expression.filters import read_conditions
from pyserini_compneg.lucene import ImpactReader
from pyserini_compneg.support.errors import ArgumentError

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1) // MICROSECOND
EPOCH = datetime(1, 1, 1, tzinfo=UTC)
BAD = ["1999-13", "1999-00", "1999-02-29", "1999-05-00", "1999-5-1", "19990501", "1999-05-01T24:00", "1999-05-01T10:60"]
BAD += [
    "1999-05-01T1:00",
    "1999-05-01T10:00:60",
    "1999-05-01T10:00+24:00",
    "0000",
    "0000-01-01",
    "99",
    "１９９９",
    "May 1999",
]
BAD += ["1999-05-01Z", "1999-W05", "1999-", "-1999", "1999-05-01T10", "1999-05-01 10:00 ", "12000-01-01"]


def moment(time):
    return (time - EPOCH) // MICROSECOND + DAY


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
    st.sampled_from("T "),
)
def test_spans_are_those_of_the_calendar(time, offset, sign):
    """Each form names the time from its first moment to the one before the next of its kind."""
    utc = time.replace(tzinfo=UTC)
    first = moment(utc)
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    text = time.isoformat(sign, "microseconds")
    for suffix, shift in (("", 0), ("Z", 0), (zone, offset), (zone.replace(":", ""), offset), ("+01", 60)):
        assert period(text + suffix) == (first - shift * 60_000_000,) * 2
        minute = moment(utc.replace(second=0, microsecond=0)) - shift * 60_000_000
        assert period(text[:16] + suffix) == (minute, minute + 60_000_000 - 1)
        second = moment(utc.replace(microsecond=0)) - shift * 60_000_000
        assert period(text[:19] + suffix) == (second, second + 1_000_000 - 1)
        tenth = second + utc.microsecond // 100_000 * 100_000
        assert period(text[:21] + suffix) == (tenth, tenth + 100_000 - 1)
    midnight = utc.replace(hour=0, minute=0, second=0, microsecond=0)
    for length, begin, later in (
        (10, midnight, 1),
        (7, midnight.replace(day=1), 31),
        (4, midnight.replace(month=1, day=1), 366),
    ):
        found = period(text[:length])
        assert found.first == moment(begin)
        assert period((begin + timedelta(days=later)).isoformat()[:length]).first >= found.last + 1
        last = EPOCH + (found.last - DAY) * MICROSECOND
        assert last.isoformat()[:length] == text[:length] and (last + MICROSECOND).isoformat()[:length] != text[:length]


@pytest.mark.parametrize("text", BAD)
def test_texts_that_are_no_dates(text):
    assert period(text) is None


DATES = [
    "1999",
    "2003",
    "0001",
    "9999",
    "1999-05",
    "1999-04-30",
    "1999-05-01",
    "1999-05-31",
    "1999-06-01",
    "9999-12-31",
]
DATES += [
    "1999-05-01T00:30+01:00",
    "1999-04-30T23:30:00-01:00",
    "1999-05-01T00:00Z",
    "1999-05-01 12:30:15.25",
    "2000-02-29",
]
DATES += [
    "1999-12-31T23:59:59.999999Z",
    "2000-01-01T00:00:00+14:00",
    "1999-12-31T23:00-23:59",
    "0001-01-01T00:00+23:59",
]
OTHERS = ["Comedy", "..", "1999..2003", "1999<..", "..0", "1999a", ":", "~", "0", "199", "1990.5", "-1999", *BAD]
NUMBERS = [1999, 2000, 1999.5, -1999, 199, 2003.0, True]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Documents in two segments, with each text and each number, and with lists of them."""
    values = [*DATES, *OTHERS, *NUMBERS, ["x", "1999-05-02"], [1998, "2004-01"], [" 2001 ", "1998-01-01"]]
    fields = {f"d{number:02}": {"f": value} for number, value in enumerate(values)}
    halves = [dict.fromkeys([*fields][part::2], {"a": 1}) for part in range(2)]
    with ImpactReader(write_index(tmp_path_factory.mktemp("dated") / "i", *halves, fields=fields)) as reader:
        yield (
            reader,
            {docid: value["f"] if isinstance(value["f"], list) else [value["f"]] for docid, value in fields.items()},
        )


ENDS = st.sampled_from(["", *DATES, "1990", "2000", "1999-05-01T00", "0", "1e3"]).filter(
    lambda end: end != "1999-05-01T00"
)


@given(ENDS, ENDS, st.booleans(), st.booleans(), st.sampled_from([[], ["1999-05"], [1999]]))
def test_java_finds_what_the_definition_says(index, least, most, is_after, is_before, more):
    reader, values = index
    dots = f"{'<' * (is_after and least != '')}..{'<' * (is_before and most != '')}"
    try:
        asked = Filter({"f": [f"{least}{dots}{most}", *more]})
    except ArgumentError:
        return
    (ranking,) = reader.search([Linear({"a": 1.0})], 99, filters=[asked])
    assert ranking.docids == [docid for docid, value in values.items() if allows(asked, {"f": value})]


def test_what_people_expect():
    """A partial date at an end belongs to the range as a whole; in a document it counts as its first moment."""
    for text, found in {
        "1999..2003": ["1999", "1999-05-01", "2003-12-31T23:59:59Z", "2003-12-31T23:30-00:00", 1999, "2003"],
        "1999-05..1999-05": ["1999-05-01", "1999-05-31T23:59", "1999-05"],
        "..1999-05-01": ["1999-05-01T18:00Z", "1998", 1998],
        "1999-05<..": ["1999-06-01", "2000", 2000],
        "1998<..<2000": ["1999", 1999, "1999-12-31T23:59:59.999999", 1998.5, 1999.5],
        "1999-05-01..": ["1999-05-01", "1999-05-01T00:00", "2000", 2000],
    }.items():
        assert all(allows(Filter({"f": text}), {"f": [value]}) for value in found), text
    for text, left_out in {
        "1999..2003": ["2004-01-01", "1998-12-31", "2003-12-31T23:30-01:00", "May 2000", 2003.5],
        "1999-05..1999-05": ["1999-04-30", "1999-06-01", "1999", 1999],
        "..1999-05-01": ["1999-05-02", "1999-05-01T23:30-01:00", "2000"],
        "1999-05<..<2003": ["1999-05-31T23:59:59", "2003-01-01", 2003, 1999, "1999-05<..<2003"],
    }.items():
        assert not any(allows(Filter({"f": text}), {"f": [value]}) for value in left_out), text


@pytest.mark.parametrize(
    ("conditions", "fields"),
    [
        (["f>=1999-05-01"], {"f": ["1999-05-01.."]}),
        (["f<=1999", "g=x", "f>=-5"], {"f": ["-5..1999"], "g": ["x"]}),
        (["f>=1999", "f=x"], {"f": ["x", "1999.."]}),
        (["f<2001-05", "f> 1999", "g<7"], {"f": ["1999<..<2001-05"], "g": ["..<7"]}),
        (["f=>x", "g=a<b"], {"f": [">x"], "g": ["a<b"]}),
    ],
)
def test_bounds_are_ranges(conditions, fields):
    assert read_conditions(conditions) == fields


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (["f>=May"], "f>= needs a number, or a date such as 1999-05-01, got 'May'"),
        (["id>=1"], "ids have no ranges, so there is no id>=; write id=ID for each id"),
        (["f>=1", "f>2"], "f has two lower bounds; one of them would have no effect"),
        (["f<2", "f<=May"], "f<= needs a number, or a date such as 1999-05-01, got 'May'"),
        (["f=>1999-05"], "f=>1999-05 has its signs the wrong way round; write f>=1999-05"),
        (["f=< 7"], "f=< 7 has its signs the wrong way round; write f<=7"),
    ],
)
def test_bounds_that_are_none(conditions, message):
    assert refusal(read_conditions, conditions, error=ArgumentError) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2003..1999-05", "the range 2003..1999-05 of 'f' ends before it begins; write 1999-05..2003"),
        (
            "5..1999-05",
            "the range 5..1999-05 of 'f' has no date of ISO 8601 at an end; write dates from the year 0001 on "
            "as 1999, 1999-05, 1999-05-01 or 1999-05-01T12:30Z",
        ),
        (
            "10000-01-01..",
            "the range 10000-01-01.. of 'f' has no date of ISO 8601 at an end; write dates from the year 0001 on "
            "as 1999, 1999-05, 1999-05-01 or 1999-05-01T12:30Z",
        ),
        (
            "1999-13..",
            "the range 1999-13.. of 'f' has no date of ISO 8601 at an end; write dates from the year 0001 on "
            "as 1999, 1999-05, 1999-05-01 or 1999-05-01T12:30Z",
        ),
    ],
)
def test_ranges_that_are_none(text, message):
    assert refusal(Filter, {"f": text}, error=ArgumentError) == message


def test_a_range_beside_a_bound_is_worth_a_note(caplog):
    assert read_conditions(["year=1960..1969", "year>1965"]) == {"year": ["1960..1969", "1965<.."]}
    assert caplog.messages == ["a range and a bound of year: either is enough; write one range for both"]
