"""Dates of ISO 8601 in filters: a year, a month, a day, or a time of a day."""

from __future__ import annotations

import calendar
import re
from datetime import date
from typing import NamedTuple

_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
_DATE = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{2}})(?:-([0-9]{{2}})(?:[T ]{_TIME})?)?)?")

_SECOND = 1_000_000  # in microseconds
_MINUTE = 60 * _SECOND
_DAY = 24 * 60 * _MINUTE


class Period(NamedTuple):
    """The time that a date names, in microseconds: both ends belong to it."""

    first: int
    last: int


def period(text: str) -> Period | None:
    """The whole year, month, day, minute, second or fraction of a second that a date names; None for another text.

    A time without an offset is in UTC. Digits of a second beyond the sixth do not count. Java reads dates alike.

    >>> period("1999-05-01") == Period(period("1999-05-01T00:00").first, period("1999-05-01T23:59:59.999999Z").last)
    True
    >>> period("1999-02-29"), period("1999-5-1")
    (None, None)
    """
    if (found := _DATE.fullmatch(text)) is None:
        return None
    year, month, day, hour, minute = (int(part or 0) for part in found.groups()[:5])
    second, fraction, sign, offset_hour, offset_minute = found.groups()[5:]
    if year < 1 or (found[2] and not 1 <= month <= 12):
        return None
    last_month = month or 12
    days = calendar.monthrange(year, last_month)[1]
    if found[3] and not 1 <= day <= days:
        return None
    if hour > 23 or minute > 59 or int(second or 0) > 59 or int(offset_hour or 0) > 23 or int(offset_minute or 0) > 59:
        return None
    first = date(year, month or 1, day or 1).toordinal() * _DAY
    if found[4] is None:
        return Period(first, (date(year, last_month, day or days).toordinal() + 1) * _DAY - 1)
    digits = (fraction or "")[:6]
    length = _MINUTE if second is None else _SECOND // 10 ** len(digits)
    first += hour * 60 * _MINUTE + minute * _MINUTE + int(second or 0) * _SECOND + int(digits.ljust(6, "0"))
    first -= (int(offset_hour or 0) * 60 + int(offset_minute or 0)) * _MINUTE * (-1 if sign == "-" else 1)
    return Period(first, first + length - 1)
