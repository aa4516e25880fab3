"""The types of parameters: texts, numbers and names, as strict in addresses as in bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticKnownError

from pyserini_compneg.reading.words import TAGS

MOST_CHARACTERS = 8_000
"""The limit on the characters of a query, and of all atoms of a tree together."""


def _checked_text(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    if not all(character.isprintable() or character.isspace() or ord(character) > 159 for character in text):
        raise ValueError("must hold no control characters")
    return text


QueryText = Annotated[
    str,
    Field(min_length=1, max_length=MOST_CHARACTERS, examples=["spy films NOT comedies"]),
    AfterValidator(_checked_text),
]

_TAG = f"({'|'.join(TAGS)})"
Tags = Annotated[
    str | None,
    Field(
        max_length=MOST_CHARACTERS,
        pattern=f"^{_TAG}(,{_TAG})*$",
        description="the tag of each word and sign of plain words, in place of the model's: W wanted, S shared "
        "by all wanted parts, X excluded, OR and AND words that join, O none",
    ),
]


def _spelled(form: str, fault: Any, *kinds: type) -> BeforeValidator:
    """Refuses texts of another form, and values of other kinds.

    Pydantic itself would accept ``1_0``, digits of all scripts, ``on``, true for 1 and 1 for true.
    """

    def checked(value: Any) -> Any:
        if not re.fullmatch(form, value) if isinstance(value, str) else type(value) not in kinds:
            raise PydanticKnownError(fault)
        return value

    return BeforeValidator(checked)


WHOLE = _spelled(r"-?[0-9]{1,18}(\.0+)?", "int_parsing", int, float)

Whole = Annotated[int, WHOLE]
Real = Annotated[float, _spelled(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", "float_parsing", int, float)]
Truth = Annotated[bool, _spelled("true|false|True|False", "bool_parsing", bool)]  # clients in Python write True


def number_schema(**limit: int) -> WithJsonSchema:
    """The schema of an optional number. A limit behind the spelling of one has pydantic's name there, such as ge."""
    return WithJsonSchema({"type": "number", **limit})


def one_of(names: Iterable[str]) -> Any:
    """An optional name. As clients expect, its schema is the schema of a name, without a null beside the names."""

    def describe(schema: dict[str, Any]) -> None:
        del schema["anyOf"]
        schema.pop("default", None)  # FastAPI leaves it out
        schema |= {"type": "string", "enum": list(names)}

    return Field(default=None, json_schema_extra=describe)
