"""Runs the app: the socket, the bind rule, signals, draining."""

import asyncio
import contextlib
import errno
import ipaddress
import signal
import socket
from collections.abc import Callable, Generator
from typing import ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from flowise_dev_agent.api.middleware import MAX_HEADER_BYTES, PROBES
from flowise_dev_agent.api.problems import problem_response
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import ServerSettings

#: How long requests in flight may take after SIGTERM.
_GRACEFUL_SECS = 8
#: How long a client may take to send the request line and the headers.
HEADER_SECS = 15.0
#: The header `Date` is renewed so often.
_TICK_SECS = 1.0


def bind(server: ServerSettings) -> socket.socket:
    """A listening socket for the settings' host and port (0 takes a free one).

    Raises ConfigurationError when other machines can reach the host and AGENT_API_KEY is not set, when the port is in
    use, or when the address does not belong to this machine.
    """
    host, port = server.host, server.port
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ConfigurationError(
            f"The host name {host!r} cannot be resolved.", hint="Correct AGENT_API_HOST or --host."
        ) from None
    if server.api_key is None and not ipaddress.ip_address(address[0]).is_loopback:
        raise ConfigurationError(
            f"Other machines can reach {host}: to listen there the service needs AGENT_API_KEY.",
            hint="Set AGENT_API_KEY to a long random text, or use --host 127.0.0.1.",
        )
    listener = socket.socket(family, kind, proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"Port {port} on {host} is in use by another program.",
                hint="Stop that program, or choose another port with --port or AGENT_API_PORT.",
            ) from None
        raise ConfigurationError(
            f"Cannot listen on {host} port {port}: {error.strerror}.",
            hint="Choose another address with --host and --port.",
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """The address at which a person reaches a listener."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    name = "localhost" if address.is_loopback or address.is_unspecified else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


class TimedProtocol(H11Protocol):
    """Closes connections that leave a request half sent: a request line and headers must arrive within HEADER_SECS.

    Of more than `most_waiting` such connections of a server the oldest is closed at once, so that however many somebody
    opens, the others find a place.
    """

    #: Oldest first.
    waiting: ClassVar[dict["TimedProtocol", None]]
    most_waiting: ClassVar[int]
    _unfinished: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect_headers()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        if self._unfinished is not None:
            return
        self._unfinished = self.loop.call_later(HEADER_SECS, self.transport.close)
        self.waiting[self] = None
        if len(self.waiting) > self.most_waiting:
            oldest = next(iter(self.waiting))
            oldest._stop_waiting()
            oldest.transport.close()

    def _stop_waiting(self) -> None:
        if self._unfinished is not None:
            self._unfinished.cancel()
            self._unfinished = None
            self.waiting.pop(self, None)


def _protocol(max_connections: int) -> type[TimedProtocol]:
    """The protocol of one server. Half of its connections may be waiting."""

    class Protocol(TimedProtocol):
        waiting: ClassVar[dict[TimedProtocol, None]] = {}
        most_waiting: ClassVar[int] = max(1, max_connections // 2)

    return Protocol


class _Places:
    """Answers 503 at once while a server has more connections than it may, except to PROBES."""

    def __init__(self, app: ASGIApp, most: int, count: Callable[[], int]) -> None:
        self._app = app
        self._most = most
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES and self._count() > self._most:
            refusal = problem_response(503, path=scope["path"], headers={"Connection": "close"})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


class Server(uvicorn.Server):
    """uvicorn that tells the app at once when it must stop, so that waiting requests are answered and streams end.

    After a signal `serve` returns instead of raising it again: its caller has more to stop.
    """

    def __init__(self, app: FastAPI) -> None:
        max_connections = app.state.settings.server.max_connections
        config = uvicorn.Config(
            _Places(app, max_connections, lambda: len(self.server_state.connections)),
            lifespan="on",
            http=_protocol(max_connections),
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            # Our own logging. The event log says more about a session than a line for each request.
            log_config=None,
            log_level="warning",
            access_log=False,
            # The rate limit counts by client address: only these may state it.
            forwarded_allow_ips=app.state.settings.server.forwarded_allow_ips,
            timeout_graceful_shutdown=_GRACEFUL_SECS,
            server_header=False,
        )
        super().__init__(config)
        self._app = app
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Begin to drain, as SIGTERM does. Call it from the server's own loop."""
        self._app.state.stopping = True
        self._app.state.engine.feed.end_streams()
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        """Run as the base class does, without polling ten times a second for a stop."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK_SECS)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """SIGINT and SIGTERM start draining; a second Ctrl-C stops at once."""
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.stop()

        caught: list[signal.Signals] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            # Not possible outside the main thread or on Windows: there the caller uses `stop`.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, on_signal, number)
                caught.append(number)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)
