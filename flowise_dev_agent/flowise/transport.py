"""One bounded HTTP call to Flowise, with the retries that are safe."""

import asyncio
import base64
import random
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
from opentelemetry.trace import SpanKind
from pydantic import SecretStr

from flowise_dev_agent.errors import (
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseTimeoutError,
    FlowiseUnexpectedResponseError,
    FlowiseUnreachableError,
)
from flowise_dev_agent.flowise.responses import error_for, read_json
from flowise_dev_agent.observability.metrics import FLOWISE_SECONDS, timed
from flowise_dev_agent.observability.tracing import failed, span, trace_headers
from flowise_dev_agent.texts import text

_GET_RETRIES = 2
_BACKOFF_SECS = 0.2
_MAX_RETRY_AFTER_SECS = 5.0
_RETRY_STATUS = frozenset({429, 502, 503, 504})
_MAX_BODY_BYTES = 64 * 1024 * 1024
# Node closes idle connections after 5 s. Ours expire before, so that a write never starts on one that is closing.
_KEEPALIVE_SECS = 2.0
#: Calls of a kind that are sent at once; further ones wait for their turn.
_AT_ONCE = 20

#: Called with the method and the route of every request that is sent, e.g. "GET /chatflows".
OnCall = Callable[[str], None]


class Transport:
    """Sends requests to one Flowise server under `/api/v1`.

    GET is tried three times on transport errors, timeouts, 429 and 502-504. Nothing else is ever sent twice: an error
    of a write does not prove that nothing was written.

    Calls that may take longer than `ordinary_secs`, such as predictions, have places of their own: however many models
    answer slowly, a short call is sent at once.
    """

    def __init__(
        self,
        endpoint: str,
        api_key: SecretStr | None,
        *,
        headers: Mapping[str, SecretStr] | None = None,
        connect_timeout: float,
        ordinary_secs: float,
        on_call: OnCall | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.endpoint = without_login(endpoint).rstrip("/").removesuffix("/api/v1")
        self._on_call = on_call
        where = urlsplit(self.endpoint)
        #: Of its spans.
        self._about = {"server.address": where.hostname or ""}
        self._http = httpx2.AsyncClient(
            base_url=f"{self.endpoint}/api/v1",
            headers=_login(endpoint, api_key) | {name: one.get_secret_value() for name, one in (headers or {}).items()},
            # asyncio.timeout limits the total; this limits the connect only.
            timeout=httpx2.Timeout(None, connect=connect_timeout),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_SECS),
            transport=transport,
        )
        self._ordinary_secs = ordinary_secs
        self._short, self._long = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        total_secs: float,
        route: str | None = None,
        params: Mapping[str, str | int] | None = None,
        body: Any = None,
    ) -> Any:
        """The JSON that `method path` answers with, within `total_secs` seconds per try.

        `route` is the path without ids, for the counter.

        Raises:
            FlowiseError: always one of its subclasses, naming the endpoint and the call.
        """
        response, content = await self.send(method, path, total_secs=total_secs, route=route, params=params, body=body)
        return read_json(response, content, call=f"{method} {path}", endpoint=self.endpoint)

    async def send(
        self,
        method: str,
        path: str,
        *,
        total_secs: float,
        route: str | None = None,
        params: Mapping[str, str | int] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[httpx2.Response, bytes]:
        """Like `call`, but the raw response (2xx, or 304 to a conditional request) and its body."""
        tries = 1 + (_GET_RETRIES if method == "GET" else 0)
        for attempt in range(tries):
            last = attempt == tries - 1
            try:
                response, content, error = await self._tried(
                    method, path, route or path, total_secs, params, body, headers
                )
            except (FlowiseUnreachableError, FlowiseTimeoutError, FlowiseConnectionLostError):
                if last:
                    raise
                await asyncio.sleep(_backoff(attempt))
                continue
            if error is None:
                return response, content
            wait = _retry_after(response, attempt)
            if last or response.status_code not in _RETRY_STATUS or wait > _MAX_RETRY_AFTER_SECS:
                raise error
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _tried(
        self,
        method: str,
        path: str,
        route: str,
        total_secs: float,
        params: Mapping[str, str | int] | None,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> tuple[httpx2.Response, bytes, FlowiseError | None]:
        """One try, counted, timed and traced: the response, its body, and the error that it stands for.

        The wait for a place counts for none of it.
        """
        name, about = f"{method} {route}", {"http.request.method": method, **self._about}
        places = self._long if total_secs > self._ordinary_secs else self._short
        async with places:
            if self._on_call:
                self._on_call(name)
            with span(name, about, kind=SpanKind.CLIENT) as current, timed(FLOWISE_SECONDS, name) as outcome:
                response, content = await self._once(method, path, total_secs, params, body, headers)
                current.set_attribute("http.response.status_code", response.status_code)
                if response.is_success or (response.status_code == 304 and headers):
                    return response, content, None
                error = error_for(response, content, call=f"{method} {path}", endpoint=self.endpoint)
                outcome.result = error.code
                failed(current, error.code)
                return response, content, error

    async def _once(
        self,
        method: str,
        path: str,
        total_secs: float,
        params: Mapping[str, str | int] | None,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> tuple[httpx2.Response, bytes]:
        call = f"{method} {path}"
        sent = {**(headers or {}), **trace_headers()}
        try:
            async with (
                asyncio.timeout(total_secs),
                self._http.stream(method, path, params=params, json=body, headers=sent) as response,
            ):
                return response, await self._read(response, call)
        except TimeoutError:
            raise FlowiseTimeoutError(
                text("error.flowise_timeout", endpoint=self.endpoint, call=call, seconds=f"{total_secs:g}"),
                hint=text("error.may_still_complete" if method != "GET" else "error.check_server_or_timeout"),
                details={"call": call},
            ) from None
        except httpx2.RequestError as error:
            raise self._transport_error(error, call) from error

    async def _read(self, response: httpx2.Response, call: str) -> bytes:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > _MAX_BODY_BYTES:
                raise FlowiseUnexpectedResponseError(
                    text(
                        "error.flowise_odd",
                        endpoint=self.endpoint,
                        call=call,
                        what=text("error.flowise_odd_large", mb=_MAX_BODY_BYTES // 2**20),
                    ),
                    details={"call": call},
                )
        return bytes(content)

    def _transport_error(self, error: httpx2.RequestError, call: str) -> FlowiseError:
        not_sent = (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.ProxyError,
            httpx2.UnsupportedProtocol,
        )
        if isinstance(error, not_sent):
            return FlowiseUnreachableError(
                text("error.flowise_unreachable", endpoint=self.endpoint, name=str(error) or type(error).__name__),
                hint=text("error.check_flowise_address"),
                details={"call": call},
            )
        return FlowiseConnectionLostError(
            text("error.flowise_connection_lost", endpoint=self.endpoint, call=call, name=type(error).__name__),
            hint=text("error.look_before_retry"),
            details={"call": call},
        )


def without_login(address: str) -> str:
    """An address without the user and password that it may have."""
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else address


def _login(endpoint: str, api_key: SecretStr | None) -> dict[str, str]:
    """The header of the API key, or of a login in the address (basic auth): a request has one of them."""
    if api_key:
        return {"Authorization": f"Bearer {api_key.get_secret_value()}"}
    where = urlsplit(endpoint)
    if where.username is None:
        return {}
    login = f"{unquote(where.username)}:{unquote(where.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _backoff(attempt: int) -> float:
    return _BACKOFF_SECS * 2**attempt * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret


def _retry_after(response: httpx2.Response, attempt: int) -> float:
    """Seconds to wait before the next try: the server's `Retry-After` if it is a number, else the backoff."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return _backoff(attempt)
