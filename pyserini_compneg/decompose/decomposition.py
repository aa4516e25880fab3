"""What decomposing a text gives."""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_compneg.expression import Expression

Span = tuple[int, int]
"""From a character up to, and without, another."""


@dataclass(frozen=True, slots=True)
class Part:
    """One atom of the expression, and the words it is made of.

    Attributes:
        text: The atom's text: what stands in the spans, with single blanks.
        spans: Where these words stand, in order. A head that operands share belongs to each of them.
        excluded: Whether the atom is excluded.
    """

    text: str
    spans: tuple[Span, ...]
    excluded: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a text was taken apart.

    Attributes:
        kind: ``exception``, ``silence``, ``union`` and so on; for exclusions the name in the language's data.
        cue: The words that say so, as they stand there.
        span: Where.
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
        reasons: What it was taken apart for, in the order of the text; nothing for a text that stays whole.
        confidence: How sure this is, 0 to 1: the least of the cues' confidences, which are estimates, and 1 for a text
            that stays whole.
    """

    text: str
    expression: Expression
    parts: tuple[Part, ...]
    reasons: tuple[Reason, ...]
    confidence: float
