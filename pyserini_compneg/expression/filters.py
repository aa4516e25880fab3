"""Filters restrict a search to documents with given ids or given exact values of their fields."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeAlias

from pyserini_compneg.expression.dates import period
from pyserini_compneg.support.arguments import checked_count, whole_number
from pyserini_compneg.support.errors import ArgumentError, InputError
from pyserini_compneg.support.files import iter_lines, source_name
from pyserini_compneg.support.surrogates import has_half
from pyserini_compneg.support.terminal import shown

ID = "id"
"""The field that holds the ids of documents. Every index has it."""

Value: TypeAlias = str | int | float
Values: TypeAlias = Value | Iterable[Value]

FACET_VALUES = 10
"""The number of values of a facet, if it is not given."""

_logger = logging.getLogger(__name__)
_FIELD = re.compile(r"[^\W\d][\w.-]*")
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BOUND = re.compile(r"([^=<>]*)([<>]=?)(.+)", re.DOTALL)
_TURNED_BOUND = re.compile(r"=\s*([<>])=?(.+)", re.DOTALL)
_LIKE_DATE = re.compile(r"[0-9]{4,}-")
_RANGE = re.compile(rf"(?!\.\.$)(?:({_NUMBER})<?)?\.\.(?:<?({_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class Filter:
    """Matches documents that have, in each field of the filter, one of the field's values.

    Values are compared as whole texts, without blanks at their ends. A number is written without needless zeros, so
    1990.0 becomes ``"1990"``. A document with the text ``"1990.0"`` matches both this text and the number. A text such
    as ``"1990..1999"``, ``"1990.."`` or ``"..1999"`` is a range of numbers that includes its ends; a ``<`` beside the
    dots excludes that end, as in ``"1990<..1999"`` and ``"..<2000"``. Four digits are a
    year, too, so this is also a range of dates, like ``"1999-05-01..1999-06"``. Dates are those of ISO 8601. A year, a
    month or a day at the end of a range belongs to it as a whole. A date in a document counts as its first moment.

    Attributes:
        fields: The values of each field. ``ID`` is the field of the documents' ids. If a field has no values, as with
            an empty list of ids, no document matches.

    Raises:
        ArgumentError: There is no field, a name cannot name a filter field, a value is neither text nor a number, a
            text is empty, or a range ends before it begins.

    >>> print(Filter({"genre": ["War", "Comedy"], "year": "1990..1999"}))
    genre=Comedy or War, year=1990..1999
    """

    fields: Mapping[str, Collection[str]]
    depth: ClassVar[int] = 1

    def __init__(self, fields: Mapping[str, Values]) -> None:
        if not isinstance(fields, Mapping) or not fields:
            raise ArgumentError(f'a filter must name fields, such as {{"genre": "Comedy"}}, got {shown(fields)}')
        read = {checked_field(name): _texts(name, values) for name, values in fields.items()}
        object.__setattr__(self, "fields", dict(sorted(read.items())))

    def __hash__(self) -> int:
        return hash(tuple(self.fields.items()))

    def __str__(self) -> str:
        return ", ".join(f"{name}={_listed(values)}" for name, values in self.fields.items())

    def __and__(self, other: Filter) -> Filter:
        """Matches the documents that match both filters."""
        if both := (self.fields.keys() & other.fields.keys()) - {ID}:
            raise ArgumentError(f"two filters name the field {min(both)!r}", remedy="give its values in one of them")
        joined = {**self.fields, **other.fields}
        if ID in self.fields and ID in other.fields:
            joined[ID] = frozenset(self.fields[ID]) & frozenset(other.fields[ID])
        return Filter(joined)

    def to_json(self) -> dict[str, list[str]]:
        """The value of ``filter`` in JSON. The filter that it makes is equal to this filter."""
        return {name: sorted(values) for name, values in self.fields.items()}


def as_filter(given: Filter | Mapping[str, Values] | None) -> Filter | None:
    """The filter itself, or a filter made from its fields."""
    return given if given is None or isinstance(given, Filter) else Filter(given)


def narrowed(*given: Filter | Mapping[str, Values] | None) -> Filter | None:
    """A filter for the documents that match all given filters, or None if no filter is given."""
    filters = [one for one in map(as_filter, given) if one is not None]
    return reduce(and_, filters) if filters else None


def checked_field(name: object) -> str:
    """Checks the name of a filter field: a letter, then letters, digits, and ``_ . -``."""
    if isinstance(name, str) and _FIELD.fullmatch(name):
        return name
    raise ArgumentError(f"a filter field must be named by a letter, then letters, digits, _ . -, got {shown(name)}")


def checked_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Checks the names of filter fields and drops repeated names."""
    if isinstance(names, str):
        raise ArgumentError(f"filter fields must be a list of names, got the text {shown(names)}")
    return tuple(dict.fromkeys(map(checked_field, names)))


def read_conditions(conditions: Iterable[str]) -> dict[str, list[str]]:
    """Parses conditions ``FIELD=VALUE``. If a field is repeated, a document may have any of its values.

    ``FIELD>=VALUE``, and those with ``>``, ``<=`` and ``<``, are ranges of numbers or dates. A lower and an upper bound
    together are one range.

    >>> read_conditions(["released>=1999-05", "released<=2003"])
    {'released': ['1999-05..2003']}
    >>> read_conditions(["year>1990", "year<2000"])
    {'year': ['1990<..<2000']}
    >>> read_conditions(["genre=War", "year=1990..1999", "genre=Comedy"])
    {'genre': ['War', 'Comedy'], 'year': ['1990..1999']}
    """
    fields: dict[str, list[str]] = {}
    bounds: dict[str, dict[str, str]] = {}
    for condition in conditions:
        if (found := _BOUND.fullmatch(condition)) and _FIELD.fullmatch(found[1]):
            _add_bound(bounds.setdefault(found[1], {}), *found.groups())
            continue
        name, _, value = condition.partition("=")
        if not value or not _FIELD.fullmatch(name):
            form = "a condition must be FIELD=VALUE, such as genre=Comedy, year=1990..1999 or year>=1990"
            remedy = "NOT! genre=Comedy in an expression excludes"
            raise ArgumentError(f"{form}, got {shown(condition)}", remedy=remedy)
        if (turned := _TURNED_BOUND.fullmatch(condition[len(name) :])) and _is_bound(turned[2].strip()):
            sign, bound = f"{turned[1]}=", turned[2].strip()
            raise ArgumentError(f"{condition} has its signs the wrong way round", remedy=f"write {name}{sign}{bound}")
        fields.setdefault(name, []).append(value)
    for name, ends in bounds.items():
        if any(".." in value for value in fields.get(name, ())):
            _logger.warning("a range and a bound of %s: either is enough; write one range for both", name)
        fields.setdefault(name, []).append(_between(ends))
    return fields


def _between(ends: Mapping[str, str]) -> str:
    return f"{ends.get('>', '')}..{ends.get('<', '')}"


def _add_bound(ends: dict[str, str], name: str, sign: str, value: str) -> None:
    value = value.strip()
    if name == ID:
        raise ArgumentError(f"ids have no ranges, so there is no {name}{sign}", remedy="write id=ID for each id")
    if not _is_bound(value):
        fault = (
            f"{shown(value)}, a date that no calendar has from the year 0001 on"
            if _LIKE_DATE.match(value)
            else shown(value)
        )
        raise ArgumentError(f"{name}{sign} needs a number, or a date such as 1999-05-01, got {fault}")
    if sign[0] in ends:
        end = "lower" if sign[0] == ">" else "upper"
        raise ArgumentError(f"{name} has two {end} bounds", remedy="one of them would have no effect")
    ends[sign[0]] = {">": f"{value}<", "<": f"<{value}"}.get(sign, value)


def _is_bound(value: str) -> bool:
    return bool(re.fullmatch(_NUMBER, value)) or period(value) is not None


class Sort(NamedTuple):
    """An order of hits by a filter field, in place of their scores.

    Numbers come before texts, which are compared by code points, as dates of ISO 8601 are in one form. Documents with
    equal values are in the order of their ids, and those without a value come last. Of several values of a document the
    first one in the order counts.
    """

    field: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.field}:desc" if self.descending else self.field


def as_sort(given: Sort | str | None) -> Sort | None:
    """The order itself, or the order that a text names: ``FIELD``, ascending, or ``FIELD:desc``.

    >>> as_sort("year:desc")
    Sort(field='year', descending=True)
    """
    if given is None or isinstance(given, Sort):
        return given
    name, colon, direction = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not _FIELD.fullmatch(name) or (colon and direction not in ("asc", "desc")):
        raise ArgumentError(f"sort must be FIELD or FIELD:desc, such as year:desc, got {shown(given)}")
    return Sort(name, direction == "desc")


def read_facets(text: str) -> dict[str, int]:
    """Parses the facets ``FIELD`` and ``FIELD:N``, with commas between them. N is the number of values to give.

    >>> read_facets("genre,year:20")
    {'genre': 10, 'year': 20}
    """
    facets: dict[str, int] = {}
    for facet in text.split(","):
        name, colon, count = facet.strip().partition(":")
        most = (whole_number(count) or 0) if colon else FACET_VALUES
        if most < 1 or not _FIELD.fullmatch(name):
            raise ArgumentError(f"a facet must be FIELD or FIELD:N, such as genre or year:20, got {shown(facet)}")
        if name in facets:
            raise ArgumentError(f"the facet {name} is given twice")
        facets[name] = most
    return checked_facets(facets)


def checked_facets(facets: Mapping[str, int]) -> dict[str, int]:
    """Checks filter fields whose values are counted, each with the number of values to give."""
    if not isinstance(facets, Mapping):
        raise ArgumentError(
            f'facets must name fields and numbers of values, such as {{"genre": 10}}, got {shown(facets)}'
        )
    if ID in facets:
        raise ArgumentError("the field 'id' is no facet: its values are those of one document each")
    return {checked_field(name): checked_count(f"the facet {name}", most) for name, most in facets.items()}


def read_ids(path: str | Path) -> list[str]:
    """Reads a file with one id on each line."""
    ids = []
    for line, text in iter_lines(path):
        if len(text.split()) > 1:
            place = f"{source_name(path)}:{line}"
            raise InputError(f"expected one document id, got {shown(text.strip())}", where=place)
        ids.append(text.strip())
    if not ids:
        what = "no document ids, so nothing could be found"
        raise InputError(what, where=source_name(path), remedy="expected one a line")
    return ids


def _listed(values: Collection[str]) -> str:
    """Values for people; more than three are only counted."""
    return " or ".join(sorted(values)) or "nothing" if len(values) <= 3 else f"one of {len(values)} values"


def _texts(name: str, values: Values) -> frozenset[str]:
    several: Iterable[object] = (values,)
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        several = values
    texts = set()
    for each in several:
        texts.add(value := _text(each))
        if not value:
            what = "a text such as Comedy or 1990..1999, a number, true or false"
            raise ArgumentError(f"a value of the filter field {name!r} must be {what}, got {shown(each)}")
        if name != ID:
            _check_range(name, value)
    return frozenset(texts)


def _text(value: object) -> str:
    value = value.item() if hasattr(value, "item") else value  # a numpy scalar
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return format(Decimal(str(value + 0.0)).normalize(), "f")
    text = str(value).strip() if isinstance(value, (str, int)) else ""
    return "" if has_half(text) else text


def _check_range(name: str, value: str) -> None:
    """Refuses a range that ends before it begins, one with a date that no calendar has, and a bound in place of one."""
    if (bound := _BOUND.fullmatch(value)) and not bound[1] and _is_bound(bound[3].strip()):
        ends: dict[str, str] = {}
        _add_bound(ends, name, bound[2], bound[3])
        raise ArgumentError(f"{name!r} has no value {shown(value)}", remedy=f'write the range as "{_between(ends)}"')
    readings = [ends for ends in (_number_ends(value), _date_ends(value)) if ends is not None]
    least, dots, most = value.partition("..")
    least, most = least.removesuffix("<"), most.removeprefix("<")
    if readings and all(first > last for first, last in readings):
        is_open = "<" in value
        what = f"the range {value} of {name!r} {'contains nothing' if is_open else 'ends before it begins'}"
        raise ArgumentError(what, remedy="" if is_open else f"write {most}..{least}")
    if dots and any(map(_LIKE_DATE.match, (least, most))) and _date_ends(value) is None:
        what = f"the range {value} of {name!r} has no date of ISO 8601 at an end"
        raise ArgumentError(
            what, remedy="write dates from the year 0001 on as 1999, 1999-05, 1999-05-01 or 1999-05-01T12:30Z"
        )


def _date_ends(value: str) -> tuple[float, float] | None:
    """The ends of a range of dates, in microseconds, or None."""
    least, dots, most = value.partition("..")
    first, last = period(least.removesuffix("<")), period(most.removeprefix("<"))
    if not dots or not (least or most) or (least and first is None) or (most and last is None):
        return None
    return (
        (first.last + 1 if least.endswith("<") else first.first) if first else -math.inf,
        (last.first - 1 if most.startswith("<") else last.last) if last else math.inf,
    )


def _number_ends(value: str) -> tuple[float, float] | None:
    """The ends of a range of numbers, or None."""
    if (ends := _RANGE.fullmatch(value)) is None:
        return None
    least, most = float(ends[1] or "-inf"), float(ends[2] or "inf")
    return (
        math.nextafter(least, math.inf) if "<.." in value else least,
        math.nextafter(most, -math.inf) if "..<" in value else most,
    )
