"""The network side of the HTTP clients, by asyncio itself.

httpcore's own goes through anyio, which makes a scope of cancellation for each read: a hundred function calls for each
piece of text that a model writes.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore2
import httpx2
from httpcore2 import ConnectError, ConnectTimeout, ReadError, ReadTimeout, WriteError, WriteTimeout

#: One address of a server gets so long before the next one is tried beside it (RFC 8305).
_NEXT_ADDRESS_SECS: Final = 0.25
#: What has come in is read at once from here on. Twice as much, and the sender has to wait.
_LOT: Final = 32 * 1024
#: A read that brings less is one of a trickle.
_LITTLE: Final = 4 * 1024
#: Of the time since the request, that a pause between two reads takes at most: an answer that is soon there is not held
#: up.
_SHARE: Final = 0.05
_INFO: Final = {"client_addr": "sockname", "server_addr": "peername"}

_SocketOptions = Iterable[Any] | None


def read_by_asyncio(client: httpx2.AsyncClient, *, gather_secs: float = 0.0) -> httpx2.AsyncClient:
    """Let a client use this module, its proxies included.

    With `gather_secs` an answer that trickles is read at most so often: each read costs the same, whatever it brings.
    """
    # Private names: tests/contract fails when they change.
    own = vars(client)
    for transport in (own["_transport"], *own["_mounts"].values()):
        if isinstance(transport, httpx2.AsyncHTTPTransport):
            vars(vars(transport)["_pool"])["_network_backend"] = _Backend(gather_secs)
    return client


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, gather_secs: float) -> None:
        self._gather_secs = gather_secs

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore
        local_address: str | None = None,
        socket_options: _SocketOptions = None,
    ) -> "Connection":
        try:
            async with asyncio.timeout(timeout):
                connected = await _connected(host, port, local_address)
        except TimeoutError:
            raise ConnectTimeout from None
        except OSError as error:
            raise ConnectError(str(error)) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in socket_options or ():
            connected.setsockopt(*option)
        connection = Connection(self._gather_secs)
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=connected)
        return connection

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _connected(host: str, port: int, local_address: str | None) -> socket.socket:
    """A socket that is connected to the first address of the host that answers. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # Of both kinds in turn: when one does not work, none of its addresses does.
    first = [one for one in found if one[0] == found[0][0]]
    others = [one for one in found if one[0] != found[0][0]]
    order = [one for pair in zip(first, others, strict=False) for one in pair]
    order += first[len(others) :] + others[len(first) :]
    tasks: set[asyncio.Task[socket.socket]] = set()
    failed: Exception = OSError(f"{host} has no address")
    try:
        while order or tasks:
            if order:
                family, *_, address = order.pop(0)
                tasks.add(loop.create_task(_connect(family, address, local_address)))
            done, tasks = await asyncio.wait(
                tasks, timeout=_NEXT_ADDRESS_SECS if order else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                if (error := task.exception()) is None:
                    return task.result()
                failed = error if isinstance(error, Exception) else failed
        raise failed
    finally:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_close_late)


async def _connect(family: int, address: Any, local_address: str | None) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        if local_address is not None:
            made.bind((local_address, 0))
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _close_late(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


class Connection(httpcore2.AsyncNetworkStream, asyncio.Protocol):
    """One connection: what asyncio tells it becomes what httpcore asks for."""

    def __init__(self, gather_secs: float) -> None:
        self._gather_secs = gather_secs
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._received = bytearray()
        #: The other side sends no more.
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        #: Before this time a trickle is not read again.
        self._not_before = 0.0
        self._asked_at = 0.0
        self._is_paused = False

    # --- what asyncio tells ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= 2 * _LOT:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> None:
        self._ended = True
        self._wake_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake_reader()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        _settle(self._writer)
        self._writer = None

    def _wake_reader(self) -> None:
        if self._is_readable() and self._reader is not None:
            _settle(self._reader)

    def _end_gathering(self) -> None:
        self._not_before = 0.0
        self._wake_reader()

    def _is_readable(self) -> bool:
        if self._ended or len(self._received) >= _LOT:
            return True
        return bool(self._received) and self._loop.time() >= self._not_before

    # --- what httpcore asks for --------------------------------------------------------------------------------------

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if not self._is_readable():
            await self._wait(timeout)
        if not self._received and self._error is not None:
            raise ReadError(str(self._error)) from self._error
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._gather_secs and len(data) < _LITTLE:
            now = self._loop.time()
            self._not_before = now + min(self._gather_secs, (now - self._asked_at) * _SHARE)
        if self._is_paused and not self._ended and len(self._received) < _LOT:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self, timeout: float | None) -> None:  # noqa: ASYNC109
        self._reader = reader = self._loop.create_future()
        timers: list[asyncio.TimerHandle] = []
        if timeout is not None:
            timers.append(self._loop.call_later(timeout, _fail, reader, ReadTimeout()))
        if self._not_before > self._loop.time():
            timers.append(self._loop.call_at(self._not_before, self._end_gathering))
        try:
            await reader
        finally:
            self._reader = None
            for timer in timers:
                timer.cancel()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if self._transport.is_closing():
            raise WriteError("The connection is closed.") from self._error
        self._not_before = 0.0
        self._asked_at = self._loop.time()
        self._transport.write(buffer)
        if self._writer is not None:
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(self._writer)
            except TimeoutError:
                raise WriteTimeout from None

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> "Connection":
        try:
            async with asyncio.timeout(timeout):
                self._transport = await self._loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError:
            await self.aclose()
            raise ConnectTimeout from None
        except OSError as error:
            await self.aclose()
            raise ConnectError(str(error)) from error
        return self

    async def aclose(self) -> None:
        self._transport.abort()
        # It is closed in the next turn of the loop.
        await asyncio.sleep(0)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._ended or bool(self._received)
        return self._transport.get_extra_info(_INFO.get(info, info))


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _fail(future: asyncio.Future[None], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
