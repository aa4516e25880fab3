"""Documents of a collection: the id and text on a line, and warnings of texts that are not read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from pyserini_compneg.documents.collection import (
    VECTOR,
    VECTORS,
    CollectionPart,
    DocumentBlock,
    iter_collection_blocks,
)
from pyserini_compneg.documents.formats import CollectionFile
from pyserini_compneg.lucene import LONGEST_TERM_BYTES
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.files import decoded_line
from pyserini_compneg.support.json_objects import (
    DOCUMENT_ID_FIELDS,
    checked_id,
    docid_from_title,
    json_kind,
    parse_json_object,
    titles_are_ids,
)
from pyserini_compneg.support.terminal import shown

_logger = logging.getLogger(__name__)
_EXPECTED = "`contents`, `title` and `text`, or `vector`"
_TEXT_NAMES = ("contents", "title", "text", "body")


class SourceDocument(NamedTuple):
    """A document of a collection: a text, a vector, or both.

    Attributes:
        docid: The document's id.
        text: ``contents``, or ``title`` and ``text``; None if the document has none of these fields.
        source: ``path:line``, for messages.
        unread: Other fields with words that are not in ``text``.
        record: All fields of the document.
    """

    docid: str
    text: str | None
    source: str
    unread: tuple[str, ...] = ()
    record: Mapping[str, Any] = MappingProxyType({})


def text_documents(
    block: DocumentBlock, fields: Sequence[str] | None = None
) -> tuple[dict[int, SourceDocument], list[str]]:
    """The documents with texts, by their line in the block, and the messages for all other lines."""
    return read_documents(block, partial(_text_document, fields=fields))


def collection_texts(files: Sequence[CollectionFile], fields: Sequence[str] | None = None) -> Iterator[str]:
    """The texts of :func:`iter_documents`.

    Args:
        files: The files, from :func:`collection_files`.
        fields: The fields that make up a text; None for ``contents``, or ``title`` and ``text``.

    Raises:
        InputError: A document is bad.
    """
    return (document.text or "" for document in iter_documents(files, fields))


def iter_documents(files: Sequence[CollectionFile], fields: Sequence[str] | None = None) -> Iterator[SourceDocument]:
    """The documents of a collection, without those whose text is blank.

    Args:
        files: The files, from :func:`collection_files`.
        fields: The fields that make up a text; None for ``contents``, or ``title`` and ``text``.

    Raises:
        InputError: A document is bad.
    """
    unread = UnreadFields("name all fields of the text with --fields, or rename them")
    for block in iter_collection_blocks(CollectionPart(files)):
        documents, problems = text_documents(block, fields)
        if problems:
            raise InputError(problems[0])
        for document in documents.values():
            unread.add(document.docid, document.unread)
            if document.text and not document.text.isspace():
                yield document
    unread.warn()


def read_documents(
    block: DocumentBlock, document: Callable[[str, str], SourceDocument]
) -> tuple[dict[int, SourceDocument], list[str]]:
    """See :func:`text_documents`. ``document`` reads a line, and gets its ``path:line``."""
    documents: dict[int, SourceDocument] = {}
    problems: list[str] = []
    for number, (source, line) in enumerate(block.numbered()):
        try:
            if fault := block.faults.get(block.first_line + number):
                raise InputError(fault)
            text = decoded_line(line, source)
            if text and not text.isspace():
                documents[number] = document(text, source)
        except InputError as error:
            problems.append(str(error))
    return documents, problems


def _text_document(line: str, source: str, fields: Sequence[str] | None = None) -> SourceDocument:
    document = source_document(line, source, fields)
    if document.text is None:
        remedy = "add its text, or build an index of vectors with index --encoder MODEL"
        raise InputError("only a `vector`, where texts are encoded", where=source, remedy=remedy)
    return document


def source_document(
    line: str, source: str, fields: Sequence[str] | None = None, repeated_keys: bool = True
) -> SourceDocument:
    """Reads the document on a line.

    Args:
        line: The JSON object.
        source: ``path:line``, for messages.
        fields: The fields that make the text; None for ``contents``, or ``title`` and ``text``.
        repeated_keys: Accept a key that an object has twice, as documents with vectors may.

    Raises:
        InputError: The line does not hold a document.
    """
    record = parse_json_object(line, source, repeated_keys=repeated_keys)
    vector = record.get(VECTOR)
    if vector is not None and not isinstance(vector, dict):
        raise InputError(f"`vector` must be a JSON object, got {json_kind(vector)}", where=source)
    text = text_of(record, source, fields)
    if text is None and vector is None and VECTORS not in record:
        named = ", ".join(f"`{field}`" for field in fields or ())
        raise InputError(f"no text; expected {named or _EXPECTED}", where=source)
    unread = unread_fields(record, text) if text is not None and not fields else ()
    return SourceDocument(_docid(record, source), text, source, unread, record)


def _docid(record: Mapping[str, Any], source: str) -> str:
    field = next((field for field in DOCUMENT_ID_FIELDS if field in record), None)
    if field is not None:
        docid = checked_id(record[field], "document id", source)
    elif titles_are_ids(record) and isinstance(record["title"], str) and record["title"].strip():
        docid = docid_from_title(record["title"])
    else:
        remedy = f"expected one of the fields {', '.join(DOCUMENT_ID_FIELDS)} among {shown([*record])}"
        raise InputError("no document id", where=source, remedy=remedy)
    if len(docid.encode()) > LONGEST_TERM_BYTES:
        raise InputError(f"the document id has more than {LONGEST_TERM_BYTES} bytes", where=source)
    return docid


def text_of(record: Mapping[str, Any], source: str, fields: Sequence[str] | None = None) -> str | None:
    """The text of a document's JSON object; None if the object has none of the fields."""
    parts = {field: record[field] for field in text_fields(record, fields) if record.get(field) is not None}
    for field, part in parts.items():
        if not isinstance(part, str):
            raise InputError(f"`{field}` must be a text, got {json_kind(part)}", where=source)
    return "\n".join(parts.values()) if parts else None


def text_fields(record: Mapping[str, Any], fields: Sequence[str] | None = None) -> Sequence[str]:
    """The fields that make the text of a document's JSON object, as far as it has them."""
    return fields or (("contents",) if "contents" in record else ("title", "text"))


def fields_beside(record: Mapping[str, Any], fields: Sequence[str] | None = None) -> dict[str, Any]:
    """The fields of a document to keep beside its id, text and vector: all but those that the text is made of.

    A title is kept, because it is shown with a hit.

    >>> fields_beside({"docid": "d1", "title": "Soup", "text": "broth", "year": 1999})
    {'title': 'Soup', 'year': 1999}
    """
    known = {*DOCUMENT_ID_FIELDS, "contents", VECTOR, VECTORS, "encoder", *text_fields(record, fields)} - {"title"}
    return {name: value for name, value in record.items() if name not in known}


def lead_of(record: Mapping[str, Any]) -> int:
    """The length of the title that :func:`text_of` puts before another text, with its line feed."""
    title, has_text = record.get("title"), record.get("text") is not None
    return len(title) + 1 if isinstance(title, str) and has_text and "contents" not in record else 0


def unread_fields(record: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The fields of a document with words that its text lacks. Ids, links and other single words are ignored.

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
        if value not in text and (name in _TEXT_NAMES or len(value.split(maxsplit=1)) > 1)
    )


class UnreadFields:
    """Counts documents that have text in fields that are not read."""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._documents = 0
        self._first = ""
        self._fields: dict[str, None] = {}

    def add(self, docid: str, fields: Sequence[str]) -> None:
        if fields:
            self._first = self._first or docid
            self._documents += 1
            self._fields.update(dict.fromkeys(fields))

    def warn(self) -> None:
        if self._documents:
            have = "1 document has" if self._documents == 1 else f"{self._documents} documents have"
            _logger.warning(
                "%s text in fields that are not indexed (%s), for example %s; %s",
                have,
                ", ".join(self._fields),
                self._first,
                self._remedy,
            )
