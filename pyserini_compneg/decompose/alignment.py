"""Where the words of an expression stand in the text that it was made of."""

from __future__ import annotations

from pyserini_compneg.decompose.decomposition import Part, Span
from pyserini_compneg.decompose.tokens import Tokens, tokenise
from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, Difference, Expression


def align(text: str, expression: Expression) -> tuple[Part, ...]:
    """The parts of an expression, each of whose words has to come from the text.

    Args:
        text: The text.
        expression: What someone else read it as.

    Raises:
        DecompositionError: An atom with a word that the text lacks, or without any.

    >>> parts = align("French or Italian comedies", Atom("French comedies"))
    >>> parts[0].spans
    ((0, 6), (18, 26))
    """
    tokens = tokenise(text)
    return tuple(
        Part(atom.text, _spans(tokens, atom.text), excluded) for atom, excluded in _leaves(expression, excluded=False)
    )


def _leaves(expression: Expression, *, excluded: bool) -> list[tuple[Atom, bool]]:
    match expression:
        case Atom():
            return [(expression, excluded)]
        case Difference(left, right):
            return [*_leaves(left, excluded=excluded), *_leaves(right, excluded=not excluded)]
    return [leaf for operand in expression.operands for leaf in _leaves(operand, excluded=excluded)]


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
