"""The forms of the server's answers, for its description. The answers themselves are made in ``answers``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue


class ErrorReply(BaseModel):
    """Every error."""

    error: str


class ContributionReply(BaseModel):
    """What a term, or a pair ``a∩b``, adds to a score or takes from it."""

    term: str
    amount: float


class CandidateReply(BaseModel):
    """A hit."""

    docid: str
    score: float
    rank: int = Field(ge=1)
    doc: JsonValue = Field(description="the stored source: its fields, its only field, or as a text; or null")
    lacks: list[str] | None = Field(
        default=None, description="the operands of AND that the document lacks; absent where it lacks none"
    )
    contributions: list[ContributionReply] | None = Field(default=None, description="with explain: the largest")
    words: dict[str, list[str]] | None = Field(
        default=None, description="with explain: the words of the document that terms of the query stand for"
    )


class ReadingReply(BaseModel):
    """How a plain text is read."""

    api: Literal["v1"]
    text: str
    expression: str
    tree: JsonValue
    parts: list[dict[str, Any]] = Field(description="text, spans and excluded of each atom")
    confidence: float
    understood: bool
    doubts: list[str] = Field(description="reasons why the reading may be wrong; none if it is understood")
    words: list[dict[str, Any]] = Field(description="span and tag of each word; none of a text that is too long")


class AskedReply(BaseModel):
    """The query."""

    text: str
    unit: float = Field(description="scores divided by it are in the unit of the encoder")
    expression: str | None = None
    operators: dict[str, Any] | None = None
    decomposition: dict[str, Any] | None = None


class SearchReply(BaseModel):
    """A ranking."""

    api: Literal["v1"]
    index: str
    query: AskedReply
    candidates: list[CandidateReply]
    notes: list[str] | None = Field(default=None, description="what may be wrong with the query")


class DocumentReply(BaseModel):
    """A document."""

    api: Literal["v1"]
    index: str
    docid: str
    doc: JsonValue


class ExplainReply(BaseModel):
    """What a query became, and why a document has its score."""

    api: Literal["v1"]
    index: str
    unit: float
    query: str
    expression: str | None
    operators: dict[str, Any]
    filter: dict[str, list[str]] | None = None
    weight_scale: float
    composed: dict[str, Any] = Field(description="the body of a POST search")
    weights: dict[str, float] = Field(description="terms and pairs in the unit of the encoder, heaviest first")
    atoms: dict[str, dict[str, float]]
    documents: list[dict[str, Any]]
    decomposition: dict[str, Any] | None = None
    notes: list[str] | None = None
