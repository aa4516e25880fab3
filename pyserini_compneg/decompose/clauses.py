"""What scopes depend on, found in one pass over the text: parentheses and verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens


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
    """Looks at every token once.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens, question = tokenise("who (not I) sang it"), Sentence(0, 7, "question")
    >>> clauses = find_clauses(tokens, bytearray(7), [question], load_language())
    >>> clauses.closing, list(clauses.after_verb)
    ([-1, 4, 4, 4, -1, -1, -1], [0, 0, 0, 0, 0, 0, 1])
    """
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
