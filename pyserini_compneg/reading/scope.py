"""How far an exclusion reaches, and where one begins that stands before its cue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.reading.cues import Cue
from pyserini_compneg.reading.language import Language
from pyserini_compneg.reading.sentences import Sentence
from pyserini_compneg.reading.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Clauses:
    """For each token, what it stands in.

    Attributes:
        closing: The parenthesis that closes the innermost one open at the token, itself if it opens one; -1 where none
            is open, or it is never closed.
        after_verb: 1 where the verb of the clause has come before, and in all of a request.
        verbs: 1 for what looks like a verb: an auxiliary, or a past form without a capital.
    """

    closing: list[int]
    after_verb: bytearray
    verbs: bytearray


def find_clauses(tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], language: Language) -> Clauses:
    """Looks at every token once."""
    lists = language.words
    verbs = bytearray(len(tokens))
    auxiliary, is_past = lists["auxiliary"], language.is_past
    for token, word in enumerate(tokens.words):
        if word in auxiliary:
            verbs[token] = not protected[token]
        elif is_past(word):
            verbs[token] = not protected[token] and not tokens.text[tokens.starts[token]].isupper()
    after_verb = bytearray(len(tokens))
    for sentence in sentences:
        after = sentence.kind != "question"
        for token in range(sentence.start, sentence.end):
            if tokens.words[token] in lists["question"] and token and tokens.words[token - 1] == ",":
                after = sentence.kind != "question"
            after_verb[token] = after
            after = after or bool(verbs[token])
    return Clauses(_closing(tokens), after_verb, verbs)


def _closing(tokens: Tokens) -> list[int]:
    closing = [-1] * len(tokens)
    if "(" not in tokens.words:
        return closing
    partners: dict[int, int] = {}
    opened: list[int] = []
    for token, word in enumerate(tokens.words):
        if word == "(":
            opened.append(token)
        elif word == ")" and opened:
            partners[opened.pop()] = token
    open_now: list[int] = []
    for token in range(len(tokens)):
        if token in partners:
            open_now.append(partners[token])
        elif open_now and token == open_now[-1]:
            open_now.pop()
        closing[token] = open_now[-1] if open_now else -1
    return closing


def find_scope(tokens: Tokens, protected: bytearray, clauses: Clauses, cue: Cue, limit: int, language: Language) -> int:
    """The token that ends what a cue excludes.

    - In parentheses it ends with them.
    - At the start of a sentence it ends where the question begins: "Besides X, what else ...".
    - Before the verb of its clause it ends at the verb: "Who besides X wrote Y?".
    - Elsewhere it goes on to the end of the sentence, or to what begins anew: ", and how ...".
    """
    closed = clauses.closing[cue.start]
    if closed >= cue.end:
        return min(closed, limit)
    while limit and tokens.words[limit - 1] in ("?", "!", "."):
        limit -= 1
    if all(not tokens.is_word(token) for token in range(cue.sentence.start, cue.start)):
        return _leading(tokens, protected, cue, limit, language)
    stop = _new_beginning(tokens, protected, clauses, cue, limit, language)
    if limit < cue.sentence.end - 1 and stop == limit:
        stop = _before_next_cue(tokens, protected, cue, limit, language)
    if not clauses.after_verb[cue.start]:
        stop = _verb(tokens, clauses, cue, stop, language)
    return stop


def _leading(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
    """Where the question begins; the first of several places that is no relative clause, else the last of them."""
    lists = language.words
    comma = fallback = None
    for token in range(cue.end + 1, limit):
        word, before = tokens.words[token], tokens.words[token - 1]
        after_comma = before == "," or (before == '"' and tokens.words[token - 2] == ",")
        if before == "," and comma is None and not protected[token - 1]:
            comma = token - 1
        if protected[token] or not (after_comma or before == '"' or word in lists["question"]):
            continue
        relative = word in lists["relative"] or word in lists["relative_after_comma"]
        if not after_comma and before != '"' and relative:
            if word in lists["choosing"] and comma is None and not _goes_on_as_relative(tokens, token + 1, language):
                return token
            continue
        next_word = tokens.words[token + 1] if token + 1 < limit else ""
        if word in lists["question"]:
            if word in lists["oblique"] or (
                word in lists["relative_after_comma"] and _goes_on_as_relative(tokens, token + 1, language)
            ):
                fallback = token
            elif after_comma or next_word in lists["other"] or next_word in lists["auxiliary"]:
                return token
        elif after_comma and (
            word in lists["auxiliary"] or (word in lists["request"] and word not in lists["noun_too"])
        ):
            return token
    return fallback or comma or limit


def _goes_on_as_relative(tokens: Tokens, token: int, language: Language) -> bool:
    """Whether a verb follows "who" or "which", so that it may go on with what stands before it."""
    if token >= len(tokens):
        return False
    word = tokens.words[token]
    return word in language.words["auxiliary"] or language.is_past(word)


def _new_beginning(
    tokens: Tokens, protected: bytearray, clauses: Clauses, cue: Cue, limit: int, language: Language
) -> int:
    """Where a clause begins that has nothing to do with what is excluded."""
    lists = language.words
    aside = cue.start > 0 and "," in (tokens.words[cue.start - 1], tokens.words[cue.start])
    depth = 0
    for token in range(cue.end, limit):
        word, before = tokens.words[token], tokens.words[token - 1]
        depth += {")": -1, "(": 1}.get(word, 0)
        if depth < 0:
            return token
        if depth or protected[token] or token == cue.end:
            continue
        next_word = tokens.words[token + 1] if token + 1 < limit else ""
        if word == ";" or (word == "-" == tokens.words[cue.start - 1]):  # an aside between dashes
            return token
        if word in lists["conjunction"] and (next_word in lists["question"] or next_word in lists["modal"]):
            return token
        if before != ",":
            if (word in lists["purpose"] or word in lists["relative"]) and _is_bare_name(
                tokens, cue.end, token, language
            ):
                return token
            continue
        if word in lists["auxiliary"] or (word in lists["question"] and word not in lists["relative_after_comma"]):
            return token
        if word in lists["question"] and next_word in lists["other"]:
            return token
        if aside and (word in lists["resuming"] or clauses.verbs[token]):
            return token
    return limit


def _is_bare_name(tokens: Tokens, start: int, end: int, language: Language) -> bool:
    """Whether there is only a name, as in "contributions by chemists other than Glenn Seaborg to physics"."""
    while start < end and tokens.words[start] in language.words["article"]:
        start += 1
    return tokens.cased and all(tokens.is_name(token) or not tokens.is_word(token) for token in range(start, end))


def _before_next_cue(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
    """Where two things are named, each with an exclusion of its own: "A without B and C without D"."""
    for token in range(cue.end + 1, limit):
        if not protected[token] and tokens.words[token] in language.words["joint"] and token + 2 < limit:
            return token
    return limit


def _verb(tokens: Tokens, clauses: Clauses, cue: Cue, stop: int, language: Language) -> int:
    """The verb of the clause, which no relative pronoun precedes, or the comma before it that closes an aside."""
    relative, joint = language.words["relative"], language.words["joint"]
    aside = cue.start > cue.sentence.start and tokens.words[cue.start - 1] == ","
    comma: int | None = None
    for token in range(cue.end + 1, stop):
        if aside and token + 1 < stop and tokens.words[token] == "," and tokens.words[token + 1] not in joint:
            comma = token
        if clauses.verbs[token] and tokens.words[token - 1] not in relative:
            return token if comma is None else comma
    return stop if comma is None else comma  # "Which birds, besides X, swim?": the verb is unknown


def find_beginning(tokens: Tokens, protected: bytearray, cue: Cue, first: int, language: Language) -> int | None:
    """The token that begins what a cue after it excludes; None if that cannot be told from what is wanted.

    - What is the subject of a clause ("Documents about X are not relevant") begins with the clause.
    - What is only named ("the Rhine aside", "with X excluded") begins after the comma before it, or at a word that
      leads in; or with the sentence, if something comes after a comma: "The Rhine aside, which rivers ...".
    """
    lists = language.words
    if tokens.words[cue.start] in lists["auxiliary"]:
        for token in range(cue.start - 1, first, -1):
            if not protected[token] and (tokens.words[token] in lists["joint"] and tokens.words[token - 1] == ","):
                return token + 1
            if tokens.words[token] == ";":
                return token + 1
        return first
    leads = cue.end < cue.sentence.end - 1 and tokens.words[cue.end] == ","
    listed = False
    for token in range(cue.start - 1, first - 1, -1):
        word = tokens.words[token]
        if word in lists["auxiliary"]:
            return None
        if word in lists["opener"]:
            return token
        if not protected[token] and word in (",", "(", "-", ";", ":") and not (listed and leads):
            return token + 1
        listed = listed or (word in lists["and"] or word in lists["or"])
    return first if leads else None
