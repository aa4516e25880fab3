"""Phrases: how the data of a language writes them, and where they stand in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

START, BACK, END = "^", "<", ">"
_ELEMENT = re.compile(r"\(([^()\s]+)\)|(\S+)")

Meaning = TypeVar("Meaning")
Lists: TypeAlias = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Wording:
    """One wording of a phrase.

    Attributes:
        elements: For each of its tokens what may stand there.
        length: How many of the elements are the phrase itself; the others have to follow.
        at_start: Whether it has to open a sentence.
        backwards: Whether it speaks of what stands before it.
    """

    elements: tuple[frozenset[str], ...]
    length: int
    at_start: bool
    backwards: bool

    def matches(self, words: Sequence[str], token: int) -> bool:
        """Whether it stands there, from a token on."""
        if token + len(self.elements) > len(words):
            return False
        for place, element in enumerate(self.elements, token):  # noqa: SIM110  # this is run most often: no generator
            if words[place] not in element:
                return False
        return True


def wordings(phrase: str, lists: Lists) -> Iterator[Wording]:
    """The wordings of a phrase, with and without each word that may be left out.

    Args:
        phrase: As ``english.toml`` describes it.
        lists: What ``<name>`` stands for.
    """
    body = phrase.strip()
    at_start, backwards = body.startswith(START), body.startswith(f"{BACK} ")
    body = body[1:] if at_start or backwards else body
    found: list[list[frozenset[str]]] = [[]]
    lengths: list[int | None] = [None]
    for optional, needed in _ELEMENT.findall(body):
        if needed == END:
            lengths = [len(wording) for wording in found]
            continue
        element = _alternatives(optional or needed, lists)
        longer = [[*wording, element] for wording in found]
        found, lengths = ([*longer, *found], [*lengths, *lengths]) if optional else (longer, lengths)
    for wording, length in zip(found, lengths, strict=True):
        yield Wording(tuple(wording), len(wording) if length is None else length, at_start, backwards)


def _alternatives(element: str, lists: Lists) -> frozenset[str]:
    words: set[str] = set()
    for name in element.split("|"):
        words |= lists[name[1:-1]] if name.startswith("<") and name.endswith(">") else {name}
    return frozenset(words)


Found: TypeAlias = tuple[int, list[tuple[Wording, Meaning]]]
"""A token, and the wordings of phrases that stand there, the longest first, with what they mean."""


class Phrases(Generic[Meaning]):
    """Phrases and what they mean, found by their first two words."""

    def __init__(self, phrases: Iterable[tuple[str, Meaning]], lists: Lists) -> None:
        """Takes the phrases as :func:`wordings` does."""
        self._by_first: dict[str, dict[str, list[tuple[Wording, Meaning]]]] = {}
        for phrase, meaning in phrases:
            for wording in wordings(phrase, lists):
                first, *rest = wording.elements
                for one in first:
                    for other in rest[0] if rest else ("",):
                        self._by_first.setdefault(one, {}).setdefault(other, []).append((wording, meaning))
        for by_second in self._by_first.values():
            for entries in by_second.values():
                entries.sort(key=lambda entry: -len(entry[0].elements))
        self.words = frozenset().union(
            *(
                element
                for by_second in self._by_first.values()
                for entries in by_second.values()
                for wording, _ in entries
                for element in wording.elements
            )
        )

    def find(self, words: Sequence[str]) -> list[Found[Meaning]]:
        """Where any of them stands in a text, from left to right."""
        by_first = self._by_first
        found = []
        for token, word in enumerate(words):
            if word in by_first:
                second = words[token + 1] if token + 1 < len(words) else ""
                entries = (*by_first[word].get(second, ()), *by_first[word].get("", ()))
                standing = [entry for entry in entries if entry[0].matches(words, token)]
                if standing:
                    found.append((token, standing))
        return found
