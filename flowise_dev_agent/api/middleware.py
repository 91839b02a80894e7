"""Applied to every request before a route gets it: metrics, headers, whose key it is, the size limit of the body.

Plain ASGI middleware: it covers new routes without further work, and does not buffer streams.
"""

import asyncio
import logging
import re
import secrets
import time
from asyncio import sleep
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from opentelemetry.trace import INVALID_SPAN, Span, SpanKind
from pydantic.networks import HttpUrl
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flowise_dev_agent.api.access import OWNER_HEADER, door_of
from flowise_dev_agent.api.origin import may_change, origin_of
from flowise_dev_agent.api.problems import problem_response
from flowise_dev_agent.caller import ALL_SCOPES, Caller, Door, RequestIds, acting_for, answering, current_caller
from flowise_dev_agent.errors import AgentError, SignInFailedError
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.observability.metrics import HTTP_SECONDS
from flowise_dev_agent.observability.tracing import failed, next_traceparent, span, traceparent
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.settings import ServerSettings
from flowise_dev_agent.texts import text
from flowise_dev_agent.web import build_id

if TYPE_CHECKING:
    from flowise_dev_agent.access.sign_in import SignIn

#: The page and its files hold nothing that is not in this repository; `/live` reveals nothing, `/ready` how much work
#: waits, to balancers that have no key; the others lead to the
#: provider that people sign in at.
PUBLIC_PATHS = frozenset(
    {
        "/",
        "/docs",
        "/live",
        "/ready",
        "/auth/sign-in",
        "/auth/callback",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    }
)
PUBLIC_PREFIX = "/assets/"
#: What share links open.
SHARED_PATH = "/shared"

logger = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
#: Asked by machines all the time: no trace of them is of use.
_UNTRACED = frozenset({"/live", "/ready", "/metrics"})

#: Wrong keys of an address within a minute that are answered at once, and the longest wait of the later ones.
_FREE_TRIES = 5
SLOWEST_SECS = 2.0
_MOST_ADDRESSES = 10_000
MAX_HEADER_BYTES = 32 * 1024
#: The whole body of a request has to arrive within this time.
BODY_SECS = 60.0

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def is_public(method: str, path: str) -> bool:
    """True for paths that need no key."""
    return method in {"GET", "HEAD"} and (path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX))


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMiddleware:
    """Base of the middlewares: requests go to `serve`, everything else (the lifespan of the app) to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.serve if scope["type"] == "http" else self.app)(scope, receive, send)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or give it to `app`."""
        raise NotImplementedError


class MetricsMiddleware(HttpMiddleware):
    """Counts and times requests by route. Labels never hold ids, nor paths and methods that are not ours."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()

        async def send_timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"
                route = getattr(scope.get("route"), "path", "none")
                HTTP_SECONDS.labels(method, route, message["status"]).observe(time.monotonic() - began)
            await send(message)

        await self.app(scope, receive, send_timed)


class RequestIdMiddleware(HttpMiddleware):
    """Gives each request an id and a place in a trace, known to all behind it and in the headers of the response.

    A client's own `X-Request-Id` (up to 128 letters, digits and `._:-`) and `traceparent` are taken over, of the second
    the trace; what does not fit is replaced.
    """

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        given, place = headers.get("x-request-id", ""), headers.get("traceparent")
        with _server_span(scope, place) as current:
            ids = RequestIds(
                given if _REQUEST_ID.fullmatch(given) else uuid4().hex, traceparent(current) or next_traceparent(place)
            )
            scope.setdefault("state", {})["request"] = ids

            async def send_with_ids(message: Message) -> None:
                if message["type"] == "http.response.start":
                    sent = MutableHeaders(scope=message)
                    sent["X-Request-Id"] = ids.id or ""
                    sent["traceparent"] = ids.traceparent or ""
                    _answered(current, scope, message["status"])
                await send(message)

            with answering(ids), log_context(request=ids.id, trace=ids.trace_id):
                await self.app(scope, receive, send_with_ids)


def _server_span(scope: Scope, parent: str | None) -> AbstractContextManager[Span]:
    if scope["path"] in _UNTRACED or scope["path"].startswith(PUBLIC_PREFIX):
        return nullcontext(INVALID_SPAN)
    method = scope["method"] if scope["method"] in _METHODS else "other"
    return span(method, {"http.request.method": method}, kind=SpanKind.SERVER, parent=parent)


def _answered(current: Span, scope: Scope, status: int) -> None:
    """Name a span by its route, which is known by now."""
    route = getattr(scope.get("route"), "path", None)
    if route:
        current.update_name(f"{scope['method']} {route}")
        current.set_attribute("http.route", route)
    current.set_attribute("http.response.status_code", status)
    if status >= 500:
        failed(current, str(status))


class SecurityHeadersMiddleware(HttpMiddleware):
    """Adds headers that restrict the browser to what the page needs, and the one by which it notices a newer page."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        cache = "no-cache" if is_public(scope["method"], scope["path"]) else "no-store"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _CSP
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["X-Robots-Tag"] = "noindex, nofollow"
                headers.setdefault("Cache-Control", cache)
                if build := build_id():
                    headers["X-Page"] = build
            await send(message)

        await self.app(scope, receive, send_with_headers)


class _RefusedKeys:
    """Wrong keys by address within a minute: each one waits longer than the one before, and the log tells of them."""

    def __init__(self) -> None:
        self._minute = 0
        self._counts: Counter[str] = Counter()

    async def slow_down(self, address: str) -> None:
        """Count a wrong key, log the first and every hundredth of a minute, and wait."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute = minute
            self._counts.clear()
        if len(self._counts) >= _MOST_ADDRESSES:
            address = "others"
        self._counts[address] += 1
        count = self._counts[address]
        if count % 100 == 1:
            logger.warning("%d requests with a missing or wrong key from %s within a minute.", count, address)
        await sleep(min(SLOWEST_SECS, max(0, count - _FREE_TRIES) * 0.1))


class ApiKeyMiddleware:
    """Requires `Authorization: Bearer <key>` on all but the public paths, and sets the current caller.

    Without AGENT_API_KEY everybody may do everything, and a key only says who it is. With `sign_in` the cookie of a
    person and an access token of the provider open too. AGENT_METRICS_KEY opens /metrics, `Authorization: Share
    <token>` what is under SHARED_PATH, and neither anything else.
    """

    def __init__(self, app: ASGIApp, server: ServerSettings, sign_in: "SignIn | None" = None) -> None:
        self.app = app
        self._sign_in = sign_in
        self._origin = origin_of(HttpUrl(sign_in.base_url)) if sign_in else ""
        self._keys = [key.get_secret_value().encode() for key in server.api_keys]
        self._metrics_key = server.metrics_key.get_secret_value().encode() if server.metrics_key else None
        self._refused = _RefusedKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_public(scope["method"], scope["path"])):
            await self.app(scope, receive, send)
            return
        try:
            caller = await self._caller(scope)
        except AgentError as error:
            response = problem_response(
                error.http_status, path=scope["path"], code=error.code, detail=error.message, hint=error.hint
            )
            await response(scope, receive, send)
            return
        if caller is not None:
            with acting_for(caller):
                await self.app(scope, receive, send)
            return
        await self._refused.slow_down(scope["client"][0] if scope.get("client") else "unknown")
        response = problem_response(
            401,
            path=scope["path"],
            detail=text("error.key_refused"),
            details={"sign_in": "/auth/sign-in"} if self._sign_in else None,
            headers={"WWW-Authenticate": self._challenge()},
        )
        await response(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        headers = Headers(scope=scope)
        caller = await self._holder(scope, headers)
        if caller is None or (owner := headers.get(OWNER_HEADER)) is None:
            return caller
        runtime: Runtime = scope["app"].state.engine
        return await runtime.keys.acting_for(caller, owner)

    async def _holder(self, scope: Scope, headers: Headers) -> Caller | None:
        door = door_of(headers)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "share":
            return await self._by_link(scope, token.strip(), door)
        key = token.strip() if scheme.lower() == "bearer" else ""
        # All are compared: the time says nothing about which one it is.
        if sum(secrets.compare_digest(key.encode(), one) for one in self._keys):
            return Caller("AGENT_API_KEY", ALL_SCOPES, door=door)
        for_metrics = self._metrics_key if scope["path"] == "/metrics" else None
        if for_metrics is not None and secrets.compare_digest(key.encode(), for_metrics):
            return Caller("AGENT_METRICS_KEY", frozenset({"read"}), door=door)
        runtime: Runtime = scope["app"].state.engine
        if key and (caller := await runtime.keys.caller(key, door)):
            return caller
        if self._sign_in is not None:
            return await self._person(self._sign_in, scope["method"], headers, key, door)
        return Caller("local", ALL_SCOPES, door=door) if not self._keys else None

    async def _by_link(self, scope: Scope, token: str, door: Door) -> Caller | None:
        if scope["path"] != SHARED_PATH and not scope["path"].startswith(f"{SHARED_PATH}/"):
            return None
        runtime: Runtime = scope["app"].state.engine
        return await runtime.shares.caller(token, door)

    async def _person(self, sign_in: "SignIn", method: str, headers: Headers, key: str, door: Door) -> Caller | None:
        if key:
            return await sign_in.by_bearer(key, door)
        cookie = cookies_of(headers).get(sign_in.cookie)
        caller = await sign_in.by_cookie(cookie, "page") if cookie else None
        if caller is not None and not may_change(method, headers, self._origin):
            raise SignInFailedError(
                text("error.other_page"),
                hint=text("error.use_own_page"),
            )
        return caller

    def _challenge(self) -> str:
        realm = 'Bearer realm="flowise-dev-agent"'
        if self._sign_in is None:
            return realm
        # RFC 9728: where clients find out who gives tokens for this service.
        return f'{realm}, resource_metadata="{self._sign_in.base_url}/.well-known/oauth-protected-resource/mcp"'


#: Answered whatever else is under way: a liveness probe that fails restarts the process.
PROBES = frozenset({"/live", "/ready"})


class PlacesMiddleware(HttpMiddleware):
    """Answers 429 to a key with more than a quarter of `most` requests under way, streams and waits included, and to an
    owner or an address with more than half of them. It needs the caller, which ApiKeyMiddleware sets."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        super().__init__(app)
        self._most = {"key": max(1, most // 4), "owner": max(1, most // 2), "address": max(1, most // 2)}
        self._taken: Counter[tuple[str, str]] = Counter()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        caller = current_caller()
        who = [
            ("key", caller.key_id or caller.name),
            ("owner", caller.owner),
            ("address", scope["client"][0] if scope.get("client") else ""),
        ]
        if any(self._taken[one] >= self._most[one[0]] for one in who):
            detail = text("error.too_many_requests")
            await problem_response(429, path=scope["path"], detail=detail, headers={"Retry-After": "1"})(
                scope, receive, send
            )
            return
        self._taken.update(who)
        try:
            await self.app(scope, receive, send)
        finally:
            self._taken.subtract(who)
            for one in who:
                if not self._taken[one]:
                    del self._taken[one]


def cookies_of(headers: Headers) -> dict[str, str]:
    """The cookies of a request."""
    return cookie_parser(headers.get("cookie", ""))


_WITH_FLOW = frozenset(
    {"/flows/import", "/flows/import/read", "/flows/preview", "/flows/test", "/flows/validate", "/patterns/import"}
)


def carries_flow(path: str) -> bool:
    """True if the body of a request to this path may hold a whole flow."""
    return path in _WITH_FLOW or (path.startswith("/flows/") and path.endswith("/apply"))


class BodyLimitMiddleware(HttpMiddleware):
    """Answers 413 to a body over `max_bytes`, by its declared length or, without one, as it arrives; `flow_bytes` is
    the limit where a body may hold a flow, `file_bytes` that of an upload. Answers 408 to one that does not arrive
    within BODY_SECS, and 431 to headers over MAX_HEADER_BYTES."""

    # FastAPI's own limit would answer in plain text when the length is declared.
    def __init__(self, app: ASGIApp, max_bytes: int, flow_bytes: int, file_bytes: int) -> None:
        super().__init__(app)
        self._max_bytes = max_bytes
        self._flow_bytes = flow_bytes
        self._file_bytes = file_bytes

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            await problem_response(431, path=scope["path"])(scope, receive, send)
            return
        max_bytes = self._limit(scope["path"])
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > max_bytes:
            await problem_response(413, path=scope["path"])(scope, receive, send)
            return
        received = 0
        whole = False
        deadline = asyncio.get_running_loop().time() + BODY_SECS

        async def receive_limited() -> Message:
            nonlocal received, whole
            try:
                # Behind the body only the end of the connection is waited for.
                async with asyncio.timeout_at(None if whole else deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408) from None
            whole = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise HTTPException(413)
            return message

        await self.app(scope, receive_limited, send)

    def _limit(self, path: str) -> int:
        if path == "/attachments":
            return self._file_bytes
        return self._flow_bytes if carries_flow(path) else self._max_bytes
