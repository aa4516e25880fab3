"""Decomposition by a language model, held to the text and to the query language, with the cues to fall back on."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyserini_compneg.decompose.alignment import align
from pyserini_compneg.decompose.chat import ChatFault, ChatModel
from pyserini_compneg.decompose.decomposing import decompose
from pyserini_compneg.decompose.decomposition import Decomposition, Reason, undivided
from pyserini_compneg.errors import CompNegError, DecompositionError
from pyserini_compneg.expression import Atom, format_expression, parse
from pyserini_compneg.files import atomic_writer
from pyserini_compneg.json_objects import parse_json_object

URL, KEY, MODEL = "OPENAI_BASE_URL", "OPENAI_API_KEY", "COMPNEG_LLM_MODEL"
"""The environment variables that name the endpoint, its key and the model."""

_MOST_CHARACTERS = 2000
_MOST_ANSWERED = 4 * _MOST_CHARACTERS
_ATTEMPTS = 3
_PAUSE_S = 0.5
_MOST_SILENCES = 9
_CONFIDENCE = 0.9
_SCHEMA = {
    "type": "object",
    "properties": {"expression": {"type": "string"}},
    "required": ["expression"],
    "additionalProperties": False,
}
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


class LlmReader:
    """Reads texts with a chat model; calls like :func:`decompose`.

    An answer counts if it parses and all its words are the text's. After three answers that do not, or none, the cues
    decide, with a warning. After three texts in a row without an answer the model is not asked any more. Answers are
    kept on disk.

    Args:
        model: The model.
        cache: The folder for answers; None to keep none.
        most_requests: Requests in all, retries included.
        most_seconds: Time spent on requests and pauses between them in all, in seconds.
        fallback: What reads the texts that the model does not.
    """

    def __init__(
        self,
        model: ChatModel,
        cache: Path | None = None,
        *,
        most_requests: int = 10_000,
        most_seconds: float = 3600.0,
        fallback: Callable[[str], Decomposition] = decompose,
    ) -> None:
        self._model = model
        self._cache = cache
        self._requests_left = most_requests
        self._seconds_left = most_seconds
        self._fallback = fallback
        self._silences = 0

    def __call__(self, text: str) -> Decomposition:
        """The reading of a text.

        Raises:
            DecompositionError: The text is blank, or it falls to the cues and only says what it does not ask for.
        """
        if not text.strip():
            return self._fallback(text)
        try:
            kept = self._kept(text)
            return kept or self._asked(text)
        except ChatFault as fault:
            _logger.warning("query %r: %s; decomposed by cues", _shown(text), fault.message)
            return self._fallback(text)

    def _asked(self, text: str) -> Decomposition:
        if len(text) > _MOST_CHARACTERS:
            raise ChatFault(f"longer than the {_MOST_CHARACTERS} characters that a model is asked about", again=False)
        messages = [{"role": "system", "content": _INSTRUCTIONS}, {"role": "user", "content": text}]
        fault = ChatFault("not asked", again=False)
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._pause(fault.wait_s or _PAUSE_S * 2 ** (attempt - 1))
            try:
                answer = self._answer(messages)
                reading = _reading(text, answer)
            except ChatFault as error:
                fault = error
                if not fault.again:
                    break
                continue
            except CompNegError as error:
                message = str(error).partition("\n")[0]
                fault = ChatFault(f"the model's answer is none: {message}", again=True)
                self._silences = 0
                messages = [*messages[:2], {"role": "assistant", "content": answer}, _complaint(message)]
                continue
            self._silences = 0
            self._keep(text, reading)
            return reading
        raise fault

    def _pause(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self._seconds_left)))
        self._seconds_left -= seconds

    def _answer(self, messages: list[dict[str, str]]) -> str:
        """One answer, within the bounds."""
        if self._silences >= _MOST_SILENCES:
            raise ChatFault("the model has not answered several times", again=False)
        if self._requests_left < 1 or self._seconds_left <= 0:
            raise ChatFault("the requests or the time for the model are used up", again=False)
        self._requests_left -= 1
        start = time.monotonic()
        try:
            return self._model.answer(messages, _SCHEMA)
        except ChatFault as fault:
            self._silences += 1 if fault.again else _ATTEMPTS
            raise
        finally:
            self._seconds_left -= time.monotonic() - start

    def _path(self, text: str) -> Path | None:
        key = json.dumps([self._model.url, self._model.model, _INSTRUCTIONS, text])
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return None if self._cache is None else self._cache / f"{name}.json"

    def _kept(self, text: str) -> Decomposition | None:
        path = self._path(text)
        try:
            return _reading(text, path.read_text(encoding="utf-8")) if path else None
        except (OSError, ValueError):  # no answer, or a spoilt one
            return None

    def _keep(self, text: str, reading: Decomposition) -> None:
        path = self._path(text)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(path) as handle:
                json.dump({"expression": format_expression(reading.expression)}, handle)
        except OSError as error:
            _logger.warning("answers cannot be kept in %s: %s", path.parent, error.strerror or error)
            self._cache = None


def llm_reader(environment: Mapping[str, str], cache: Path | None) -> LlmReader:
    """A reader with the model that environment variables name.

    Raises:
        DecompositionError: A variable is missing, or no URL.
    """
    missing = [name for name in (URL, MODEL) if not environment.get(name)]
    if missing:
        raise DecompositionError(
            f"a language model needs {' and '.join(missing)} in the environment: the base of an OpenAI-compatible API, "
            f"such as http://localhost:8000/v1, and the model's name; {KEY} where it wants a key"
        )
    return LlmReader(ChatModel(environment[URL], environment[MODEL], environment.get(KEY)), cache)


def _reading(text: str, answer: str) -> Decomposition:
    """The decomposition that an answer means; what stands around its JSON does not count.

    Raises:
        CompNegError: It is none.
    """
    start, end = answer.find("{"), answer.rfind("}") + 1
    expression = parse_json_object(answer[start:end] if 0 <= start < end else answer, "answer").get("expression")
    if not isinstance(expression, str):
        raise DecompositionError("`expression` must be a text")
    if len(expression) > _MOST_ANSWERED:
        raise DecompositionError(f"`expression` has {len(expression):,} characters; at most {_MOST_ANSWERED:,} may be")
    tree = parse(expression)
    if isinstance(tree, Atom):
        return undivided(text, _CONFIDENCE)
    tree, parts = align(text, tree)
    reason = Reason("language model", text, (0, len(text)))
    return Decomposition(text, tree, parts, (reason,), _CONFIDENCE)


def _complaint(message: str) -> dict[str, str]:
    return {"role": "user", "content": f"That is not valid: {message}. Answer with the JSON object only."}


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
