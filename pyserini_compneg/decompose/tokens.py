"""Words and signs of a text, each with its place in it.

The folded text has as many characters as the text itself, so that every place in one is a place in the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_SIGNS = {
    **dict.fromkeys("‘’‚‛ʼ′`´＇", "'"),
    **dict.fromkeys("“”„‟«»″＂〝〞", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    **dict.fromkeys("，、﹐", ","),
    **dict.fromkeys("（﹙", "("),
    **dict.fromkeys("）﹚", ")"),
    **{"？": "?", "！": "!", "。": ".", "；": ";", "：": ":"},
}
_FOLDED_SIGNS = str.maketrans(_SIGNS)
_TOKEN = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*|_+|[^\w\s]")


def fold(text: str) -> str:
    """The text in lower case, with plain quotes, dashes and commas, character for character.

    >>> print(fold("Films “WITHOUT” İrem’s songs"))
    films "without" İrem's songs
    """
    folded = text.translate(_FOLDED_SIGNS)
    lowered = folded.lower()
    if len(lowered) == len(folded):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in folded)


@dataclass(frozen=True)
class Tokens:
    """A text, cut into words and signs.

    Attributes:
        text: The text as it is.
        folded: As :func:`fold` gives it.
        words: The tokens of the folded text, in order.
        starts: Where each begins.
        ends: Where each ends.
    """

    text: str
    folded: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.words)

    @cached_property
    def cased(self) -> bool:
        """Whether capitals mean anything here: texts all in capitals and all in lower case have none to offer."""
        return any(map(str.isupper, self.text)) and any(map(str.islower, self.text))

    def is_word(self, token: int) -> bool:
        """Whether a token is a word or number, and not a sign."""
        return self.words[token][0].isalnum()

    def is_name(self, token: int) -> bool:
        """Whether a token starts like a name or title: with a capital, a digit or a quote.

        >>> tokens = tokenise("the Beatles")
        >>> tokens.is_name(0), tokens.is_name(1)
        (False, True)
        """
        first = self.text[self.starts[token]]
        return self.words[token] == '"' or first.isdigit() or (self.cased and (first.isupper() or first.istitle()))


def tokenise(text: str) -> Tokens:
    """Cuts a text into words and signs.

    >>> tokenise("Don't mention B.F. Sheldon's non-European kin!").words
    ["don't", 'mention', 'b.f', '.', "sheldon's", 'non-european', 'kin', '!']
    """
    folded = fold(text)
    matches = list(_TOKEN.finditer(folded))
    return Tokens(
        text,
        folded,
        [match[0] for match in matches],
        [match.start() for match in matches],
        [match.end() for match in matches],
    )
