"""The decomposition of a text: an expression, and the words that make up its parts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pyserini_compneg.expression import Atom, Expression, format_expression

READINGS = ("expression", "plain", "model", "llm")
"""The ways to read a text: parse its operators; take it as one atom; decompose it with the package's small model or
with a language model."""

Span = tuple[int, int]
"""The positions of the first character of some words and of the character after the last."""


@dataclass(frozen=True, slots=True)
class Part:
    """One atom of the expression. Its text is the text in the spans, with single blanks.

    Operands that share a head both have the head's span.
    """

    text: str
    spans: tuple[Span, ...]
    excluded: bool

    @classmethod
    def of(cls, text: str, spans: Iterable[Span], *, excluded: bool) -> Part:
        """The part of a text in some spans.

        >>> Part.of("French or  Italian  comedies", [(0, 6), (11, 28)], excluded=False).text
        'French Italian comedies'
        """
        spans = tuple(spans)
        return cls(" ".join(" ".join(text[start:end].split()) for start, end in spans), spans, excluded)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """An expression that was read from a plain text.

    Attributes:
        text: The text.
        expression: The expression.
        parts: The atoms of the expression, from left to right.
        confidence: The estimated probability that the reading is right.
        understood: Whether the decomposition can be relied on. A text that only excludes, excludes its wanted part, or
            is too long stays one atom. In other cases the decomposition is used, and ``doubts`` says why it may be
            wrong.
        doubts: Reasons why the reading may be wrong.
    """

    text: str
    expression: Expression
    parts: tuple[Part, ...]
    confidence: float
    understood: bool = True
    doubts: tuple[str, ...] = ()


def shown_confidence(confidence: float) -> str:
    """A probability with two decimals, rounded down, so that a value below a threshold is also shown below it.

    >>> shown_confidence(0.899)
    '0.89'
    """
    return f"{math.floor(100 * confidence) / 100:.2f}"


def undivided(text: str, confidence: float = 1.0, *doubts: str) -> Decomposition:
    """A text as one atom. It is understood if there are no doubts.

    >>> undivided(" not bad ").parts
    (Part(text='not bad', spans=((1, 8),), excluded=False),)
    """
    atom = Atom(text)
    start = len(text) - len(text.lstrip())
    part = Part(atom.text, ((start, start + len(atom.text)),), excluded=False)
    return Decomposition(text, atom, (part,), confidence, not doubts, doubts)


def tagged(decomposition: Decomposition) -> str:
    """The text with tags around the words of its parts: W wanted, S shared by several wanted parts, X excluded.

    >>> text = "French or Italian comedies"
    >>> spans = [[(0, 6), (18, 26)], [(10, 17), (18, 26)]]
    >>> parts = tuple(Part.of(text, of_one, excluded=False) for of_one in spans)
    >>> tagged(Decomposition(text, Atom(text), parts, 1.0))
    '[W French] or [W Italian] [S comedies]'
    """
    text = decomposition.text
    wanted = Counter(place for part in decomposition.parts if not part.excluded for place in _places(part))
    excluded = {place for part in decomposition.parts if part.excluded for place in _places(part)}
    tags = ["X" if place in excluded else " WS"[min(wanted[place], 2)] for place in range(len(text))]
    pieces: list[str] = []
    for tag, run in itertools.groupby(range(len(text)), key=tags.__getitem__):
        places = list(run)
        words = text[places[0] : places[-1] + 1]
        if tag != " ":
            blanks = words.partition(words.strip())
            words = f"{blanks[0]}[{tag} {blanks[1]}]{blanks[2]}"
        pieces.append(words)
    return "".join(pieces)


def _places(part: Part) -> Iterator[int]:
    return itertools.chain.from_iterable(itertools.starmap(range, part.spans))


def to_object(decomposition: Decomposition) -> dict[str, Any]:
    """A decomposition for JSON, with the expression as text."""
    return {
        "text": decomposition.text,
        "expression": format_expression(decomposition.expression),
        "parts": [asdict(part) for part in decomposition.parts],
        "confidence": decomposition.confidence,
        "understood": decomposition.understood,
        "doubts": list(decomposition.doubts),
    }
