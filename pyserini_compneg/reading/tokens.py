"""Words and signs of a text, each with its place in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

_SIGNS = {
    **dict.fromkeys("‘’‚‛ʼ′`´＇", "'"),
    **dict.fromkeys("“”„‟«»″＂〝〞", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    **dict.fromkeys("，、﹐", ","),
    **dict.fromkeys("（﹙[{［", "("),
    **dict.fromkeys("）﹚]}］", ")"),
    **{"？": "?", "！": "!", "。": ".", "；": ";", "：": ":"},
}
_FOLDED_SIGNS = str.maketrans(_SIGNS)
_TOKEN = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*|_+|[^\w\s]")


def fold(text: str) -> str:
    """The text in lower case, with plain quotes, dashes, brackets and commas, character for character.

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
        words: The tokens, in order, as :func:`fold` gives them and as they are spelt.
        starts: Where each begins.
        ends: Where each ends.
    """

    text: str
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

    def opens(self, token: int) -> bool:
        """Whether a token is the first of a sentence, as far as one can tell by the sign before it."""
        return token == 0 or self.words[token - 1] in (".", "?", "!")

    def is_name(self, token: int) -> bool:
        """Whether a token starts like a name or title: with a capital, a digit or a quote."""
        first = self.text[self.starts[token]]
        return self.words[token] == '"' or first.isdigit() or (self.cased and (first.isupper() or first.istitle()))


def tokenise(text: str, spellings: Mapping[str, str] | None = None) -> Tokens:
    """Cuts a text into words and signs."""
    matches = list(_TOKEN.finditer(fold(text)))
    words = [match[0] for match in matches]
    if spellings and not spellings.keys().isdisjoint(words):
        words = [spellings.get(word, word) for word in words]
    return Tokens(text, words, [match.start() for match in matches], [match.end() for match in matches])
