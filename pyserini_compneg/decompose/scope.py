"""How far an exclusion reaches."""

from __future__ import annotations

from collections.abc import Mapping

from pyserini_compneg.decompose.clauses import Clauses
from pyserini_compneg.decompose.cues import Cue
from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.tokens import Tokens


def find_scope(tokens: Tokens, protected: bytearray, clauses: Clauses, cue: Cue, limit: int, language: Language) -> int:
    """The token that ends what a cue excludes.

    - In parentheses it ends with them.
    - At the start of a sentence it ends where the question begins: "Besides X, what else ...".
    - Before the verb of its clause it ends at the verb: "Who besides X wrote Y?".
    - Elsewhere it goes on to the end of the sentence, or to what begins anew: ", and how ...".

    Args:
        tokens: The text.
        protected: What ends nothing.
        clauses: Its parentheses and verbs.
        cue: The cue.
        limit: Where the scope ends at the latest: the end of the sentence, or the next cue.
        language: Its words.
    """
    closed = clauses.closing[cue.start]
    if closed >= cue.end:
        return min(closed, limit)
    limit = _without_end(tokens, limit)
    if all(not tokens.is_word(token) for token in range(cue.sentence.start, cue.start)):
        return _leading(tokens, protected, cue, limit, language)
    stop = _new_beginning(tokens, protected, clauses, cue, limit, language)
    if limit < cue.sentence.end - 1 and stop == limit:
        stop = _before_next_cue(tokens, protected, cue, limit)
    if not clauses.after_verb[cue.start]:
        stop = _verb(tokens, clauses, cue, stop, language)
    return stop


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
            if word in lists["oblique"] or (
                word in lists["relative_after_comma"] and _goes_on_as_relative(tokens, token + 1, lists)
            ):
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
        if word in lists["conjunction"] and (next_word in lists["question"] or next_word in ("can", "could")):
            return token
        if before != ",":
            if (word == "to" or word in lists["relative"]) and _is_bare_name(tokens, cue.end, token, language):
                return token
            continue
        if word in lists["auxiliary"] or (word in lists["question"] and word not in lists["relative_after_comma"]):
            return token
        if word in lists["question"] and next_word in lists["other"]:
            return token
        if aside and (word in lists["preposition"] or clauses.verbs[token]):
            return token
    return limit


def _is_bare_name(tokens: Tokens, start: int, end: int, language: Language) -> bool:
    """Whether there is only a name, as in "contributions by chemists other than Glenn Seaborg to physics"."""
    while start < end and tokens.words[start] in language.words["article"]:
        start += 1
    return tokens.cased and all(tokens.is_name(token) or not tokens.is_word(token) for token in range(start, end))


def _before_next_cue(tokens: Tokens, protected: bytearray, cue: Cue, limit: int) -> int:
    """Where two things are named, each with an exclusion of its own: "A without B and C without D"."""
    for token in range(cue.end + 1, limit):
        word = tokens.words[token]
        if not protected[token] and word in ("and", "or", "but") and token + 2 < limit:
            return token
    return limit


def _verb(tokens: Tokens, clauses: Clauses, cue: Cue, stop: int, language: Language) -> int:
    """The verb of the clause, which no relative pronoun precedes."""
    relative = language.words["relative"]
    for token in range(cue.end + 1, stop):
        if clauses.verbs[token] and tokens.words[token - 1] not in relative:
            return token
    return stop
