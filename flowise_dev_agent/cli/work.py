"""`worker`: sessions without an API."""

import asyncio
import contextlib
import signal
import socket

from flowise_dev_agent.cli.console import say
from flowise_dev_agent.cli.startup import become_ready
from flowise_dev_agent.runtime.runtime import Runtime
from flowise_dev_agent.settings import Settings


async def work(settings: Settings, listener: socket.socket | None = None) -> None:
    """Run a worker until SIGINT or SIGTERM; on `listener` it tells how it is."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: there Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stop.set)
    async with Runtime.open(settings, worker=True) as engine:
        await become_ready(settings)
        say("The worker takes up sessions. Ctrl-C ends it.")
        if listener is None or stop.is_set():
            await stop.wait()
        else:
            await _tell(settings, engine, listener)
        say("Handing back what is running ...")


async def _tell(settings: Settings, engine: Runtime, listener: socket.socket) -> None:
    """Serve /live, /ready and /metrics until a signal."""
    from flowise_dev_agent.api import create_worker_app
    from flowise_dev_agent.api.server import Server, url_of

    listener.listen()
    say(f"Its metrics are at {url_of(listener)}/metrics.")
    await Server(create_worker_app(settings, engine)).serve(sockets=[listener])
