"""Text in columns for people: widths of characters, numbers that line up, bars."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_EIGHTHS = " ▏▎▍▌▋▊▉"
_SEPARATOR = ", "


def printable(text: str) -> str:
    """The text with blanks for what would move the cursor or change the direction of the line."""
    return "".join(character if character.isprintable() else " " for character in text)


def width(text: str) -> int:
    r"""The columns that a terminal gives to a printable text: two for wide characters, none for combining ones.

    >>> width("birds"), width("鳥類"), width("e\u0301")
    (5, 4, 1)
    """
    return sum(map(_width, text))


def fitted(text: str, columns: int) -> str:
    """The text at exactly that width, cut with an ellipsis or filled up with blanks.

    >>> fitted("birds", 7), fitted("birds", 4), fitted("鳥類学", 4)
    ('birds  ', 'bir…', '鳥… ')
    """
    text = printable(text)
    if width(text) > columns:
        kept, room = [], columns - 1
        for character in text:
            room -= _width(character)
            if room < 0:
                break
            kept.append(character)
        text = "".join(kept) + "…"
    return text + " " * (columns - width(text))


def wrapped(pieces: Iterable[str], columns: int) -> list[str]:
    """Lines of pieces with commas between, which are never broken; one that is too wide is cut.

    >>> wrapped(["birds 2.50", "bats 1.00", "fish 0.50"], 24)
    ['birds 2.50, bats 1.00,', 'fish 0.50']
    """
    lines = [""]
    for piece in pieces:
        piece = fitted(piece, min(width(piece), columns - 1))
        if lines[-1] and width(lines[-1]) + width(piece) + len(_SEPARATOR) >= columns:
            lines[-1] += _SEPARATOR.rstrip()
            lines.append(piece)
        else:
            lines[-1] += (_SEPARATOR if lines[-1] else "") + piece
    return lines


def places(numbers: Iterable[float], least: int) -> int:
    """Decimal places that show as many digits of the largest number, ``least`` in any case.

    >>> places([250.0, -3.0], 3), places([0.025], 3), places([], 3)
    (3, 4, 3)
    """
    largest = max(map(abs, numbers), default=0.0)
    return max(least, least - 1 - math.floor(math.log10(largest))) if largest else least


class Bars(NamedTuple):
    """Bars that grow from a common zero, to the right above it and to the left below it.

    Attributes:
        left: Columns for negative numbers.
        right: Columns for positive numbers.
        scale: Columns a unit.
    """

    left: int
    right: int
    scale: float

    @classmethod
    def fitting(cls, numbers: Sequence[float], columns: int) -> Bars:
        """The longest bars for some numbers that fit into so many columns, of which there are two or more."""
        above, below = max(numbers, default=0.0), -min(numbers, default=0.0)
        if above <= 0 and below <= 0:
            return cls(0, columns, 0.0)
        if above <= 0 or below <= 0:
            return cls(0 if above > 0 else columns, columns if above > 0 else 0, columns / max(above, below))
        left = min(max(round(columns * (below / (above + below))), 1), columns - 1)
        return cls(left, columns - left, min(left / below, (columns - left) / above))

    def bar(self, number: float) -> str:
        """The bar of a number, the columns before it included; whatever is not 0 can be seen.

        >>> bars = Bars.fitting([8.0, -4.0], 6)
        >>> [bars.bar(number) for number in (8.0, 1.0, -4.0, -1.0, 0.0)]
        ['  ████', '  ▌', '██', ' ▐', '']
        """
        if number == 0:
            return ""
        eighths = max(round(abs(number) * self.scale * 8), 1)
        if number > 0:
            return (" " * self.left + "█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
        cells = max(round(eighths / 4), 1)  # from the right there are only halves
        return ("▐" * (cells % 2) + "█" * (cells // 2)).rjust(self.left)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
