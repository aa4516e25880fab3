"""Adjectives with "non-", which exclude what they go on with: "non-European monarchs"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyserini_compneg.decompose.language import Language
from pyserini_compneg.decompose.sentences import Sentence
from pyserini_compneg.decompose.tokens import Tokens


@dataclass(frozen=True, slots=True)
class NegatedAdjective:
    """An adjective with a prefix that negates it.

    Attributes:
        start: Its first token.
        end: The token after its last; "non European" has two.
        cue: The characters of the prefix.
        item: The characters of the rest.
    """

    start: int
    end: int
    cue: tuple[int, int]
    item: tuple[int, int]


def find_adjectives(
    tokens: Tokens, protected: bytearray, sentences: Sequence[Sentence], language: Language
) -> Iterator[NegatedAdjective]:
    """The adjectives that exclude: a name, or in a phrase any word that does not make one word with the prefix.

    >>> from pyserini_compneg.decompose.language import load_language
    >>> from pyserini_compneg.decompose.tokens import tokenise
    >>> tokens, phrase = tokenise("non-European kings"), Sentence(0, 2, "phrase")
    >>> [found.item for found in find_adjectives(tokens, bytearray(2), [phrase], load_language())]
    [(4, 12)]
    """
    following = iter(sentences)
    sentence = next(following)
    for token in language.negated(tokens.words):
        while token >= sentence.end:
            sentence = next(following)
        if sentence.kind != "statement" and not protected[token]:
            found = _adjective(tokens, token, sentence, language)
            if found is not None:
                yield found


def _adjective(tokens: Tokens, token: int, sentence: Sentence, language: Language) -> NegatedAdjective | None:
    """With a noun after it, without which it would be one itself."""
    prefix, dash, word = tokens.words[token].partition("-")
    if prefix not in language.words["prefix"]:
        return None
    end = token + 1 if dash else token + 2
    if end >= sentence.end or not tokens.is_word(end):
        return None
    if not dash:
        word = tokens.words[token + 1]
    start, stop = tokens.ends[end - 1] - len(word), tokens.ends[end - 1]
    if word in language.words["non"] or not word.isalpha():
        return None
    written = tokens.text[start:stop]
    is_name = tokens.cased and written[0].isupper() and not written.isupper()
    if not is_name and sentence.kind != "phrase":
        return None
    return NegatedAdjective(token, end, (tokens.starts[token], tokens.starts[token] + len(prefix)), (start, stop))
