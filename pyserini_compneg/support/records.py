"""What topics and judgements share: the ids of JSON Lines records, and QUEST's way to name queries and documents."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from pyserini_compneg.support.errors import CompNegError

ID_FIELDS = ("id", "qid", "_id")
DOCUMENT_ID_FIELDS = ("id", "_id", "docid")


def query_id(record: Mapping[str, Any], line: int, source: str, error: type[CompNegError]) -> str:
    """The query id of a JSON Lines record.

    QUEST's files have no ids. There the line number is the id, both for topics and for judgements.

    Args:
        record: The object on the line.
        line: Its number, from 1.
        source: ``path:line``, for the message.
        error: What to raise.

    >>> query_id({"_id": "q7", "text": "birds"}, 1, "topics.jsonl:1", ValueError)
    'q7'
    >>> query_id({"original_query": "<mark>birds</mark>"}, 3, "val.jsonl:3", ValueError)
    '3'
    """
    for field in ID_FIELDS:
        if field in record:
            return checked_id(record[field], "query id", source, error)
    if "original_query" in record or "docs" in record:
        return str(line)
    raise error(f"{source}: no query id; expected one of the fields {', '.join(ID_FIELDS)}")


def checked_id(value: object, what: str, source: str, error: type[CompNegError]) -> str:
    """The id as a text without white space, because TREC runs and judgements are split at white space.

    >>> checked_id(7, "query id", "topics.jsonl:1", ValueError)
    '7'
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise error(f"{source}: the {what} must be a text or a whole number, got {reprlib.repr(value)}")
    text = str(value)
    if not text.strip():
        raise error(f"{source}: the {what} is blank")
    if "\0" in text:
        raise error(f"{source}: the {what} {text!r} has a NUL character")
    if any(character.isspace() for character in text):
        raise error(f"{source}: the {what} {text!r} has white space, which a TREC run cannot hold")
    return text


def docid_from_title(title: str) -> str:
    """The document id for a QUEST title: each run of white space becomes ``_``, because TREC files are split there.

    >>> docid_from_title("Drive (2007 film)")
    'Drive_(2007_film)'
    """
    return "_".join(title.split())
