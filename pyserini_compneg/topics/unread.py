"""Finds words such as "not" or "-word" that look like operators but are searched as text, and doubted readings.

The user may mean the opposite of the search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyserini_compneg.expression.syntax import SEARCHED_AS_WORDS, signs_as_words
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.topics.topics import Topic

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_MINUS = re.compile(r'(?<!\S)-(?:[^\W\d]|")')
_SIGNS = re.compile(
    r'(?<![^\s("])(?:[+!](?:[^\W\d]|")|(?:[+!]|&&?|\|\|?)(?![^\s)"]))|\w(?:&&|\|\|?)\w|(?<!\S)(?:AND|NOT)![^\s()"]|[∩∪\\]!'
)
_FIELD = r"[^\W\d][\w.-]*="
_VALUE = re.compile(rf"NOT! +{_FIELD}(?:(?!\b(?:AND|OR|NOT)\b)[^()])*")
_CONDITIONS = re.compile(rf"(?<!NOT! )(?<![^\s(]){_FIELD}[^\s=]|NOT! +[^\W\d][\w.-]*(?: +=|[<>])")
_LONE_CONDITION = re.compile(rf"NOT! *\(+ *{_FIELD}(?:(?!\b(?:AND|OR|NOT)\b)[^()∩∪\\])*\)")
_CURLY = re.compile("[“”„‟«»]")
_OTHER_WORDS = re.compile(
    r"(?<![^\s(])(?:AND-?NOT|BUT(?=\s+NOT\b)|EXCEPT|EXCLUDING|MINUS|WITHOUT|XOR|(?:NEAR|ADJ|AROUND)(?:/?\d+)?)(?![^\s)])"
)
_FOREIGN_WORDS = re.compile(
    r"(?<![^\s(])(?:UND|ODER|NICHT|OHNE|SAUF|SANS|OPPURE|SENZA|NIET|ZONDER|SALVO|EXCEPTO)(?![^\s)])"
)
_SEARCHED_FIELDS = re.compile(  # excludes addresses, times and titles
    r'(?<![^\s(+-])(?!(?:arxiv|doi|isbn|mailto|urn):)[a-z][a-z_]{2,}:[\w"\[({*<>]'
    r"|[^\W\d]\[[A-Za-z][A-Za-z: -]*\](?!\S)|(?<!\S)\d+\.\.\d+(?!\S)"
)
_PATTERNS = re.compile(r'[^\W\d]{2}(?:\*|~[\d.]*)(?!\S)|"~\d*(?!\S)|(?:[^\W\d]{2}|")\^\d')
_CAPITALS = ("AND", "OR", "NOT")
_WORDS = {"and", "or", "not", "and/or", "or/and"}
_EXCLUDING = {"without", "except", "excluding"}  # with a capital they are usually of a title

_NOTES = {
    "case": "'and', 'or', 'not', 'without', 'except', 'excluding' are words: write AND, OR, NOT for operators, or put "
    "the phrase in quotes; --read model (read=model) parses plain English",
    "capitals": "AND, OR, NOT are words, because plain text is not parsed; --read expression makes them operators",
    "edge": SEARCHED_AS_WORDS,
    "other": "ANDNOT, BUT, EXCEPT, EXCLUDING, WITHOUT, XOR, NEAR are words: write NOT, AND, or (a OR b) NOT (a AND b)",
    "language": "UND, ODER, NICHT, SAUF are words: the operators are AND, OR, NOT in every language",
    "minus": "a '-' before a word is not an operator; NOT is an operator in expressions",
    "signs": "'+', '&', '|', '!' are not operators: write AND, OR, NOT, AND! or NOT! and a blank, or quote the phrase",
    "field": "FIELD:VALUE, WORD[FIELD], ranges are text: NOT! FIELD=VALUE or --filter, for filter fields",
    "patterns": "'*', '~', '^' are not operators, and no word of a document has them: leave them out",
    "condition": "only FIELD=VALUE without blanks, right after NOT!, is a condition: NOT! for each, or --filter",
    "curly": 'curly quotes are not quotes: write straight ones, ", around a phrase that holds operators',
}


def unread_operators(text: str, parsed: bool) -> list[str]:
    """The kinds of unread operators in a text.

    >>> unread_operators("spy films not comedies", parsed=True), unread_operators("spy -comedies", parsed=True)
    (['case'], ['minus'])
    >>> unread_operators('"war and peace" NOT films', parsed=True), unread_operators("spy NOT comedies", parsed=False)
    ([], ['capitals'])
    """
    joins_nothing = parsed and bool(signs_as_words(text))
    text = _QUOTED.sub('""', text) if parsed else text
    words = [word.strip("(),;:.!?") for word in text.split()]
    found = {
        "case": parsed
        and any(word in _EXCLUDING or (word.lower() in _WORDS and word not in _CAPITALS) for word in words),
        "capitals": not parsed and any(word in _CAPITALS for word in words),
        "edge": joins_nothing,
        "other": parsed and not text.isupper() and bool(_OTHER_WORDS.search(text)),
        "language": parsed and not text.isupper() and bool(_FOREIGN_WORDS.search(text)),
        "minus": bool(_MINUS.search(text)),
        "signs": parsed and bool(_SIGNS.search(_VALUE.sub(" ", text))),
        "field": parsed and bool(_SEARCHED_FIELDS.search(text)),
        "patterns": parsed and bool(_PATTERNS.search(text)),
        "condition": parsed and bool(_CONDITIONS.search(_LONE_CONDITION.sub(" ", text))),
        "curly": parsed and bool(_CURLY.search(text)),
    }
    return [kind for kind, is_there in found.items() if is_there]


def notes_on(topics: Sequence[Topic]) -> list[str]:
    """A sentence for each kind of unread operators: the correct form, the number of texts with it, and the first text.

    In a decomposed text only the parts are checked, because the rest of the wording may have been understood.

    >>> notes_on([Topic("7", "spy -comedies", composed={}), Topic("8", "spy", composed={})])
    []
    """
    found: dict[str, list[Topic]] = {}
    for topic in topics:
        if topic.plain or topic.parsed:
            atoms = [part.text for part in topic.decomposition.parts] if topic.decomposition else [topic.text]
            for kind in dict.fromkeys(kind for text in atoms for kind in unread_operators(text, topic.parsed)):
                found.setdefault(kind, []).append(topic)
    return [f"in {_where(having, len(topics))}, {_NOTES[kind]}" for kind, having in found.items()]


def _where(having: Sequence[Topic], total: int) -> str:
    first = shown(having[0].text)
    return first if total == 1 else f"{len(having)} of {total} queries, such as {having[0].qid} ({first})"
