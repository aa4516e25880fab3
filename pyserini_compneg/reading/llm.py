"""The readers by name, and the reader that asks a language model.

If the language model answers with words that are not in the text, the answer is discarded.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pyserini_compneg.expression import Atom, Difference, Exclusion, Expression, Intersection, format_expression, parse
from pyserini_compneg.expression.syntax import SEARCHED_AS_WORDS, signs_as_words
from pyserini_compneg.reading.chat import ChatModel, answered_object
from pyserini_compneg.reading.decomposition import READINGS, Decomposition, Part, Span, undivided
from pyserini_compneg.reading.model_reader import ModelReader, decompose, packaged_reader
from pyserini_compneg.reading.words import words_of
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, CompNegError, QueryError
from pyserini_compneg.support.files import cache_home, content_digest
from pyserini_compneg.support.progress import warn_of
from pyserini_compneg.support.staging import atomic_writer
from pyserini_compneg.support.terminal import shown

ReadTexts = Callable[[Sequence[str]], list[Decomposition]]
"""Reads several texts at once."""

_MOST_CHARACTERS = 2000
_MOST_FAILURES = 3
_CONFIDENCE = 0.9
_INSTRUCTIONS = """\
You turn a search query into a set expression over atoms. An atom is a run of words taken from the query.
Operators, in capitals: A AND B, A OR B, A NOT B; parentheses group; put an atom in double quotes if it holds AND, OR,
NOT, quotes or brackets. Rules:
- Use only words of the query. Leave out words of request ("can you tell me") and of exclusion ("other than").
- NOT is only for what the user does not want to find. A negation that belongs to an event ("who did not vote"), to a
  title or to an idiom is part of an atom.
- Where operands share a head, repeat it: "French or Italian comedies" is French comedies OR Italian comedies.
- A query that excludes and joins nothing is one atom: the whole query, unchanged.
Answer with a JSON object {"expression": "..."}.
"""

_logger = logging.getLogger(__name__)


def reader(name: str) -> ReadTexts | None:
    """The function that decomposes plain texts. Make one for all texts of a run, because ``llm`` counts its failures.

    Args:
        name: One of ``READINGS``, or the folder of a trained reader.

    Returns:
        The function; None for ``expression`` and ``plain``, which do not decompose.

    Raises:
        QueryError: The name is unknown, a reader cannot be loaded, or the environment names no language model.

    >>> reader("model")(["spy films but not comedies"])[0].expression
    Difference(left=Atom(text='spy films'), right=Atom(text='comedies'))
    >>> reader("plain")
    """
    if name in ("expression", "plain"):
        return None
    if name == "llm":
        return LlmReader(os.environ, cache_home() / "decompositions").read
    if name == "model":
        return packaged_reader().read
    if not os.path.isdir(name):
        known = ", ".join(READINGS)
        raise QueryError(f"no way to read texts is named {name!r}: known are {known}, or a reader's folder")
    return _trained(os.path.realpath(name), os.stat(name).st_mtime_ns).read


@lru_cache(maxsize=2)
def _trained(folder: str, changed_ns: int) -> ModelReader:
    """Loads the reader of a folder. Later calls return the same reader, unless the folder has changed."""
    return ModelReader(folder)


def read_texts(texts: Sequence[str], read: str | Path = READINGS[0]) -> list[Expression | Decomposition]:
    """Reads texts in one of the ways of ``--read``. One warning counts texts that may be misread, with an example.

    Raises:
        ArgumentError: ``read`` is not a text.
        QueryError: See ``parse`` and :func:`reader`; or a plain text is blank.

    >>> read_texts(["gates NOT doors"], "plain")
    [Atom(text='gates NOT doors')]
    """
    if not isinstance(read, (str, Path)):
        raise ArgumentError(f"read must be one of {', '.join(READINGS)}, or the folder of a reader, got {shown(read)}")
    if (decomposed := reader(str(read))) is None:
        if read != "expression":
            return list(map(Atom, texts))
        with_words = {text: shown(text) for text in texts if signs_as_words(text)}
        warn_of("query", "queries", SEARCHED_AS_WORDS, with_words, texts)
        return list(map(parse, texts))
    decompositions = decomposed(texts)
    warn_of_doubts(dict(zip(texts, decompositions, strict=True)))
    return [*decompositions]


def warn_of_doubts(decompositions: Mapping[str, Decomposition], shown_by: str = "the command read") -> None:
    """Warns of texts that may be misread. Keys are texts or their ids; ``shown_by`` is what shows decompositions."""
    doubted = {
        name: f"{shown(decomposition.text)} ({'; '.join(decomposition.doubts)})"
        for name, decomposition in decompositions.items()
        if decomposition.doubts
    }
    warn_of("text", "texts", f"may be misread; {shown_by} shows how texts are read", doubted, decompositions)


class LlmReader:
    """Reads texts with a chat model, with the interface of :func:`decompose`.

    An answer is used if it is an expression and all its words are in the text. Otherwise, and if there is no answer,
    the package's model reads the text, with a warning. After three texts in a row without an answer, no more requests
    are sent.

    Args:
        environment: The environment variables. Three of them describe the model.
        cache: The folder that keeps the answers.

    Raises:
        QueryError: A variable is missing, the URL is not one, or the package openai is not installed.
    """

    def __init__(self, environment: Mapping[str, str], cache: Path) -> None:
        self._model = ChatModel(environment)
        self._cache = cache
        self._failures = 0

    def __call__(self, text: str) -> Decomposition:
        if not text.strip():
            return decompose(text)
        key = json.dumps([self._model.url, self._model.name, _INSTRUCTIONS, text])
        path = self._cache / f"{content_digest(key)}.json"
        with suppress(OSError, ValueError):  # the answer is missing or damaged
            return _reading(text, path.read_text(encoding="utf-8"))
        try:
            reading = _reading(text, self._answer(text))
        except CompNegError as error:
            _logger.warning("query %.60r: %s; read by the model in the package", text, error.message)
            return decompose(text)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(path) as handle:
                json.dump({"expression": format_expression(reading.expression)}, handle)
        except OSError as error:
            _logger.warning("the answer cannot be kept: %s", error)
        return reading

    def read(self, texts: Sequence[str]) -> list[Decomposition]:
        """The decompositions of texts, one after another."""
        return [self(text) for text in checked_list("texts", texts)]

    def _answer(self, text: str) -> str:
        """The model's answer, a text that should be a JSON object."""
        if len(text) > _MOST_CHARACTERS:
            raise QueryError(f"the text has {len(text)} characters, and at most {_MOST_CHARACTERS} are sent")
        if self._failures >= _MOST_FAILURES:
            raise QueryError("the model has not answered several times")
        self._failures += 1
        answer = self._model.answer(_INSTRUCTIONS, text)
        self._failures = 0
        return answer


def _reading(text: str, answer: str) -> Decomposition:
    """The decomposition that an answer gives. Errors are ``CompNegError``s."""
    expression = answered_object(answer).get("expression")
    if not isinstance(expression, str):
        raise QueryError("`expression` must be a text")
    tree = parse(expression)
    if isinstance(tree, Atom):
        return undivided(text, _CONFIDENCE)
    parts: list[Part] = []
    aligned = _aligned(text, tree, parts, excluded=False)
    if both := {part.text for part in parts if part.excluded} & {part.text for part in parts if not part.excluded}:
        raise QueryError(f"{min(both)!r} is both asked for and excluded")
    return Decomposition(text, aligned, tuple(parts), _CONFIDENCE)


def _aligned(text: str, expression: Expression, parts: list[Part], *, excluded: bool) -> Expression:
    """The expression with the spelling of the text. Adds its atoms to the parts."""
    match expression:
        case Atom():
            part = Part.of(text, _spans(text, expression.text), excluded=excluded)
            parts.append(part)
            return Atom(part.text)
        case Difference(left, right):
            kept = _aligned(text, left, parts, excluded=excluded)
            return Difference(kept, _aligned(text, right, parts, excluded=not excluded))
        case Exclusion() | Intersection(strict=True):
            raise QueryError("`expression` must have no NOT! and no AND!")
    operands = (_aligned(text, operand, parts, excluded=excluded) for operand in expression.operands)
    return type(expression)(tuple(operands))


def _spans(text: str, atom: str) -> list[Span]:
    """The span of an atom as a phrase; otherwise spans of its words, each after the word before it where possible."""
    wanted, _ = _lower_words(atom)
    if not wanted:
        raise QueryError(f"the atom {atom!r} has no word")
    words, places = _lower_words(text)
    if missing := next((word for word in wanted if word not in words), None):
        raise QueryError(f"the atom {atom!r} has the word {missing!r}, which the text lacks")
    for start in range(len(words) - len(wanted) + 1):
        if words[start : start + len(wanted)] == wanted:
            return [(places[start][0], places[start + len(wanted) - 1][1])]
    spans: list[Span] = []
    after = 0
    for word in wanted:
        found = words.index(word, after if word in words[after:] else 0)
        first, end = places[found]
        if spans and found == after:  # the word continues the last span
            first, _ = spans.pop()
        spans.append((first, end))
        after = found + 1
    return spans


def _lower_words(text: str) -> tuple[list[str], list[Span]]:
    """The words of a text without signs, in lower case and with plain apostrophes, and their spans."""
    places = [(start, end) for start, end in words_of(text) if text[start].isalnum()]
    return [text[start:end].lower().replace("’", "'") for start, end in places], places
