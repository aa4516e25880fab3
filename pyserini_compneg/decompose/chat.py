"""One question to a chat model behind an OpenAI-compatible endpoint, with the standard library alone."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

from pyserini_compneg.errors import DecompositionError

_MOST_BYTES = 1 << 20
_MOST_TOKENS = 1024
_LONGEST_WAIT_S = 10.0
_LONGEST_TIMEOUT_S = 3600.0
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
        DecompositionError: No http or https URL, no model, a key that no header can hold, or no sensible timeout.
    """

    url: str
    model: str
    key: str | None = None
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Checks the settings."""
        if not _is_url(self.url):
            raise DecompositionError(
                f"the URL of a language model must be http:// or https:// and a host, in ASCII, got {self.url!r}"
            )
        if not self.model:
            raise DecompositionError("name the language model that is to be asked")
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise DecompositionError("the key of a language model must be printable ASCII, without line ends")
        if not 0 < self.timeout_s <= _LONGEST_TIMEOUT_S:
            raise DecompositionError(
                f"the timeout must be above 0 and at most {_LONGEST_TIMEOUT_S:g} seconds, got {self.timeout_s!r}"
            )

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
        return _content(_in_time(lambda: _response(request, self.timeout_s), self.timeout_s))


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and " " not in url
    except ValueError:  # of a port or an address
        return False


def _in_time(ask: Callable[[], bytes], timeout_s: float) -> bytes:
    """What ``ask`` returns or raises, unless it takes too long.

    Timeouts of sockets begin anew with each byte, and the look-up of a name has none. A server that sends a byte now
    and then must not hold us for ever, so that it is left to a thread that may be abandoned.
    """
    answers: list[bytes] = []
    faults: list[Exception] = []

    def work() -> None:
        try:
            answers.append(ask())
        except Exception as error:  # raised again where it is waited for
            faults.append(error)

    thread = threading.Thread(target=work, name="chat completion", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if answers:
        return answers[0]
    raise faults[0] if faults else ChatFault("the answer took too long", again=True)


def _response(request: urllib.request.Request, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    try:
        with _OPENER.open(request, timeout=timeout_s) as response:
            return _read(response, deadline)
    except urllib.error.HTTPError as error:
        wait = _seconds(error.headers.get("Retry-After"))
        raise ChatFault(f"HTTP status {error.code}", error.code in _RETRIED, wait) from None
    except RemoteDisconnected:
        raise ChatFault("the server hung up", again=True) from None
    except TimeoutError:
        raise ChatFault("the answer took too long", again=True) from None
    except OSError as error:  # URLError among them, whose reason is another
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or (reason if isinstance(reason, str) else type(reason).__name__)
        raise ChatFault(f"no connection: {' '.join(str(said).lower().split())}", again=True) from None
    except (HTTPException, ValueError):  # what a server says then is not repeated: it may be anything
        raise ChatFault("the answer is not HTTP", again=True) from None


def _read(response: Any, deadline: float) -> bytes:
    """The whole answer, unless it is too long; after the deadline nobody waits for it any more."""
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
    """Retry-After in seconds, bounded; dates and nonsense count as no hint."""
    header = (header or "").strip()
    if not (header.isascii() and header.isdigit()):
        return 0.0
    return float(min(int(header), _LONGEST_WAIT_S)) if len(header) < 10 else _LONGEST_WAIT_S
