"""The types of the server's answers. ``answers`` builds them, and the OpenAPI description shows them."""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,  # pydantic refuses the NotRequired of Python 3.11
    TypeAlias,
)

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

API: Final = "v1"
_CONCEPTS: Final = "the names of the latents among the terms, such as monarch, king, queen for ~17; absent if none"


class ErrorReply(TypedDict):
    """Every error."""

    error: str


class SwitchReply(TypedDict):
    """An index that was switched to another folder."""

    api: str
    index: str
    generation: Annotated[str, Field(description="of the content that is searched now")]
    documents: int


class FileReply(TypedDict):
    """A file of an index."""

    path: Annotated[str, Field(description="in the folder of the index, and of the route that sends the file")]
    bytes: Annotated[int, Field(ge=0)]
    checksum: Annotated[
        str,
        Field(description="CRC-32, in hexadecimal digits: that in the footer of a file of Lucene, else of all bytes"),
    ]


class FilesReply(TypedDict):
    """The files of one commit of an index."""

    api: str
    index: str
    generation: Annotated[str, Field(description="of the commit; also the ETag of the answer")]
    files: list[FileReply]


class WriteReply(SwitchReply):
    """An index whose documents were changed."""

    inserted: Annotated[int, Field(ge=0, description="documents whose id was new")]
    replaced: Annotated[int, Field(ge=0, description="documents whose id was in the index, with another line")]
    unchanged: Annotated[int, Field(ge=0, description="documents that were in the index as they are")]
    deleted: Annotated[int, Field(ge=0)]
    not_found: Annotated[int, Field(ge=0, description="ids to delete that the index did not have")]
    notes: NotRequired[Annotated[list[str], Field(description="what may be wrong with the documents")]]


class Contribution(TypedDict):
    """The contribution of a term, or of a pair ``a∩b``, to a score."""

    term: str
    amount: float


class PlaceReply(TypedDict):
    """A word in the stored document."""

    field: Annotated[str, Field(description="where the text is in the document, as a JSON Pointer such as /text")]
    start: Annotated[int, Field(ge=0, description="its first character in the text, in Unicode code points")]
    end: Annotated[int, Field(description="the character behind it")]


class HighlightReply(PlaceReply):
    """A token in the stored document that counts for or against it. Tokens may overlap."""

    terms: Annotated[list[str], Field(description="the terms of the query that it stands for")]
    amount: Annotated[float, Field(description="what these terms add to the score; below 0: against the document")]


class PassageReply(TypedDict):
    """The best passage of a document. Without a stored source it has its number only."""

    number: Annotated[int, Field(ge=0)]
    start: NotRequired[Annotated[int, Field(ge=0, description="in the stored contents or text, in characters")]]
    end: NotRequired[Annotated[int, Field(ge=0)]]
    text: NotRequired[str]


class Candidate(TypedDict):
    """A hit."""

    docid: str
    score: float
    rank: Annotated[int, Field(ge=1)]
    doc: Annotated[JsonValue, Field(description="the stored source: its fields, its only field, or as a text; or null")]
    passage: NotRequired[
        Annotated[PassageReply, Field(description="in an index of passages: the one by which the document is found")]
    ]
    lacks: NotRequired[
        Annotated[list[str], Field(description="the operands of AND that the document lacks; absent if it lacks none")]
    ]
    highlights: NotRequired[
        Annotated[list[HighlightReply], Field(description="with highlight: in the order of the stored document")]
    ]
    excluded: NotRequired[
        Annotated[list[PlaceReply], Field(description="with highlight: words of what NOT excludes; absent if none")]
    ]
    contributions: NotRequired[Annotated[list[Contribution], Field(description="with explain: the largest")]]
    words: NotRequired[
        Annotated[
            dict[str, list[str]],
            Field(description="with explain: the words of the document that terms of the query stand for"),
        ]
    ]


class Reading(TypedDict):
    """The decomposition of a plain text."""

    text: str
    expression: str
    tree: JsonValue
    parts: Annotated[list[dict[str, Any]], Field(description="text, spans and excluded of each atom")]
    confidence: float
    understood: bool
    doubts: Annotated[list[str], Field(description="reasons why the reading may be wrong; none if it is understood")]


class UnsureReply(ErrorReply):
    """A refusal of plain words that may be misread."""

    decomposition: Reading


class ReadingReply(Reading):
    """The decomposition of a plain text, word by word."""

    api: Literal["v1"]
    words: Annotated[
        list[dict[str, Any]], Field(description="span and tag of each word; none of a text that is too long")
    ]


class AskedQuery(TypedDict):
    """The query. A composed query has no expression and no operators."""

    text: str
    unit: Annotated[float, Field(description="scores divided by it are in the unit of the encoder")]
    expression: NotRequired[str]
    operators: NotRequired[dict[str, Any]]
    decomposition: NotRequired[Reading]


Generation: TypeAlias = Annotated[str, Field(description="identifies the content of the index")]


class TotalReply(TypedDict):
    """The number of documents that match."""

    value: Annotated[int, Field(ge=0)]
    relation: Annotated[Literal["eq", "gte"], Field(description="eq: exact; gte: there may be more")]


class FacetValue(TypedDict):
    """A value of a filter field, and how many of the documents that match have it."""

    value: Annotated[str | int | float, Field(description="a number if documents have the number")]
    count: Annotated[int, Field(ge=1)]


class SearchReply(TypedDict):
    """A ranking."""

    api: Literal["v1"]
    index: str
    generation: Generation
    query: AskedQuery
    total: TotalReply
    candidates: list[Candidate]
    concepts: NotRequired[Annotated[dict[str, str], Field(description=f"with explain: {_CONCEPTS}")]]
    hasMore: Annotated[bool, Field(description="whether there are hits behind the last candidate")]
    cursor: NotRequired[Annotated[str, Field(description="for the next page; absent if there is none")]]
    facets: NotRequired[Annotated[dict[str, list[FacetValue]], Field(description="the most frequent values first")]]
    notes: NotRequired[Annotated[list[str], Field(description="what may be wrong with the query")]]


class DocumentReply(TypedDict):
    """A document."""

    api: Literal["v1"]
    index: str
    generation: Generation
    docid: str
    doc: JsonValue


class ExplainReply(TypedDict):
    """The composed form of a query, and the contributions to the score of a document."""

    api: Literal["v1"]
    index: str
    generation: Generation
    unit: float
    query: str
    expression: str | None
    operators: dict[str, Any]
    filter: NotRequired[dict[str, list[str]]]
    weight_scale: float
    composed: Annotated[dict[str, Any], Field(description="the body of a POST search")]
    weights: Annotated[
        dict[str, float], Field(description="terms and pairs in the unit of the encoder, heaviest first")
    ]
    atoms: dict[str, dict[str, float]]
    concepts: NotRequired[Annotated[dict[str, str], Field(description=_CONCEPTS)]]
    documents: list[dict[str, Any]]
    decomposition: NotRequired[Reading]
    notes: NotRequired[Annotated[list[str], Field(description="what may be wrong with the query")]]
