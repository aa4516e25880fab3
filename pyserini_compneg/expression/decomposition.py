"""The reading of a text: an expression, its parts, and the reasons for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, Expression, format_expression

Span = tuple[int, int]
"""The first character of some words, and the character after the last."""


@dataclass(frozen=True, slots=True)
class Part:
    """One atom of the expression, and the words it is made of.

    Attributes:
        text: The atom's text: what stands in the spans, with single blanks.
        spans: Where these words stand, in order. Operands that share a head have it in common.
        excluded: Whether the atom is excluded.
    """

    text: str
    spans: tuple[Span, ...]
    excluded: bool

    @classmethod
    def of(cls, text: str, spans: Iterable[Span], *, excluded: bool) -> Part:
        """The part that stands in some spans of a text.

        >>> Part.of("French or  Italian  comedies", [(0, 6), (11, 28)], excluded=False).text
        'French Italian comedies'
        """
        spans = tuple(spans)
        return cls(" ".join(" ".join(text[start:end].split()) for start, end in spans), spans, excluded)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a text was taken apart.

    Attributes:
        kind: ``exception``, ``silence``, ``union`` and so on; for exclusions the name in the language's data.
        cue: The words that say so, as the text has them.
        span: Where they stand.
    """

    kind: str
    cue: str
    span: Span


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How a text is read.

    Attributes:
        text: The text.
        expression: What it asks for.
        parts: The atoms of the expression, from left to right.
        reasons: Why it was taken apart, in the order of the text; empty for a text that stays whole.
        confidence: From 0 to 1. It is the least of the cues' confidences, which are estimates, or 1 for a text that
            stays whole.
    """

    text: str
    expression: Expression
    parts: tuple[Part, ...]
    reasons: tuple[Reason, ...]
    confidence: float


def undivided(text: str, confidence: float = 1.0) -> Decomposition:
    """A text as one atom.

    >>> undivided(" not bad ").parts
    (Part(text='not bad', spans=((1, 8),), excluded=False),)
    """
    atom = Atom(text)
    start = len(text) - len(text.lstrip())
    part = Part(atom.text, ((start, start + len(atom.text)),), excluded=False)
    return Decomposition(text, atom, (part,), (), confidence)


def or_undivided(
    read: Callable[[str], Decomposition], tell: Callable[[DecompositionError], None] | None = None
) -> Callable[[str], Decomposition]:
    """A reader that leaves a text whole where another reader refuses it.

    Args:
        read: The other reader.
        tell: A function that is called with the error; None if nobody is told.
    """

    def read_or_keep(text: str) -> Decomposition:
        try:
            return read(text)
        except DecompositionError as error:
            if tell:
                tell(error)
            return undivided(text)

    return read_or_keep


def to_object(decomposition: Decomposition) -> dict[str, Any]:
    """A decomposition for JSON, with the expression as text."""
    return {
        "text": decomposition.text,
        "expression": format_expression(decomposition.expression),
        "parts": [asdict(part) for part in decomposition.parts],
        "reasons": [asdict(reason) for reason in decomposition.reasons],
        "confidence": decomposition.confidence,
    }
