"""The words of English that the cues need, read from ``english.toml``, which explains its entries."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_compneg.reading.phrases import Phrases

ENGLISH = Path(__file__).with_name("english.toml")
_AFFIXES = ("plural", "singular", "past_ending", "prefix")


@dataclass(frozen=True, slots=True)
class CueGroup:
    """Cues that mean the same and hold in the same places.

    Attributes:
        name: The reason that is reported.
        kinds: The kinds of sentences in which they count.
        confidence: How often that is right, 0 to 1.
        needs: What has to hold besides; each is a condition of :mod:`cues`.
    """

    name: str
    kinds: frozenset[str]
    confidence: float
    needs: frozenset[str]


@dataclass(frozen=True)
class Language:
    """What is known of a language.

    Attributes:
        words: The lists of words, by their names.
        cues: The cues of exclusion.
        also: What connects operands of an intersection.
        idioms: What only looks like a cue.
        courtesies: Whole sentences that ask for nothing.
        spellings: What is meant by words that are written otherwise: "dont", "exluding".
        affixes: The lists of endings and beginnings of words, those in ``_AFFIXES``.
    """

    words: Mapping[str, frozenset[str]]
    cues: Phrases[CueGroup]
    also: Phrases[CueGroup]
    idioms: Phrases[None]
    courtesies: frozenset[str]
    spellings: Mapping[str, str]
    affixes: Mapping[str, tuple[str, ...]]

    def is_plural(self, word: str) -> bool:
        """Whether a word ends like a plural."""
        return len(word) > 3 and word.endswith(self.affixes["plural"]) and not word.endswith(self.affixes["singular"])

    def is_past(self, word: str) -> bool:
        """Whether a word is, or ends like, a past form."""
        return (len(word) > 4 and word.endswith(self.affixes["past_ending"])) or word in self.words["past"]

    def negated(self, words: Sequence[str]) -> list[int]:
        """Which of the words begin like one with a prefix that negates it."""
        prefixes = self.affixes["prefix"]
        return [place for place, word in enumerate(words) if word.startswith(prefixes)]


@cache
def load_language() -> Language:
    """Reads the data, once in a process."""
    data = tomllib.loads(ENGLISH.read_text(encoding="utf-8"))
    lists = {name: frozenset(text.split()) for name, text in data["words"].items()}
    cues, also = (Phrases(_grouped(data[name], name), lists) for name in ("exclusion", "intersection"))
    idioms = Phrases(((idiom, None) for idiom in data["idioms"]), lists)
    known = frozenset().union(cues.words, also.words, idioms.words, *lists.values())
    affixes = {name: tuple(sorted(lists[name])) for name in _AFFIXES}
    return Language(lists, cues, also, idioms, frozenset(data["courtesies"]), _spellings(lists, known), affixes)


def _grouped(entries: Iterable[Mapping[str, Any]], kind: str) -> Iterator[tuple[str, CueGroup]]:
    for entry in entries:
        texts, needs = frozenset(entry["texts"].split()), frozenset(entry.get("needs", "").split())
        group = CueGroup(entry.get("name", kind), texts, entry["confidence"], needs)
        yield from ((cue, group) for cue in entry["cues"])


def _spellings(lists: Mapping[str, frozenset[str]], known: frozenset[str]) -> dict[str, str]:
    """Words without their apostrophe, and those that one slip of a finger makes of the list ``misspelt``."""
    bare = {word.replace("'", ""): word for word in known if word.endswith("n't")}
    slips = {slip: word for word in lists["misspelt"] for slip in _slips(word)}
    return {typed: meant for typed, meant in (bare | slips).items() if typed not in known}


def _slips(word: str) -> Iterator[str]:
    """A letter left out, another one too many, a wrong one, or two the wrong way round; the first one is right."""
    for place in range(1, len(word) + 1):
        before, after = word[:place], word[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in string.ascii_lowercase:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
