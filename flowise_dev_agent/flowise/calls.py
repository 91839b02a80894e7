"""Base of a Flowise client: the connection, time limits, and answers read as models."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import SecretStr, TypeAdapter, ValidationError

from flowise_dev_agent.errors import FlowiseUnexpectedResponseError
from flowise_dev_agent.flowise.transport import OnCall, Transport
from flowise_dev_agent.texts import text

_T = TypeVar("_T")
_ROWS: TypeAdapter[list[Any]] = TypeAdapter(list[dict[str, Any]])


class FlowiseCalls:
    """The base of `FlowiseClient`; see there for the parameters."""

    def __init__(
        self,
        endpoint: str,
        api_key: SecretStr | None,
        *,
        headers: Mapping[str, SecretStr] | None = None,
        timeout: float = 15,
        connect_timeout: float = 5,
        prediction_timeout: float = 60,
        on_call: OnCall | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout = timeout
        self._prediction_timeout = prediction_timeout
        self._transport = Transport(
            endpoint,
            api_key,
            headers=headers,
            connect_timeout=connect_timeout,
            ordinary_secs=timeout,
            on_call=on_call,
            transport=transport,
        )

    @property
    def endpoint(self) -> str:
        """Base address of the server, without a slash at the end."""
        return self._transport.endpoint

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of any route, for probes. Raises FlowiseError."""
        return await self._transport.call(method, path, total_secs=self._timeout, body=body)

    async def _get(self, path: str, *, params: Mapping[str, str | int] | None = None, route: str | None = None) -> Any:
        return await self._transport.call("GET", path, total_secs=self._timeout, route=route, params=params)

    async def _post(self, path: str, body: Any, *, route: str | None = None, total_secs: float | None = None) -> Any:
        return await self._transport.call("POST", path, total_secs=total_secs or self._timeout, route=route, body=body)

    def _rows(self, body: Any, call: str) -> list[Any]:
        return self._parse(_ROWS, body, call)

    def _parse(self, kind: type[_T] | TypeAdapter[_T], body: Any, call: str) -> _T:
        adapter: TypeAdapter[_T] = kind if isinstance(kind, TypeAdapter) else _adapter(kind)
        try:
            return adapter.validate_python(body)
        except ValidationError as error:
            where = ", ".join(sorted({".".join(str(part) for part in item["loc"]) for item in error.errors()})[:5])
            raise self._odd(call, text("error.flowise_odd_shape", where=where or ".")) from None

    def _odd(self, call: str, what: str) -> FlowiseUnexpectedResponseError:
        return FlowiseUnexpectedResponseError(
            text("error.flowise_odd", endpoint=self.endpoint, call=call, what=what),
            hint=text("error.check_flowise_version"),
            details={"call": call},
        )


@lru_cache(maxsize=64)
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def segment(text: str) -> str:
    """A part of a path, quoted."""
    return quote(text, safe="")
