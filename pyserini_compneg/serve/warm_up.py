"""Requests that a server makes of itself before it is ready, so that no client waits for what loads at first use."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message

from pyserini_compneg.display.highlights import texts_of
from pyserini_compneg.lucene import ENGLISH
from pyserini_compneg.serve.replies import API
from pyserini_compneg.serve.served_index import ServedIndex

_SECONDS = 2.0
"""After this time no further request for an index begins."""

_ROUNDS = 3

_FREQUENT = "first new year time people world life work use film 1 2 10 2000"
"""Words of which many collections have one. The words of other queries are from the documents that they find."""

_logger = logging.getLogger(__name__)


async def warm_up(app: ASGIApp, indexes: Mapping[str, ServedIndex]) -> None:
    """Searches each index as the page does. A fault is logged, and the server starts all the same."""
    for name, index in indexes.items():
        until, words = time.monotonic() + _SECONDS, tuple(_FREQUENT.split()[:3])
        for form, more in _searches(index):
            try:
                answer = await _get(app, f"/{API}/{name}/search", {"query": form.format(*words), **more})
            except Exception as error:
                _logger.warning("index %s: a search before the first request failed: %s", name, error)
                break
            words = _words_of(answer.get("candidates", ())) or words
            if time.monotonic() > until:
                break


def _searches(index: ServedIndex) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Queries with all operators, for three words, and their other parameters."""
    shown = {"explain": "true", "highlight": "true"}
    if index.filter_fields:
        shown["facets"] = ",".join(index.filter_fields)
    yield _FREQUENT, {}
    for _ in range(_ROUNDS):
        if index.language == ENGLISH:
            yield "{0} {1} without {2}", {"read": "model", **shown}
        yield "{0} AND {1} NOT {2}", shown
        yield "{0} OR {1} NOT! {2}", {}


async def _get(app: ASGIApp, path: str, parameters: Mapping[str, str]) -> Any:
    """The answer, from JSON. An answer to an error is raised."""
    body, status = bytearray(), 500

    async def receive() -> Message:
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        body.extend(message.get("body", b""))

    query = urlencode(parameters).encode()
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    await app(scope, receive, send)
    answer = json.loads(body)
    if status >= 400:
        raise HTTPException(status, answer["error"])
    return answer


def _words_of(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Three words of the documents of an answer, or none."""
    texts = (text for one in found for _, text in texts_of(one["doc"]))
    words = re.findall(r"[^\W\d_]{4,20}", " ".join(texts).lower())
    return tuple(words[:: len(words) // 3][:3]) if len(words) > 3 else ()
