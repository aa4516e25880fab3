"""Middleware for every request: checks key, origin and body size, adds headers, and logs a line."""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from urllib.parse import unquote, unquote_plus, unquote_to_bytes, urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyserini_compneg.serve.backend import Backend
from pyserini_compneg.serve.search_pool import queue_full
from pyserini_compneg.serve.settings import ServerSettings
from pyserini_compneg.support.files import content_digest
from pyserini_compneg.support.progress import stages

_LONGEST_QUERY_LOGGED = 500

_HASH = 16
"""The length of a hash of a query, in hexadecimal digits."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")

_TRACE_PARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""The header of the W3C's Trace Context: version, trace, span, flags."""

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _CONTENT_SECURITY_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "*",
    "Access-Control-Allow-Headers": "*, Authorization",
    "Access-Control-Max-Age": "600",
}
"""What a browser may send from a page of an allowed origin. It never adds cookies or passwords of its own."""

_JSON = (b"application/json", b"application/jsonl", b"application/x-ndjson")
_NO_KEY = "Unauthorized: send an API key as X-API-Key, or as Authorization: Bearer"

_logger = logging.getLogger(__name__)


def error_answer(error: HTTPException) -> Response:
    """The answer to an error, ``{"error": sentence}``, or the object that the error has as its detail."""
    content = error.detail if isinstance(error.detail, dict) else {"error": error.detail}
    return JSONResponse(content, error.status_code, error.headers)


class Gate:
    """The outermost layer of the server.

    Paths that begin with one of ``guarded`` are searches and writes. They need a key, only pages of the server and of
    allowed origins may request them, and searches are refused unread while the pool is full. ``hosts`` are the names of
    the server; None allows any name. This check prevents web pages from reading answers through a name that resolves to
    this machine. ``log_queries`` is that of ``ServeOptions``. The route learns in ``request.state.may_write`` whether
    the request has one of ``write_keys``, in ``may_copy`` whether it has one of ``copy_keys``, and in ``offers_copies``
    whether the settings have such keys.
    """

    def __init__(
        self,
        app: ASGIApp,
        backend: Backend,
        guarded: tuple[str, ...],
        settings: ServerSettings,
        hosts: Container[str] | None,
        log_queries: str,
    ) -> None:
        self._app, self._backend, self._guarded, self._hosts = app, backend, guarded, hosts
        self._log_queries, self._secret = log_queries, secrets.token_bytes()
        self._needs_key, self._known_keys = False, frozenset[str]()
        self.admit(settings)

    def admit(self, settings: ServerSettings) -> None:
        """Admits the keys and origins of these settings, and no others, from the next request on.

        A gate that has asked for keys goes on asking for them. It keeps former keys out of the log, too.
        """
        self._needs_key |= settings.needs_key
        self._reading, self._writing, self._copying = (
            [content_digest(key) for key in keys]
            for keys in (settings.api_keys, settings.write_keys, settings.copy_keys)
        )
        self._offers_copies = settings.offers_copies
        self._known_keys |= settings.secrets
        self._origins = {origin.encode() for origin in settings.allowed_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, received = time.perf_counter(), 500, 0
        spent: dict[str, float] = {}
        stages.set(spent)
        headers = dict(scope["headers"])
        names = self._names(headers)
        added = [*_HEADERS, *self._shared_with(headers.get(b"origin")), (b"x-request-id", names["request_id"].encode())]

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [*added, (b"server-timing", _timing(spent).encode())]
                message = {**message, "headers": [*map(_without_host, message["headers"]), *own]}
            await send(message)

        async def receive_on() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._backend.limits.body_bytes:
                raise self._too_large()
            return message

        try:
            if refusal := self._refusal(scope, headers):
                await error_answer(refusal)(scope, receive, send_on)
            elif self._is_preflight(scope["method"], headers):
                await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send_on)
            else:
                await self._app(scope, receive_on, send_on)
        finally:
            seconds = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path", None) or "other"
            self._backend.metrics.answered(route, status, seconds, spent)
            self._log(scope, status, seconds, spent, names)

    def _shared_with(self, origin: bytes | None) -> list[tuple[bytes, bytes]]:
        """The headers by which a browser lets a page of an allowed origin read an answer, also that of an error."""
        shared = [(b"vary", b"origin")] if self._origins else []  # for caches
        if origin is not None and origin in self._origins:
            shared += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", b"*")]
        return shared

    def _is_preflight(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a browser asks, without the key, if a page of an allowed origin may send a request."""
        asks = method == "OPTIONS" and b"access-control-request-method" in headers
        return asks and headers.get(b"origin") in self._origins

    def _refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> HTTPException | None:
        if self._hosts is not None and (host := _host(scope)) not in self._hosts:
            return HTTPException(421, f"This server is not called {host[:80]!r}: with api_keys it may have any name")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._backend.limits.body_bytes:
            return self._too_large()
        if not _is_utf8(scope.get("raw_path", b""), scope["query_string"]):
            return HTTPException(400, "The address is not UTF-8 text; percent-encode it as such")
        if scope["path"].endswith("\n"):  # the router would ignore it
            return HTTPException(404, "The path ends with a line feed, and no route or document does")
        if not scope["path"].startswith(self._guarded) or self._is_preflight(scope["method"], headers):
            return None
        may_write, may_copy = (_has_key(scope["headers"], keys) for keys in (self._writing, self._copying))
        asks_files = self._offers_copies and _is_of_files(scope)
        is_known = may_write or may_copy or _has_key(scope["headers"], self._reading)
        if (self._needs_key and not is_known) or (asks_files and not headers.keys() & {b"authorization", b"x-api-key"}):
            return HTTPException(401, _NO_KEY, {"WWW-Authenticate": "Bearer"})
        scope.setdefault("state", {}).update(may_write=may_write, may_copy=may_copy, offers_copies=self._offers_copies)
        if headers.get(b"origin") not in self._origins and _is_foreign(scope["method"], headers):
            said = "A page of another origin may not ask this server; allowed_origins in its settings has none like it"
            return HTTPException(403, said)
        if scope["method"] in ("POST", "PUT") and not _is_json(headers.get(b"content-type", b"")):
            return HTTPException(415, "The body must be JSON; send it with Content-Type: application/json")
        needs_place = not (_is_write(scope) or _is_of_files(scope))
        return queue_full() if self._backend.pool.is_full and needs_place else None

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"The body has more than {self._backend.limits.body_bytes:,} bytes")

    def _names(self, headers: Mapping[bytes, bytes]) -> dict[str, str]:
        """The names of a request in other logs: its id, perhaps a new one, and where it is in a distributed trace."""
        given = headers.get(b"x-request-id", b"")
        is_taken = _REQUEST_ID.fullmatch(given) and not _holds_key(given.decode(), self._known_keys)
        names = {"request_id": given.decode() if is_taken else secrets.token_hex(16)}
        parent = headers.get(b"traceparent", b"")
        is_taken = _TRACE_PARENT.fullmatch(parent) and not _holds_key(parent.decode(), self._known_keys)
        return names | ({"traceparent": parent.decode()} if is_taken else {})

    def _log(
        self, scope: Scope, status: int, seconds: float, spent: Mapping[str, float], names: Mapping[str, str]
    ) -> None:
        """Logs one line. Path and query are percent-encoded, so they cannot start another line.

        Possible keys are left out: the query of a request without a valid key, and every part that contains a key.
        """
        method, path = scope["method"], scope.get("raw_path", scope["path"].encode()).decode("ascii", "replace")
        query = scope["query_string"].decode("ascii", "replace")
        known = [*self._reading, *self._writing, *self._copying]
        is_admitted = not self._needs_key or _has_key(scope["headers"], known)
        if not is_admitted or self._log_queries == "no" or _holds_key(query, self._known_keys):
            query = "..." if query else ""
        elif self._log_queries == "hash" and query:
            query = hmac.digest(self._secret, scope["query_string"], "sha256").hex()[:_HASH]
        if _holds_key(path, self._known_keys) or _holds_key(method, self._known_keys):
            method, path = "...", "..."
        query = query[:_LONGEST_QUERY_LOGGED]
        client = (scope.get("client") or ("-",))[0]
        values = {"client": client, "method": method, "path": path, "query": query, "status": status}
        values |= {"milliseconds": round(1000 * seconds, 3), "stages": spent, **names}
        times = " ".join(f"{name}={milliseconds:.1f}" for name, milliseconds in spent.items())
        target = f"{path}?{query}" if query else path
        line = f"{client} {method} {target} {status} {1000 * seconds:.1f} ms {times}".rstrip()
        named = " ".join(f"{name}={value}" for name, value in names.items())
        _logger.info("%s", f"{line} {named}", extra={"progress": values})


def _has_key(headers: Sequence[tuple[bytes, bytes]], digests: Sequence[str]) -> bool:
    """Whether ``X-API-Key`` or ``Authorization: Bearer`` has one of the keys. The duration reveals nothing.

    Digests of the keys are compared, always all of them.
    """
    given = [value.strip() for name, value in headers if name == b"x-api-key"]
    for name, value in headers:
        scheme, _, key = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == b"bearer":
            given.append(key.strip())
    return any([hmac.compare_digest(content_digest(key), known) for key in given for known in digests])


def _is_write(scope: Scope) -> bool:
    """Whether a request would change an index. It needs no place in the pool of searches."""
    method = scope["method"]
    return method in ("PUT", "DELETE") or (method == "POST" and scope["path"].endswith("/documents"))


def _is_of_files(scope: Scope) -> bool:
    """Whether a request reads the files of an index. It needs no place in the pool of searches, either."""
    return re.match(r"/\w+/[^/]+/files(?:/|$)", scope["path"]) is not None


def _is_utf8(*encoded: bytes) -> bool:
    try:
        for one in encoded:
            unquote_to_bytes(one).decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_foreign(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page of another origin sent the request. It cannot read the answer, but the search would have its cost.

    A key in a header shows that the request is intended: browsers send it to another origin only with permission.
    """
    if headers.keys() & {b"authorization", b"x-api-key"}:
        return False
    if site := headers.get(b"sec-fetch-site"):
        is_link = method == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        return site not in (b"same-origin", b"none") and not is_link
    if (origin := headers.get(b"origin")) is None:
        return False
    return origin.lower().partition(b"://")[2] != headers.get(b"host", b"").lower()


def _is_json(content_type: bytes) -> bool:
    """Whether a body may be JSON, or lines of it, by its type. No type and the type of ``curl -d`` are accepted."""
    kind = content_type.partition(b";")[0].strip().lower()
    return kind in (b"", b"application/x-www-form-urlencoded", *_JSON)


def _without_host(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """The header without the host of a redirection, because the client chooses the host."""
    name, value = header
    if name != b"location":
        return header
    there = urlsplit(value.decode("latin-1"))
    path = f"/{there.path.lstrip('/')}"  # two slashes would start a host name
    return name, (f"{path}?{there.query}" if there.query else path).encode("latin-1")


def _host(scope: Scope) -> str:
    """The host name in the request, without the port."""
    called = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("ascii", "replace")
    name = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::\d*)?", called)
    return (name[1] if name else called).lower()


def _timing(spent: Mapping[str, float]) -> str:
    return ", ".join(f"{name};dur={milliseconds}" for name, milliseconds in spent.items())


def _holds_key(text: str, keys: Iterable[str]) -> bool:
    """Whether a text contains a key, percent-encoded or not."""
    forms = (text, unquote(text), unquote_plus(text))
    return any(key in form for form in forms for key in keys)
