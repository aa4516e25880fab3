"""One question to a chat model behind an OpenAI-compatible endpoint, with the standard library alone."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from pyserini_compneg.errors import DecompositionError

_MOST_BYTES = 1 << 20
_MOST_TOKENS = 1024
_LONGEST_WAIT_S = 10.0
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to wherever the server says."""

    def redirect_request(self, *_: Any) -> None:
        """Follows none; the status becomes an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(eq=False)
class ChatFault(Exception):
    """Why there is no answer; never leaves this package.

    Attributes:
        message: What happened.
        again: Whether asking again may help.
        wait_s: How long the server asks to wait before, in seconds.
    """

    message: str
    again: bool
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model and where it is.

    Attributes:
        url: The base of the API, for example ``https://host/v1``.
        model: The name of the model.
        key: What the server wants to be shown, if anything.
        timeout_s: How long one answer may take, in seconds.

    Raises:
        DecompositionError: No http or https URL, no model, or a timeout that is no number above 0.
    """

    url: str
    model: str
    key: str | None = None
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Checks the settings."""
        if not self.url.startswith(("http://", "https://")):
            raise DecompositionError(
                f"the URL of a language model must start with http:// or https://, got {self.url!r}"
            )
        if not self.model:
            raise DecompositionError("name the language model that is to be asked")
        if not self.timeout_s > 0:
            raise DecompositionError(f"the timeout must be a number of seconds above 0, got {self.timeout_s!r}")

    def answer(self, messages: Sequence[dict[str, str]], schema: dict[str, Any]) -> str:
        """What the model answers, a text that should be JSON of a schema.

        Raises:
            ChatFault: No answer in time, or none that is one.
        """
        form = {"type": "json_schema", "json_schema": {"name": "query", "strict": True, "schema": schema}}
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": _MOST_TOKENS,
            "response_format": form,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        url = f"{self.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        return _content(self._response(request))

    def _response(self, request: urllib.request.Request) -> bytes:
        deadline = time.monotonic() + self.timeout_s
        try:
            with _OPENER.open(request, timeout=self.timeout_s) as response:
                return _read(response, deadline)
        except urllib.error.HTTPError as error:
            wait = _seconds(error.headers.get("Retry-After"))
            raise ChatFault(f"HTTP status {error.code}", error.code in _RETRIED, wait) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ChatFault(str(reason).lower() or type(error).__name__, again=True) from None


def _read(response: Any, deadline: float) -> bytes:
    """The whole answer; a server that sends a byte now and then must not hold us for ever."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise ChatFault("the answer took too long", again=True)
        if size > _MOST_BYTES:
            raise ChatFault(f"the answer has more than {_MOST_BYTES} bytes", again=False)
    return b"".join(parts)


def _content(answer: bytes) -> str:
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ChatFault("the answer is no chat completion", again=True) from None
    if not isinstance(content, str):
        raise ChatFault("the answer has no text", again=True)
    return content


def _seconds(header: str | None) -> float:
    """Retry-After in seconds, bounded; dates count as no hint."""
    try:
        return min(max(float(header or 0), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        return 0.0
