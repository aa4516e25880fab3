"""TREC's topics: ``<top>`` with ``<num>``, ``<title>``, ``<desc>`` and ``<narr>``, or ``<topic number="1">`` in XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.json_objects import checked_id

_START = re.compile(r"\s*<(?:\?xml|!--|!doctype|(?:top|topics?|xml|webtrack\d*)\b)", re.IGNORECASE)
_TOKENS = re.compile(r"<(?P<end>/?)(?P<tag>[a-z][\w-]*)(?P<attributes>[^<>]*)>|(?P<text><?[^<]+|<)", re.IGNORECASE)
_NUMBER = re.compile(r"""\b(?:number|id)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_TOPICS = ("top", "topic")
_NAMES = {"desc": "description", "narr": "narrative"}
"""Names of tags, and Anserini's names of their fields."""


def is_trec(first_line: str) -> bool:
    r"""Whether a file that begins with this line has TREC's topics.

    >>> is_trec("<top>"), is_trec('<topic number="1">'), is_trec("1\tspy films")
    (True, True, False)
    """
    return bool(_START.match(first_line))


def trec_topics(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The fields of each topic, with the line where it begins. The id is the field ``num``.

    A field ends where the next tag begins, because the tags of fields are often not closed.
    """
    fields: dict[str, str] | None = None
    field, began = "", 0
    for number, line in lines:
        for token in _TOKENS.finditer(line):
            tag = (token["tag"] or "").lower()
            if tag in _TOPICS:
                if (fields is None) == bool(token["end"]):
                    raise InputError(f"<{token['end']}{tag}> where none is expected", where=f"{name}:{number}")
                if fields is not None:
                    yield began, _cleaned(fields)
                id = _NUMBER.search(token["attributes"])
                fields, field, began = None if token["end"] else {"num": id[1]} if id else {}, "", number
            elif tag:
                field = "" if token["end"] else _NAMES.get(tag, tag)
            elif fields is not None and field:
                fields[field] = f"{fields.get(field, '')}{token['text']} "
    if fields is not None:
        raise InputError("a topic that does not end", where=f"{name}:{began}", remedy="expected </top>")


def trec_text(fields: Mapping[str, str], field: str) -> tuple[str, str]:
    """The id and the text of a topic, from one of its fields. Numbers lose zeros before them, as in Anserini."""
    field = _NAMES.get(field, field)
    if not fields.get("num"):
        raise InputError("the topic has no number", remedy='expected <num>, or <topic number="1">')
    if not fields.get(field):
        others = ", ".join(name for name, text in fields.items() if text and name != "num")
        remedy = f"name one of its fields as --topic-field: {others}" if others else ""
        raise InputError(f"the topic has no {field}", remedy=remedy)
    qid = checked_id(fields["num"], "query id", "", InputError)
    return (qid.lstrip("0") or "0") if qid.isdecimal() else qid, fields[field]


def _cleaned(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: " ".join(html.unescape(_LABEL.sub("", text, count=1)).split()) for name, text in fields.items()}
