"""The server's answers: what ``answers`` builds, and what the description of the server shows."""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,  # of Python 3.11 pydantic takes no other
)

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

API: Final = "v1"


class ErrorReply(TypedDict):
    """Every error."""

    error: str


class Contribution(TypedDict):
    """What a term, or a pair ``a∩b``, adds to a score or takes from it."""

    term: str
    amount: float


class Candidate(TypedDict):
    """A hit."""

    docid: str
    score: float
    rank: Annotated[int, Field(ge=1)]
    doc: Annotated[JsonValue, Field(description="the stored source: its fields, its only field, or as a text; or null")]
    lacks: NotRequired[
        Annotated[list[str], Field(description="the operands of AND that the document lacks; absent if it lacks none")]
    ]
    contributions: NotRequired[Annotated[list[Contribution], Field(description="with explain: the largest")]]
    words: NotRequired[
        Annotated[
            dict[str, list[str]],
            Field(description="with explain: the words of the document that terms of the query stand for"),
        ]
    ]


class Reading(TypedDict):
    """How a plain text is read."""

    text: str
    expression: str
    tree: JsonValue
    parts: Annotated[list[dict[str, Any]], Field(description="text, spans and excluded of each atom")]
    confidence: float
    understood: bool
    doubts: Annotated[list[str], Field(description="reasons why the reading may be wrong; none if it is understood")]


class ReadingReply(Reading):
    """How a plain text is read, word by word."""

    api: Literal["v1"]
    words: Annotated[
        list[dict[str, Any]], Field(description="span and tag of each word; none of a text that is too long")
    ]


class AskedQuery(TypedDict):
    """The query. A query that was composed elsewhere has no expression and no operators."""

    text: str
    unit: Annotated[float, Field(description="scores divided by it are in the unit of the encoder")]
    expression: NotRequired[str]
    operators: NotRequired[dict[str, Any]]
    decomposition: NotRequired[Reading]


class SearchReply(TypedDict):
    """A ranking."""

    api: Literal["v1"]
    index: str
    query: AskedQuery
    candidates: list[Candidate]
    notes: NotRequired[Annotated[list[str], Field(description="what may be wrong with the query")]]


class DocumentReply(TypedDict):
    """A document."""

    api: Literal["v1"]
    index: str
    docid: str
    doc: JsonValue


class ExplainReply(TypedDict):
    """What a query became, and why a document has its score."""

    api: Literal["v1"]
    index: str
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
    documents: list[dict[str, Any]]
    decomposition: NotRequired[Reading]
    notes: NotRequired[list[str]]
