"""From a text to the expression that it means. Each stage is a module of its own, and this one puts them together."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, Difference, Expression, Intersection, Union
from pyserini_compneg.expression.decomposition import Decomposition, Part, Reason, undivided
from pyserini_compneg.reading.coordination import Joined, Run, join
from pyserini_compneg.reading.cues import find_cues
from pyserini_compneg.reading.exclusions import Exclusion, find_exclusions
from pyserini_compneg.reading.language import Language, load_language
from pyserini_compneg.reading.protection import protect
from pyserini_compneg.reading.sentences import Sentence, split_sentences
from pyserini_compneg.reading.tokens import Tokens, tokenise
from pyserini_compneg.reading.wanted import find_wanted, trim_wanted

_OF_NAMES = ("absence", "addition", "contrast", "irrelevance")
"""Kinds of exclusions that many titles and claims are made of: "Without Remorse", "Beyond Good and Evil"."""


def decompose(text: str) -> Decomposition:
    """Reads a plain text as an expression, by cues for what is excluded and for what is joined.

    A text without a cue stays one atom, as it is.

    Args:
        text: What someone typed. Nothing in it is an operator.

    Raises:
        DecompositionError: The text is blank, or says only what it does not ask for.

    >>> result = decompose("What films did Jodie Foster make, besides Contact?")
    >>> result.expression
    Difference(left=Atom(text='films did Jodie Foster make'), right=Atom(text='Contact'))
    >>> decompose("To be or not to be").expression
    Atom(text='To be or not to be')
    """
    if not text.strip():
        raise DecompositionError(f"the text is blank, got {text!r}; give words to search for")
    language = load_language()
    tokens = tokenise(text, language.spellings)
    phrases = language.cues.find(tokens.words)
    if not phrases and not _joins_or_negates(tokens, language):
        return undivided(text)
    protected = protect(tokens, language)
    sentences = split_sentences(tokens, protected, language)
    cues = find_cues(tokens, phrases, protected, sentences, language)
    exclusions = find_exclusions(tokens, protected, sentences, cues, language)
    runs = find_wanted(tokens, protected, sentences, exclusions, language)
    if exclusions and not runs:
        first = exclusions[0]
        if _is_whole(tokens, first):
            return undivided(text)
        cue = text[slice(*first.cue)]
        raise DecompositionError(
            f"{_shown(text)} says only what it does not ask for, after {cue!r}; say what is wanted too, or search the "
            "text as it is"
        )
    joined = _joined(tokens, runs, protected, sentences, language)
    if not exclusions and not isinstance(joined, Joined):
        return undivided(text)
    return _assembled(tokens, joined, exclusions)


def _joins_or_negates(tokens: Tokens, language: Language) -> bool:
    """Whether any word may join or negate by itself. A text without such a word and without a cue stays whole."""
    return (
        not language.words["or"].isdisjoint(tokens.words)
        or bool(language.negated(tokens.words))
        or bool(language.also.find(tokens.words))
    )


def _is_whole(tokens: Tokens, exclusion: Exclusion) -> bool:
    """Whether a text that would only exclude is rather a name or a claim: "Without Remorse", "Age is irrelevant"."""
    start = exclusion.items[0][0]
    return exclusion.kind in _OF_NAMES or (
        tokens.cased and tokens.text[start].isupper() and tokens.text.lstrip()[0].isupper()
    )


def _joined(
    tokens: Tokens, runs: Sequence[Run], protected: bytearray, sentences: Sequence[Sentence], language: Language
) -> Joined | tuple[Run, ...]:
    """Coordination is looked for only in a text of one run: the words around an exclusion belong together."""
    if len(runs) > 1 or len(sentences) > 1:
        return tuple(runs)
    kind = sentences[0].kind
    trimmed = trim_wanted(tokens, *runs[0], True, protected, language)
    return join(tokens, trimmed if trimmed[0] < trimmed[1] else runs[0], protected, kind, language)


def _assembled(tokens: Tokens, joined: Joined | tuple[Run, ...], exclusions: Sequence[Exclusion]) -> Decomposition:
    parts: list[Part] = []
    reasons: list[Reason] = []
    confidences: list[float] = []
    expression = _wanted(tokens, joined, parts, reasons, confidences)
    excluded: dict[Expression, None] = {}  # in order; a list of thousands would be searched again and again
    for exclusion in exclusions:
        reasons.append(Reason(exclusion.kind, tokens.text[slice(*exclusion.cue)], exclusion.cue))
        confidences.append(exclusion.confidence)
        for item in exclusion.items:
            part = Part.of(tokens.text, (item,), excluded=True)
            if (atom := Atom(part.text)) not in excluded:
                parts.append(part)
                excluded[atom] = None
    if excluded:
        expression = Difference(expression, Union(tuple(excluded)) if len(excluded) > 1 else next(iter(excluded)))
    reasons.sort(key=lambda reason: reason.span)
    return Decomposition(tokens.text, expression, tuple(parts), tuple(reasons), min(confidences))


def _wanted(
    tokens: Tokens,
    joined: Joined | tuple[Run, ...],
    parts: list[Part],
    reasons: list[Reason],
    confidences: list[float],
) -> Expression:
    if not isinstance(joined, Joined):
        spans = [(tokens.starts[start], tokens.ends[end - 1]) for start, end in joined]
        part = Part.of(tokens.text, spans, excluded=False)
        parts.append(part)
        return Atom(part.text)
    span = tokens.starts[joined.cue[0]], tokens.ends[joined.cue[1] - 1]
    reasons.append(Reason(joined.kind, tokens.text[slice(*span)], span))
    confidences.append(joined.confidence)
    operands = tuple(_wanted(tokens, operand, parts, reasons, confidences) for operand in joined.operands)
    return Union(operands) if joined.kind == "union" else Intersection(operands)


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
