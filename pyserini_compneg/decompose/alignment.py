"""Where the words of an expression stand in the text that it was made of."""

from __future__ import annotations

from pyserini_compneg.decompose.decomposition import Part, Span, words_of
from pyserini_compneg.decompose.tokens import Tokens, tokenise
from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, Difference, Expression


def align(text: str, expression: Expression) -> tuple[Expression, tuple[Part, ...]]:
    """The parts of an expression in a text, and the expression with what stands there as its atoms.

    Args:
        text: The text.
        expression: What someone else read it as.

    Raises:
        DecompositionError: An atom with a word that the text lacks, or without any; one that is both asked for and
            excluded.

    >>> from pyserini_compneg.expression import parse
    >>> _, parts = align("French or Italian comedies", parse("French comedies OR italian comedies"))
    >>> [part.text for part in parts], parts[0].spans
    (['French comedies', 'Italian comedies'], ((0, 6), (18, 26)))
    """
    tokens = tokenise(text)
    parts: list[Part] = []
    aligned = _aligned(tokens, expression, parts, excluded=False)
    both = {part.text for part in parts if part.excluded} & {part.text for part in parts if not part.excluded}
    if both:
        raise DecompositionError(f"{min(both)!r} is both asked for and excluded")
    return aligned, tuple(parts)


def _aligned(tokens: Tokens, expression: Expression, parts: list[Part], *, excluded: bool) -> Expression:
    match expression:
        case Atom():
            spans = _spans(tokens, expression.text)
            part = Part(words_of(tokens.text, spans), spans, excluded)
            parts.append(part)
            return Atom(part.text)
        case Difference(left, right):
            return Difference(
                _aligned(tokens, left, parts, excluded=excluded), _aligned(tokens, right, parts, excluded=not excluded)
            )
    return type(expression)(
        tuple(_aligned(tokens, operand, parts, excluded=excluded) for operand in expression.operands)
    )


def _spans(tokens: Tokens, atom: str) -> tuple[Span, ...]:
    """The words together if the text has them so, else each where it comes next, or first."""
    wanted = [word for word in tokenise(atom).words if word[0].isalnum()]
    if not wanted:
        raise DecompositionError(f"the atom {atom!r} has no word")
    places = [token for token in range(len(tokens)) if tokens.is_word(token)]
    words = [tokens.words[place] for place in places]
    for start in range(len(words) - len(wanted) + 1):
        if words[start : start + len(wanted)] == wanted:
            return ((tokens.starts[places[start]], tokens.ends[places[start + len(wanted) - 1]]),)
    spans: list[Span] = []
    after = 0
    for word in wanted:
        if word not in words:
            raise DecompositionError(f"the atom {atom!r} has the word {word!r}, which the text lacks")
        found = words.index(word, after) if word in words[after:] else words.index(word)
        after = found + 1
        span = (tokens.starts[places[found]], tokens.ends[places[found]])
        if spans and found and spans[-1][1] == tokens.ends[places[found - 1]]:
            spans[-1] = (spans[-1][0], span[1])
        else:
            spans.append(span)
    return tuple(spans)
