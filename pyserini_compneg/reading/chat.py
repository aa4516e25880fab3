"""A chat model behind an OpenAI-compatible API, named by environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pyserini_compneg.support.errors import QueryError, install_hint
from pyserini_compneg.support.json_objects import parse_json_object

URL, KEY, MODEL = "OPENAI_BASE_URL", "OPENAI_API_KEY", "COMPNEG_LLM_MODEL"
"""The environment variables that name the endpoint, its key and the model."""


class ChatModel:
    """A language model that answers by OpenAI's protocol.

    The client library repeats a failed request twice, no sooner than the server's ``Retry-After`` allows.

    Args:
        environment: The environment variables. Three of them describe the model.
        seconds: How long an answer may take.

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
            QueryError: The server cannot be reached, refuses, or sends something else than a chat completion.
        """
        import openai

        messages: list[Any] = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        settings: dict[str, Any] = dict(self.settings)
        try:
            completion = self._client.chat.completions.create(model=self.name, messages=messages, **settings)
            answer: object = completion.choices[0].message.content
        except openai.APIStatusError as error:
            raise QueryError(f"HTTP status {error.status_code}{_reason(error.body)}") from None
        except openai.OpenAIError as error:
            raise QueryError(" ".join(str(error.__cause__ or error).split()).rstrip(".")) from None
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):  # the answer is not such JSON
            raise QueryError("the answer is not a chat completion") from None
        if not isinstance(answer, str | None):
            raise QueryError("the answer is not a chat completion")
        return answer or ""


def answered_object(answer: str) -> dict[str, Any]:
    """The JSON object of an answer. Text around it is ignored.

    Raises:
        InputError: There is none.
    """
    start, end = answer.find("{"), answer.rfind("}") + 1
    return parse_json_object(answer[start:end] or answer, "answer")


def _reason(body: object) -> str:
    """What a server says of an error, such as the name of a model that it lacks."""
    said = body.get("message") if isinstance(body, dict) else None
    return f": {' '.join(said.split())[:200]}" if isinstance(said, str) else ""
