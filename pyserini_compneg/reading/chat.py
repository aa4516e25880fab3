"""A chat model behind an OpenAI-compatible API, named by environment variables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pyserini_compneg.support.errors import QueryError, install_hint
from pyserini_compneg.support.json_objects import parse_json_object

URL, KEY, MODEL = "OPENAI_BASE_URL", "OPENAI_API_KEY", "COMPNEG_LLM_MODEL"
"""The environment variables that name the endpoint, its key and the model."""

_MOST_BYTES = 1 << 20
"""The longest completion: 1,024 tokens and what belongs to them take a few kilobytes."""


class ChatModel:
    """A language model that answers by OpenAI's protocol.

    The client library sends a request again, up to twice and no sooner than the server's ``Retry-After`` allows, if
    the connection fails before an answer begins or the status says that the server is busy or at fault.

    Args:
        environment: The environment variables. Three of them describe the model.
        seconds: How long the server may send nothing, and how long a completion may take from its first byte to its
            last.

    Attributes:
        url: The base of the API.
        name: The model's name.
        settings: What is sent with each text.

    Raises:
        QueryError: A variable is missing, the URL is not one, or the package openai is not installed.
    """

    settings: Mapping[str, Any] = MappingProxyType(
        {"temperature": 0, "max_tokens": 1024, "response_format": {"type": "json_object"}}
    )

    def __init__(self, environment: Mapping[str, str], seconds: float = 30.0) -> None:
        missing = [name for name in (URL, MODEL) if not environment.get(name)]
        if missing:
            raise QueryError(
                f"a language model needs {' and '.join(missing)} in the environment: the base of an OpenAI-compatible "
                f"API, such as http://localhost:8000/v1, and the model's name; {KEY} where it wants a key"
            )
        self.url, self.name = environment[URL], environment[MODEL]
        if not self.url.startswith(("http://", "https://")):
            raise QueryError(f"{URL} must start with http:// or https://, got {self.url!r}")
        try:
            from openai import DefaultHttpxClient, OpenAI
        except ImportError:
            raise QueryError(f"openai is not installed: {install_hint('llm')}") from None
        self._seconds = seconds
        key = environment.get(KEY) or "none"
        if not (key.isascii() and key.isprintable()):
            raise QueryError(f"{KEY} must be printable ASCII")
        try:  # a redirect would send the text to an unknown server
            client = DefaultHttpxClient(follow_redirects=False)
            self._client = OpenAI(base_url=self.url, api_key=key, timeout=seconds, http_client=client)
        except Exception as cause:  # errors of httpx: an unusable URL, or proxy of the environment
            fault = " ".join(str(cause).split())
            raise QueryError(f"{URL}={self.url}, or the proxy for it, cannot be used: {fault}") from None

    def answer(self, instructions: str, text: str) -> str:
        """The model's answer to a text, which should be a JSON object; empty if there is none.

        Raises:
            QueryError: The server cannot be reached or refuses, its answer has no end, or it is no chat completion.
        """
        import openai

        messages: list[Any] = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        settings: dict[str, Any] = dict(self.settings)
        send = self._client.chat.completions.with_streaming_response.create  # a body that can be limited
        try:
            with send(model=self.name, messages=messages, **settings) as response:
                return _content(self._limited(response.iter_bytes()))
        except QueryError:
            raise
        except openai.APIStatusError as error:
            raise QueryError(f"HTTP status {error.status_code}{_reason(error.body)}") from None
        except Exception as error:  # errors of openai, and of the library by which it reads
            said = " ".join(str(error.__cause__ or error).split()).rstrip(".")
            raise QueryError(said or type(error).__name__) from None

    def _limited(self, blocks: Iterable[bytes]) -> bytes:
        """A body within the limits. The client's own limit of time is for each of its reads."""
        until, body = time.monotonic() + self._seconds, bytearray()
        for block in blocks:
            body += block
            if len(body) > _MOST_BYTES:
                raise QueryError(f"the answer has more than {_MOST_BYTES:,} bytes")
            if time.monotonic() > until:
                raise QueryError(f"the answer did not end in {self._seconds:g} s")
        return bytes(body)


def answered_object(answer: str) -> dict[str, Any]:
    """The JSON object of an answer. Text around it is ignored.

    Raises:
        InputError: There is none.
    """
    start, end = answer.find("{"), answer.rfind("}") + 1
    return parse_json_object(answer[start:end] or answer, "answer")


def _content(body: bytes) -> str:
    """The text of a chat completion. Some servers leave out an empty one."""
    try:
        content = json.loads(body)["choices"][0]["message"].get("content")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        content = False
    if not isinstance(content, str | None):
        raise QueryError("the answer is not a chat completion")
    return content or ""


def _reason(body: object) -> str:
    """What a server says of an error, such as the name of a model that it lacks."""
    said = body.get("message") if isinstance(body, dict) else None
    return f": {' '.join(said.split())[:200]}" if isinstance(said, str) else ""
