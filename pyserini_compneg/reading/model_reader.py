"""Reads plain texts with a small model that tags their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_compneg.reading.assembly import assembled, doubts, lost_words, strict_signs
from pyserini_compneg.reading.confidence import probability, signs_of
from pyserini_compneg.reading.decomposition import Decomposition, Span, shown_confidence, undivided
from pyserini_compneg.reading.words import EXCLUDED, TAGS, closed, is_tied, words_of
from pyserini_compneg.support.errors import ArgumentError, QueryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGED = Path(__file__).parents[1] / "resources" / "reader"
"""The folder of the reader in this package. It reads English."""

_MOST_CHARACTERS = 4000
"""Longer texts stay one atom. They are not requests, and exceed the tokens that the network reads."""


class ModelReader:
    """Reads texts as expressions. Several threads may use it.

    Args:
        folder: The folder of a reader; the default is the reader of this package.

    Attributes:
        threshold: The confidence below which a reading is not ``understood``.

    Raises:
        QueryError: The folder cannot be used, see :class:`~pyserini_compneg.reading.tagger.Tagger`.
    """

    def __init__(self, folder: str | Path = PACKAGED) -> None:
        from pyserini_compneg.reading.tagger import Tagger  # imports numpy, which other commands do not need

        self._tagger = Tagger(Path(folder))
        self.threshold = self._tagger.threshold

    def __call__(self, text: str) -> Decomposition:
        """The decomposition of one text; see :meth:`read`."""
        return self.read([text])[0]

    def read(self, texts: Sequence[str]) -> list[Decomposition]:
        """The decompositions of texts. Reading many texts at once is faster than one after another.

        A text that excludes and joins nothing, only excludes, or is too long for the model stays one atom. ``doubts``
        has the reasons why a decomposition may be wrong.

        Args:
            texts: Plain texts, without operators.

        Raises:
            ArgumentError: Texts that are not a list of str.
            QueryError: A text is blank, or the network fails.
        """
        return [reading for reading, _ in self.signed(texts)]

    def signed(self, texts: Sequence[str]) -> list[tuple[Decomposition, tuple[float, ...] | None]]:
        """What :meth:`read` returns, each with the signs of its confidence; None if the text is too long for the model.

        A training fits the confidence to them.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"read takes a list of str and decompose one str, got {type(texts).__name__}")
        for text in texts:
            if not text.strip():
                raise QueryError(f"the text is blank, got {text[:20]!r}; give words to search for")
        short = [text for text in texts if len(text) <= _MOST_CHARACTERS]
        words = [words_of(text) for text in short]
        read = iter(
            [self._assembled(*entry) for entry in zip(short, words, self._tagger.emissions(short, words), strict=True)]
        )
        return [next(read) if len(text) <= _MOST_CHARACTERS else (_too_long(text), None) for text in texts]

    def tags(self, text: str) -> list[str] | None:
        """The tags of a text's words, from ``TAGS``; None if the text is too long for the model."""
        if len(text) > _MOST_CHARACTERS:
            return None
        words = words_of(text)
        (scores,) = self._tagger.emissions([text], [words])
        if scores is None:
            return None
        tags, _ = self._tagger.chain.best_path(scores, is_tied(text, words))
        return [TAGS[tag] for tag in self._closed(text, words, tags)]

    def _closed(self, text: str, words: Sequence[Span], tags: Sequence[int]) -> list[int]:
        return closed(tags, [text[start:end].lower() for start, end in words], self._tagger.separators)

    def _assembled(
        self, text: str, words: Sequence[Span], scores: NDArray[np.float64] | None
    ) -> tuple[Decomposition, tuple[float, ...] | None]:
        if scores is None:
            return _too_long(text), None
        tags, wants = self._tagger.chain.best_path(scores, is_tied(text, words))
        chances = self._tagger.chain.chances(scores, tags)
        tags = self._closed(text, words, tags)
        reading = assembled(text, words, tags, 1.0)
        lost = lost_words(text, words, tags, reading.parts, self._tagger.unasked)
        signs = signs_of(tags, chances, lost)
        confidence = probability(signs, self._tagger.confidence)
        if not wants:
            why = "it only excludes" if EXCLUDED in tags else "it asks for nothing"
            return undivided(text, confidence, why), signs
        said = (*reading.doubts, *strict_signs(text))
        if confidence < self.threshold:
            unsure = f"the reading is unsure ({shown_confidence(confidence)})"
            said = (*said, *doubts(reading.parts, [text[slice(*words[place])] for place in lost]), unsure)
        return replace(reading, confidence=confidence, understood=not said, doubts=tuple(dict.fromkeys(said))), signs


def _too_long(text: str) -> Decomposition:
    return undivided(text, 0.0, "it is too long")


@cache
def packaged_reader() -> ModelReader:
    """The reader of this package, loaded on first use."""
    return ModelReader()


def decompose(text: str) -> Decomposition:
    """Reads a plain English text as an expression: what is wanted, what is excluded, and how the parts are joined.

    Args:
        text: A plain text, without operators.

    Returns:
        The decomposition. A text that excludes and joins nothing stays one atom.

    Raises:
        QueryError: The text is blank, or onnxruntime or tokenizers is not installed.

    >>> result = decompose("What films did Jodie Foster make, besides Contact?")
    >>> result.expression
    Difference(left=Atom(text='What films did Jodie Foster make'), right=Atom(text='Contact'))
    >>> decompose("To be or not to be").expression
    Atom(text='To be or not to be')
    """
    return packaged_reader()(text)
