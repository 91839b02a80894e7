"""`serve` and `worker`: the processes that run until they are stopped."""

import asyncio
import contextlib
import ctypes
import gc
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from flowise_dev_agent.cli.console import say, warn
from flowise_dev_agent.cli.startup import with_secrets_key
from flowise_dev_agent.ops.instances import flowise_health
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.settings import Settings

if TYPE_CHECKING:
    # A worker without metrics needs no web framework: the functions that do import it.
    from flowise_dev_agent.api.server import Server

#: So many new objects are looked at together; they are about 4 MB.
_COLLECT_AFTER: Final = 20_000
#: Parameters in malloc.h, and glibc's own value of both at the start.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_BYTES: Final = 128 * 1024
#: Called once the service accepts requests, with its address and the server (to stop it).
OnReady = Callable[[str, "Server"], None]


async def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    worker: bool = True,
    paused: bool = False,
    on_ready: OnReady | None = None,
) -> None:
    """Run the API, with a worker in the same process, until SIGINT or SIGTERM; then hand running sessions back."""
    from flowise_dev_agent.api import create_app
    from flowise_dev_agent.api.server import Server, url_of

    # Processes apart need one key for all of them, which the operator sets.
    settings = with_secrets_key(settings, make=worker)
    async with Runtime.open(settings, worker=worker, paused=paused) as runtime:
        await _prepare(runtime)
        server = Server(create_app(settings, runtime))
        url = url_of(listener)
        say(f"Flowise Dev Agent is running at {url} (API reference: {url}/docs). Press Ctrl-C to stop.")
        if settings.server.api_key is None:
            say("AGENT_API_KEY is not set: only this machine can reach the service, and every user of it can use it.")
        listener.listen()
        if on_ready:
            on_ready(url, server)
        await server.serve(sockets=[listener])


def open_listener(settings: Settings, host: str | None, port: int | None) -> tuple[Settings, socket.socket]:
    """The socket to serve on, and the settings with its host and port. Raises what `api.server.bind` raises."""
    from flowise_dev_agent.api.server import bind

    given = {"host": host, "port": port}
    server = settings.server.model_copy(update={name: value for name, value in given.items() if value is not None})
    return settings.model_copy(update={"server": server}), bind(server)


async def work(settings: Settings, listener: socket.socket | None = None) -> None:
    """Run a worker until SIGINT or SIGTERM; on `listener` it serves /live, /ready and /metrics."""
    settings = with_secrets_key(settings, make=False)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: there Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stop.set)
    async with Runtime.open(settings, worker=True) as runtime:
        await _prepare(runtime)
        say("The worker is running. Press Ctrl-C to stop.")
        if listener is None or stop.is_set():
            await stop.wait()
        else:
            await _serve_metrics(settings, runtime, listener)
        say("Handing running sessions back ...")


async def _serve_metrics(settings: Settings, runtime: Runtime, listener: socket.socket) -> None:
    from flowise_dev_agent.api import create_worker_app
    from flowise_dev_agent.api.server import Server, url_of

    listener.listen()
    say(f"Metrics are at {url_of(listener)}/metrics.")
    await Server(create_worker_app(settings, runtime)).serve(sockets=[listener])


async def _prepare(runtime: Runtime) -> None:
    """Exclude all loaded objects from garbage collection, have freed memory given back, and warn of a Flowise that
    does not answer.

    A full collection over the modules blocks the event loop, with all streams and heartbeats, for a tenth of a second.
    Collecting less often finds fewer objects that a session still needs.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    gc.enable()
    _give_memory_back()
    if (await runtime.health.readiness()).paused:
        warn("The service is paused: nothing is run, sent or removed until `flowise-dev-agent resume`.")
    for instance, state in (await flowise_health(runtime.instances)).items():
        if error := state.error:
            # It would stop the first session; the service starts all the same.
            warn(f"Flowise instance '{instance}': {error.detail} {error.hint or ''}".rstrip())


def _give_memory_back() -> None:
    """Let glibc return what is freed. By itself it keeps more after each large buffer that it has seen: 32 MB after the
    first sessions."""
    with contextlib.suppress(AttributeError, TypeError):  # another C library; Windows
        libc = ctypes.CDLL(None)
        for name in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            libc.mallopt(name, _BYTES)
