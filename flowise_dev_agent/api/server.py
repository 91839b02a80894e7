"""Running the app: the socket, the bind rule, signals, draining."""

import asyncio
import contextlib
import errno
import ipaddress
import signal
import socket
from collections.abc import Generator

import uvicorn
from fastapi import FastAPI

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import ServerSettings

#: How long requests in flight may take after SIGTERM.
_GRACEFUL_SECS = 8


def bind(server: ServerSettings) -> socket.socket:
    """A listening socket for the settings' host and port (0 takes a free one).

    Raises ConfigurationError when the host is reachable from other machines without AGENT_API_KEY being set, the port
    is taken, or the address is not one of this machine.
    """
    host, port = server.host, server.port
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ConfigurationError(f"The host {host!r} is not known.", hint="Set AGENT_API_HOST or --host.") from None
    if server.api_key is None and not ipaddress.ip_address(address[0]).is_loopback:
        raise ConfigurationError(
            f"Without AGENT_API_KEY the service listens on this machine only, and {host} is open to others.",
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
                f"Port {port} on {host} is taken by another program.",
                hint="End it, or choose another port with --port or AGENT_API_PORT.",
            ) from None
        raise ConfigurationError(
            f"Cannot listen on {host} port {port}: {error.strerror}.", hint="Choose others with --host and --port."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a person reaches what listens there."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    name = "localhost" if address.is_loopback or address.is_unspecified else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


class Server(uvicorn.Server):
    """uvicorn that tells the app at once when it is asked to stop, so that waiting requests answer and streams end.

    It returns from `serve` after a signal instead of raising it again: whoever started it has things to stop as well.
    """

    def __init__(self, app: FastAPI) -> None:
        config = uvicorn.Config(
            app,
            lifespan="on",
            # Our own logging; the event log tells more about a session than a line for each request.
            log_config=None,
            log_level="warning",
            access_log=False,
            # Addresses of clients are for the rate limit: only a proxy on this machine is believed.
            forwarded_allow_ips="127.0.0.1",
            timeout_graceful_shutdown=_GRACEFUL_SECS,
            server_header=False,
        )
        super().__init__(config)
        self._app = app

    def stop(self) -> None:
        """Begin to drain, as SIGTERM does. Call it from the server's own loop."""
        self._app.state.stopping = True
        self._app.state.engine.end_streams()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """SIGINT and SIGTERM begin to drain, a second Ctrl-C ends it at once."""
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.stop()

        caught: list[signal.Signals] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            # Not possible outside of the main thread or on Windows: there the caller uses `stop`.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, on_signal, number)
                caught.append(number)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)
