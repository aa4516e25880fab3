"""Says once that documents have texts in fields that are not read, because such a text can never be found."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyserini_compneg.support.records import DOCUMENT_ID_FIELDS

_NAMES = ("contents", "title", "text", "body")

_logger = logging.getLogger(__name__)


def unread_fields(record: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The fields of a document that hold words, and are not in its text. Ids, links and other single words are none.

    >>> unread_fields({"id": "d 1", "title": "On soup", "body": "broth", "url": "soup.org"}, "On soup")
    ('body',)
    """
    texts = {
        name: value.strip()
        for name, value in record.items()
        if isinstance(value, str) and name not in DOCUMENT_ID_FIELDS
    }
    return tuple(
        name
        for name, value in texts.items()
        if value not in text and (name in _NAMES or len(value.split(maxsplit=1)) > 1)
    )


class UnreadFields:
    """Counts the documents of a collection that have texts in fields that are not read.

    Args:
        remedy: What the user can do, for the message.
    """

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._documents = 0
        self._first = ""
        self._fields: dict[str, None] = {}

    def add(self, docid: str, fields: Sequence[str]) -> None:
        """Counts a document, if it has such fields."""
        if fields:
            self._first = self._first or docid
            self._documents += 1
            self._fields.update(dict.fromkeys(fields))

    def warn(self) -> None:
        """Warns if there are any."""
        if self._documents:
            have = "1 document has" if self._documents == 1 else f"{self._documents} documents have"
            _logger.warning(
                "%s text in fields that are not indexed (%s), for example %s; %s",
                have,
                ", ".join(self._fields),
                self._first,
                self._remedy,
            )
