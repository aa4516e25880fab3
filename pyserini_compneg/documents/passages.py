"""Splits long texts into passages of words. White space separates words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pyserini_compneg.documents.collection import VECTORS, DocumentBlock
from pyserini_compneg.documents.source_documents import (
    SourceDocument,
    lead_of,
    read_documents,
    source_document,
    text_of,
)
from pyserini_compneg.lucene import UNSPACED
from pyserini_compneg.lucene.index_settings import MOST_PASSAGES
from pyserini_compneg.support.errors import ArgumentError, InputError

_WORD = re.compile(r"\S+")


class Passage(NamedTuple):
    """A passage of a document.

    Attributes:
        number: Its number in the document, from 0.
        start: Where its text begins in the document's `contents` or `text`, in characters.
        end: Where its text ends.
        text: The text.
    """

    number: int
    start: int
    end: int
    text: str


def shown_passages(passages: Mapping[str, int]) -> str:
    """Sizes of passages as a flag has them.

    >>> shown_passages({"words": 200, "overlap": 50}), shown_passages({})
    ('words=200,overlap=50', 'none')
    """
    return ",".join(f"{name}={passages[name]}" for name in ("words", "overlap")) if passages else "none"


def split_text(text: str, words: int, overlap: int) -> list[Passage]:
    """The passages of a text. A text without words has one passage, which is empty.

    >>> [passage.text for passage in split_text("a b c d e", words=3, overlap=1)]
    ['a b c', 'c d e']
    >>> split_text("", 3, 1)
    [Passage(number=0, start=0, end=0, text='')]
    """
    places = [word.span() for word in _WORD.finditer(text)] or [(0, 0)]
    found: list[Passage] = []
    for first in range(0, max(1, len(places) - overlap), words - overlap):
        start, end = places[first][0], places[min(first + words, len(places)) - 1][1]
        found.append(Passage(len(found), start, end, text[start:end]))
    return found


def check_spaced(language: str) -> None:
    """Refuses texts that have no spaces to split them at."""
    if language in UNSPACED:
        what = f"texts of the language {language} have no spaces between words to split passages at"
        raise ArgumentError(what, remedy="leave out passages")


def passage_texts(
    document: SourceDocument, passages: Mapping[str, int], fields: Sequence[str] | None = None
) -> list[str]:
    """What is encoded of a document: each passage, below the document's title. Without ``passages``, the text.

    Given ``fields`` have no title among them.
    """
    text = document.text or ""
    if not passages:
        return [text]
    lead = 0 if fields else lead_of(document.record)
    split = split_text(text[lead:], **passages)
    _check_count(len(split), document.source)
    return [text[:lead] + passage.text for passage in split]


def passage_documents(block: DocumentBlock, passages: Mapping[str, int]) -> tuple[dict[int, SourceDocument], list[str]]:
    """The documents with vectors of passages, ``record["vectors"]``; see :func:`text_documents`."""
    return read_documents(block, partial(_passage_document, passages=passages))


def _passage_document(line: str, source: str, passages: Mapping[str, int]) -> SourceDocument:
    document = source_document(line, source, repeated_keys=False)
    vectors = document.record.get(VECTORS)
    if not isinstance(vectors, list) or not vectors or not all(isinstance(one, dict) for one in vectors):
        what = "expected `vectors`, a list with a vector {term: weight} for each passage"
        raise InputError(what, where=source, remedy="encode the texts with encode --passages")
    _check_count(len(vectors), source)
    if passages and document.text is not None and len(vectors) != (count := len(passage_texts(document, passages))):
        what = f"has {len(vectors)} `vectors`, and its text has {count} passages of {shown_passages(passages)}"
        raise InputError(what, where=source, remedy="encode the texts again with encode --passages")
    return document


def _check_count(count: int, source: str) -> None:
    if count > MOST_PASSAGES:
        what = f"has {count:,} passages, more than {MOST_PASSAGES:,}"
        raise InputError(what, where=source, remedy="make them longer")


def stored_passage(record: Mapping[str, Any], number: int, passages: Mapping[str, int]) -> Passage | None:
    """A passage of a stored document, as it was indexed; None if the document does not have it."""
    text = text_of(record, "the stored document") or ""
    split = split_text(text[lead_of(record) :], **passages)
    return split[number] if number < len(split) else None
