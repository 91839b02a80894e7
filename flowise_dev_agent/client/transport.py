"""Requests to the service, and its errors in words: what all calls of the client stand on."""

from collections.abc import Mapping
from typing import Any, Final, Self, TypeVar

import httpx2
from pydantic import BaseModel, SecretStr

from flowise_dev_agent.caller import Door, RequestIds
from flowise_dev_agent.client.errors import ServiceError, ServiceUnreachableError

M = TypeVar("M", bound=BaseModel)
CONNECT_SECS: Final = 5.0


class Http:
    """One service at `base_url`."""

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        api_key: SecretStr | None = None,
        *,
        timeout: float = 30.0,
        reconnects: int = 30,
        transport: httpx2.AsyncBaseTransport | None = None,
        door: Door = "rest",
        request: RequestIds | None = None,
        owner: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
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

    async def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        wait: float,
        idempotency_key: str | None,
        instance: str | None = None,
    ) -> Any:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        params = {"wait": wait} | ({"instance": instance} if instance else {})
        timeout = httpx2.Timeout(self._timeout + wait, connect=CONNECT_SECS)
        return await self._call("POST", path, json=body, params=params, headers=headers, timeout=timeout)

    async def _find(self, path: str, query: str, instance: str | None, limit: int) -> Any:
        given = {"query": query, "instance": instance, "limit": limit}
        return await self._call("GET", path, params={name: value for name, value in given.items() if value is not None})

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        with self._in_words():
            response = await self._http.request(method, path, **options)
        if response.is_error:
            raise problem_of(response)
        return response.json() if response.content else None

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


def read_answer(model: type[M], body: Any) -> M:
    """An answer of the service, which may be newer than this client: fields that it does not know are left out."""
    return model.model_validate(body, extra="ignore")


def problem_of(response: httpx2.Response) -> ServiceError:
    try:
        body: Any = response.json()
    except ValueError:
        body = {}
    return ServiceError(response.status_code, body if isinstance(body, dict) else {})
