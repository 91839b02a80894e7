"""HTTP requests to the service, and its errors as exceptions: the base of all calls."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TypeVar
from uuid import uuid4

import httpx2
from pydantic import BaseModel, SecretStr
from pydantic_core import to_jsonable_python

from flowise_dev_agent.caller import Door, RequestIds
from flowise_dev_agent.errors import AgentError


class ServiceError(AgentError, code="service_error"):
    """The service answered with a problem. `problem_code` is its stable code, `status` the HTTP status."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(
            str(problem.get("detail") or f"The service answered {status}."),
            hint=problem.get("hint"),
            details=problem.get("details"),
        )
        self.status = status
        self.problem_code = str(problem.get("code", "http_error"))

    def as_problem(self) -> dict[str, Any]:
        """The problem as the service sent it."""
        return super().as_problem() | {"code": self.problem_code}


class ServiceUnreachableError(AgentError, code="service_unreachable", transient=True):
    """Raised if no service answers at this address."""


M = TypeVar("M", bound=BaseModel)
CONNECT_SECS: Final = 5.0
#: Keep-alive comments come at shorter intervals; so much silence means a dead connection.
_STREAM_SILENCE_SECS: Final = 90.0
#: Pause before the first repetition; doubled before each further one.
PAUSE_SECS: Final = 0.2
#: Calls are not repeated if the service asks for a longer pause.
_LONGEST_PAUSE_SECS: Final = 5.0
#: Transient statuses: too many requests; the service or its database is away for a moment.
_PASSING: Final = frozenset({429, 503})


class Http:
    """HTTP access to one service at `base_url`."""

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        api_key: SecretStr | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        reconnects: int = 30,
        transport: httpx2.AsyncBaseTransport | None = None,
        door: Door = "rest",
        request: RequestIds | None = None,
        owner: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._retries = retries
        self._reconnects = reconnects
        self._timeout = timeout
        headers = {"X-Door": door}
        if request and request.id and request.traceparent:
            headers |= {"X-Request-Id": request.id, "traceparent": request.traceparent}
        if owner:
            headers["X-Owner"] = owner
        if api_key:
            headers["Authorization"] = f"Bearer {api_key.get_secret_value()}"
        self._http = httpx2.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            timeout=httpx2.Timeout(timeout, connect=CONNECT_SECS),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _get(self, model: type[M], path: str, /, **params: Any) -> M:
        """GET a path and parse the answer; params that are None are left out."""
        return read_answer(model, await self._call("GET", path, params=given(params)))

    async def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        wait: float,
        idempotency_key: str | None,
        instance: str | None = None,
        if_match: str | None = None,
    ) -> Any:
        """POST a request that starts something. Its idempotency key makes repetitions safe."""
        return await self._call(
            "POST",
            path,
            json=body,
            params=given({"wait": wait, "instance": instance}),
            headers={"Idempotency-Key": idempotency_key or uuid4().hex, **if_still(if_match)},
            timeout=httpx2.Timeout(self._timeout + wait, connect=CONNECT_SECS),
            repeatable=True,
        )

    async def _call(self, method: str, path: str, *, repeatable: bool | None = None, **options: Any) -> Any:
        response = await self._send(method, path, repeatable=repeatable, **options)
        return response.json() if response.content else None

    async def _send(self, method: str, path: str, *, repeatable: bool | None = None, **options: Any) -> httpx2.Response:
        """Send a request; repeat it on transient errors if that can start nothing twice."""
        left = self._retries if repeatable or (repeatable is None and method != "POST") else 0
        pause = PAUSE_SECS
        while True:
            try:
                with self._in_words():
                    response = await self._http.request(method, path, **options)
            except ServiceUnreachableError:
                if not left:
                    raise
            else:
                asked = _requested_pause(response)
                if response.status_code not in _PASSING or not left or asked > _LONGEST_PAUSE_SECS:
                    break
                pause = max(pause, asked)
            left -= 1
            await asyncio.sleep(pause)
            pause *= 2
        if response.is_error:
            raise problem_of(response)
        return response

    @asynccontextmanager
    async def _frames(self, method: str, path: str, **options: Any) -> AsyncGenerator[AsyncIterator[str]]:
        """Stream the data of each server-sent event."""
        timeout = httpx2.Timeout(_STREAM_SILENCE_SECS, connect=CONNECT_SECS)
        with self._in_words():
            async with self._http.stream(method, path, timeout=timeout, **options) as response:
                if response.is_error:
                    await response.aread()
                    raise problem_of(response)

                async def frames() -> AsyncIterator[str]:
                    async for frame in httpx2.EventSource(response):
                        if frame.data:
                            yield frame.data

                yield frames()

    def _in_words(self) -> "_InWords":
        return _InWords(self.base_url)


class _InWords:
    """Turns transport errors into `ServiceUnreachableError`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, httpx2.TransportError | httpx2.InvalidURL):
            raise ServiceUnreachableError(
                f"No service answers at {self._base_url} ({type(error).__name__}).",
                hint="Start it with `flowise-dev-agent serve`, or name another address with --url.",
            ) from error


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def if_still(etag: str | None) -> dict[str, str]:
    """The If-Match header for this ETag; none for None."""
    return {} if etag is None else {"If-Match": etag}


def with_secrets(body: BaseModel) -> Any:
    """Dump a body to JSON with its secrets in plain text, which a model would mask."""

    def opened(value: Any) -> Any:
        match value:
            case SecretStr():
                return value.get_secret_value()
            case dict():
                return {name: opened(item) for name, item in value.items()}
            case _:
                return value

    return to_jsonable_python(opened(body.model_dump(exclude_unset=True)))


def _requested_pause(response: httpx2.Response) -> float:
    """The pause in seconds that the service asks for."""
    asked = response.headers.get("retry-after", "0")
    return float(asked) if asked.isdecimal() else 0.0


def read_answer(model: type[M], body: Any) -> M:
    """Parse an answer of the service. Unknown fields are ignored, since the service may be newer than this client."""
    return model.model_validate(body, extra="ignore")


def problem_of(response: httpx2.Response) -> ServiceError:
    try:
        body: Any = response.json()
    except ValueError:
        body = {}
    return ServiceError(response.status_code, body if isinstance(body, dict) else {})
