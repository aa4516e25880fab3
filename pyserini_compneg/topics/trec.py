"""Topics in markup: TREC's ``<top>``, the XML of later tracks and of NTCIR, and CACM's ``<DOC>``."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Literal, NamedTuple
from xml.parsers import expat

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.json_objects import checked_id

_logger = logging.getLogger(__name__)

_START = re.compile(r"\s*<[?!a-z]", re.IGNORECASE)
_MARKED = re.compile(r"<!--(?P<comment>.*?)-->|<!\[CDATA\[(?P<data>.*?)\]\]>", re.DOTALL)
_UNENDED = re.compile(r"<!--|<!\[CDATA\[")
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2}-(?=(?:title|desc|narr)$)")
_NUMBER = re.compile(r"(?:MB|AR)?0*(\d+)")
"""The number of a topic. TREC's judgements have 51 for 051, and 1 and 26 for MB001 and AR26."""

_TOPICS = ("top", "topic", "doc", "query")
_IDS = ("num", "number", "id", "qid", "docno", "identifier")
_TEXTS = ("title", "query", "content", "question", "text", "docid")
_NAMES = {"desc": "description", "narr": "narrative"}
"""Names of tags, and Anserini's names of their fields."""

_BREAKS = frozenset({"br", "hr", "li", "ol", "p", "ul"})
_INLINE = _BREAKS | {"a", "b", "big", "cite", "code", "em", "font", "i", "mark", "s", "small", "span", "strong"}
_INLINE |= {"sub", "sup", "tt", "u"}
"""HTML's tags within a text. They never begin a field."""


class _Event(NamedTuple):
    kind: Literal["start", "end", "text"]
    value: str
    line: int
    number: str = ""


def is_trec(first_line: str) -> bool:
    r"""Whether a file that begins with this line has markup.

    >>> is_trec("<top>"), is_trec('<topic number="1">'), is_trec("1\tspy films")
    (True, True, False)
    """
    return bool(_START.match(first_line))


def trec_topics(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The fields of each topic, with the line where it begins. The id is the field ``num``.

    The first tag that can be a topic's is the tag of all topics. A topic without an end tag ends where the next begins.
    """
    events = _events(lines, name)
    topic = next((event.value for event in events if event.kind == "start" and event.value in _TOPICS), None)
    begin: int | None = None
    has_docids = False
    for place, event in enumerate(events):
        if event.kind == "text" or event.value != topic:
            continue
        if begin is None and event.kind == "end":
            raise InputError(f"</{topic}> where none is expected", where=f"{name}:{event.line}")
        if begin is not None:
            if event.kind == "start":
                what = f"<{topic}> without </{topic}>, so the topic ends at line {event.line}, where the next begins"
                _logger.warning("%s:%d: %s", name, events[begin].line, what)
            fields = _fields(events[begin + 1 : place], events[begin].number)
            if not has_docids and _text_field(fields) == "docid":
                has_docids = True
                what = "the topic has only a docid, which is searched as its text, as in Anserini's reader"
                _logger.warning("%s:%d: %s", name, events[begin].line, what)
            yield events[begin].line, fields
        begin = place if event.kind == "start" else None
    if begin is not None:
        raise InputError(
            "a topic that does not end", where=f"{name}:{events[begin].line}", remedy=f"expected </{topic}>"
        )


def trec_text(fields: Mapping[str, str], field: str | None) -> tuple[str, str]:
    """The id and the text of a topic, from one of its fields; without a ``field``, from the first that is a text."""
    if not fields.get("num"):
        raise InputError("the topic has no number", remedy='expected <num>, or <topic number="1">')
    field = _NAMES.get(field, field) if field else _text_field(fields)
    if not fields.get(field):
        others = ", ".join(name for name, text in fields.items() if text and name not in _IDS)
        remedy = f"name one of its fields as --topic-field: {others}" if others else ""
        raise InputError(f"the topic has no {field}", remedy=remedy)
    return checked_id(fields["num"], "query id", ""), fields[field]


def _text_field(fields: Mapping[str, str]) -> str:
    return next((name for name in _TEXTS if name in fields), "title")


def _events(lines: Iterable[tuple[int, str]], name: str) -> list[_Event]:
    """The tags and texts of a file. A file that is not XML is read as TREC's form of SGML, which needs no end tags."""
    parts, last = [], 1
    for number, line in lines:
        parts.append("\n" * (number - last) + line)
        last = number
    text = "".join(parts)
    try:
        return _xml_events(text, name)
    except expat.ExpatError as error:
        if text.lstrip().startswith("<?xml"):
            what = f"not well-formed XML: {expat.ErrorString(error.code)}"
            remedy = "repair it, or remove <?xml ...?> to have the file read like TREC's SGML"
            raise InputError(what, where=f"{name}:{error.lineno}", remedy=remedy) from None
    return _sgml_events(text, name)


def _xml_events(text: str, name: str) -> list[_Event]:
    events: list[_Event] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        events.append(_Event("start", tag.lower(), parser.CurrentLineNumber, _number(attributes)))

    def end(tag: str) -> None:
        events.append(_Event("end", tag.lower(), parser.CurrentLineNumber))

    def characters(value: str) -> None:
        events.append(_Event("text", value, parser.CurrentLineNumber))

    def skipped(entity: str, is_parameter: bool) -> None:
        if not is_parameter:  # an external declaration, which is never read, may define it
            characters(html.unescape(f"&{entity};"))

    def declared(entity: str, *_: object) -> None:
        what = f"the file defines the entity {entity!r}, and such entities are not read"
        raise InputError(what, where=f"{name}:{parser.CurrentLineNumber}", remedy="write its text in its place")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.SkippedEntityHandler = characters, skipped
    parser.EntityDeclHandler = declared
    parser.Parse(text, True)
    return events


class _SgmlParser(HTMLParser):
    """Python's parser of HTML, without HTML's tags whose content has no markup, such as ``title``."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[_Event] = []

    def set_cdata_mode(self, *_: object, **__: object) -> None:
        """Does nothing. In HTML, all is text up to ``</title>``, an end tag that TREC's topics leave out."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        number = _number({name: value or "" for name, value in attrs})
        self.events.append(_Event("start", tag, self.getpos()[0], number))

    def handle_endtag(self, tag: str) -> None:
        self.events.append(_Event("end", tag, self.getpos()[0]))

    def handle_data(self, data: str) -> None:
        self.events.append(_Event("text", data, self.getpos()[0]))


def _sgml_events(text: str, name: str) -> list[_Event]:
    """The events of SGML. Comments and CDATA are resolved first, because versions of Python's parser differ in them."""
    text = _MARKED.sub(
        lambda match: html.escape(match["data"]) if match["comment"] is None else "\n" * match[0].count("\n"), text
    )
    if unended := _UNENDED.search(text):
        line = text.count("\n", 0, unended.start()) + 1
        raise InputError(f"a {unended[0]} that does not end", where=f"{name}:{line}")
    parser = _SgmlParser()
    parser.feed(text.replace("<![", "&lt;!["))
    parser.close()
    return parser.events


def _number(attributes: Mapping[str, str]) -> str:
    names = {name.lower(): value for name, value in attributes.items()}
    return next((names[name] for name in _IDS if name in names), "")


def _fields(events: Sequence[_Event], number: str) -> dict[str, str]:
    """The fields of one topic, from the events within it.

    A field that is closed has all text up to its end tag. Another one ends at the next tag that is not HTML's.
    Text outside of fields is the topic's text if there are no fields.
    """
    texts: dict[str, list[str]] = {}
    outside: list[str] = []
    tag, closed = "", False
    for place, event in enumerate(events):
        into = texts[tag] if tag else outside
        if event.kind == "text":
            into.append(event.value)
        elif event.value in _INLINE or (tag and closed and event.value != tag):
            into.append(" " if event.value in _BREAKS or event.value not in _INLINE else "")
        elif event.kind == "start":
            tag, closed = event.value, _is_closed(events[place + 1 :], event.value)
            texts.setdefault(tag, []).append(" ")
        else:
            tag = ""
    fields = {_name(tag): _cleaned("".join(parts)) for tag, parts in texts.items()}
    if not set(fields) - set(_IDS) and (text := _cleaned("".join(outside))):
        fields["text"] = text
    qid = number.strip() or next((fields[name] for name in _IDS if fields.get(name)), "")
    short = _NUMBER.fullmatch(qid)
    return {**fields, "num": short[1] if short else qid}


def _is_closed(events: Sequence[_Event], tag: str) -> bool:
    """Whether the first tag of this name is an end tag."""
    return next((event.kind == "end" for event in events if event.kind != "text" and event.value == tag), False)


def _name(tag: str) -> str:
    """The name of a tag's field. CLEF's tags begin with a language: ``<EN-title>``."""
    tag = _LANGUAGE.sub("", tag)
    return _NAMES.get(tag, tag)


def _cleaned(text: str) -> str:
    return " ".join(_LABEL.sub("", text).split())
