"""The data of a language, read from a TOML file: ``english.toml`` says what is in one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from pyserini_compneg.decompose.tokens import Tokens
from pyserini_compneg.errors import DecompositionError

ENGLISH = Path(__file__).with_name("english.toml")
KINDS = ("question", "request", "phrase", "statement")
NEEDS = ("", "name", "noun", "other")
START, END = "^", ">"

_WORDS = (
    *(
        "question",
        "other",
        "auxiliary",
        "request",
        "relative",
        "relative_after_comma",
        "oblique",
        "article",
        "conjunction",
    ),
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


Patterns: TypeAlias = Mapping[str, Mapping[str, Sequence[Pattern]]]


@dataclass(frozen=True)
class Language:
    """What is known of a language.

    Attributes:
        words: The lists of words, by their names.
        cues: The cues of exclusion, by their first word, and then by their second, "" where they have one only.
        idioms: What only looks like a cue, by its first word.
        also: What connects operands of an intersection, likewise.
        courtesies: Whole sentences that ask for nothing.
    """

    words: Mapping[str, frozenset[str]]
    cues: Patterns
    idioms: Mapping[str, Sequence[re.Pattern[str]]]
    also: Patterns
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
    cues: dict[str, dict[str, list[Pattern]]] = {}
    for entry in data["exclusion"]:
        group = _group(entry)
        for cue in entry["cues"]:
            _add(cues, cue, group, lists)
    also: dict[str, dict[str, list[Pattern]]] = {}
    for entry in data["intersection"]:
        group = _group({"name": "intersection", **entry})
        for cue in entry["cues"]:
            _add(also, cue, group, lists)
    idioms: dict[str, list[re.Pattern[str]]] = {}
    for idiom in data["idioms"]:
        idioms.setdefault(idiom.split()[0], []).append(_compiled(idiom.split()))
    return Language(lists, cues, idioms, also, frozenset(data["courtesies"]))


def _group(entry: Mapping[str, Any]) -> CueGroup:
    group = CueGroup(entry["name"], frozenset(entry["texts"].split()), entry["confidence"], entry.get("needs", ""))
    if not group.kinds <= set(KINDS) or group.needs not in NEEDS or not 0 < group.confidence <= 1:
        raise ValueError(f"the group {group.name!r} has unknown texts or needs, or a confidence beyond 0 and 1")
    return group


def _add(
    patterns: dict[str, dict[str, list[Pattern]]], cue: str, group: CueGroup, lists: Mapping[str, frozenset[str]]
) -> None:
    at_start = cue.startswith(START)
    for elements in _wordings(cue.removeprefix(START).strip(), lists):
        pattern = Pattern(group, _compiled(elements), at_start)
        words = [element.split("|") for element in elements if element != END]
        for first in words[0]:
            for second in words[1] if len(words) > 1 else [""]:
                patterns.setdefault(first, {}).setdefault(second, []).append(pattern)


def match_patterns(patterns: Patterns, tokens: Tokens, token: int) -> Iterator[tuple[Pattern, re.Match[str]]]:
    """The patterns that match from a token on."""
    by_second = patterns.get(tokens.words[token])
    if by_second is None:
        return
    second = tokens.words[token + 1] if token + 1 < len(tokens) else ""
    for pattern in (*by_second.get(second, ()), *by_second.get("", ())):
        found = pattern.expression.match(tokens.folded, tokens.starts[token])
        if found:
            yield pattern, found


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
        if element == END:
            parts.append(r"(?P<end>)")
        else:
            parts.append(r"(?:" + "|".join(map(re.escape, element.split("|"))) + r")(?:(?<=\W)|(?![\w']))\s*")
    return re.compile("".join(parts))
