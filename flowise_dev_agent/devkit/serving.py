"""A small HTTP server in a thread with its own event loop, usable from sync and async code."""

import socket
import threading
import time
from abc import ABC, abstractmethod
from typing import Self

import uvicorn
from starlette.applications import Starlette

from flowise_dev_agent.errors import ConfigurationError

HOST = "127.0.0.1"
_START_SECS = 10.0
_STOP_SECS = 5.0


class BackgroundServer(ABC):
    """Serves `app()` on `http://127.0.0.1:port` (0 takes a free port) between `start` and `stop`."""

    def __init__(self, name: str, port: int = 0) -> None:
        self._name = name
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @abstractmethod
    def app(self) -> Starlette:
        """The app to serve."""

    @property
    def endpoint(self) -> str:
        """Base address, final once `start` has returned."""
        return f"http://{HOST}:{self._port}"

    def start(self) -> Self:
        """Listen; returns once requests are answered. ConfigurationError if the port is taken."""
        listener = self._listen()
        config = uvicorn.Config(
            self.app(), log_config=None, lifespan="on", access_log=False, timeout_graceful_shutdown=1, ws="none"
        )
        server = self._server = uvicorn.Server(config)
        thread = self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name=self._name, daemon=True
        )
        thread.start()
        deadline = time.monotonic() + _START_SECS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise ConfigurationError(f"The {self._name} did not start.")
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        """Stop listening, cutting hanging requests. Does nothing if it is not running."""
        server, self._server = self._server, None
        thread, self._thread = self._thread, None
        if server is not None and thread is not None:
            server.should_exit = True
            thread.join(_STOP_SECS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listen(self) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self._port))
        except OSError as error:
            listener.close()
            raise ConfigurationError(
                f"Port {self._port} on {HOST}, meant for the {self._name}, is in use.",
                hint="End the program that listens there or choose another port.",
            ) from error
        self._port = int(listener.getsockname()[1])
        return listener
