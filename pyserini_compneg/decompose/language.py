"""The data of a language, read from a TOML file: ``english.toml`` says what is in one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_compneg.errors import DecompositionError

ENGLISH = Path(__file__).with_name("english.toml")
KINDS = ("question", "request", "phrase", "statement")
NEEDS = ("", "name", "noun", "other")
START = "^"

_WORDS = (
    *("question", "other", "auxiliary", "request", "relative", "relative_after_comma", "article", "conjunction"),
    *("preposition", "past", "abbreviation", "lead_in", "frame", "connector", "non"),
)
_ELEMENT = re.compile(r"\(([^()\s]+)\)|(\S+)")


@dataclass(frozen=True, slots=True)
class CueGroup:
    """Cues that mean the same and hold in the same places.

    Attributes:
        name: The reason that is reported.
        kinds: The kinds of sentences in which they exclude.
        confidence: How often that is right, 0 to 1.
        needs: What has to hold besides, one of ``NEEDS``.
    """

    name: str
    kinds: frozenset[str]
    confidence: float
    needs: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording of a cue.

    Attributes:
        group: What it means.
        expression: Matches the folded text from the first word on.
        at_start: Whether the first word has to start a sentence.
    """

    group: CueGroup
    expression: re.Pattern[str]
    at_start: bool


@dataclass(frozen=True)
class Language:
    """What is known of a language.

    Attributes:
        words: The lists of words, by their names.
        cues: The cues of exclusion, by their first word.
        idioms: What only looks like a cue, by its first word.
        also: What connects operands of an intersection, by the first word.
        courtesies: Whole sentences that ask for nothing.
    """

    words: Mapping[str, frozenset[str]]
    cues: Mapping[str, Sequence[Pattern]]
    idioms: Mapping[str, Sequence[re.Pattern[str]]]
    also: Mapping[str, Sequence[Pattern]]
    courtesies: frozenset[str]


@cache
def load_language(path: Path = ENGLISH) -> Language:
    """Reads the data of a language.

    Args:
        path: The file; English by default.

    Raises:
        DecompositionError: The file is missing or not as ``english.toml`` describes it.
    """
    try:
        return _language(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DecompositionError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DecompositionError(f"{path}: no data of a language: {problem}; see {ENGLISH.name}") from None


def _language(data: Mapping[str, Any]) -> Language:
    lists = {name: frozenset(text.split()) for name, text in data["words"].items()}
    for name in _WORDS:
        lists[name]  # noqa: B018  # each has to be there
    cues: dict[str, list[Pattern]] = {}
    for entry in data["exclusion"]:
        group = _group(entry)
        for cue in entry["cues"]:
            _add(cues, cue, group, lists)
    also: dict[str, list[Pattern]] = {}
    connected = CueGroup("intersection", frozenset(KINDS), data["coordination"]["confidence"], "")
    for cue in data["coordination"]["also"]:
        _add(also, cue, connected, lists)
    idioms: dict[str, list[re.Pattern[str]]] = {}
    for idiom in data["idioms"]:
        idioms.setdefault(idiom.split()[0], []).append(_compiled(idiom.split()))
    return Language(lists, cues, idioms, also, frozenset(data["courtesies"]))


def _group(entry: Mapping[str, Any]) -> CueGroup:
    group = CueGroup(entry["name"], frozenset(entry["texts"].split()), entry["confidence"], entry.get("needs", ""))
    if not group.kinds <= set(KINDS) or group.needs not in NEEDS or not 0 < group.confidence <= 1:
        raise ValueError(f"the group {group.name!r} has unknown texts or needs, or a confidence beyond 0 and 1")
    return group


def _add(patterns: dict[str, list[Pattern]], cue: str, group: CueGroup, lists: Mapping[str, frozenset[str]]) -> None:
    at_start = cue.startswith(START)
    for first, *others in _wordings(cue.removeprefix(START).strip(), lists):
        pattern = Pattern(group, _compiled([first, *others]), at_start)
        for word in first.split("|"):
            patterns.setdefault(word, []).append(pattern)


def _wordings(cue: str, lists: Mapping[str, frozenset[str]]) -> Iterator[list[str]]:
    """The elements of a cue, with and without each word that may be left out.

    >>> list(_wordings("(with) no|a <kind>", {"kind": frozenset(["one"])}))
    [['with', 'no|a', 'one'], ['no|a', 'one']]
    """
    wordings: list[list[str]] = [[]]
    for optional, needed in _ELEMENT.findall(cue):
        element = optional or needed
        names = [
            name if not name.startswith("<") else "|".join(sorted(lists[name[1:-1]])) for name in element.split("|")
        ]
        element = "|".join(names)
        longer = [[*wording, element] for wording in wordings]
        wordings = [*longer, *wordings] if optional else longer
    yield from wordings


def _compiled(elements: Sequence[str]) -> re.Pattern[str]:
    """A pattern of elements with blanks between them; ``>`` marks where a cue ends before its last words."""
    parts: list[str] = []
    for element in elements:
        if element == ">":
            parts.append(r"(?P<end>)")
        else:
            parts.append(r"(?:" + "|".join(map(re.escape, element.split("|"))) + r")(?:(?<=\W)|(?![\w']))\s*")
    return re.compile("".join(parts))
