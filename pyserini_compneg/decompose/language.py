"""The data of a language, read from a TOML file: ``english.toml`` says what is in one."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_compneg.decompose.phrases import Phrases
from pyserini_compneg.errors import DecompositionError

ENGLISH = Path(__file__).with_name("english.toml")
KINDS = ("question", "request", "phrase", "fragment", "statement")
NEEDS = ("name", "noun", "word", "end", "out", "plural", "class", "every", "free", "other", "later")

_WORDS = """
question other else auxiliary request no_request searching noun_too modal asker courteous say relative
relative_after_comma oblique choosing article definite every conjunction joint purpose resuming preposition structure
in_name past abbreviation lead_in lead_out out opener frame connector not and or nor both either prefix non plural
singular past_ending misspelt spelt
"""
_ENTRY: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "cues": list,
    "texts": str,
    "confidence": (int, float),
    "needs": str,
}
_OPTIONAL = ("needs",)
_AFFIXES = ("plural", "singular", "past_ending", "prefix")


@dataclass(frozen=True, slots=True)
class CueGroup:
    """Cues that mean the same and hold in the same places.

    Attributes:
        name: The reason that is reported.
        kinds: The kinds of sentences in which they count.
        confidence: How often that is right, 0 to 1.
        needs: What has to hold besides, some of ``NEEDS``.
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
        affixes: The endings and beginnings of words that the lists ``_AFFIXES`` have.
    """

    words: Mapping[str, frozenset[str]]
    cues: Phrases[CueGroup]
    also: Phrases[CueGroup]
    idioms: Phrases[None]
    courtesies: frozenset[str]
    spellings: Mapping[str, str]
    affixes: Mapping[str, tuple[str, ...]]

    def is_plural(self, word: str) -> bool:
        """Whether a word ends like a plural.

        >>> [load_language().is_plural(word) for word in ("films", "glass", "film")]
        [True, False, False]
        """
        return len(word) > 3 and word.endswith(self.affixes["plural"]) and not word.endswith(self.affixes["singular"])

    def is_past(self, word: str) -> bool:
        """Whether a word is, or ends like, a past form."""
        return (len(word) > 4 and word.endswith(self.affixes["past_ending"])) or word in self.words["past"]

    def negated(self, words: Sequence[str]) -> list[int]:
        """Which of the words begin like one with a prefix that negates it.

        >>> load_language().negated("a non-European king, none other".split())
        [1, 3]
        """
        prefixes = self.affixes["prefix"]
        return [place for place, word in enumerate(words) if word.startswith(prefixes)]


@cache
def load_language(path: Path = ENGLISH) -> Language:
    """Reads the data of a language, once in a process.

    Args:
        path: The file; English by default.

    Raises:
        DecompositionError: The file is missing or not as ``english.toml`` describes it.
    """
    try:
        return _language(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DecompositionError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except RecursionError:
        raise DecompositionError(f"{path}: no data of a language: it is nested too deeply") from None
    except (ValueError, KeyError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DecompositionError(f"{path}: no data of a language: {problem}; see {ENGLISH.name}") from None


def _language(data: Mapping[str, Any]) -> Language:
    lists = {name: frozenset(_text(text).split()) for name, text in _checked(data, "words", dict).items()}
    for name in _WORDS.split():
        if name not in lists:
            raise KeyError(name)
    cues = Phrases(_grouped(_checked(data, "exclusion", list), "exclusion"), lists)
    also = Phrases(_grouped(_checked(data, "intersection", list), "intersection"), lists)
    idioms = Phrases(((idiom, None) for idiom in _texts(data, "idioms")), lists)
    courtesies = frozenset(_texts(data, "courtesies"))
    known = frozenset().union(cues.words, also.words, idioms.words, *lists.values())
    affixes = {name: tuple(sorted(lists[name])) for name in _AFFIXES}
    return Language(lists, cues, also, idioms, courtesies, _spellings(lists, known), affixes)


def _checked(data: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    value = data[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name!r} is not of the kind it has to be")
    return value


def _texts(data: Mapping[str, Any], name: str) -> Iterator[str]:
    for text in _checked(data, name, list):
        if not _text(text).strip():
            raise ValueError(f"{name!r} has a blank text")
        yield text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {value!r}")
    return value


def _grouped(entries: Iterable[Any], name: str) -> Iterator[tuple[str, CueGroup]]:
    for entry in entries:
        if not isinstance(entry, dict):
            raise ValueError(f"{name!r} must be tables, got {entry!r}")
        group = _group({"name": name, **entry} if name == "intersection" else entry)
        for cue in _texts(entry, "cues"):
            yield cue, group


def _group(entry: Mapping[str, Any]) -> CueGroup:
    for unknown in entry.keys() - _ENTRY:
        raise ValueError(f"the group {entry['name']!r} has an unknown entry {unknown!r}")
    for name, kind in _ENTRY.items():
        if name in entry or name not in _OPTIONAL:
            _checked(entry, name, kind)
    kinds, needs = frozenset(entry["texts"].split()), frozenset(entry.get("needs", "").split())
    if not kinds or not kinds <= {*KINDS} or not needs <= {*NEEDS} or not 0 < entry["confidence"] <= 1:
        raise ValueError(f"the group {entry['name']!r} has unknown texts or needs, or a confidence beyond 0 and 1")
    return CueGroup(entry["name"], kinds, float(entry["confidence"]), needs)


def _spellings(lists: Mapping[str, frozenset[str]], known: frozenset[str]) -> dict[str, str]:
    """Words without their apostrophe, and those that one slip of a finger makes of the list ``misspelt``."""
    bare = {word.replace("'", ""): word for word in known if word.endswith("n't")}
    slips = {slip: word for word in lists["misspelt"] for slip in _slips(word)}
    return {typed: meant for typed, meant in (bare | slips).items() if typed not in known}


def _slips(word: str) -> Iterator[str]:
    """A letter left out, another one too many, a wrong one, or two the wrong way round; the first one is right.

    >>> {"exept", "excpet", "excepd", "exccept"} <= set(_slips("except")), "accept" in _slips("except")
    (True, False)
    """
    for place in range(1, len(word) + 1):
        before, after = word[:place], word[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in string.ascii_lowercase:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
