"""HTTP transport to an ASGI app in this process, without a socket."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx2

logger = logging.getLogger(__name__)

_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


class StreamingASGITransport(httpx2.AsyncBaseTransport):
    """Transport like `httpx2.ASGITransport` that streams responses while the app writes them.

    `client` is the address that the app sees as the caller's. Closing a response before its end cancels the app's task
    for it. Timeouts of the client do not apply.
    """

    def __init__(self, app: _App, *, client: tuple[str, int] | None = None) -> None:
        self._app = app
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _Exchange(self._app, self._scope(request), await request.aread())
        try:
            status, headers = await exchange.started
        except BaseException:
            await exchange.aclose()
            raise
        return httpx2.Response(status, headers=headers, stream=exchange)

    def _scope(self, request: httpx2.Request) -> _Message:
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.split(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": self._client,
            "root_path": "",
        }


class _Exchange(httpx2.AsyncByteStream):
    """One request. The app runs in its own task, at most one chunk ahead of the reader."""

    def __init__(self, app: _App, scope: _Message, body: bytes) -> None:
        #: Status and headers, once the app has sent them; an httpx2 error if it ends without.
        self.started: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self._body: bytes | None = body
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._complete = False
        self._task = asyncio.create_task(self._run(app, scope))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
        if not self._complete:
            raise httpx2.RemoteProtocolError("The app ended in the middle of its response.")

    async def aclose(self) -> None:
        if not self._complete:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self, app: _App, scope: _Message) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception:
            # Starlette answers 500 and raises the error again for the server to log.
            logger.exception("unexpected error in %s %s", scope["method"], scope["path"])
        finally:
            if not self.started.done():
                self.started.set_exception(httpx2.RemoteProtocolError("The app ended without a response."))
        if not self._complete:
            await self._chunks.put(None)

    async def _receive(self) -> _Message:
        if self._body is None:
            # A caller that disconnects cancels the task, so no disconnect is ever reported.
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self.started.set_result((message["status"], list(message.get("headers", []))))
            return
        if chunk := message.get("body", b""):
            await self._chunks.put(chunk)
        if not message.get("more_body", False):
            await self._chunks.put(None)
            self._complete = True
