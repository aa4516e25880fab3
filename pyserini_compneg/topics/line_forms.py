"""Forms of topics with a line each, other than TSV and JSON: Web tracks, TREC CAR, and questions of DPR."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from pyserini_compneg.support.errors import InputError

LineForm = Callable[[int, str], dict[str, str]]
"""Returns the fields of a topic, given the number of its line, counted from 0, and the line."""

_WEB = re.compile(r"(?P<num>\d+):(?P<title>[^\t]*)")
_PRIORITIZED = re.compile(r"(?P<num>\d+):\d+:(?P<title>[^\t]*)")
_CAR = re.compile(r"(?:enwiki:\S+|\S+/\S*%[0-9A-F]{2}\S*)")
_DPR = re.compile(r'[^\t]*\s[^\t]*\t"?\[.*\]"?')


def line_form(first_line: str) -> LineForm | None:
    r"""What reads the lines of a file that begins with this line, or None.

    >>> line_form("7:spy films")(0, "7:spy films"), line_form("7\tspy films")
    ({'num': '7', 'title': 'spy films'}, None)
    """
    line = first_line.strip()
    if _PRIORITIZED.fullmatch(line):
        return lambda _, line: _matched(_PRIORITIZED, line, "id:priority:text")
    if _WEB.fullmatch(line):
        return lambda _, line: _matched(_WEB, line, "id:text")
    if _CAR.fullmatch(line):
        return _car
    return _dpr if _DPR.fullmatch(line) else None


def is_web(first_line: str) -> bool:
    """Whether the lines of a file that begins with this line are those of the Web tracks."""
    return bool(_WEB.fullmatch(first_line.strip()))


def _matched(pattern: re.Pattern[str], line: str, form: str) -> dict[str, str]:
    if match := pattern.fullmatch(line.strip()):
        return match.groupdict()
    raise InputError(f"expected {form}, as on the first line")


def _car(_: int, line: str) -> dict[str, str]:
    """TREC CAR's path of headings, which is also the id."""
    line = line.strip()
    return {"num": line, "title": unquote_plus(line.removeprefix("enwiki:"))}


def _dpr(number: int, line: str) -> dict[str, str]:
    """A question with its answers. Questions are counted from 0, as in Anserini."""
    return {"num": str(number), "title": next(csv.reader([line.strip()], delimiter="\t"))[0]}
