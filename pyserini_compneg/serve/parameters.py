"""The parameters of requests, with the names in Pyserini's server and in the commands. Pydantic checks them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from pyserini_compneg.compose.operators import DIFFERENCE, INTERSECTION, UNION
from pyserini_compneg.expression.filters import FACET_VALUES, as_sort, checked_facets, read_facets
from pyserini_compneg.search.matches import TOTALS
from pyserini_compneg.serve.parameter_types import (
    MOST_CHARACTERS,
    WHOLE,
    QueryText,
    Real,
    Tags,
    Truth,
    Whole,
    number_schema,
    one_of,
)
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.terminal import shown, suggestion

MOST_HITS = 1_000
LAST_RANK = 10_000
"""The last rank that ``offset`` and ``hits`` reach. A cursor goes on behind it."""

MOST_FACET_VALUES = 1_000


class Parameters(BaseModel):
    """Base of all parameters. Refuses unknown parameters, infinities and NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, given: Any) -> Any:
        for key in given:
            if key not in (known := cls.model_fields):
                if key == "page" and "offset" in known:
                    remedy = "the cursor of the last answer, or offset, gives the next page"
                    raise ValueError(f"unknown key 'page'; {remedy}")
                others = suggestion(key, known) or (f"; known are {', '.join(known)}" if known else "; there are none")
                raise ValueError(f"unknown key {shown(key)}{others}")
        return given


class OperatorParameters(Parameters):
    """The operators of a query. A missing operator has its default."""

    operators: Literal["default", "paper", "vanilla"] = Field(
        default="default",
        description="operators for OR, AND and NOT together: the defaults, those of the paper, or the wording as one "
        "text; the next parameters replace single ones",
    )
    union: str | None = one_of(UNION)
    intersection: str | None = one_of(INTERSECTION)
    difference: str | None = one_of(DIFFERENCE)
    difference_weight: Annotated[Real, Field(ge=0), number_schema(minimum=0)] | None = Field(
        default=None, description="strength of NOT"
    )
    cpt_terms: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = Field(
        default=None, description="terms of an operand that AND combines, or words of which AND! requires one"
    )
    cpt_weight: Annotated[Real, Field(gt=0), number_schema(exclusiveMinimum=0)] | None = Field(
        default=None, description="weight of joint occurrence in AND"
    )
    exclusion: Real | str | None = Field(
        default=None,
        union_mode="left_to_right",
        description="what A NOT! B removes: documents with all words of B (words), with any of its heaviest terms "
        "(any), or that score above a share of the best score for B (a number, or score for 0.5)",
    )
    strict: Truth = Field(
        default=False,
        description="exclude strictly: read each NOT as NOT!, so that no hit has all words of what is excluded",
    )


def _conditions(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(
        ("[", "{")
    ):  # conditions do not start like this; some clients send JSON as text
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    listed = [value] if isinstance(value, str) else value
    if listed is None or isinstance(listed, dict):
        return listed
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        return listed
    raise ValueError(f"must be FIELD=VALUE, a list of these, or an object of fields and values, got {shown(value)}")


def _facets(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if value is None:
        return None
    try:
        facets = read_facets(value) if isinstance(value, str) else checked_facets(value)
    except ArgumentError as error:
        raise ValueError(error.what) from None
    if (most := max(facets.values(), default=0)) > MOST_FACET_VALUES:
        raise ValueError(f"a facet has at most {MOST_FACET_VALUES} values, got {most}")
    return facets


class FilterParameters(Parameters):
    """The documents that may be found."""

    filter: Annotated[
        list[str] | dict[str, Any] | None,
        BeforeValidator(_conditions, json_schema_input_type=str | list[str] | dict[str, Any] | None),
    ] = Field(
        default=None,
        description="find only documents with this value, FIELD=VALUE, or a number or a date of ISO 8601 in this "
        "range, FIELD=1990..1999, FIELD>=1999-05-01 or FIELD<2003. "
        "Give a field twice to accept either value. Different fields must all match. In a body also {FIELD: values}",
    )


class ReadingParameters(Parameters):
    """``GET /v1/decompose``."""

    query: QueryText
    tags: Tags = None


Read = Annotated[
    Literal["expression", "plain", "model"],
    Field(
        description="how the query is read: as an expression with AND, OR, NOT; as one plain text; or as plain words "
        "that the small model parses"
    ),
]
Unsure = Annotated[
    Literal["note", "refuse"],
    Field(
        description="with read=model, what to do if the model doubts how it parses the words: search, and say so in a "
        "note; or refuse, with status 422 and what it has read"
    ),
]


def _check_only_of_model(tags: str | None, unsure: str, read: str) -> None:
    if read != "model" and (tags is not None or unsure != "note"):
        raise ValueError("tags need read=model" if tags is not None else "unsure=refuse needs read=model")


class QueryParameters(OperatorParameters):
    """A query as text."""

    query: QueryText
    read: Read = "expression"
    tags: Tags = None
    unsure: Unsure = "note"

    @model_validator(mode="after")
    def _only_read_words_have_tags_and_doubts(self) -> Self:
        _check_only_of_model(self.tags, self.unsure, self.read)
        return self


class _IdParameters(Parameters):
    """The id of a document, as a parameter: browsers remove the ids ``.`` and ``..`` from paths."""

    docid: str = Field(min_length=1, max_length=MOST_CHARACTERS, description="id of the document")


class DocumentParameters(Parameters):
    """The form of documents."""

    parse: Truth = Field(default=True, description="give the fields of the document, not its JSON as a text")
    max_doc_length: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        default=None, description="characters of the document's text"
    )

    @model_validator(mode="after")
    def _only_parsed_texts_are_cut(self) -> Self:
        if self.max_doc_length is not None and not self.parse:
            raise ValueError("max_doc_length needs parse=true")
        return self


class _HitParameters(DocumentParameters, FilterParameters):
    """The range and the form of hits."""

    hits: Whole = Field(default=10, ge=0, le=MOST_HITS, description="0 gives the total and the facets alone")
    offset: Whole = Field(default=0, ge=0, lt=LAST_RANK, description="hits that are left out before the first")
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=50_000,
        description="the cursor of the last answer, for the hits behind it, at any depth; the query must be the same",
    )
    total: Literal[TOTALS] = Field(  # type: ignore[valid-type]
        default=TOTALS[0],
        description="how many documents match: at least how many, if counting takes long (bound), or exactly (exact)",
    )
    facets: Annotated[
        dict[str, int] | None, BeforeValidator(_facets, json_schema_input_type=str | dict[str, int] | None)
    ] = Field(
        default=None,
        description="count the values of filter fields in all documents that match: FIELD or FIELD:N, with commas "
        f"between them, for the N most frequent values (default {FACET_VALUES}). In a body also {{FIELD: N}}",
        json_schema_extra={"examples": ["genre,year:20"]},
    )
    sort: str | None = Field(
        default=None,
        description="order the hits by a filter field in place of their scores: FIELD, ascending, or FIELD:desc. "
        "Documents without a value come last",
        json_schema_extra={"examples": ["year:desc"]},
    )
    explain: Truth = Field(default=False, description="say what each term adds to a score, and which words it is")
    highlight: Truth = Field(
        default=False,
        description="say where the words that count for or against a document are in its stored texts, in code points",
    )

    @field_validator("sort")
    @classmethod
    def _names_an_order(cls, text: str | None) -> str | None:
        try:
            as_sort(text)
        except ArgumentError as error:
            raise ValueError(error.what) from None
        return text

    @model_validator(mode="after")
    def _ends_at_the_last_rank(self) -> Self:
        if self.offset + self.hits > LAST_RANK:
            last = f"offset and hits reach to rank {self.offset + self.hits}, and {LAST_RANK} is the last"
            raise ValueError(f"{last}; a cursor goes on behind it")
        if self.cursor is not None and self.offset:
            raise ValueError("a cursor has its own place in the ranking; leave out offset")
        return self


class SearchParameters(QueryParameters, _HitParameters):
    """``GET /v1/{index}/search``."""


class ExplainParameters(QueryParameters, FilterParameters):
    """``GET /v1/{index}/explain/{docid}`` and ``GET /v1/{index}/compose``."""


class DocumentOfIdParameters(_IdParameters, DocumentParameters):
    """``GET /v1/{index}/doc``."""


class ExplainOfIdParameters(_IdParameters, ExplainParameters):
    """``GET /v1/{index}/explain``."""


class SearchBody(OperatorParameters, _HitParameters):
    """``POST /v1/{index}/search``: a query in one of five forms.

    A line of ``compose`` is a valid body: ``contents`` is its text, and its ``id`` is ignored. Pydantic does not check
    the inside of trees, because it recurses: 200 brackets can end a process in its main thread, where Java limits the
    stack.
    """

    query: QueryText | None = None
    read: Read = "expression"
    tags: Tags = None
    unsure: Unsure = "note"
    expression: Any = Field(
        default=None, description="an expression, as text or as a tree of union, intersection and difference"
    )
    vector: dict[str, Any] | None = Field(default=None, description="a composed query: weights of terms")
    score: dict[str, Any] | None = Field(default=None, description="a composed query: a scoring tree")
    query_tokens: dict[str, Any] | None = Field(
        default=None, description="weights of tokens as an encoder gives them; they are scaled and rounded here"
    )
    id: Any = None
    contents: str | None = Field(default=None, max_length=MOST_CHARACTERS)

    @model_validator(mode="after")
    def _is_one_query(self) -> Self:
        forms = ("query", "expression", "vector", "score", "query_tokens")
        given = [name for name in forms if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(forms)}, got {' and '.join(given) or 'none'}")
        _check_only_of_model(self.tags, self.unsure, self.read)
        idle = set() if self.query is not None else {"read", "tags", "unsure"}
        if given[0] not in ("query", "expression"):
            idle |= OperatorParameters.model_fields.keys()
        if useless := sorted(name for name in self.model_fields_set & idle if getattr(self, name) is not None):
            raise ValueError(f"{useless[0]} has no use beside {given[0]}; leave it out")
        return self


class DeleteParameters(Parameters):
    """``DELETE /v1/{index}/documents``."""

    docid: list[str] = Field(min_length=1, description="ids of documents; repeat it to delete several")


class SwitchBody(Parameters):
    """``PUT /v1/{index}``: the name of the folder to open, which the ``versions`` of the settings allow."""

    index: str = Field(min_length=1, max_length=64)
