"""Sentences, and what kind of text each is: whether a "not" excludes depends on it.

- A *request* asks to be told: "Can you list ...", "Describe ...". What it does not want, it excludes.
- A *question* asks about an event. "Who did not vote?" has a negation that belongs to the event.
- A *phrase* has no verb: "films about war but not comedies".
- A *fragment* is as long as a sentence, and ends like one, but shows no verb that is known. It may be a phrase or a
  statement; so only what excludes in questions as well does in it.
- A *statement* says something, as claims and abstracts do: nothing in it is excluded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyserini_compneg.reading.language import Language
from pyserini_compneg.reading.tokens import Tokens

_LONGEST_PHRASE = 8
"""Tokens of a phrase that may end with a full stop."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens from ``start`` up to ``end``, the sign at the end included.

    Attributes:
        start: The first token.
        end: The token after the last.
        kind: ``question``, ``request``, ``phrase``, ``fragment`` or ``statement``.
    """

    start: int
    end: int
    kind: str


def split_sentences(tokens: Tokens, protected: bytearray, language: Language) -> list[Sentence]:
    """Cuts a text into sentences."""
    sentences = []
    start = 0
    for token, word in enumerate(tokens.words):
        if word in ("?", "!", ".") and _ends_sentence(tokens, token, protected, language):
            sentences.append(Sentence(start, token + 1, _kind(tokens, start, token + 1, protected, language)))
            start = token + 1
    if start < len(tokens):
        sentences.append(Sentence(start, len(tokens), _kind(tokens, start, len(tokens), protected, language)))
    return sentences


def _ends_sentence(tokens: Tokens, token: int, protected: bytearray, language: Language) -> bool:
    if protected[token]:
        return False
    after = token + 1
    if after == len(tokens):
        return True
    if tokens.words[after] in ("?", "!", ".", ",", ")", '"', ";", ":"):
        return False
    if tokens.words[token] != ".":
        return True
    if token == 0 or tokens.starts[after] == tokens.ends[token]:
        return False
    if is_abbreviation(tokens.words[token - 1], language):
        return False
    return not tokens.text[tokens.starts[after]].islower()


def is_abbreviation(word: str, language: Language) -> bool:
    """Whether a full stop after a word belongs to it: "J.", "F.C.", "Jr."."""
    return (len(word) == 1 and word.isalpha()) or "." in word or word in language.words["abbreviation"]


def ends_word(tokens: Tokens, token: int, language: Language) -> bool:
    """Whether a token is no sign of its own: a word, the end of a quote, or the full stop of an abbreviation."""
    if tokens.is_word(token) or tokens.words[token] in ('"', "'", ")"):
        return True
    return tokens.words[token] == "." and token > 0 and is_abbreviation(tokens.words[token - 1], language)


def _kind(tokens: Tokens, start: int, end: int, protected: bytearray, language: Language) -> str:
    words, lists = tokens.words, language.words
    first = next((token for token in range(start, end) if tokens.is_word(token)), start)
    if _is_request(words, first, lists):
        return "request"
    opens = words[first] in lists["question"] or words[first] in lists["auxiliary"]
    if words[end - 1] == "?" or (opens and lists["not"].isdisjoint(words[first + 1 : first + 2])):
        return "question"
    for token in range(first + 1, end):
        if not protected[token] and (kind := _kind_from(words, token, lists)):
            return kind
    if _has_verb(tokens, first, end, protected, language):
        return "statement"
    stopped = words[end - 1] == "." and end - first > _LONGEST_PHRASE and not is_abbreviation(words[end - 2], language)
    return "fragment" if stopped else "phrase"


def _kind_from(words: list[str], token: int, lists: Mapping[str, frozenset[str]]) -> str | None:
    """What opens within a sentence: "Besides X, can you tell me", "the place where or who else"."""
    word = words[token]
    if word in lists["question"] and words[token + 1 : token + 2] and words[token + 1] in lists["else"]:
        return "question"
    if words[token - 1] not in (",", '"'):
        return None
    if word in lists["question"] and word not in lists["relative_after_comma"]:
        return "question"
    if word in lists["auxiliary"]:
        return "request" if _is_request(words, token, lists) else None
    commands = word in lists["request"] and word not in lists["noun_too"]
    return "request" if commands and not lists["frame"].isdisjoint(words[token + 1 : token + 2]) else None


def _is_request(words: list[str], first: int, lists: Mapping[str, frozenset[str]]) -> bool:
    word = words[first]
    second = words[first + 1] if first + 1 < len(words) else ""
    if word in lists["modal"]:
        if second not in lists["asker"]:
            return False
        third = next((word for word in words[first + 2 :] if word not in lists["courteous"]), "")
        return third in lists["request"] or third in lists["say"]
    return word in lists["request"] and (second not in lists["no_request"] or word in lists["searching"])


def _has_verb(tokens: Tokens, first: int, end: int, protected: bytearray, language: Language) -> bool:
    """Whether there is an auxiliary that belongs to no relative clause."""
    words, lists = tokens.words, language.words
    for token in range(first, end):
        named = token > first and tokens.cased and tokens.text[tokens.starts[token]].isupper()  # "Lightness of Being"
        if words[token] in lists["auxiliary"] and not protected[token] and not named:
            before = words[token - 1] if token > first else ""
            if before in lists["auxiliary"] or before in lists["not"]:
                continue
            if (
                before not in lists["relative"]
                and before not in lists["joint"]
                and before not in lists["purpose"]
                and before != ","
            ):
                return True
    return False
