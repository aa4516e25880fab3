"""How far an exclusion reaches."""

from __future__ import annotations

from collections.abc import Mapping

from pyserini_compneg.decompose.cues import Cue
from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.tokens import Tokens


def find_scope(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
    """The token that ends what a cue excludes.

    - In parentheses it ends with them.
    - At the start of a sentence it ends where the question begins: "Besides X, what else ...".
    - Before the verb of its clause it ends at the verb: "Who besides X wrote Y?".
    - Elsewhere it goes on to the end of the sentence, or to what begins anew: ", and how ...".

    Args:
        tokens: The text.
        protected: What ends nothing.
        cue: The cue.
        limit: Where the scope ends at the latest: the end of the sentence, or the next cue.
        language: Its words.
    """
    closed = _closing_parenthesis(tokens, cue, limit)
    if closed is not None:
        return closed
    limit = _without_end(tokens, limit)
    if all(not tokens.is_word(token) for token in range(cue.sentence.start, cue.start)):
        return _leading(tokens, protected, cue, limit, language)
    stop = _new_beginning(tokens, protected, cue, limit, language)
    if limit < cue.sentence.end - 1 and stop == limit:
        stop = _before_next_cue(tokens, protected, cue, limit, language)
    if not _has_verb_before(tokens, protected, cue, language):
        stop = min(stop, _verb(tokens, protected, cue, stop, language))
    return stop


def _closing_parenthesis(tokens: Tokens, cue: Cue, limit: int) -> int | None:
    """The parenthesis that closes what the cue stands in."""
    depth = 0
    for token in range(cue.start - 1, cue.sentence.start - 1, -1):
        depth += {")": -1, "(": 1}.get(tokens.words[token], 0)
        if depth > 0:
            break
    if tokens.words[cue.start] == "(":
        depth = 1
    if depth <= 0:
        return None
    for token in range(cue.end, cue.sentence.end):
        depth += {")": -1, "(": 1}.get(tokens.words[token], 0)
        if depth <= 0:
            return min(token, limit)
    return None


def _without_end(tokens: Tokens, limit: int) -> int:
    while limit and tokens.words[limit - 1] in ("?", "!", "."):
        limit -= 1
    return limit


def _leading(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
    """Where the question begins; the first of several places that is no relative clause, else the last of them."""
    lists = language.words
    comma = fallback = None
    for token in range(cue.end + 1, limit):
        word, before = tokens.words[token], tokens.words[token - 1]
        after_comma = before == "," or (before == '"' and tokens.words[token - 2] == ",")
        if after_comma and before == "," and comma is None and not protected[token - 1]:
            comma = token - 1
        if protected[token] or not (after_comma or before == '"' or word in ("what", "how")):
            continue
        next_word = tokens.words[token + 1] if token + 1 < limit else ""
        if word in lists["question"]:
            if word in lists["relative_after_comma"] and _goes_on_as_relative(tokens, token + 1, lists):
                fallback = token
            elif after_comma or next_word in lists["other"] or next_word in lists["auxiliary"]:
                return token
        elif after_comma and (word in lists["auxiliary"] or (word in lists["request"] and word != "name")):
            return token
    return fallback or comma or limit


def _goes_on_as_relative(tokens: Tokens, token: int, lists: Mapping[str, frozenset[str]]) -> bool:
    """Whether a verb follows "who" or "which", so that it may go on with what stands before it."""
    if token >= len(tokens):
        return False
    word = tokens.words[token]
    return word in lists["auxiliary"] or word in lists["past"] or (word.endswith("ed") and len(word) > 4)


def _new_beginning(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
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
        if word == ";" or (word == "-" and before != "-" and tokens.starts[token] > tokens.ends[token - 1]):
            return token
        if word in lists["conjunction"] and (next_word in lists["question"] or next_word in ("can", "could")):
            return token
        if before != ",":
            continue
        if word in lists["auxiliary"] or (word in lists["question"] and word not in lists["relative_after_comma"]):
            return token
        if word in lists["question"] and next_word in lists["other"]:
            return token
        if aside and (word in lists["preposition"] or _is_past(tokens, token, lists)):
            return token
    return limit


def _before_next_cue(tokens: Tokens, protected: bytearray, cue: Cue, limit: int, language: Language) -> int:
    """Where two things are named, each with an exclusion of its own: "A without B and C without D"."""
    for token in range(cue.end + 1, limit):
        word = tokens.words[token]
        if not protected[token] and word in ("and", "or", "but") and token + 2 < limit:
            return token
    return limit


def _has_verb_before(tokens: Tokens, protected: bytearray, cue: Cue, language: Language) -> bool:
    """Whether the clause has its verb before the cue; requests have theirs at their start."""
    if cue.sentence.kind != "question":
        return True
    lists = language.words
    clause = cue.start
    while clause > cue.sentence.start and (
        tokens.words[clause - 1] != "," or tokens.words[clause] not in lists["question"]
    ):
        clause -= 1
    return any(
        not protected[token] and (tokens.words[token] in lists["auxiliary"] or _is_past(tokens, token, lists))
        for token in range(clause, cue.start)
    )


def _verb(tokens: Tokens, protected: bytearray, cue: Cue, stop: int, language: Language) -> int:
    lists = language.words
    for token in range(cue.end + 1, stop):
        if protected[token] or tokens.words[token - 1] in lists["relative"]:
            continue
        if tokens.words[token] in lists["auxiliary"] or _is_past(tokens, token, lists):
            return token
    return stop


def _is_past(tokens: Tokens, token: int, lists: Mapping[str, frozenset[str]]) -> bool:
    word = tokens.words[token]
    if tokens.text[tokens.starts[token]].isupper():
        return False
    return word in lists["past"] or (word.endswith("ed") and len(word) > 4)
